"""Noisy SGD as a diffusion: its risk, and the Rényi loss of three kinds of release."""
