"""Estimators that are compared, all with the same bounds and the same budget."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.adassp import Bounds, ClippedSums, adassp_zcdp, clipped_sums
from privreg.algorithms.ols import LeastSquares, ols
from privreg.algorithms.samples import ArraySamples
from privreg.estimators.linear_regression import PrivateLinearRegression
from privreg.privacy.budget import Budget
from reproduction.studies.compared_tables import Declared, Drawn

FloatArray = NDArray[np.float64]
# Directions with a smaller eigenvalue, relative to the largest, count as undetermined.
SINGULAR = 1e-10


class Fit(NamedTuple):
    """Coefficients in the table's units, the intercept last, and half-widths for the slopes."""

    coefficients: FloatArray
    half_widths: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """Training rows, and values computed from them that several fits share."""

    drawn: Drawn
    declared: Declared

    @cached_property
    def samples(self) -> ArraySamples:
        """Rows (1, x) and labels, mapped into [-1, 1]."""
        frame = self.declared.frame
        return ArraySamples(frame.rows(self.drawn.features), frame.labels(self.drawn.labels))

    @cached_property
    def short_samples(self) -> ArraySamples:
        """Samples with one-hot columns in {0, 1} in place of {-1, 1}, which makes rows shorter."""
        return ArraySamples(self.samples.features @ self.shortening, self.samples.labels)

    @cached_property
    def shortening(self) -> FloatArray:
        """Matrix from rows with one-hot columns in {-1, 1} to rows with them in {0, 1}."""
        columns = 1 + np.flatnonzero(self.declared.categories)
        matrix = np.eye(1 + len(self.declared.categories))
        matrix[columns, columns] = matrix[0, columns] = 0.5
        return matrix

    @property
    def short_norm(self) -> float:
        """Largest length of a short row: at most one of the one-hot columns is 1."""
        categories = self.declared.categories
        return float(np.sqrt(1 + np.sum(~categories) + np.any(categories)))

    @cached_property
    def sums(self) -> ClippedSums:
        return clipped_sums(self.short_samples, bounds=Bounds(self.short_norm, 1.0))

    @cached_property
    def least_squares(self) -> LeastSquares:
        """Least squares of minimum norm; undetermined coefficients have infinite errors."""
        rows, labels = self.samples.features, self.samples.labels
        try:
            return ols(self.samples)
        except ValueError:
            values, vectors = np.linalg.eigh(rows.T @ rows)
        known = values > SINGULAR * values[-1]
        coefficients = vectors[:, known] @ (vectors[:, known].T @ (rows.T @ labels) / values[known])
        freedom = len(rows) - int(np.sum(known))
        variance = float(np.sum((labels - rows @ coefficients) ** 2)) / freedom
        errors = np.sqrt(variance * (vectors[:, known] ** 2 @ (1 / values[known])))
        undetermined = np.sum(vectors[:, ~known] ** 2, axis=1) > SINGULAR
        return LeastSquares(coefficients, np.where(undetermined, np.inf, errors), freedom)

    def in_units(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients in the table's own units, from those of mapped rows."""
        matrix, offset = self.declared.frame.functionals()
        return matrix @ coefficients + offset


def private_linear_regression(
    table: Prepared, budget: Budget, rng: np.random.Generator, level: float
) -> Fit:
    """This library's estimator with its defaults, given only bounds and budget."""
    declared = table.declared
    low, high = declared.feature_bounds.T
    model = PrivateLinearRegression(
        budget,
        feature_bounds=(low, high),
        label_bounds=tuple(declared.label_bounds),
        target="huber",
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        # Each of a thousand fits would warn that it is seeded, or not worth its budget.
        warnings.simplefilter("ignore", UserWarning)
        # The other estimators release no shares of clipped values.
        model.fit(table.drawn.features, table.drawn.labels, quality_share=0)
    lengths = model.confidence_intervals(level).length[:-1]
    return Fit(np.append(model.coef_, model.intercept_), lengths / 2)


def adassp(table: Prepared, budget: Budget, rng: np.random.Generator, level: float) -> Fit:
    """AdaSSP by Gaussian mechanisms under zCDP; each statistic gets a third of the budget."""
    found = adassp_zcdp(table.sums, bounds=table.sums.bounds, budget=budget, rng=rng)
    return Fit(table.in_units(table.shortening @ found))


def noisy_moments(table: Prepared, budget: Budget, rng: np.random.Generator, level: float) -> Fit:
    r"""One Gaussian release of the second moments of (1, x, y), with a ridge.

    .. math::
        \hat\theta = (G + \kappa I)^{-1} g, \qquad
        \kappa = \max(0,\; s\sqrt{2(p + 1)} - \lambda_{\min}(G)), \qquad
        s = \sqrt2 B^2 / \sqrt{2\rho}

    Noise N(0, s²) on the diagonal and N(0, s²/2) above it is isotropic in the Frobenius norm, in
    which a replaced record of length at most B moves the sum by at most √2 B². The ridge lifts the
    smallest eigenvalue to the size of the noise.
    """
    rows = np.column_stack([table.short_samples.features, table.short_samples.labels])
    size = rows.shape[1]
    scale = np.sqrt(2.0) * (table.short_norm**2 + 1) / np.sqrt(2 * budget.rho)
    upper = np.triu(rng.standard_normal((size, size)), 1) / np.sqrt(2.0)
    noise = upper + upper.T + np.diag(rng.standard_normal(size))
    found = solve_with_ridge(rows.T @ rows + scale * noise, scale)
    return Fit(table.in_units(table.shortening @ found))


def solve_with_ridge(moments: FloatArray, noise_std: float) -> FloatArray:
    """Coefficients from noisy second moments of (1, x, y), as in `noisy_moments`."""
    gram, moment = moments[:-1, :-1], moments[:-1, -1]
    ridge = noise_std * np.sqrt(2 * len(gram)) - np.linalg.eigvalsh(gram)[0]
    return np.asarray(np.linalg.solve(gram + max(0.0, float(ridge)) * np.eye(len(gram)), moment))


def least_squares(table: Prepared, budget: Budget, rng: np.random.Generator, level: float) -> Fit:
    """Ordinary least squares on rows that are clipped to the same bounds. Not private."""
    matrix, _ = table.declared.frame.functionals()
    fit, slopes = table.least_squares, np.diag(matrix[:-1, 1:])
    return Fit(table.in_units(fit.coefficients), slopes * fit.half_widths(level=level)[1:])


METHODS: dict[str, Callable[[Prepared, Budget, np.random.Generator, float], Fit]] = {
    "PrivateLinearRegression": private_linear_regression,
    "AdaSSP": adassp,
    "noisy moments": noisy_moments,
    "least squares": least_squares,
}


def held_out_error(coefficients: FloatArray, table: Prepared) -> float:
    """Mean squared error on held-out rows, divided by the variance of their labels.

    Predictions of every method are clipped to the label's bounds.
    """
    low, high = table.declared.feature_bounds.T
    labels = table.drawn.held_out_labels
    features = np.clip(table.drawn.held_out_features, low, high)
    predicted = features @ coefficients[:-1] + coefficients[-1]
    errors = np.clip(predicted, *table.declared.label_bounds) - labels
    return float(np.mean(errors**2) / labels.var())
