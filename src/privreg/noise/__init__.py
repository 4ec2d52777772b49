"""Noise for private learning: correlated, tree-aggregated and shaped, with its sensitivity."""
