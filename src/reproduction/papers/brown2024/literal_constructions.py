"""Theorem 3.1's own constructions, final iterates and checkpoints, in their exact law."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from reproduction.experiment.datasets import variable

COORDINATE_POINTS = 100


class Setting(Protocol):
    """What the constructions depend on, as the recipe's parameters state it."""

    dimension: int
    replicates: int
    literal_steps: list[int]
    step_size: float
    level: float

    def gradient_noise_std(self, gradients: int) -> float: ...


def literal_coverage(parameters: Setting) -> dict[str, tuple]:
    """Exact coverage over T, and how far the replicates are from independent stationary draws.

    Identity covariance, a minimiser uniform on the unit sphere: coverage is averaged over the law
    of a coordinate. Only the minimiser's norm enters the divergence of the joint laws.
    """
    from scipy.special import betaincinv

    from privreg.inference.coverage import t_interval_coverage

    m, p = parameters.replicates, parameters.dimension
    ranks = (np.arange(COORDINATE_POINTS) + 0.5) / COORDINATE_POINTS
    # Relative to the root mean square, 1 / sqrt(p).
    coordinate = np.sqrt(p * betaincinv(0.5, (p - 1) / 2, ranks)) if p > 1 else np.ones(1)
    coverage, distance, mean_error, gap = (
        np.empty((2, len(parameters.literal_steps))) for _ in range(4)
    )
    for column, steps in enumerate(parameters.literal_steps):
        stationary = _stationary_variance(parameters, m * steps)
        for row, (bias, covariance) in enumerate(_laws(parameters, steps)):
            coverage[row, column] = t_interval_coverage(
                coordinate[:, None] * bias,
                np.broadcast_to(covariance, (len(coordinate), m, m)),
                level=parameters.level,
            ).mean()
            divergence = p * _gaussian_divergence(bias, covariance, stationary)
            distance[row, column] = np.sqrt(divergence / 2)
            mean_error[row, column] = np.sqrt(np.sum(bias**2) * p)
            excess = np.linalg.norm(covariance / stationary - np.eye(m))
            gap[row, column] = np.sqrt(p) * max(np.sqrt(np.sum(bias**2) / stationary), excess)
    slack = coverage - (parameters.level - np.minimum(distance, 1))
    axis = np.asarray(parameters.literal_steps, dtype=float)
    late = axis >= np.median(axis)
    centred = axis[late] - axis[late].mean()
    rate = np.log(distance[:, late]) @ centred / np.sum(centred**2)
    dims = ("literal", "steps")
    return {
        "literal": variable(
            "literal", ["independent_runs", "checkpoints"], "construction of Theorem 3.1"
        ),
        "literal_coverage": variable(dims, coverage, "exact coverage of the minimiser"),
        "literal_distance": variable(
            dims, distance, "Pinsker's bound on the distance to independent stationary replicates"
        ),
        "literal_distance_over_gap": variable(
            dims,
            distance / gap,
            "that bound over the larger gap of mean and covariance, Claim C.11",
        ),
        "literal_slack": variable(
            dims, slack, "coverage less the level plus the bound on the distance"
        ),
        "literal_rate": variable(
            "literal", np.exp(rate), "factor of that distance for each further step"
        ),
        "literal_bias": variable(
            dims, mean_error, "norm of the replicates' bias, all features and replicates"
        ),
    }


def _laws(parameters: Setting, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bias and covariance of one coordinate's m replicates: final iterates, checkpoints."""
    from privreg.theory.full_batch_dpgd.law import GradientDescentLaw

    m = parameters.replicates
    law = GradientDescentLaw(
        eigenvalues=np.ones(1),
        eigenvectors=np.eye(1),
        minimiser=np.full(1, parameters.dimension**-0.5),
        start=np.zeros(1),
        step_size=parameters.step_size,
        gradient_noise_std=parameters.gradient_noise_std(m * steps),
    )
    last = np.zeros((1, steps))
    last[0, -1] = 1
    bias, variance = law.functionals(last)
    checkpoints = np.zeros((m, m * steps))
    checkpoints[np.arange(m), steps * (np.arange(m) + 1) - 1] = 1
    chain_bias, chain = law.functionals(checkpoints)
    return [(np.repeat(bias[0], m), variance[0, 0, 0] * np.eye(m)), (chain_bias[0], chain[0])]


def _stationary_variance(parameters: Setting, gradients: int) -> float:
    contraction = 1 - parameters.step_size
    return (parameters.step_size * parameters.gradient_noise_std(gradients)) ** 2 / (
        1 - contraction**2
    )


def _gaussian_divergence(bias: np.ndarray, covariance: np.ndarray, variance: float) -> float:
    """KL(N(bias, covariance) ‖ N(0, variance I))."""
    scaled = covariance / variance
    # log1p keeps the digits of a covariance that is nearly the ideal one.
    excess = np.linalg.eigvalsh(scaled - np.eye(len(scaled)))
    return float(0.5 * (np.sum(bias**2) / variance + np.sum(excess - np.log1p(excess))))
