"""Scalar equations that bound the deterministic equivalent of a well-conditioned covariance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from privreg.schedules import Schedule, require_schedule
from privreg.theory.one_pass_dpgd.clipping import descent_of, variance_of
from privreg.theory.one_pass_dpgd.settings import require_scalars
from privreg.validation import require_array, require_number


class Sandwich(NamedTuple):
    """Lower and upper bound on the excess risk, each of the shape of the times."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def sandwich(
    schedule: Schedule,
    *,
    smallest: float,
    largest: float,
    aspect_ratio: float,
    zcdp_root: float,
    clip_constant: float,
    label_noise_std: float,
    times: ArrayLike,
    start: float = 0.5,
) -> Sandwich:
    r"""Solve the comparison equations that bound the risk for eigenvalues in a range.

    .. math:: \dot R = -2 a\,\tilde\eta\,\mu_c(R)\,R
        + b\,\tilde\eta^2\nu_c(R)\,(R + \tfrac12\zeta^2)\,\gamma + 2c^2\tilde\sigma^2\gamma^2

    with (a, b) = (largest, 1) for the lower bound and (smallest, largest) for the upper one.

    Parameters
    ----------
    schedule : Schedule
        Learning rate, with one amplitude, at most 2 / gamma.
    smallest, largest : float
        Extreme eigenvalues, 0 < smallest <= 1 <= largest; the mean eigenvalue is 1.
    aspect_ratio : float
        gamma = d / n, more than 0.
    zcdp_root : float
        rho, more than 0; `inf` for no noise.
    clip_constant : float
        Clipping constant c in units of the residual, more than 0 and finite.
    label_noise_std : float
        Standard deviation zeta of the label noise, at least 0.
    times : array_like, shape (times,)
        Increasing, in [0, 1].
    start : float
        Excess risk R(0), more than 0.

    Returns
    -------
    Sandwich
        Bounds before the output noise.

    Raises
    ------
    ValueError
        Eigenvalues out of range, or a rate above the cap, for which the bounds are not stated.

    Source
    ------
    bombari2025, Proposition D.1; its proof needs tr(Sigma^2) at most largest times tr(Sigma), and
    prints "at least".
    """
    require_schedule(schedule)
    smallest, largest, aspect_ratio, zcdp_root, label_noise_std, start = require_scalars(
        smallest=smallest,
        largest=largest,
        aspect_ratio=aspect_ratio,
        zcdp_root=zcdp_root,
        label_noise_std=label_noise_std,
        start=start,
    )
    (clip_constant,) = require_scalars(infinite=False, clip_constant=clip_constant)
    if not 0 < smallest <= 1 <= largest:
        raise ValueError(
            f"smallest and largest must satisfy 0 < smallest <= 1 <= largest, "
            f"got {smallest} and {largest}"
        )
    amplitude = require_number("schedule", schedule.amplitude)
    if amplitude * float(schedule.shape(0.0)) > 2 / aspect_ratio:
        raise ValueError(
            f"schedule must have an initial rate of at most 2 / aspect_ratio = "
            f"{2 / aspect_ratio:g}, got {amplitude * float(schedule.shape(0.0)):g}"
        )
    wanted = require_array("times", times, shape=(None,), least=0, most=1)
    if np.any(np.diff(wanted) <= 0):
        raise ValueError(f"times must be increasing within [0, 1], got {wanted}")
    noise = 2 * (clip_constant * aspect_ratio / zcdp_root) ** 2

    def rate(time: float) -> float:
        return amplitude * float(schedule.shape(time))

    def solved(descent: float, kick: float) -> NDArray[np.float64]:
        # The sum of the risk and of the noise still to come has a slope without derivatives of the
        # rate, which are infinite at the end for some schedules.
        def slope(time: float, state: NDArray[np.float64]) -> list[float]:
            now = rate(time)
            risk = max(float(state[0]) - noise * now**2, 0.0)
            loss = risk + label_noise_std**2 / 2
            ratio = clip_constant / math.sqrt(2 * loss) if loss > 0 else math.inf
            share, drift = float(variance_of(ratio)), float(descent_of(ratio))
            gain = kick * now**2 * share * (risk + label_noise_std**2 / 2) * aspect_ratio
            return [-2 * descent * now * drift * risk + gain]

        found = solve_ivp(
            slope,
            (0.0, 1.0),
            [start + noise * rate(0.0) ** 2],
            method="LSODA",
            t_eval=wanted,
            rtol=1e-9,
            atol=1e-13,
        )
        return found.y[0] - noise * (amplitude * schedule.shape(wanted)) ** 2

    return Sandwich(lower=solved(largest, 1.0), upper=solved(smallest, largest))
