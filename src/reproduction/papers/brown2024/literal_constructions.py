"""Theorem 3.1's own constructions, final iterates and checkpoints, in their exact law."""

from __future__ import annotations

from typing import Protocol

import numpy as np

COORDINATE_POINTS = 100
# The least eigenvalue that Condition 2.4 admits: at eta = 1/4 the contraction is its 7/8 there.
LEAST_EIGENVALUE = 0.5


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
    of a coordinate. Only the minimiser's norm enters the divergence of the joint laws. The rate is
    that at half of the identity, with the noise of the most steps, since the theorem fixes it.
    """
    times = np.asarray(parameters.literal_steps, dtype=float)
    found = [_distances(parameters, literal, steps) for steps in parameters.literal_steps]
    coverage, distance, over_gap, bias = np.transpose(found)
    late = times[times >= np.median(times)]
    slow = [_slow_distance(parameters, literal, int(steps)) for steps in late]
    centred = late - late.mean()
    return {
        "literal_coverage": coverage,
        "literal_distance": distance,
        "literal_distance_over_gap": over_gap,
        "literal_slack": coverage - (parameters.level - np.minimum(distance, 1)),
        "literal_rate": np.exp(np.log(slow) @ centred / np.sum(centred**2)),
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
    bias, covariance, stationary = _law(parameters, literal, steps, noise_for=steps)
    coverage = t_interval_coverage(
        coordinate[:, None] * bias,
        np.broadcast_to(covariance, (len(coordinate), m, m)),
        level=parameters.level,
    ).mean()
    distance = _pinsker(p, bias, covariance, stationary)
    excess = np.linalg.norm(covariance / stationary - np.eye(m))
    gap = np.sqrt(p) * max(np.sqrt(np.sum(bias**2) / stationary), excess)
    return coverage, distance, distance / gap, np.sqrt(np.sum(bias**2) * p)


def _slow_distance(parameters: Setting, literal: str, steps: int) -> float:
    """Distance to the ideal at half of the identity, with the noise of the most steps."""
    law = _law(
        parameters,
        literal,
        steps,
        noise_for=max(parameters.literal_steps),
        eigenvalue=LEAST_EIGENVALUE,
    )
    return _pinsker(parameters.dimension, *law)


def _law(
    parameters: Setting, literal: str, steps: int, *, noise_for: int, eigenvalue: float = 1.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """Bias and covariance of one coordinate's m replicates, and its stationary variance."""
    from privreg.theory.full_batch_dpgd.law import GradientDescentLaw

    m = parameters.replicates
    noise = parameters.gradient_noise_std(m * noise_for)
    contraction = 1 - parameters.step_size * eigenvalue
    stationary = (parameters.step_size * noise) ** 2 / (1 - contraction**2)
    law = GradientDescentLaw(
        eigenvalues=np.full(1, eigenvalue),
        eigenvectors=np.eye(1),
        minimiser=np.full(1, parameters.dimension**-0.5),
        start=np.zeros(1),
        step_size=parameters.step_size,
        gradient_noise_std=noise,
    )
    if literal == "independent_runs":
        bias, variance = law.functionals(np.eye(1, steps, steps - 1))
        return np.repeat(bias[0], m), variance[0, 0, 0] * np.eye(m), stationary
    checkpoints = np.zeros((m, m * steps))
    checkpoints[np.arange(m), steps * (np.arange(m) + 1) - 1] = 1
    bias, covariance = law.functionals(checkpoints)
    return bias[0], covariance[0], stationary


def _pinsker(dimension: int, bias: np.ndarray, covariance: np.ndarray, variance: float) -> float:
    """Bound on the total variation distance of the joint laws of all coordinates."""
    return float(np.sqrt(dimension * _gaussian_divergence(bias, covariance, variance) / 2))


def _gaussian_divergence(bias: np.ndarray, covariance: np.ndarray, variance: float) -> float:
    """KL(N(bias, covariance) ‖ N(0, variance I))."""
    scaled = covariance / variance
    # log1p keeps the digits of a covariance that is nearly the ideal one.
    excess = np.linalg.eigvalsh(scaled - np.eye(len(scaled)))
    return float(0.5 * (np.sum(bias**2) / variance + np.sum(excess - np.log1p(excess))))
