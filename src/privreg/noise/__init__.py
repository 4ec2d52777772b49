"""Noise for private learning: correlated, tree-aggregated and shaped; sensitivities."""
