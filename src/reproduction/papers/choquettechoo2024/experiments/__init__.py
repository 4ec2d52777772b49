"""Recipes of choquettechoo2024, one file each."""
