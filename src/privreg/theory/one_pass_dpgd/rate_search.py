"""Best learning rates of one-pass DP-GD according to its deterministic equivalent."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import AccuracyWarning
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
FIRST_POINTS, ZOOM_POINTS = 41, 9
# Steps of the last zoom; the risk is flatter in the offset, at which a search costs another.
AMPLITUDE_STEP, OFFSET_STEP = 0.01, 0.05
# A grid whose best point is its end is extended by so many points, down to amplitudes and offsets
# that are limits, or until the best changes by less.
EXTENSION, FLAT = 10, 1e-5
# Ten times what a search needs where its rates can be told apart; only what it returns gets more.
MOST_INTERVALS = 2**13
# From the largest offset on, the schedule is constant to 1e-4.
LEAST_AMPLITUDE, LEAST_OFFSET, LARGEST_OFFSET = 1e-31, 1e-15, 1e4


@dataclass(frozen=True)
class Best:
    """Best schedule of a family.

    Attributes
    ----------
    schedule, final_risk
        Best schedule, whose amplitude is a number, and the excess risk of its private output.
    at_bound : bool
        True if the amplitude is at an end of the search range, such as the cap 2 / gamma.
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
    r"""Polynomial schedule with the initial rate that minimises the risk of the private output.

    .. math:: \min_{\tilde\eta(0)} \; R(1) + 2c^2\tilde\eta(1)^2\gamma^2/\rho^2, \qquad
        \tilde\eta(t) = \tilde\eta(0)(1-t)^\alpha,\ \tilde\eta(0) \le 2/\gamma

    The search uses a logarithmic grid, then finer grids around the best point, down to steps of 1 %
    of the amplitude. It assumes a single minimum. An error is raised if noise makes every
    amplitude of at least 1e-31 worse than amplitude 0.

    Parameters
    ----------
    spectrum : Spectrum
        Eigenvalues of the covariance, with weights.
    exponent : float
        alpha, at least 0.
    aspect_ratio, zcdp_root, clip_constant, label_noise_std, signal
        gamma = d/n, rho, c, zeta and D_i(0) of one setting: see `deterministic_equivalent.solve`.

    Warns
    -----
    AccuracyWarning
        If the risk of the best amplitude has an estimated error of more than 1e-5.

    Source
    ------
    bombari2025, Section 5 (the search range and grid are not given there).
    """
    setting = _setting(spectrum, signal, aspect_ratio, zcdp_root, clip_constant, label_noise_std)
    best = _optimise(spectrum, lambda initial: Polynomial(initial, exponent), setting)
    return _resolved(best, spectrum, setting)


def harmonic(
    spectrum: Spectrum,
    *,
    aspect_ratio: float,
    zcdp_root: float,
    clip_constant: float,
    label_noise_std: float,
    signal: ArrayLike = 0.5,
) -> Best:
    r"""Harmonic schedule with numerator and offset that minimise the risk of the private output.

    .. math:: \min_{\beta, \tau} \; R(1) + 2c^2\tilde\eta(1)^2\gamma^2/\rho^2, \qquad
        \tilde\eta(t) = \frac{\beta}{t + \tau},\ \tilde\eta(0) \le 2/\gamma

    The offset is searched from 0.02 to 300 times :math:`\max(\gamma, \gamma/\rho)`, and at least up
    to 10, where the schedule is almost constant. The range is extended at either end while the risk
    falls by at least a relative 1e-5, up to an offset of 10^4. Each offset has its own best
    numerator. Parameters, warning and errors are as for `polynomial`.

    Source
    ------
    bombari2025, equation (5.18) and Theorem 2 (the search range and grid are not given there).
    """
    setting = _setting(spectrum, signal, aspect_ratio, zcdp_root, clip_constant, label_noise_std)
    gamma = setting["aspect_ratio"]
    found: dict[float, Best] = {}

    def risk(offset: float) -> float:
        if 2 / gamma * offset < 2 * SMALLEST:
            return np.inf
        if offset not in found:
            found[offset] = _optimise(
                spectrum, lambda numerator: Harmonic(numerator, offset), setting, offset
            )
        return found[offset].final_risk

    scale = min(max(gamma, gamma / setting["zcdp_root"], LEAST_OFFSET), 1e15)
    offset, _ = _zoom(
        lambda values: np.array([risk(float(value)) for value in values]),
        np.geomspace(0.02 * scale, max(300 * scale, 10.0), 21),
        lowest=LEAST_OFFSET,
        highest=max(LARGEST_OFFSET, 300 * scale),
        finest=OFFSET_STEP,
    )
    return _resolved(found[float(offset)], spectrum, setting)


def _setting(spectrum: Spectrum, signal: ArrayLike, *values: float) -> dict[str, Any]:
    """Keyword arguments of `deterministic_equivalent.solve`, checked."""
    names = ("aspect_ratio", "zcdp_root", "clip_constant", "label_noise_std")
    given: dict[str, Any] = dict(zip(names, values, strict=True))
    given = dict(zip(names, require_scalars(**given), strict=True))
    return given | {"signal": require_signal(signal, spectrum)}


def _idle(spectrum: Spectrum, setting: dict[str, Any]) -> float:
    """Risk at a learning rate of 0."""
    return float(spectrum.mean(spectrum.eigenvalues * setting["signal"]))


def _optimise(
    spectrum: Spectrum,
    schedule_of: Callable[[ArrayLike], Schedule],
    setting: dict[str, Any],
    offset: float = 1.0,
) -> Best:
    """Best amplitude (best initial rate times `offset`); its risk may miss the tolerance."""

    def look(amplitudes: NDArray[np.float64], rtol: float) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            return deterministic_equivalent.solve(
                spectrum,
                schedule_of(amplitudes),
                **setting,
                times=[1.0],
                rtol=rtol,
                most_intervals=MOST_INTERVALS,
            ).final_risk

    gamma = setting["aspect_ratio"]
    high = min(2 / gamma * offset, LARGEST)
    lowest = max(min(LEAST_AMPLITUDE, high / 2), SMALLEST)
    # Far below the rates at which clipped gradients move the iterate within one pass.
    low = min(1e-3 / min(setting["clip_constant"], 1.0), 1e-2 / gamma) * offset
    low = max(min(low, high / 2), lowest)
    bounds = {"lowest": lowest, "highest": high}
    first, risks = _extended(
        lambda values: look(values, FIRST_RTOL),
        np.geomspace(low, high, FIRST_POINTS),
        **bounds,
        # A best that is worse than no rate at all lies above a better one.
        enough=0.99 * _idle(spectrum, setting),
    )
    centre = int(np.argmin(risks))
    nearest = np.geomspace(
        first[max(centre - 1, 0)], first[min(centre + 1, len(first) - 1)], ZOOM_POINTS
    )
    amplitude, risk = _zoom(
        lambda values: look(values, LAST_RTOL), nearest, **bounds, finest=AMPLITUDE_STEP
    )
    at_bound = amplitude >= high * (1 - 1e-9) or amplitude <= lowest * (1 + 1e-9)
    return Best(schedule_of(amplitude), risk, bool(at_bound))


def _resolved(best: Best, spectrum: Spectrum, setting: dict[str, Any]) -> Best:
    """The same schedule with an accurate risk; refused if the risk is worse than at rate 0."""
    risk = float(
        deterministic_equivalent.solve(
            spectrum, best.schedule, **setting, times=[1.0], rtol=LAST_RTOL
        ).final_risk
    )
    if risk > _idle(spectrum, setting) * (1 + 1e-3):
        raise ValueError(
            "zcdp_root, clip_constant, label_noise_std and aspect_ratio must allow a risk below "
            f"the initial one, got at least {risk:g} for amplitudes above {LEAST_AMPLITUDE:g}"
        )
    return replace(best, final_risk=risk)


def _zoom(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    grid: NDArray[np.float64],
    *,
    lowest: float,
    highest: float,
    finest: float,
) -> tuple[np.float64, float]:
    """Minimise over a logarithmic grid, then over finer grids around the best point."""
    while True:
        grid, values = _extended(function, grid, lowest=lowest, highest=highest)
        centre = int(np.argmin(values))
        if grid[1] <= grid[0] * (1 + finest):
            return grid[centre], float(values[centre])
        ends = grid[max(centre - 1, 0)], grid[min(centre + 1, len(grid) - 1)]
        grid = np.geomspace(*ends, ZOOM_POINTS)


def _extended(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    grid: NDArray[np.float64],
    *,
    lowest: float,
    highest: float,
    enough: float = np.inf,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A logarithmic grid and its values, extended while the best point is at an end of the grid.

    Extension stops at a bound, or if more points change the best value by less than `FLAT`. Towards
    0 the grid is also extended while the best value exceeds `enough`.
    """
    values = function(grid)
    steps = (grid[1] / grid[0]) ** np.arange(1.0, EXTENSION + 1)
    falls = {"below": True, "above": True}
    while True:
        centre = int(np.argmin(values))
        best = float(values[centre])
        poor = best > enough
        if (poor or (centre == 0 and falls["below"])) and grid[0] > lowest * (1 + 1e-9):
            side, more = "below", np.unique(np.maximum(grid[0] / steps, lowest))
            grid, values = np.append(more, grid), np.append(function(more), values)
        elif centre == len(grid) - 1 and grid[-1] < highest * (1 - 1e-9) and falls["above"]:
            side, more = "above", np.unique(np.minimum(grid[-1] * steps, highest))
            grid, values = np.append(grid, more), np.append(values, function(more))
        else:
            return grid, values
        falls[side] = bool(values.min() < best * (1 - FLAT))
