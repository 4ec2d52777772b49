"""Gradient descent with private noise that is correlated over steps: Noisy-FTRL and relatives."""
