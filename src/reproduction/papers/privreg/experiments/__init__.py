"""Recipes of privreg's own promises."""
