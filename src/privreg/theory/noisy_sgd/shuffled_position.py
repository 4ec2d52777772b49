"""Rényi loss where the differing record's position is random: a mixture over positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.ranges import short
from privreg.schedules import LARGEST, RateWithIntegral, require_rate
from privreg.validation import (
    require_answer,
    require_array,
    require_count,
    require_number,
    require_real,
)

# Error of the integrated squared rate: of a panel's share, and of the whole.
SHARE, SHARE_OF_TOTAL = 1e-6, 1e-9
# Far from where exponentials overflow.
GENTLE = 500.0


def shuffled_loss(
    divergences: ArrayLike, weights: ArrayLike, *, horizon: float, order: float
) -> NDArray[np.float64]:
    r"""Rényi loss of a mixture over the random position of the differing record.

    .. math::
        \varepsilon_\alpha = \frac1{\alpha-1}\ln\Big(\frac{T-\sum_jw_j}T
        + \frac1T\sum_jw_je^{(\alpha-1)D_j}\Big)

    Positions that the weights leave out come after the release and cost nothing. It is an upper
    bound of the mixtures' divergence, since :math:`p^\alpha q^{1-\alpha}` is jointly convex.

    Parameters
    ----------
    divergences : array_like, shape (..., p)
        Divergence D_j given each position, at least 0, `inf` allowed; the supremum over pairs
        where there are several.
    weights : array_like, shape (p,)
        Quadrature weights, at least 0, with a sum of at most the horizon; may be empty.
    horizon : float
        Range T of the uniform position, more than 0.
    order : float
        Rényi order α, more than 1 and at most 1e100.

    Source
    ------
    lin2025, equations (15), (21), (24) and Lemma C.3. Between the two terms (21) lacks the "+".
    """
    share, exponents, order = _mixture(divergences, weights, horizon, order)
    exponents = np.where(share > 0, exponents, 0.0)
    largest = exponents.max(axis=-1, initial=0.0)
    # Losses keep their digits in expm1; where it overflows its logarithm is shifted.
    gentle = np.log1p(np.expm1(np.minimum(exponents, GENTLE)) @ share)
    if np.any(largest > GENTLE):
        with np.errstate(divide="ignore"):
            parts = exponents + np.log(-np.expm1(-exponents)) + np.log(share)
        steep = np.logaddexp(0.0, np.logaddexp.reduce(parts, axis=-1))
        gentle = np.where(largest > GENTLE, steep, gentle)
    return np.asarray(gentle / (order - 1.0))


def paper_shuffled_loss_of_iterates(
    divergences: ArrayLike, weights: ArrayLike, *, horizon: float, order: float
) -> NDArray[np.float64]:
    r"""Equation (21) of lin2025 as printed, with a product where `shuffled_loss` has the sum.

    .. math::
        \frac1{\alpha-1}\ln\Big(\frac{T-\sum_jw_j}T\cdot\frac1T\sum_jw_je^{(\alpha-1)D_j}\Big)

    It is negative for small divergences and minus infinity when the last iterate is released,
    which no divergence can be.
    """
    share, exponents, order = _mixture(divergences, weights, horizon, order)
    largest = np.max(exponents, axis=-1, initial=0.0)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        factor = np.log(max(1.0 - float(share.sum()), 0.0))
        inner = np.where(share > 0, np.exp(exponents - shift[..., None]), 0.0) @ share
        loss = np.asarray((factor + shift + np.log(inner)) / (order - 1.0))
    return require_answer("divergences and weights", loss, infinite=True)


def _mixture(
    divergences: ArrayLike, weights: ArrayLike, horizon: float, order: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Probabilities of the positions, exponents (α - 1) D, and the order."""
    order = require_number("order", order, above=1, most=1e100)
    horizon = require_number("horizon", horizon, above=0)
    masses = require_real("weights", weights, least=0)
    if masses.ndim != 1:
        raise ValueError(f"weights must have shape (p,), got {masses.shape}")
    with np.errstate(over="ignore"):
        share = masses / horizon
    if not share.sum() <= 1.0 + 1e-9:
        raise ValueError(f"weights must have a sum of at most {horizon}, got another")
    losses = require_real("divergences", divergences, least=0, infinite=True)
    if losses.shape[-1:] != masses.shape:
        raise ValueError(f"divergences must have shape (..., {masses.size}), got {losses.shape}")
    with np.errstate(over="ignore"):
        return share, (order - 1.0) * losses, order


def position_quadrature(
    times: ArrayLike,
    *,
    finest: float,
    nodes_per_panel: int = 4,
    schedule: RateWithIntegral | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Quadrature over positions up to the last release time, fine at 0 and before each release.

    The loss as a function of the position has a layer of a few steps at 0, where the state
    still has no spread, and a decay of the same kind before each release. Between neighbouring
    breaks the panels double in width from both ends; each carries a Gauss-Legendre rule. As the
    loss grows with the square of the rate, panels are halved until the rule integrates that too.

    Parameters
    ----------
    times : array_like, shape (J,)
        Ascending release times, more than 0 and at most 1e50.
    finest : float
        Largest admissible width of the panels at the ends, such as 1/d; at least 1e-100.
    nodes_per_panel : int
        At least 1.
    schedule : RateWithIntegral, optional
        A rate that varies; a constant one unless given.

    Returns
    -------
    positions, weights : ndarray, shape (p,)
        The weights sum to the last time.
    """
    released = np.atleast_1d(require_real("times", times, above=0, most=LARGEST))
    require_array("times", released, shape=(None,))
    if np.any(np.diff(released, prepend=0.0) <= 0):
        raise ValueError(f"times must be strictly ascending, got {short(released)}")
    finest = require_number("finest", finest, least=1e-100)
    nodes_per_panel = require_count("nodes_per_panel", nodes_per_panel)
    points, masses = np.polynomial.legendre.leggauss(nodes_per_panel)
    breaks = [0.0]
    for left, right in zip(np.concatenate([[0.0], released[:-1]]), released, strict=True):
        levels = max(1, int(np.ceil(np.log2(max((right - left) / finest, 2.0)))))
        half = 0.5 ** np.arange(levels, 0, -1)
        breaks.extend(left + (right - left) * half)
        breaks.extend(right - (right - left) * half[-2::-1])
        breaks.append(float(right))
    edges = np.array(breaks)
    if schedule is not None:
        require_rate(schedule)
        edges = _resolving(schedule, edges, points, masses)
    return _rule(edges[:-1], edges[1:], points, masses)


def _resolving(
    schedule: RateWithIntegral,
    edges: NDArray[np.float64],
    points: NDArray[np.float64],
    masses: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Edges between which the rule integrates the squared rate, or all but a share of the whole."""

    def squares(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        positions, weights = _rule(left, right, points, masses)
        return (weights * schedule.rate(positions) ** 2).reshape(left.size, -1).sum(axis=1)

    left, right = edges[:-1], edges[1:]
    total = 0.0
    accepted = []
    while left.size:
        middle = left + (right - left) / 2
        whole, first, second = squares(left, right), squares(left, middle), squares(middle, right)
        total = max(total, float(np.sum(first + second)))
        error = np.abs(first + second - whole)
        cut = (error > SHARE * whole) & (error > SHARE_OF_TOTAL * total)
        accepted.append(left[~cut])
        left, right = np.append(left[cut], middle[cut]), np.append(middle[cut], right[cut])
    return np.append(np.sort(np.concatenate(accepted)), edges[-1])


def _rule(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    points: NDArray[np.float64],
    masses: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    width = right - left
    positions = left[:, None] + 0.5 * width[:, None] * (points + 1.0)
    return positions.ravel(), (0.5 * width[:, None] * masses).ravel()
