"""Confidence intervals from private iterates, and their exact coverage."""
