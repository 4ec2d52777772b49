"""Noisy SGD as a diffusion: its risk, and the Rényi loss of three ways of releasing."""
