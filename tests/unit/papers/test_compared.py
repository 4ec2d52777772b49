"""Tables and estimators of the study of methods: bounds, splits, noise, coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.ols import ols
from privreg.privacy.budget import Budget
from reproduction.studies.compared_methods import (
    METHODS,
    Prepared,
    noisy_moments,
    solve_with_ridge,
)
from reproduction.studies.compared_tables import SYNTHETIC, Synthetic


def generator(seed):
    return np.random.Generator(np.random.SFC64(seed))


def prepared(table, seed=0):
    return Prepared(table.draw(generator(seed)), table.declared)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_synthetic_table_has_the_coefficients_that_it_states(name):
    table = Synthetic(name, 50_000, 1)
    rows = prepared(table)
    fit = ols(rows.samples)
    off = rows.in_units(fit.coefficients)[:-1] - table.coefficients[:-1]
    matrix, _ = table.declared.frame.functionals()
    errors = np.diag(matrix[:-1, 1:]) * fit.standard_errors[1:]
    assert np.all(np.abs(off) < 5 * errors)


@pytest.mark.parametrize("name", ["AdaSSP", "noisy moments", "PrivateLinearRegression"])
def test_without_privacy_all_find_the_same_line(name):
    table = Synthetic("flats", 4000, 2000)
    rows = prepared(table)
    fit = METHODS[name](rows, Budget.zcdp(1e12), generator(1), 0.95)
    plain = METHODS["least squares"](rows, Budget.zcdp(1.0), generator(1), 0.95)
    gap = fit.coefficients[:-1] - plain.coefficients[:-1]
    if name == "PrivateLinearRegression":
        # Another estimator: within the sampling errors of both.
        assert np.all(np.abs(gap) < 4 * plain.half_widths)
    else:
        assert np.all(np.abs(gap) < 1e-3 * plain.half_widths)


def test_noise_of_the_moments_is_that_of_the_budget():
    """At a budget where the noise is small, coefficients scatter as the linearised noise says."""
    rows, budget = prepared(Synthetic("normal", 4000, 1)), Budget.zcdp(200.0)
    records = np.column_stack([rows.samples.features, rows.samples.labels])
    moments = records.T @ records
    theta = solve_with_ridge(moments, 0.0)
    matrix, _ = rows.declared.frame.functionals()
    draws = np.array(
        [noisy_moments(rows, budget, generator(seed), 0.95).coefficients for seed in range(400)]
    )
    slope = matrix[0, 1]
    # δθ = G⁻¹(w - Wθ); of W the diagonal has variance s², an entry above it s²/2.
    scale = np.sqrt(2) * (rows.short_norm**2 + 1) / np.sqrt(2 * budget.rho)
    direction = np.linalg.inv(moments[:-1, :-1])[1]
    outer = np.outer(direction, theta)
    symmetric = (outer + outer.T) / 2
    variance = scale**2 * (np.sum(direction**2) / 2 + np.sum(symmetric**2))
    ratio = draws[:, 0].var(ddof=1) / (slope**2 * variance)
    # Four standard errors of a variance from 400 draws; 2/3 and 3/2 of the scale are far outside.
    spread = 4 * np.sqrt(2 / 399)
    assert abs(ratio - 1) < spread
    assert 1 - spread > (2 / 3) ** 2
    assert 1 + spread < (3 / 2) ** 2
