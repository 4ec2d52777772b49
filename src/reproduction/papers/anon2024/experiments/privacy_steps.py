"""Definitions and steps behind Theorem 4.1: divergences, conversions, composition, histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Epsilon,
    Positive,
    Probability,
    RenyiOrder,
    SampleSize,
    Some,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Definition 2.5, Lemmas 2.6, B.1 and B.3, Theorem 4.1, Algorithm 2"


class Parameters(Strict):
    """Orders, targets and sizes."""

    orders: Some[RenyiOrder] = Field(description="alpha, above 1.")
    epsilons: Some[Epsilon] = Field(description="Promised epsilon.")
    deltas: Some[Probability] = Field(description="delta.")
    sample_sizes: Some[SampleSize] = Field(description="Calls N of the residual estimate.")
    sensitivities: Some[Positive] = Field(
        description="Sensitivities at the same ratio to the noise."
    )
    groups: Annotated[Count, Field(ge=2)] = Field(description="Groups of the histogram.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact values over what is printed."""
    import xarray as xr

    orders = np.asarray(parameters.orders)
    quadrature = np.array([_divergence(alpha) for alpha in orders])
    closed = orders / 2 * _SQUARED_SHIFT
    epsilons, deltas = parameters.epsilons, parameters.deltas
    conversion, closed_form, squares = _conversions(epsilons, deltas)
    printed, corrected = _histogram(parameters.groups, epsilon=1.0, delta=1e-6)
    return xr.Dataset(
        {
            "divergence_error": variable(
                "order",
                np.abs(quadrature / closed - 1),
                "relative distance of the shaped Gaussian mechanism's divergence from Lemma 2.6",
            ),
            "printed_divergence_ratio": variable(
                "order",
                (orders - 1) * quadrature / closed,
                "Definition 2.5's divergence over the one stated for the Gaussian mechanism",
            ),
            "gaussian_epsilon_ratio": variable(
                "sensitivity",
                [_over_printed_gaussian(s) for s in parameters.sensitivities],
                "exact epsilon over (1.25 Delta log(2/delta))^(1/2) / sigma",
            ),
            "conversion_ratio": variable(
                (), conversion, "least epsilon by Lemma B.1 over the exact one"
            ),
            "best_order_error": variable(
                (), closed_form, "distance of the least conversion from rho + 2 (rho log)^(1/2)"
            ),
            "multiplier_ratio": variable(
                (), squares, "largest k / rho over 4 k (log(1/delta) + epsilon) / epsilon^2"
            ),
            "composed_epsilon_ratio": variable(
                (),
                max(_composed(e, d, n) for e in epsilons for d in deltas
                    for n in parameters.sample_sizes),
                "largest epsilon of N residual estimates by advanced composition over the promise",
            ),
            "histogram_failure": variable(
                "reading", [printed, corrected], "delta of one histogram at its epsilon = 1"
            ),
        },
        coords={
            "order": variable("order", orders, "order alpha"),
            "sensitivity": variable("sensitivity", parameters.sensitivities, "sensitivity Delta"),
            "reading": variable("reading", ["printed", "corrected"], "reading of lines 9 to 12"),
        },
        attrs={"histogram_delta": 1e-6},
    )  # fmt: skip


_SHAPE = np.array([[2.0, 0.6], [0.6, 0.5]])
_SHIFT = np.array([0.4, -0.3])
_SQUARED_SHIFT = float(_SHIFT @ np.linalg.solve(_SHAPE, _SHIFT))


def _divergence(order: float) -> float:
    """Of N(0, Σ) from N(shift, Σ), by quadrature of the density's power in two dimensions."""
    inverse = np.linalg.inv(_SHAPE)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    reach = 15.0
    grid = np.stack(np.meshgrid(reach * nodes, reach * nodes, indexing="ij"), axis=-1)
    mass = reach**2 * np.outer(weights, weights)
    # The integrand is a normal density around (1 - alpha) times the shift, scaled.
    centred = grid + (1 - order) * _SHIFT

    def exponent(points: np.ndarray) -> np.ndarray:
        return -0.5 * np.einsum("...i,ij,...j", points, inverse, points)

    power = order * exponent(centred) + (1 - order) * exponent(centred - _SHIFT)
    density = np.exp(power) / (2 * np.pi * np.sqrt(np.linalg.det(_SHAPE)))
    return float(np.log(np.sum(mass * density)) / (order - 1))


def _over_printed_gaussian(sensitivity: float) -> float:
    """At a noise of ten times the sensitivity and delta = 1e-5."""
    from privreg.algorithms.shaped_accounting import gaussian_epsilon

    delta, noise_std = 1e-5, 10 * sensitivity
    printed = np.sqrt(1.25 * sensitivity * np.log(2 / delta)) / noise_std
    return float(gaussian_epsilon(0.5 / 100, delta=delta) / printed)


def _conversions(epsilons: list[float], deltas: list[float]) -> tuple[float, float, float]:
    from privreg.algorithms.shaped_accounting import gaussian_epsilon

    ratio, error, squares = np.inf, 0.0, 0.0
    for epsilon in epsilons:
        for delta in deltas:
            log = np.log(1 / delta)
            rho = (np.sqrt(log + epsilon) - np.sqrt(log)) ** 2
            least = 1 + np.sqrt(log / rho)
            orders = 1 + (least - 1) * np.geomspace(0.01, 100, 20001)
            value = float((rho * orders + log / (orders - 1)).min())
            ratio = min(ratio, value / gaussian_epsilon(rho, delta=delta))
            error = max(error, abs(value / (rho + 2 * np.sqrt(rho * log)) - 1))
            error = max(error, abs(value / epsilon - 1))
            squares = max(squares, epsilon**2 / (4 * rho * (log + epsilon)))
    return float(ratio), float(error), float(squares)


def _composed(epsilon: float, delta: float, calls: int) -> float:
    """Advanced composition of N calls with half of delta to spare, over epsilon."""
    from privreg.algorithms.residual_estimate import private_share

    share, _ = private_share(epsilon=epsilon, delta=delta, calls=calls)
    total = share * np.sqrt(2 * calls * np.log(2 / delta)) + calls * share * np.expm1(share)
    return float(total / epsilon)


def _histogram(groups: int, *, epsilon: float, delta: float) -> tuple[float, float]:
    """delta at which the chosen bin of two is epsilon-private, as printed and corrected.

    The fuller bin's share moves by one group across the printed threshold, or across any other.
    """
    threshold = 2 * np.log(1 / delta) / epsilon + 1
    below = int(np.floor(threshold))
    while below >= threshold:
        below -= 1
    # Above it the fuller bin is set to 0 and chosen only if the other's noisy share is negative.
    dropped = 0.5 * float(np.exp(-(groups - below - 1) * epsilon / 2))
    printed = _failure(_chance(below, groups - below, epsilon), dropped, epsilon)
    corrected = max(
        _failure(_chance(k, groups - k, epsilon), _chance(k + 1, groups - k - 1, epsilon), epsilon)
        for k in range(groups // 2, groups - 1)
    )
    return printed, corrected


def _chance(first: int, second: int, epsilon: float) -> float:
    """Chance that the first count is the larger after Laplace noise of scale 2/epsilon on both."""
    gap, scale = (first - second) * epsilon / 2, 1.0
    tail = 0.5 * np.exp(-abs(gap) / scale) * (1 + abs(gap) / (2 * scale))
    return float(1 - tail if gap > 0 else tail)


def _failure(one: float, other: float, epsilon: float) -> float:
    """Least delta for an event of these chances and its complement, both ways."""
    grow = np.exp(epsilon)
    pairs = ((one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one))
    return float(max(0.0, *(a - grow * b for a, b in pairs)))
