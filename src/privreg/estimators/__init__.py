"""Estimators for tables with declared bounds: coefficients with confidence intervals."""
