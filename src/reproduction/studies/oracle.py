"""Intervals of a private fit, and those of an oracle that knows what the fit must learn."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.huber_settings import default_settings
from privreg.algorithms.samples import ArraySamples
from privreg.estimators.bounds import Frame
from privreg.inference.population_intervals import CoefficientIntervals, population_intervals
from privreg.privacy.budget import Budget
from privreg.theory.huber_descent.last_iterate import sandwich
from reproduction.studies.private_tables import BOUNDS, LABEL_BOUND, Population

WIDTHS = np.geomspace(0.25, 5.0, 14)


def fitted_intervals(
    population: Population,
    *,
    sample_size: int,
    rho: float,
    level: float,
    rng: np.random.Generator,
) -> CoefficientIntervals:
    """Draw a table, fit it with the settings that its sizes give, and return the intervals."""
    rows = population.draw(rng, sample_size)
    low, high = BOUNDS[population.features]
    frame = Frame(
        np.tile([low, high], (population.dimension, 1)),
        np.array([-LABEL_BOUND, LABEL_BOUND]),
        True,
    )
    budget = Budget.zcdp(rho)
    fit = huber_descent(
        ArraySamples(frame.rows(rows.features), frame.labels(rows.labels)),
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
    r"""Mean length over the slopes of the oracle's intervals, and of non-private least squares'.

    .. math::
        \frac1n A^{-1}BA^{-1} + \lambda^2 A^{-2}, \qquad \lambda = \frac{2\gamma}{n\sqrt{2\rho}}

    in coordinates whitened by the true Σ, at the best of 14 clip widths: the oracle knows Σ, A, B
    and the law of its own noise, and has the whole budget for one exact Newton step from θ*.
    """
    drawn = population.draw(rng, rows)
    features = np.column_stack([drawn.features, np.ones(rows)])
    p = features.shape[1]
    values, vectors = np.linalg.eigh(features.T @ features / rows)
    whitening = vectors / np.sqrt(values)
    white = features @ whitening
    residuals = drawn.labels - features @ population.coefficients
    if population.errors == "skewed":
        # The intercept of the clipped loss is not the mean's; the slopes are.
        residuals = residuals - np.median(residuals)
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
    inverse = np.linalg.inv(features.T @ features / rows)
    centred = drawn.labels - features @ population.coefficients
    scores = features * centred[:, None]
    plain = np.diag(inverse @ (scores.T @ scores / rows) @ inverse)[:-1] / sample_size
    return best, quantile * float(np.mean(np.sqrt(plain)))
