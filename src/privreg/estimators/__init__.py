"""Estimators for your own tables: coefficients with intervals from declared bounds."""
