"""Gradient descent whose private noise is correlated over steps: Noisy-FTRL and its relatives."""
