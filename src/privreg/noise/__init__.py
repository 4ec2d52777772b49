"""Noise for private learning: Toeplitz-correlated and tree-aggregated, with its sensitivity."""
