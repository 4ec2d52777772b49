"""Panels of time on which a rate and what it damps are polynomials to rounding error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privreg.ranges import short
from privreg.schedules import RateWithIntegral
from privreg.theory.noisy_sgd.collocation import STAGES, integration_matrix, radau_nodes

MOST_PANELS = 1e6
# Two decay times of the fastest variance a panel leave twelve stages at rounding error.
LARGEST_EXPONENT = 2.0
RESOLUTION = 1e-13
# Of an integral that is computed to a few units in the last place.
ROUNDING = 64 * np.finfo(float).eps


def resolved_panels(
    schedule: RateWithIntegral,
    *,
    horizon: float,
    fastest: float,
    feedback: float,
    minimum: int,
) -> NDArray[np.float64]:
    r"""Edges of panels that resolve a schedule, shape (panels + 1,), from 0 to the horizon.

    Equal panels are cut until each has an exponent of at most 2,

    .. math:: \max\Big(2a\,\Delta\Gamma,\; f\max\gamma\,\Delta\Gamma\Big) \le 2,

    and until the collocation equations hold on it for two known solutions: the integral Γ
    of the rate, and :math:`e^{-2a\Gamma}`, the fastest decay. Both are to 1e-13. A panel
    around a jump of the rate is halved until only neighbouring doubles are left.

    Parameters
    ----------
    schedule : RateWithIntegral
        Positive and finite, piecewise smooth, with an integral exact to rounding.
    horizon : float
        Last time, more than 0.
    fastest : float
        Largest curvature a, at least 0.
    feedback : float
        Growth f of the risk in units of the integral of the squared rate, at least 0.
    minimum : int
        Least number of panels.

    Raises
    ------
    ValueError
        A rate that is not positive and finite, or panels beyond 1e6.
    """
    edges = np.linspace(0.0, horizon, minimum + 1)
    exponents, error = _examine(schedule, edges[:-1], edges[1:], fastest, feedback)
    needed = float(exponents.sum()) / LARGEST_EXPONENT
    if not needed <= MOST_PANELS:
        raise ValueError(
            f"horizon must be at most {horizon * MOST_PANELS / needed:g} at these rates and "
            f"eigenvalues, got {horizon}"
        )
    if needed > minimum:
        edges = np.linspace(0.0, horizon, int(np.ceil(needed)) + 1)
        exponents, error = _examine(schedule, edges[:-1], edges[1:], fastest, feedback)
    left, right = edges[:-1], edges[1:]
    accepted: list[NDArray[np.float64]] = []
    count = 0
    while True:
        pieces = np.ceil(exponents / LARGEST_EXPONENT * (1 - 1e-9))
        middle = left + (right - left) / 2
        divisible = (middle > left) & (middle < right)
        pieces = np.where(divisible, np.maximum(pieces, np.where(error > 1, 2.0, 1.0)), 1.0)
        whole = pieces <= 1
        accepted.append(left[whole])
        count += int(whole.sum())
        if not count + pieces[~whole].sum() <= MOST_PANELS:
            raise ValueError(
                "schedule must be piecewise smooth, with an integral that is exact to rounding, "
                f"and need at most {MOST_PANELS:g} panels, got {type(schedule).__name__}"
            )
        if whole.all():
            break
        left, right = _cut(left[~whole], right[~whole], pieces[~whole].astype(np.int64))
        exponents, error = _examine(schedule, left, right, fastest, feedback)
    return np.append(np.sort(np.concatenate(accepted)), horizon)


def _examine(
    schedule: RateWithIntegral,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    fastest: float,
    feedback: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Exponent of each panel, and the residuals of the known solutions in units of tolerance."""
    matrix = integration_matrix(STAGES)
    width = (right - left)[:, None]
    times = left[:, None] + width * radau_nodes(STAGES)
    rate, integral = schedule.rate(times), schedule.integral(times)
    if not (np.all(np.isfinite(rate)) and np.all(rate > 0)):
        raise ValueError(f"schedule must be positive and finite on [0, horizon], got {short(rate)}")
    begin = schedule.integral(left)[:, None]
    passed = integral - begin
    length = passed[:, -1]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        exponent = np.maximum(2.0 * fastest, feedback * rate.max(axis=1)) * length
        rounding = ROUNDING * integral[:, -1]
        lag = np.max(np.abs(width * (rate @ matrix.T) - passed), axis=1)
        decay = np.exp(-2.0 * fastest * passed)
        pull = 2.0 * fastest * width * rate * decay
        left_over = np.max(np.abs(pull @ matrix.T - (1.0 - decay)), axis=1)
        error = np.maximum(
            lag / (RESOLUTION * length + rounding),
            left_over / (RESOLUTION + 2.0 * fastest * rounding),
        )
    return exponent, np.where(np.isnan(error), np.inf, error)


def _cut(
    left: NDArray[np.float64], right: NDArray[np.float64], pieces: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each panel in equal pieces."""
    owner = np.repeat(np.arange(left.size), pieces)
    place = np.arange(owner.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    width = right - left
    start = left[owner] + width[owner] * (place / pieces[owner])
    end = left[owner] + width[owner] * ((place + 1) / pieces[owner])
    return start, np.where(place + 1 == pieces[owner], right[owner], end)
