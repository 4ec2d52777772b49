"""Recipes of chain2026."""
