"""Theorem 3.1's own constructions, final iterates and checkpoints, in their exact law."""

from __future__ import annotations

from typing import Protocol

import numpy as np

COORDINATE_POINTS = 100


class Setting(Protocol):
    """What the constructions depend on, as the recipe's parameters state it."""

    dimension: int
    replicates: int
    literal_steps: list[int]
    step_size: float
    level: float

    def gradient_noise_std(self, gradients: int) -> float: ...


CONSTRUCTIONS = ("independent_runs", "checkpoints")


def exact_law(parameters: Setting, literal: str) -> dict:
    """Exact coverage over T, and how far the replicates are from independent stationary draws.

    Identity covariance, a minimiser uniform on the unit sphere: coverage is averaged over the law
    of a coordinate. Only the minimiser's norm enters the divergence of the joint laws.
    """
    times = np.asarray(parameters.literal_steps, dtype=float)
    found = [_distances(parameters, literal, steps) for steps in parameters.literal_steps]
    coverage, distance, over_gap, bias = np.transpose(found)
    late = times >= np.median(times)
    centred = times[late] - times[late].mean()
    return {
        "literal_coverage": coverage,
        "literal_distance": distance,
        "literal_distance_over_gap": over_gap,
        "literal_slack": coverage - (parameters.level - np.minimum(distance, 1)),
        "literal_rate": np.exp(np.log(distance[late]) @ centred / np.sum(centred**2)),
        "literal_bias": bias,
    }


def _distances(parameters: Setting, literal: str, steps: int) -> tuple[float, ...]:
    """Coverage, distance to the ideal, that over the gap of Claim C.11, and norm of the bias."""
    from scipy.special import betaincinv

    from privreg.inference.coverage import t_interval_coverage

    m, p = parameters.replicates, parameters.dimension
    ranks = (np.arange(COORDINATE_POINTS) + 0.5) / COORDINATE_POINTS
    # Relative to the root mean square, 1 / sqrt(p).
    coordinate = np.sqrt(p * betaincinv(0.5, (p - 1) / 2, ranks)) if p > 1 else np.ones(1)
    stationary = _stationary_variance(parameters, m * steps)
    bias, covariance = _law(parameters, literal, steps)
    coverage = t_interval_coverage(
        coordinate[:, None] * bias,
        np.broadcast_to(covariance, (len(coordinate), m, m)),
        level=parameters.level,
    ).mean()
    distance = np.sqrt(p * _gaussian_divergence(bias, covariance, stationary) / 2)
    excess = np.linalg.norm(covariance / stationary - np.eye(m))
    gap = np.sqrt(p) * max(np.sqrt(np.sum(bias**2) / stationary), excess)
    return coverage, distance, distance / gap, np.sqrt(np.sum(bias**2) * p)


def _law(parameters: Setting, literal: str, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Bias and covariance of one coordinate's m replicates."""
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
    if literal == "independent_runs":
        bias, variance = law.functionals(np.eye(1, steps, steps - 1))
        return np.repeat(bias[0], m), variance[0, 0, 0] * np.eye(m)
    checkpoints = np.zeros((m, m * steps))
    checkpoints[np.arange(m), steps * (np.arange(m) + 1) - 1] = 1
    bias, covariance = law.functionals(checkpoints)
    return bias[0], covariance[0]


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
