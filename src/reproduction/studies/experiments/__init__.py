"""Recipes of the studies."""
