r"""Deterministic equivalent of one-pass DP-GD: ordinary differential equations for its risk.

As dimension d and samples n grow in proportion :math:`\gamma = d/n`, the excess risk of DP-GD
concentrates on the solution of

.. math:: \dot D_i = -2\lambda_i \bar\eta\,\mu_c(R)\,D_i
    + \lambda_i \bar\eta^2 \nu_c(R)\,(R + \tfrac{\zeta^2}{2})\,\gamma + 2c^2\tilde\sigma^2\gamma^2,
    \qquad R = \tfrac1d \sum_i \lambda_i D_i,

with :math:`\bar\eta = \min(\tilde\eta, 2/\gamma)` and the private noise
:math:`\rho^2\tilde\sigma^2 = -\mathrm d\tilde\eta^2/\mathrm dt`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, erfc, gammainc

from privreg.checks import entry, require_answer, require_array, require_real, short, warn_beyond
from privreg.schedules import Harmonic, Polynomial, Schedule
from privreg.spectra import Spectrum

# The paper's powers of a logarithm need aspect ratios of 1e-30, and rates of its inverse.
SMALLEST, LARGEST = 1e-32, 1e32
ZERO_ALLOWED = ("label_noise_std", "risk", "signal")
INFINITY_ALLOWED = ("clip_constant", "zcdp_root")
PANELS_PER_DECADE = 3
FINEST_LEVEL = 9
GAIN_BY_HALVING = 8  # of an error of order 3
MOST_DECAYS = 2048  # that a graded grid resolves one by one
BEND = 1e-5  # of a rate, that a graded grid leaves between neighbours
SHORT = 1e-3  # four terms of a series are exact to rounding for exponents up to this
CUTS, JUMP = 64, 1e-4  # parts of an interval, and the least jump of a rate over its largest value


@dataclass(frozen=True)
class Solution:
    """Risk over time, and risk of the private output.

    Attributes
    ----------
    times : ndarray, shape (times,)
        Times of the risk, in [0, 1].
    risk : ndarray, shape (..., times)
        Excess risk before the output noise, which is added to the last iterate only.
    final_risk : ndarray, shape (...)
        Excess risk of the private output.
    error : float
        Estimated largest relative error of `risk` and `final_risk`.
    """

    times: NDArray[np.float64]
    risk: NDArray[np.float64]
    final_risk: NDArray[np.float64]
    error: float


def solve(
    spectrum: Spectrum,
    schedule: Schedule,
    *,
    aspect_ratio: ArrayLike,
    zcdp_root: ArrayLike,
    clip_constant: ArrayLike,
    label_noise_std: float,
    signal: ArrayLike = 0.5,
    times: ArrayLike | None = None,
    rtol: float = 1e-7,
    most_intervals: int = 10**9,
) -> Solution:
    r"""Solve the deterministic equivalent of one-pass DP-GD, for many settings at once.

    Amplitude, `aspect_ratio`, `zcdp_root` and `clip_constant` are broadcast; each entry is one
    setting. Exponential Heun steps are exact for the stiff linear part. Time grids are geometric at
    both ends, down to the time scales of a setting's fastest mode. Grids are halved and risks are
    extrapolated until two levels agree. If none do, grids are graded to the rate's jumps and kinks.

    Parameters
    ----------
    spectrum : Spectrum
        Eigenvalues of the covariance; the paper's results need a mean of 1.
    schedule : Schedule
        Learning rate with amplitude of shape (...). The rate must not rise under private noise.
    aspect_ratio, zcdp_root : array_like, shape (...)
        gamma = d / n; and rho, for an output that is rho^2/2-zCDP (`inf` adds no noise).
    clip_constant : array_like, shape (...)
        Clipping constant c in units of the residual: gradients are clipped to norm c sqrt(d).
        `inf` is allowed only without private noise.
    label_noise_std : float
        Standard deviation zeta of the label noise, which may be 0.
    signal : array_like, shape () or (modes,)
        Initial D_i(0) = d (w_i' theta*)^2 / 2 of each mode with eigenvector w_i; the start is zero.
        1/2 is for a target of norm 1 with equal parts in all modes.
    times : array_like, shape (times,), optional
        Times in [0, 1] at which to return the risk; by default geometric at both ends. To get the
        final risk quickly, pass a single time.
    rtol : float
        Target for the relative error.
    most_intervals : int
        A grid with more intervals is not halved further, whatever the error.

    Warns
    -----
    AccuracyWarning
        If the estimated relative error of a setting exceeds `rtol`.

    Source
    ------
    bombari2025, equations (4.7)-(4.8) and Proposition 4.4, equation (4.23).
    """
    amplitude, gamma, rho, clip_constant = np.broadcast_arrays(
        *require_settings(
            schedule=schedule.amplitude,
            aspect_ratio=aspect_ratio,
            zcdp_root=zcdp_root,
            clip_constant=clip_constant,
        )
    )
    if amplitude.size == 0:
        raise ValueError("aspect_ratio and schedule must have at least one setting, got none")
    (label_noise_std,) = require_scalars(label_noise_std=label_noise_std)
    signals = require_signal(signal, spectrum)
    if np.any(np.isinf(clip_constant) & np.isfinite(rho)):
        raise ValueError("clip_constant must be finite under private noise, got inf")
    noise_energy = 2 * (np.where(np.isinf(clip_constant), 0, clip_constant) * gamma / rho) ** 2
    order = np.argsort(spectrum.eigenvalues)
    eigenvalues, weights = spectrum.eigenvalues[order], spectrum.weights[order]
    start = np.broadcast_to(signals, eigenvalues.shape)[order]
    if label_noise_std == 0 and not np.any(start * eigenvalues):
        raise ValueError("signal must not be 0 if label_noise_std is 0, got 0")
    reported = geometric_ends(1e-9, 1e-9) if times is None else checked_times(times)
    settings = np.stack(
        [array.ravel() for array in (amplitude, gamma, noise_energy, clip_constant)]
    )
    risk, error = np.empty((amplitude.size, len(reported) + 1)), np.empty(amplitude.size)
    for ends, members in _shared_grids(
        schedule,
        settings,
        speed=2 * eigenvalues[-1],
        start=float(np.sum(weights * eigenvalues * start)),
        label_noise_std=label_noise_std,
        rtol=rtol,
    ):

        def integrate(nodes: NDArray[np.float64], chosen: NDArray[np.intp]) -> NDArray[np.float64]:
            keep = np.searchsorted(nodes, np.append(reported, 1.0))
            found = np.empty((len(chosen), len(keep)))
            shape, own = schedule.shape(nodes), np.ascontiguousarray(settings[:, chosen])
            integrate_settings(
                eigenvalues, weights, start, nodes, shape, own, label_noise_std, keep, found
            )
            return found

        grid = np.union1d(geometric_ends(*ends), reported)
        if np.any(settings[2, members] > 0):
            require_falling(schedule.shape(grid))
        risk[members], error[members] = _extrapolate(integrate, members, grid, rtol, most_intervals)
        # Beside a jump of the rate two levels may agree by accident.
        doubted = members if _jumps(schedule, grid) else members[~(error[members] < rtol)]
        for member in doubted:
            graded = _graded(
                schedule, settings[:2, member], grid, reported, speed=2 * eigenvalues[-1], rtol=rtol
            )
            if len(graded) == len(grid):
                continue
            found, left = _extrapolate(integrate, np.array([member]), graded, rtol, most_intervals)
            if left[0] < max(error[member], rtol):
                risk[member], error[member] = found[0], left[0]
    output_noise = settings[2] * (settings[0] * schedule.shape(1.0)) ** 2
    final = risk[:, -1] + output_noise * np.sum(weights * eigenvalues)
    require_answer("schedule, aspect_ratio, zcdp_root and clip_constant", np.append(risk, final))
    shape, worst = amplitude.shape, float(error.max())
    warn_beyond("risk", error=worst, tolerance=rtol)
    return Solution(
        reported, risk[:, :-1].reshape(*shape, len(reported)), final.reshape(shape), worst
    )


class Sandwich(NamedTuple):
    """Lower and upper bound on the excess risk, each with the shape of the times."""

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
    r"""Bounds on the risk before the output noise, for any eigenvalues in a range.

    .. math:: \dot R = -2 a\,\tilde\eta\,\mu_c(R)\,R
        + b\,\tilde\eta^2\nu_c(R)\,(R + \tfrac12\zeta^2)\,\gamma + 2c^2\tilde\sigma^2\gamma^2

    with (a, b) = (largest, 1) for the lower bound and (smallest, largest) for the upper bound. Here
    mu_c is `descent_factor`, nu_c is `variance_factor`, and ρ²σ̃² = -dη̃²/dt gives the noise σ̃.

    Parameters
    ----------
    schedule : Schedule
        Learning rate, at most 2 / gamma, with one amplitude.
    smallest, largest : float
        Extreme eigenvalues, 1e-4 <= smallest <= 1 <= largest <= 1e4; the mean eigenvalue is 1.
    aspect_ratio, zcdp_root, clip_constant, label_noise_std, times
        gamma = d / n, rho, clipping constant c, label noise zeta and the times, as in `solve`.
    start : float
        Excess risk R(0), more than 0.

    Source
    ------
    bombari2025, Proposition D.1. Its proof prints tr(Sigma^2) >= largest * tr(Sigma), but needs <=.
    """
    amplitude, smallest, largest, aspect_ratio, start = require_scalars(
        schedule=schedule.amplitude,
        smallest=smallest,
        largest=largest,
        aspect_ratio=aspect_ratio,
        start=start,
    )
    if not 1e-4 <= smallest <= 1 <= largest <= 1e4:
        raise ValueError(
            f"smallest and largest must satisfy 1e-4 <= smallest <= 1 <= largest <= 1e4, "
            f"got {smallest} and {largest}"
        )
    rate = amplitude * float(schedule.shape(0.0))
    if rate > 2 / aspect_ratio:
        raise ValueError(
            f"schedule must have an initial rate of at most 2 / aspect_ratio = "
            f"{2 / aspect_ratio:g}, got {rate:g}"
        )

    def solved(descent: float, kick: float) -> NDArray[np.float64]:
        # One mode of eigenvalue a / s and share b / a beside a flat rest, at the rate s times the
        # schedule and the aspect ratio gamma / s, has this equation; s keeps its weight below 1.
        scale = min(1.0, descent**2 / kick)
        weight = min(1.0, kick * scale / descent**2)
        scaled: Any = SimpleNamespace(amplitude=amplitude * scale, shape=schedule.shape)
        return solve(
            Spectrum(np.array([0.0, descent / scale]), np.array([1 - weight, weight])),
            scaled,
            aspect_ratio=aspect_ratio / scale,
            zcdp_root=zcdp_root * math.sqrt(kick / descent),
            clip_constant=clip_constant,
            label_noise_std=label_noise_std,
            signal=start * descent / kick,
            times=times,
        ).risk

    return Sandwich(lower=solved(largest, 1.0), upper=solved(smallest, largest))


def descent_factor(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Share of the mean gradient that survives clipping, in (0, 1].

    .. math:: \mu_c(R) = \frac{\|\mathbb E[r_c x]\|}{\|\mathbb E[r x]\|}
        = \mathrm{erf}\Big(\frac{c}{\sqrt{2(2R + \zeta^2)}}\Big),
        \qquad r \sim N(0, 2R + \zeta^2),\ r_c = \mathrm{clip}(r, \pm c)

    Parameters
    ----------
    risk : array_like, shape (...)
        Excess risk R, 0 or from 1e-32 to 1e32.
    clip_constant : array_like, shape (...)
        Clipping constant c in units of the residual, from 1e-32 to 1e32; `inf` clips nothing.
    label_noise_std : array_like, shape (...)
        Standard deviation zeta of the label noise, 0 or from 1e-32 to 1e32.

    Source
    ------
    bombari2025, equations (4.6) and (B.1).
    """
    ratio = clip_ratio(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
    return descent_of(ratio)


def variance_factor(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Share of the residual's second moment that survives clipping, in (0, 1].

    .. math:: \nu_c(R) = \frac{\mathbb E[r_c^2]}{\mathbb E[r^2]}
        = c'^2\,\mathrm{erfc}\Big(\frac{c'}{\sqrt2}\Big) + P\Big(\frac32, \frac{c'^2}2\Big),
        \qquad c' = \frac{c}{\sqrt{2R + \zeta^2}}

    where r ~ N(0, 2R + ζ²) is the residual, r_c is r clipped to [-c, c], and P is the regularised
    lower incomplete gamma function: here the truncated second moment of a standard normal. This
    form loses no digits for small c'.

    Parameters
    ----------
    risk, clip_constant, label_noise_std : array_like, shape (...)
        Excess risk R, clipping constant c and label noise zeta, as for `descent_factor`.

    Source
    ------
    bombari2025, equations (4.6) and (B.2)-(B.3).
    """
    ratio = clip_ratio(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
    return variance_of(ratio)


def clip_ratio(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Clipping constant divided by the residual's deviation, :math:`c/\sqrt{2R + \zeta^2}`."""
    excess, constant, noise = require_settings(
        risk=risk, clip_constant=clip_constant, label_noise_std=label_noise_std
    )
    with np.errstate(divide="ignore"):
        return constant / np.sqrt(2 * excess + noise**2)


def descent_of(ratio: ArrayLike) -> NDArray[np.float64]:
    """`descent_factor` as a function of the clip ratio, without checks."""
    return np.asarray(erf(np.asarray(ratio) / np.sqrt(2)))


def variance_of(ratio: ArrayLike) -> NDArray[np.float64]:
    """`variance_factor` as a function of the clip ratio, without checks."""
    # Beyond 40 standard deviations nothing is clipped.
    inside = np.minimum(ratio, 40.0)
    return np.asarray(inside**2 * erfc(inside / np.sqrt(2)) + gammainc(1.5, inside**2 / 2))


def require_settings(**values: Any) -> list[NDArray[np.float64]]:
    """Check that settings are from 1e-32 to 1e32, and return them in the order given.

    Risks, signals and label noise may be 0; a clipping constant and a zCDP root may be infinite.
    """
    arrays = []
    for name, value in values.items():
        zero, endless = name in ZERO_ALLOWED, name in INFINITY_ALLOWED
        array = require_real(name, value, least=0, infinite=endless)
        wrong = ~((array >= SMALLEST) & (array <= LARGEST) | zero & (array == 0))
        wrong &= ~(np.isinf(array) & endless)
        if np.any(wrong):
            also = " or 0" if zero else ", or `inf`" if endless else ""
            raise ValueError(
                f"{name} must be from {SMALLEST:g} to {LARGEST:g}{also}, got {entry(array, wrong)}"
            )
        arrays.append(array)
    return arrays


def require_scalars(**values: Any) -> list[float]:
    """As `require_settings`, but each argument must be a single number."""
    arrays = require_settings(**values)
    for name, array in zip(values, arrays, strict=True):
        if array.ndim:
            raise ValueError(f"{name} must be one number, got shape {array.shape}")
    return [float(array) for array in arrays]


def require_signal(signal: ArrayLike, spectrum: Spectrum) -> NDArray[np.float64]:
    """Check the signal D_i(0): a number for each mode, or one for all modes."""
    (signals,) = require_settings(signal=signal)
    if signals.shape not in ((), spectrum.eigenvalues.shape):
        raise ValueError(
            f"signal must have shape () or {spectrum.eigenvalues.shape}, got {signals.shape}"
        )
    return signals


def checked_times(times: ArrayLike) -> NDArray[np.float64]:
    """Check that times increase within [0, 1]."""
    found = require_array("times", times, shape=(None,), least=0, most=1)
    if np.any(np.diff(found) <= 0):
        raise ValueError(f"times must be increasing within [0, 1], got {short(found)}")
    return found


def require_falling(rates: NDArray[np.float64]) -> None:
    """Refuse rates that rise over time, since they would need noise of negative variance."""
    if np.any(rates[1:] > rates[:-1] * (1 + 1e-12)):
        raise ValueError("schedule must not increase under private noise, got an increasing one")


def _extrapolate(
    integrate: Callable[[NDArray[np.float64], NDArray[np.intp]], NDArray[np.float64]],
    members: NDArray[np.intp],
    grid: NDArray[np.float64],
    rtol: float,
    most: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Halve the grid for settings that still change; extrapolation removes orders 2 and 3."""
    active = np.arange(len(members))
    coarse = integrate(grid, members)
    best, error = coarse.copy(), np.full(len(members), np.inf)
    change = np.zeros(len(members))
    previous = None
    for level in range(FINEST_LEVEL):
        # Two grids are needed to know an error.
        if level and len(grid) > most:
            break
        grid = np.insert(grid, np.arange(1, len(grid)), (grid[1:] + grid[:-1]) / 2)
        fine = integrate(grid, members[active])
        second = (4 * fine - coarse) / 3
        current = second if previous is None else (8 * second - previous) / 7
        last_change = change
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.max(np.abs(current - best[active]) / np.abs(current), axis=1)
        # No change from nothing to nothing; NaN stays, and ends in an error.
        change = np.where(np.all(current == best[active], axis=1), 0.0, change)
        # A change that falls faster than its order allows is an accident of a sign.
        error[active] = np.maximum(change, last_change / GAIN_BY_HALVING)
        best[active] = current
        left = ~(error[active] < rtol)
        if not left.any():
            break
        active, change = active[left], change[left]
        coarse, previous = fine[left], second[left]
    return best, error


def _jumps(schedule: Schedule, grid: NDArray[np.float64]) -> bool:
    """True if the rate jumps inside an interval other than the first and the last."""
    # With twice as many nodes, second differences fall to a quarter, except at a jump.
    # By the type itself: a subclass may have another shape.
    if type(schedule) in (Polynomial, Harmonic):
        return False
    left, right = grid[1:-2, None], grid[2:-1, None]
    nodes = left + (right - left) * np.arange(CUTS + 1) / CUTS
    values = schedule.shape(nodes.ravel()).reshape(nodes.shape)
    fine, coarse = (
        np.max(np.abs(inside - (before + after) / 2), axis=1, initial=0.0)
        for before, inside, after in (
            (values[:, :-1:2], values[:, 1::2], values[:, 2::2]),
            (values[:, :-2:4], values[:, 2::4], values[:, 4::4]),
        )
    )
    seen = fine > JUMP * np.max(np.abs(values), initial=0.0)
    return bool(np.any(seen & (fine > 0.6 * coarse)))


def _graded(
    schedule: Schedule,
    setting: NDArray[np.float64],
    grid: NDArray[np.float64],
    reported: NDArray[np.float64],
    *,
    speed: float,
    rtol: float,
) -> NDArray[np.float64]:
    """Grid, halved where the rate or its square is not linear, on both sides of a jump.

    The grid resolves the fastest mode's decay times. It is geometric before each reported time and
    the end, since a fast mode remembers only the noise of the last layer of time. Intervals
    shorter than that layer are halved to find a jump but not kept, except for the jump's two sides,
    which are neighbouring doubles. A layer below the spacing of doubles leaves the grid as it is.
    """
    amplitude, gamma = setting

    def curve(times: NDArray[np.float64]) -> NDArray[np.float64]:
        rate = amplitude * schedule.shape(times)
        taken = np.minimum(rate, 2 / gamma)
        return np.stack([taken, rate**2])

    largest = np.maximum(np.max(curve(grid), axis=1, keepdims=True), 1e-300)
    smallest = min(rtol**0.5 / (speed * largest[0, 0]), 0.1)
    if smallest < np.finfo(float).eps:
        return grid
    before = grid[np.maximum(np.searchsorted(grid, reported) - 1, 0)]
    halves = 0.5 ** np.arange(1, math.ceil(-math.log2(smallest)) + 1)
    layers = reported - np.multiply.outer(halves, reported - before)
    # Far from its end a run may change within a decay time, such as where rates at the cap settle.
    decays = np.linspace(0.0, 1.0, min(math.ceil(speed * largest[0, 0]), MOST_DECAYS) + 1)
    grid = np.unique(np.concatenate([grid, decays, layers[layers < reported - smallest]]))
    left, right = grid[:-1], grid[1:]
    kept = [grid]
    while left.size:
        middle = (left + right) / 2
        bend = np.abs(curve(middle) - (curve(left) + curve(right)) / 2)
        bent = np.any(bend > BEND * largest, axis=0)
        left, middle, right = left[bent], middle[bent], right[bent]
        last = (middle <= left) | (middle >= right)
        kept += [left[last], right[last], middle[~last & (right - left > 2 * smallest)]]
        left, middle, right = left[~last], middle[~last], right[~last]
        left, right = np.append(left, middle), np.append(middle, right)
    return np.unique(np.concatenate(kept))


def _shared_grids(
    schedule: Schedule,
    settings: NDArray[np.float64],
    *,
    speed: float,
    start: float,
    label_noise_std: float,
    rtol: float,
) -> Iterator[tuple[tuple[float, float], NDArray[np.intp]]]:
    """Groups of settings with equal first and last time scales up to a decade, and these scales.

    The fastest mode relaxes in a transient at 0. At the end it remembers only a layer of time. The
    steps there have exponents as small as the accuracy needs, and no smaller.
    """
    amplitude, gamma, noise_energy, clip_constant = settings
    with np.errstate(divide="ignore"):
        descent = np.minimum(np.sqrt(2 / np.pi) * clip_constant / np.float64(label_noise_std), 1.0)
    fastest = speed * descent
    cap = 2 / gamma
    before = np.logspace(-9, -1, 9)
    head, tail = schedule.shape(before), schedule.shape(1 - before)
    first = schedule.shape(0.0)
    moved = fastest[:, None] * before * np.minimum(amplitude * first, cap)[:, None]
    noise = (noise_energy * amplitude**2)[:, None] * (first**2 - head**2)
    remembered = fastest[:, None] * before * np.minimum(amplitude[:, None] * tail, cap[:, None])
    small = rtol**0.5
    begins = np.sum((moved + noise / max(start, 1e-300)) < small, axis=1)
    ends = np.sum(remembered < small, axis=1)
    scales = np.concatenate([[1e-10], before])
    pairs = np.stack([begins, ends], axis=1)
    for pair in np.unique(pairs, axis=0):
        members = np.flatnonzero(np.all(pairs == pair, axis=1))
        yield (float(scales[pair[0]]), float(scales[pair[1]])), members


def geometric_ends(
    first: float, last: float, *, panels: int = PANELS_PER_DECADE
) -> NDArray[np.float64]:
    """Times from 0 to 1, spaced geometrically from `first` on and, mirrored, up to 1 - `last`."""

    def rising(smallest: float) -> NDArray[np.float64]:
        count = math.ceil(panels * math.log10(0.5 / smallest))
        return np.geomspace(smallest, 0.5, count + 1)

    return np.concatenate([[0.0], rising(first), 1 - rising(last)[-2::-1], [1.0]])


# No fast math: a function that the compiler may reorder can round otherwise in the process that
# compiles it than in those that load the cache. The sum over modes has an order of its own instead.
@njit(cache=True, nogil=True)
def integrate_settings(  # type: ignore[no-untyped-def]
    eigenvalues, weights, start, times, shape, settings, label_noise_std, keep, risk_out
):
    """Make exponential Heun steps for each setting in turn; record the risk at the times to keep.

    `eigenvalues` increase. `settings` has rows amplitude, gamma, noise energy and clip. `shape` is
    the schedule's shape at `times`, `keep` are positions there; fills `risk_out` (settings, keep).
    """
    modes = len(eigenvalues)
    # The state is what each mode contributes to the risk.
    share = weights * eigenvalues
    state, advanced = np.empty(modes), np.empty(modes)
    half_variance = label_noise_std * label_noise_std / 2
    for setting in range(settings.shape[1]):
        amplitude, gamma, noise_energy, clip_constant = settings[:, setting]
        risk = 0.0
        for mode in range(modes):
            state[mode] = share[mode] * start[mode]
            risk += state[mode]
        cap = 2 / gamma
        kept = 0
        while kept < len(keep) and keep[kept] == 0:
            risk_out[setting, kept] = risk
            kept += 1
        rate = amplitude * shape[0]
        taken = min(rate, cap)
        drift, kick = _coefficients(risk, taken, clip_constant, half_variance, gamma)
        for step in range(1, len(times)):
            width = times[step] - times[step - 1]
            next_rate = amplitude * shape[step]
            next_taken = min(next_rate, cap)
            # The noise of a step is known exactly, whatever the rate does inside it.
            noise = noise_energy * (rate * rate - next_rate * next_rate)
            predicted = _advance(
                eigenvalues, share, state, 2 * width * drift, width * kick, noise, advanced
            )
            end_drift, end_kick = _coefficients(
                predicted, next_taken, clip_constant, half_variance, gamma
            )
            path, gain = width * (drift + end_drift), width * (kick + end_kick) / 2
            risk = _advance(eigenvalues, share, state, path, gain, noise, advanced)
            state, advanced = advanced, state
            rate = next_rate
            drift, kick = _coefficients(risk, next_taken, clip_constant, half_variance, gamma)
            while kept < len(keep) and keep[kept] == step:
                risk_out[setting, kept] = risk
                kept += 1


@njit(nogil=True)
def _advance(eigenvalues, share, state, path, gain, noise, advanced):  # type: ignore[no-untyped-def]
    """Relax each mode for one step with constant coefficients; return the risk after it."""
    split = np.searchsorted(eigenvalues, SHORT / path) if path > 0 else len(eigenvalues)
    for mode in range(split):
        exponent = eigenvalues[mode] * path
        mean_decay = 1 - exponent / 2 * (1 - exponent * (1 / 3) * (1 - exponent / 4))
        added = share[mode] * (eigenvalues[mode] * gain + noise)
        advanced[mode] = state[mode] + (added - exponent * state[mode]) * mean_decay
    # Slices, since an index that could be negative is not vectorised.
    fast, fast_share, fast_state = eigenvalues[split:], share[split:], state[split:]
    fast_advanced = advanced[split:]
    for mode in range(len(fast)):
        decay, mean_decay = relaxation(fast[mode] * path)
        added = fast_share[mode] * (fast[mode] * gain + noise)
        fast_advanced[mode] = fast_state[mode] * decay + added * mean_decay
    return _total(advanced)


@njit(nogil=True)
def _total(values):  # type: ignore[no-untyped-def]
    """Sum in a fixed order, in which processors can add eight numbers at a time."""
    first = second = third = fourth = fifth = sixth = seventh = eighth = 0.0
    whole = len(values) // 8 * 8
    for i in range(0, whole, 8):
        first += values[i]
        second += values[i + 1]
        third += values[i + 2]
        fourth += values[i + 3]
        fifth += values[i + 4]
        sixth += values[i + 5]
        seventh += values[i + 6]
        eighth += values[i + 7]
    for i in range(whole, len(values)):
        first += values[i]
    return ((first + second) + (third + fourth)) + ((fifth + sixth) + (seventh + eighth))


@njit(inline="always")
def _coefficients(risk, taken, clip_constant, half_variance, gamma):  # type: ignore[no-untyped-def]
    loss = risk + half_variance
    # A loss that has decayed to 0 is not clipped, either.
    if math.isinf(clip_constant) or loss == 0.0:
        return taken, taken * taken * loss * gamma
    ratio = clip_constant / math.sqrt(2 * loss)
    descent = math.erf(ratio / math.sqrt(2.0))
    if ratio < 0.05:
        # The closed form cancels here; five terms of its series are exact to rounding.
        variance = (
            ratio
            * ratio
            * (1 - math.sqrt(2 / math.pi) * ratio * (2 / 3 - ratio * ratio / 15 + ratio**4 / 140))
        )
    else:
        variance = (
            ratio * ratio * (1 - descent)
            + descent
            - math.sqrt(2 / math.pi) * ratio * math.exp(-ratio * ratio / 2)
        )
    return taken * descent, taken * taken * variance * loss * gamma


@njit(inline="always")
def relaxation(exponent):  # type: ignore[no-untyped-def]
    """exp(-x) and its mean over the step, (1 - exp(-x)) / x.

    A short series of 1 - exp(-x) is doubled, without a branch, so that the loop over modes is
    vectorised. Beyond 60 the exponential is below rounding. The compiler must see that x is not 0.
    """
    x = exponent if exponent > 1e-200 else 1e-200
    y = (x if x < 60.0 else 60.0) / 64
    decrement = (1 - y * (1 / 8)) * (y * (1 / 7))
    decrement = (1 - decrement) * (y * (1 / 6))
    decrement = (1 - decrement) * (y * (1 / 5))
    decrement = (1 - decrement) * (y * (1 / 4))
    decrement = (1 - decrement) * (y * (1 / 3))
    decrement = (1 - decrement) * (y * (1 / 2))
    decrement = (1 - decrement) * y
    decrement = decrement * (2 - decrement)
    decrement = decrement * (2 - decrement)
    decrement = decrement * (2 - decrement)
    decrement = decrement * (2 - decrement)
    decrement = decrement * (2 - decrement)
    decrement = decrement * (2 - decrement)
    return 1 - decrement, decrement / x
