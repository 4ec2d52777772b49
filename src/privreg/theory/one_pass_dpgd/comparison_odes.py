"""Scalar equations that bound the deterministic equivalent of a well-conditioned covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.schedules import Schedule, require_schedule
from privreg.spectra import Spectrum
from privreg.theory.one_pass_dpgd import deterministic_equivalent
from privreg.theory.one_pass_dpgd.settings import require_scalars
from privreg.validation import require_array, require_number, short


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
    r"""Bounds on the risk, before the output noise, from equations for eigenvalues in a range.

    .. math:: \dot R = -2 a\,\tilde\eta\,\mu_c(R)\,R
        + b\,\tilde\eta^2\nu_c(R)\,(R + \tfrac12\zeta^2)\,\gamma + 2c^2\tilde\sigma^2\gamma^2

    with (a, b) = (largest, 1) for the lower bound and (smallest, largest) for the upper one, solved
    to 1e-7 by `deterministic_equivalent.solve`.

    Parameters
    ----------
    schedule : Schedule
        Learning rate, at most 2 / gamma, with one amplitude from 1e-20 to 1e32.
    smallest, largest : float
        Extreme eigenvalues, 1e-4 <= smallest <= 1 <= largest <= 1e4; the mean eigenvalue is 1.
    aspect_ratio : float
        gamma = d / n, at least 1e-20 and at most 1e20.
    zcdp_root : float
        rho, at least 1e-30 and at most 1e28; `inf` for no noise.
    clip_constant : float
        Clipping constant c in units of the residual, more than 0 and finite.
    label_noise_std : float
        Standard deviation zeta of the label noise, at least 0.
    times : array_like, shape (times,)
        Increasing, in [0, 1].
    start : float
        Excess risk R(0), at least 1e-20 and at most 1e20.

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
    if not 1e-4 <= smallest <= 1 <= largest <= 1e4:
        raise ValueError(
            f"smallest and largest must satisfy 1e-4 <= smallest <= 1 <= largest <= 1e4, "
            f"got {smallest} and {largest}"
        )
    require_number("start", start, least=1e-20, most=1e20)
    require_number("aspect_ratio", aspect_ratio, least=1e-20, most=1e20)
    if math.isfinite(zcdp_root):
        require_number("zcdp_root", zcdp_root, least=1e-30, most=1e28)
    amplitude = require_number("schedule", schedule.amplitude, least=1e-20, most=1e32)
    if amplitude * float(schedule.shape(0.0)) > 2 / aspect_ratio:
        raise ValueError(
            f"schedule must have an initial rate of at most 2 / aspect_ratio = "
            f"{2 / aspect_ratio:g}, got {amplitude * float(schedule.shape(0.0)):g}"
        )
    wanted = require_array("times", times, shape=(None,), least=0, most=1)
    if np.any(np.diff(wanted) <= 0):
        raise ValueError(f"times must be increasing within [0, 1], got {short(wanted)}")

    def solved(descent: float, kick: float) -> NDArray[np.float64]:
        # One mode of eigenvalue a / s and share b / a beside a flat rest, at the rate s times the
        # schedule and the aspect ratio gamma / s, has this equation; s keeps its weight below 1.
        scale = min(1.0, descent**2 / kick)
        weight = min(1.0, kick * scale / descent**2)
        return deterministic_equivalent.solve(
            Spectrum(np.array([0.0, descent / scale]), np.array([1 - weight, weight])),
            _Scaled(schedule, amplitude * scale),
            aspect_ratio=aspect_ratio / scale,
            zcdp_root=zcdp_root * math.sqrt(kick / descent),
            clip_constant=clip_constant,
            label_noise_std=label_noise_std,
            signal=start * descent / kick,
            times=wanted,
        ).risk

    return Sandwich(lower=solved(largest, 1.0), upper=solved(smallest, largest))


@dataclass(frozen=True)
class _Scaled:
    """A schedule at another amplitude."""

    schedule: Schedule
    amplitude: float

    def shape(self, times: ArrayLike) -> NDArray[np.float64]:
        return self.schedule.shape(times)
