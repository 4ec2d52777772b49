"""Neighbouring relations, zero-concentrated and Rényi privacy, conversions, sensitivities."""
