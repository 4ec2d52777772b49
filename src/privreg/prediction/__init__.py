"""Predicted error of private runs, before any budget is spent."""
