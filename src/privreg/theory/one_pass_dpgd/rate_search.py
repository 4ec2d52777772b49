"""Best learning rates of one-pass DP-GD, chosen on its deterministic equivalent."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import AccuracyWarning, require_callable, require_instance, require_number
from privreg.schedules import Harmonic, Polynomial, Schedule
from privreg.spectra import Spectrum
from privreg.theory.one_pass_dpgd import deterministic_equivalent
from privreg.theory.one_pass_dpgd.deterministic_equivalent import (
    LARGEST,
    SMALLEST,
    require_scalars,
    require_signal,
)

# A first look tells valleys apart; only the last zoom needs digits.
FIRST_RTOL, LAST_RTOL = 1e-2, 1e-5
FIRST_POINTS, ZOOM_POINTS, ZOOMS = 41, 9, 2
# A grid whose best point is its end is extended by so many points, down to amplitudes and offsets
# that are limits, or until the best changes by less.
EXTENSION, FLAT = 10, 1e-5
# So many extensions are computed together where the best may be far: a call costs as much as they.
AHEAD = 8
# Ten times what a search needs where its rates can be told apart; only what it returns gets more.
MOST_INTERVALS = 2**13
# From the largest offset on, the schedule is constant to 1e-4.
LEAST_AMPLITUDE, LEAST_OFFSET, LARGEST_OFFSET = 1e-31, 1e-15, 1e4


@dataclass(frozen=True)
class Best:
    """The best schedule of a family.

    Attributes
    ----------
    schedule : Schedule
        With one amplitude.
    final_risk : float
        Excess risk of the private output under it.
    at_bound : bool
        Whether the amplitude is the largest that was allowed, such as that of the cap 2 / gamma, or
        the smallest, which is that of no rate at all where the caller sets none.
    """

    schedule: Schedule
    final_risk: float
    at_bound: bool


def polynomial(
    spectrum: Spectrum,
    *,
    exponent: float,
    aspect_ratio: float,
    zcdp_root: float,
    clip_constant: float,
    label_noise_std: float,
    signal: ArrayLike = 0.5,
) -> Best:
    r"""Initial rate of a polynomial schedule that minimises the risk of the private output.

    .. math:: \min_{\tilde\eta(0)} \; R(1) + 2c^2\tilde\eta(1)^2\gamma^2/\rho^2, \qquad
        \tilde\eta(t) = \tilde\eta(0)(1-t)^\alpha,\ \tilde\eta(0) \le 2/\gamma

    Refused under noise that makes every amplitude from 1e-31 on worse than none.

    Parameters
    ----------
    spectrum : Spectrum
        Eigenvalues of the covariance, with weights.
    exponent : float
        alpha, at least 0.
    aspect_ratio : float
        gamma = d / n, more than 0.
    zcdp_root : float
        rho, more than 0, for a rho^2/2-zCDP output; `inf` for no noise.
    clip_constant : float
        Clipping constant c in units of the residual, more than 0; `inf` only without noise.
    label_noise_std : float
        Standard deviation zeta of the label noise, at least 0.
    signal : array_like, shape () or (modes,)
        D_i(0) = d (w_i' theta*)^2 / 2 of each mode.

    Source
    ------
    bombari2025, Section 5 (the search range and grid are not given there).
    """
    setting = _scalars(aspect_ratio, zcdp_root, clip_constant, label_noise_std)
    exponent = require_number("exponent", exponent, least=0)
    best = _optimise(
        spectrum,
        lambda initial: Polynomial(initial, exponent),
        **_amplitudes(clip_constant, aspect_ratio),
        signal=signal,
        **setting,
    )
    return _helpful(_resolved(best, spectrum, signal=signal, **setting), spectrum, signal)


def harmonic(
    spectrum: Spectrum,
    *,
    aspect_ratio: float,
    zcdp_root: float,
    clip_constant: float,
    label_noise_std: float,
    signal: ArrayLike = 0.5,
) -> Best:
    r"""Numerator and offset of a harmonic schedule that minimise the risk of the private output.

    .. math:: \min_{\beta, \tau} \; R(1) + 2c^2\tilde\eta(1)^2\gamma^2/\rho^2, \qquad
        \tilde\eta(t) = \frac{\beta}{t + \tau},\ \tilde\eta(0) \le 2/\gamma

    The offset is searched from 0.02 to 300 times :math:`\max(\gamma, \gamma/\rho)`, and up to 10,
    where the schedule is almost constant, and beyond either end while the risk still falls by
    1e-5, up to 10^4; the numerator anew for each offset. Parameters and refusals are those of
    `polynomial`.

    Source
    ------
    bombari2025, equation (5.18) and Theorem 2 (the search range and grid are not given there).
    """
    setting = _scalars(aspect_ratio, zcdp_root, clip_constant, label_noise_std)
    scale = max(aspect_ratio, aspect_ratio / zcdp_root)
    found: dict[float, Best] = {}

    def risk(offset: float) -> float:
        if 2 / aspect_ratio * offset < 2 * SMALLEST:
            return np.inf
        if offset not in found:
            found[offset] = _optimise(
                spectrum,
                lambda numerator: Harmonic(numerator, offset),
                **_amplitudes(clip_constant, aspect_ratio, offset),
                signal=signal,
                **setting,
            )
        return found[offset].final_risk

    scale = min(max(scale, LEAST_OFFSET), 1e15)
    offset, _ = _zoom(
        lambda values: np.array([risk(float(value)) for value in values]),
        np.geomspace(0.02 * scale, max(300 * scale, 10.0), 21),
        lowest=LEAST_OFFSET,
        highest=max(LARGEST_OFFSET, 300 * scale),
    )
    best = found[float(offset)]
    return _helpful(_resolved(best, spectrum, signal=signal, **setting), spectrum, signal)


def optimise(
    spectrum: Spectrum,
    schedule_of: Callable[[ArrayLike], Schedule],
    *,
    low: float,
    high: float,
    aspect_ratio: float,
    zcdp_root: float,
    clip_constant: float,
    label_noise_std: float,
    signal: ArrayLike = 0.5,
) -> Best:
    """Amplitude of a family of schedules that minimises the risk of the private output.

    A logarithmic grid, then zooms around its best point, down to steps of half a percent of the
    amplitude, which are worth a few 1e-5 of the risk. It assumes a single valley.

    Parameters
    ----------
    spectrum : Spectrum
        Eigenvalues of the covariance, with weights.
    schedule_of : callable
        Takes amplitudes, shape (settings,), and returns the schedule that has them.
    low, high : float
        Range of amplitudes, 1e-32 <= low < high <= 1e32.
    aspect_ratio, zcdp_root, clip_constant, label_noise_std, signal : float
        As in `deterministic_equivalent.solve`, `inf` included.

    Warns
    -----
    AccuracyWarning
        If the risk of the best amplitude has an estimated error of more than 1e-5.
    """
    require_callable("schedule_of", schedule_of)
    low, high = require_number("low", low, least=1e-32), require_number("high", high, most=1e32)
    if not low < high:
        raise ValueError(f"low and high must satisfy 0 < low < high, got {low} and {high}")
    setting = _scalars(aspect_ratio, zcdp_root, clip_constant, label_noise_std)
    best = _optimise(
        spectrum, schedule_of, low=low, high=high, lowest=low, signal=signal, **setting
    )
    return _resolved(best, spectrum, signal=signal, **setting)


def _optimise(
    spectrum: Spectrum,
    schedule_of: Callable[[ArrayLike], Schedule],
    *,
    low: float,
    high: float,
    lowest: float,
    signal: ArrayLike,
    **setting: Any,
) -> Best:
    """As `optimise`, from a grid on [low, high] that may be extended down to `lowest`.

    The risk may miss its tolerance, as that of each rate which a search passes by.
    """

    def look(amplitudes: NDArray[np.float64], rtol: float) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            return deterministic_equivalent.solve(
                spectrum,
                schedule_of(amplitudes),
                **setting,
                signal=signal,
                times=[1.0],
                rtol=rtol,
                most_intervals=MOST_INTERVALS,
            ).final_risk

    require_instance("spectrum", spectrum, Spectrum)
    signals = require_signal(signal, spectrum)
    bounds = {"lowest": lowest, "highest": high}
    # No rate at all leaves the initial risk: a best that is worse lies above a better one.
    idle = 0.99 * spectrum.mean(spectrum.eigenvalues * signals)
    grid = np.geomspace(low, high, FIRST_POINTS)
    first, risks = _extended(lambda values: look(values, FIRST_RTOL), grid, **bounds, enough=idle)
    centre = int(np.argmin(risks))
    nearest = np.geomspace(
        first[max(centre - 1, 0)], first[min(centre + 1, len(first) - 1)], ZOOM_POINTS
    )
    amplitude, risk = _zoom(lambda values: look(values, LAST_RTOL), nearest, **bounds)
    at_bound = amplitude >= high * (1 - 1e-9) or amplitude <= lowest * (1 + 1e-9)
    return Best(schedule_of(amplitude), risk, bool(at_bound))


def _resolved(best: Best, spectrum: Spectrum, *, signal: ArrayLike, **setting: Any) -> Best:
    """The same schedule with its risk to the last digits that the equation gives."""
    found = deterministic_equivalent.solve(
        spectrum, best.schedule, **setting, signal=signal, times=[1.0], rtol=LAST_RTOL
    )
    return replace(best, final_risk=float(found.final_risk))


def _zoom(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    grid: NDArray[np.float64],
    *,
    lowest: float,
    highest: float,
) -> tuple[np.float64, float]:
    """Minimise over a logarithmic grid, then over finer ones between the neighbours of the best."""
    for remaining in range(ZOOMS, -1, -1):
        grid, values = _extended(function, grid, lowest=lowest, highest=highest)
        centre = int(np.argmin(values))
        if remaining:
            grid = np.geomspace(
                grid[max(centre - 1, 0)], grid[min(centre + 1, len(grid) - 1)], ZOOM_POINTS
            )
    return grid[centre], float(values[centre])


def _extended(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    grid: NDArray[np.float64],
    *,
    lowest: float,
    highest: float,
    enough: float = np.inf,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A logarithmic grid and its values, extended while its best point is an end of it.

    It ends at a bound or where more points change the best value by less than `FLAT`. Towards 0 it
    is also extended while the best is not `enough`.
    """
    values = function(grid)
    steps = (grid[1] / grid[0]) ** np.arange(1.0, EXTENSION + 1)
    ahead: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    falls = {"below": True, "above": True}
    while True:
        centre = int(np.argmin(values))
        best = float(values[centre])
        poor = best > enough
        if (centre == 0 or poor) and grid[0] > lowest * (1 + 1e-9) and (falls["below"] or poor):
            side = "below"
            if not ahead:
                parts = [np.unique(np.maximum(grid[0] / steps, lowest))]
                while poor and len(parts) < AHEAD and parts[-1][0] > lowest * (1 + 1e-9):
                    parts.append(np.unique(np.maximum(parts[-1][0] / steps, lowest)))
                found = np.split(
                    function(np.concatenate(parts)), np.cumsum([*map(len, parts)])[:-1]
                )
                ahead = list(zip(parts, found, strict=True))
            more, added = ahead.pop(0)
            grid, values = np.append(more, grid), np.append(added, values)
        elif centre == len(grid) - 1 and grid[-1] < highest * (1 - 1e-9) and falls["above"]:
            side, more = "above", np.unique(np.minimum(grid[-1] * steps, highest))
            grid, values = np.append(grid, more), np.append(values, function(more))
        else:
            return grid, values
        falls[side] = bool(values.min() < best * (1 - FLAT))


def _amplitudes(clip_constant: float, aspect_ratio: float, offset: float = 1.0) -> dict[str, float]:
    """Range of a first grid, and how far it may be extended: initial rates times an offset."""
    # Far below the rates at which clipped gradients move the iterate within one pass.
    least = min(1e-3 / min(clip_constant, 1.0), 1e-2 / aspect_ratio) * offset
    high = min(2 / aspect_ratio * offset, LARGEST)
    lowest = max(min(LEAST_AMPLITUDE, high / 2), SMALLEST)
    return {"low": max(min(least, high / 2), lowest), "high": high, "lowest": lowest}


def _helpful(best: Best, spectrum: Spectrum, signal: ArrayLike) -> Best:
    """The best of all rates, which is no worse than no rate at all."""
    idle = spectrum.mean(spectrum.eigenvalues * np.asarray(signal))
    if best.final_risk > idle * (1 + 1e-3):
        raise ValueError(
            "zcdp_root, clip_constant, label_noise_std and aspect_ratio must leave an amplitude of "
            f"at least {LEAST_AMPLITUDE:g} that is better than none, "
            f"got a least risk of {best.final_risk:g}"
        )
    return best


def _scalars(
    aspect_ratio: float, zcdp_root: float, clip_constant: float, label_noise_std: float
) -> dict[str, Any]:
    setting: dict[str, Any] = {
        "aspect_ratio": aspect_ratio,
        "zcdp_root": zcdp_root,
        "clip_constant": clip_constant,
        "label_noise_std": label_noise_std,
    }
    return dict(zip(setting, require_scalars(**setting), strict=True))
