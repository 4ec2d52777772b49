"""Populations for tests of private intervals, and the intervals of an oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privreg.algorithms.huber_descent import default_settings, huber_descent
from privreg.algorithms.samples import ArraySamples
from privreg.estimators.columns import Frame
from privreg.inference.population_intervals import CoefficientIntervals, population_intervals
from privreg.privacy.budget import Budget
from privreg.theory.huber_descent import sandwich

FloatArray = NDArray[np.float64]
LABEL_BOUND = 12.0
# Clip widths that the oracle chooses from.
WIDTHS = np.geomspace(0.25, 5.0, 14)


def _correlated(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    root = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))))
    return np.clip(rng.standard_normal((n, p)) @ root.T, -4, 4)


def _one_hot(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    weights = np.arange(2 * p + 2, p + 1, -1, dtype=np.float64)
    drawn = rng.choice(p + 1, n, p=weights / weights.sum())
    return np.eye(p + 1)[drawn][:, 1:]


def _size(features: FloatArray) -> FloatArray:
    """Size of heteroskedastic errors, from the first feature; its mean square is near 1."""
    size = 0.5 + np.abs(features[:, 0])
    return np.asarray(size / np.sqrt(np.mean(size**2)))


FEATURES: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "normal": lambda rng, n, p: np.clip(rng.standard_normal((n, p)), -4, 4),
    "correlated": _correlated,
    "uniform": lambda rng, n, p: np.sqrt(3) * rng.uniform(-1, 1, (n, p)),
    "Student t5": lambda rng, n, p: np.clip(np.sqrt(3 / 5) * rng.standard_t(5, (n, p)), -6, 6),
    "one-hot": _one_hot,
}
BOUNDS = {
    "normal": (-4.0, 4.0),
    "correlated": (-4.0, 4.0),
    "uniform": (-(3.0**0.5), 3.0**0.5),
    "Student t5": (-6.0, 6.0),
    "one-hot": (0.0, 1.0),
}
ERRORS: dict[str, Callable[[np.random.Generator, FloatArray], FloatArray]] = {
    "normal": lambda rng, x: rng.standard_normal(len(x)),
    "heteroskedastic": lambda rng, x: _size(x) * rng.standard_normal(len(x)),
    "Student t3": lambda rng, x: rng.standard_t(3, len(x)) / np.sqrt(3),
    "skewed": lambda rng, x: rng.standard_exponential(len(x)) - 1,
}


@dataclass(frozen=True)
class Population:
    """A law of rows; coefficients have norm 1 and are followed by an intercept of 0.2.

    Features and errors are keys of `FEATURES` and `ERRORS`.
    """

    features: str
    errors: str
    dimension: int

    @property
    def coefficients(self) -> FloatArray:
        return np.append(np.full(self.dimension, self.dimension**-0.5), 0.2)

    def draw(self, rng: np.random.Generator, sample_size: int) -> tuple[FloatArray, FloatArray]:
        """Features within their bounds and labels within ±12, of independent rows."""
        features = FEATURES[self.features](rng, sample_size, self.dimension)
        errors = ERRORS[self.errors](rng, features)
        labels = features @ self.coefficients[:-1] + self.coefficients[-1] + errors
        return features, np.clip(labels, -LABEL_BOUND, LABEL_BOUND)


def fitted_intervals(
    population: Population, *, sample_size: int, rho: float, level: float, rng: np.random.Generator
) -> CoefficientIntervals:
    """Draw a table, fit it with the settings that follow from its sizes, and return intervals."""
    features, labels = population.draw(rng, sample_size)
    bounds = np.array([BOUNDS[population.features]] * population.dimension)
    frame = Frame(bounds, np.array([-LABEL_BOUND, LABEL_BOUND]), True)
    budget = Budget.zcdp(rho)
    fit = huber_descent(
        ArraySamples(frame.rows(features), frame.labels(labels)),
        feature_norm=frame.feature_norm,
        label_bound=1.0,
        budget=budget,
        settings=default_settings(
            sample_size=sample_size, dimension=frame.dimension, budget=budget
        ),
        rng=rng,
        intercept=True,
    ).value
    matrix, offset = frame.functionals()
    return population_intervals(fit, level=level, functionals=matrix, offset=offset)


def oracle_lengths(
    population: Population,
    *,
    sample_size: int,
    rho: float,
    level: float,
    rows: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    r"""Mean interval lengths over the slopes, of an oracle and of non-private least squares.

    .. math::
        \frac1n A^{-1}BA^{-1} + \lambda^2 A^{-2}, \qquad \lambda = \frac{2\gamma}{n\sqrt{2\rho}}

    is the oracle's variance in coordinates whitened by the true Σ, at the best of 14 clip widths.
    The oracle knows Σ, A, B and its noise law; it spends the budget on one Newton step from θ*.
    """
    features, labels = population.draw(rng, rows)
    features = np.column_stack([features, np.ones(rows)])
    p = features.shape[1]
    second = features.T @ features / rows
    values, vectors = np.linalg.eigh(second)
    whitening = vectors / np.sqrt(values)
    white = features @ whitening
    errors = labels - features @ population.coefficients
    # If errors are skewed, clipping changes the intercept but not the slopes.
    residuals = errors - np.median(errors) if population.errors == "skewed" else errors
    norms = np.linalg.norm(white, axis=1)
    quantile = 2 * float(ndtri((1 + level) / 2))
    best = np.inf
    for width in WIDTHS:
        clip_norm = width * np.sqrt(p)
        clipped = np.clip(residuals, -clip_norm / norms, clip_norm / norms)
        inside = np.abs(residuals) * norms <= clip_norm
        curvature = (white * inside[:, None]).T @ white / rows
        moment = (white * clipped[:, None] ** 2).T @ white / rows
        noise = 2 * clip_norm / (sample_size * np.sqrt(2 * rho))
        inverse = np.linalg.inv(curvature)
        covariance = sandwich(curvature, moment, sample_size=sample_size)
        covariance = covariance + noise**2 * inverse @ inverse
        variances = np.einsum("jk,kl,jl->j", whitening, covariance, whitening)[:-1]
        best = min(best, quantile * float(np.mean(np.sqrt(variances))))
    inverse = np.linalg.inv(second)
    scores = features * errors[:, None]
    plain = np.diag(inverse @ (scores.T @ scores / rows) @ inverse)[:-1] / sample_size
    return best, quantile * float(np.mean(np.sqrt(plain)))
