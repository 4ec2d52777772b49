"""The compiled step of the deterministic equivalent of DP-GD, vectorised over modes."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

SHORT = 1e-3  # four terms of a series are exact to rounding for exponents up to this
# No fast math: a function that the compiler may reorder can round otherwise in the process that
# compiles it than in those that load the cache. The sum over modes has an order of its own instead.


@njit(cache=True, nogil=True)
def integrate_settings(  # type: ignore[no-untyped-def]
    eigenvalues,
    weights,
    start,
    times,
    shape,
    settings,
    label_noise_std,
    keep,
    risk_out,
):
    """Exponential Heun steps for each setting in turn; the risk at the times to keep.

    `eigenvalues` increase, `settings` has rows amplitude, gamma, noise energy and clip, `shape` is
    the schedule's at `times`, `keep` holds increasing positions in `times`, and `risk_out`, shape
    (settings, keep), is filled.
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
    """Relax each mode for one step with constant coefficients; the risk at its end."""
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
        decay, mean_decay = _decay(fast[mode] * path)
        added = fast_share[mode] * (fast[mode] * gain + noise)
        fast_advanced[mode] = fast_state[mode] * decay + added * mean_decay
    return _total(advanced)


@njit(nogil=True)
def _total(values):  # type: ignore[no-untyped-def]
    """Sum in a fixed order that processors add eight at a time."""
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
def _decay(exponent):  # type: ignore[no-untyped-def]
    """exp(-x) and its mean over the step, (1 - exp(-x)) / x.

    Doubling a short series of 1 - exp(-x) has no branch, so that the loop over modes is vectorised;
    beyond 60 the exponential is below rounding. The compiler must see that x is not 0.
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
