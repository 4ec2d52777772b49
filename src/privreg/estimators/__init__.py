"""Estimators for a table of one's own: declared bounds in, coefficients with intervals out."""
