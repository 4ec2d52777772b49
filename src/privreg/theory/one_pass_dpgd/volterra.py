r"""Deterministic equivalent of one-pass DP-GD as a Volterra equation, and as a diffusion.

.. math:: R(t) = \mathcal F(\Gamma(t)) + \int_0^t \Big( \bar\eta^2 \nu_c(R)\,
    (R + \tfrac{\zeta^2}2)\,\gamma\, \mathcal K(\Gamma(t) - \Gamma(s))
    + 2c^2\tilde\sigma^2\gamma^2 \mathcal J(\Gamma(t) - \Gamma(s)) \Big)\, \mathrm ds,
    \qquad \Gamma(t) = \int_0^t \bar\eta\,\mu_c(R)

The spectrum enters only through kernels, which have a closed form for power laws. This is a second
way to solve the equations that `deterministic_equivalent` solves mode by mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import gamma, gammainc

from privreg.checks import (
    FloatArray,
    require_answer,
    require_choice,
    require_counts,
    require_number,
    warn_beyond,
)
from privreg.kernels import inner_product
from privreg.models import LinearModel
from privreg.schedules import Schedule
from privreg.spectra import Spectrum, power_law_edge
from privreg.theory.one_pass_dpgd.deterministic_equivalent import (
    checked_times,
    descent_of,
    require_falling,
    require_scalars,
    require_signal,
    variance_of,
)

# Share of the whole descent below which a step has lost digits in a difference of sums.
LOST_STEP = 1e-10
# The end of an interval, implicit, is iterated three times at least.
MOST_ITERATIONS, FIXED_POINT = 60, 1e-4
# How far a kernel's midpoint and its integral may lie apart before digits are looked for.
AGREEMENT = 1e-5
# Gauss-Legendre nodes on (0, 1), on panels that double in width from 0: for decays of any speed.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_ENDS = np.append(0.0, 0.5 ** np.arange(140.0, -1.0, -1.0))
GRADED_POINTS = (_ENDS[:-1, None] + np.diff(_ENDS)[:, None] * (_POINTS + 1) / 2).ravel()
GRADED_WEIGHTS = (np.diff(_ENDS)[:, None] * _WEIGHTS / 2).ravel()
Kernel = Callable[[ArrayLike], FloatArray]
Form = Literal["corrected", "printed"]
DRIFTS: dict[Form, float] = {"corrected": 1.0, "printed": 2.0}


@dataclass(frozen=True)
class Kernels:
    r"""Kernels of a spectrum: signal and noise that remain after a descent of length x.

    .. math:: \mathcal F(x) = \frac1d\sum_i D_i(0)\lambda_i e^{-2\lambda_i x},\quad
        \mathcal K(x) = \frac1d\sum_i \lambda_i^2 e^{-2\lambda_i x},\quad
        \mathcal J(x) = \frac1d\sum_i \lambda_i e^{-2\lambda_i x},\quad
        m(x) = \frac1d\sum_i e^{-2\lambda_i x}

    These are `signal`, `sampling`, `private` and `mass`; m' = -2 J and J' = -2 K. Mode i has
    eigenvalue λ_i and the initial error D_i(0), the `signal` of `deterministic_equivalent.solve`.

    Source
    ------
    bombari2025, equation (6.3).
    """

    signal: Kernel
    sampling: Kernel
    private: Kernel
    mass: Kernel


def power_law_kernels(spectrum_power: float, signal_power: float = 0.0) -> Kernels:
    r"""Kernels of a power-law spectrum in closed form.

    .. math:: \int p(\lambda)\,\lambda^q e^{-2\lambda x}\,\mathrm d\lambda
        = (1-\phi)\, C^{\phi-1} \frac{\gamma(k, 2Cx)}{(2x)^k}, \qquad k = q + 1 - \phi,\
        C = \tfrac{2-\phi}{1-\phi}

    for density p ∝ λ^-φ on [0, C], lower incomplete gamma function γ(k, ·), and kernel power q.

    Parameters
    ----------
    spectrum_power, signal_power : float
        phi < 1 and psi < 2 - phi, both at least -10. D_i(0) is lambda_i^-psi / 2.

    Source
    ------
    bombari2025, equation (E.4); the closed form is derived from it.
    """
    phi = require_number("spectrum_power", spectrum_power, least=-10, below=1)
    psi = require_number("signal_power", signal_power, least=-10, below=2 - phi - 1e-9)
    edge = power_law_edge(phi)

    def moment(whole: float, part: float = 0.0, scale: float = 1.0) -> Kernel:
        order = math.fsum((whole, part, 1, -phi))
        front = scale * (1 - phi) * np.power(edge, whole + part)
        return lambda x: front * _scaled_incomplete_gamma(order, 2 * edge * np.asarray(x, float))

    return Kernels(moment(1.0, -psi, 0.5), moment(2.0), moment(1.0), moment(0.0))


def spectrum_kernels(spectrum: Spectrum, signal: ArrayLike = 0.5) -> Kernels:
    """Kernels of any spectrum, as sums over its modes; `signal` is D_i(0), shape () or (modes,)."""
    signals = require_signal(signal, spectrum)

    def weighted(values: FloatArray) -> Kernel:
        return lambda x: (
            np.exp(-2 * np.multiply.outer(np.asarray(x, dtype=float), spectrum.eigenvalues))
            @ (spectrum.weights * values)
        )

    values = spectrum.eigenvalues
    moments = signals * values, values**2, values, np.ones_like(values)
    return Kernels(*map(weighted, moments))


def solve(
    kernels: Kernels,
    schedule: Schedule,
    times: ArrayLike,
    *,
    aspect_ratio: float,
    zcdp_root: float,
    clip_constant: float,
    label_noise_std: float,
) -> FloatArray:
    """Excess risk over time, before the output noise, by time-stepping the Volterra equation.

    On each interval of the grid the coefficients are averaged, and the kernels are integrated
    exactly. The error is of order 2 in the interval width. If the rate jumps inside an interval,
    the error near the jump is of order 1.

    Parameters
    ----------
    kernels : Kernels
        Kernels of the spectrum.
    schedule : Schedule
        Learning rate with one amplitude. The rate must not rise under private noise.
    times : array_like, shape (times,)
        Grid, increasing from 0.
    aspect_ratio, zcdp_root, clip_constant, label_noise_std : float
        gamma = d / n, rho (`inf` adds no noise), clipping constant c (`inf` only if rho is `inf`)
        and label noise zeta, which may be 0.

    Warns
    -----
    AccuracyWarning
        If an interval is so long that the risk at its end is not found to a relative 1e-4.

    Source
    ------
    bombari2025, equations (6.1)-(6.3).
    """
    times = checked_times(times)
    if times[0] != 0:
        raise ValueError(f"times must increase from 0, got a first time of {times[0]}")
    aspect_ratio, zcdp_root, clip_constant, label_noise_std, amplitude = require_scalars(
        aspect_ratio=aspect_ratio,
        zcdp_root=zcdp_root,
        clip_constant=clip_constant,
        label_noise_std=label_noise_std,
        schedule=schedule.amplitude,
    )
    if np.isinf(clip_constant) and np.isfinite(zcdp_root):
        raise ValueError("clip_constant must be finite under private noise, got inf")
    rate = amplitude * schedule.shape(times)
    taken = np.minimum(rate, 2 / aspect_ratio)
    energy = 0.0 if np.isinf(zcdp_root) else 2 * (clip_constant * aspect_ratio / zcdp_root) ** 2
    if energy > 0:
        require_falling(rate)
    noise = -energy * np.diff(rate**2)
    widths = np.diff(times)
    risk, descent, steps = np.empty(len(times)), np.zeros(len(times)), np.zeros(len(widths))
    drift, kick, kicks = np.empty(len(times)), np.empty(len(times)), np.empty(len(widths))

    def coefficients(at: int) -> None:
        loss = max(risk[at], 0.0) + label_noise_std**2 / 2
        ratio = clip_constant / math.sqrt(2 * loss) if loss > 0 else math.inf
        drift[at] = taken[at] * descent_of(ratio)
        kick[at] = taken[at] ** 2 * variance_of(ratio) * loss * aspect_ratio

    risk[0] = kernels.signal(0.0)
    coefficients(0)
    for at in range(1, len(times)):
        risk[at] = risk[at - 1]
        # The interval that ends here depends on its own end, weakly on a fine grid.
        for iteration in range(MOST_ITERATIONS):
            previous = risk[at]
            coefficients(at)
            width = widths[at - 1]
            steps[at - 1] = width * (drift[at - 1] + drift[at]) / 2
            descent[at] = descent[at - 1] + steps[at - 1]
            kicks[at - 1] = width * (kick[at - 1] + kick[at]) / 2
            ago = descent[at] - descent[: at + 1]
            if steps[:at].min() < LOST_STEP * descent[at]:
                ago[:-1] = np.cumsum(steps[:at][::-1])[::-1]
            risk[at] = (
                kernels.signal(descent[at])
                + kicks[:at] @ _interval_mean(kernels.sampling, kernels.private, ago)
                + noise[:at] @ _interval_mean(kernels.private, kernels.mass, ago)
            )
            change = abs(risk[at] - previous)
            if iteration >= 2 and not change > FIXED_POINT * abs(risk[at]):
                break
        else:
            warn_beyond("risk", error=change / abs(risk[at]), tolerance=FIXED_POINT)
    return require_answer("kernels, schedule and times", risk)


def risk_path(
    model: LinearModel,
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    sample_size: int,
    zcdp_root: float,
    clip_constant: float,
    times: ArrayLike,
    steps: int | None = None,
    form: Form = "corrected",
) -> FloatArray:
    r"""Excess risk along one path of the diffusion that models DP-GD in high dimension.

    .. math:: \mathrm d\Theta = -\bar\eta\,\mu_c\,\nabla\mathcal P\,\mathrm dt
        + \bar\eta\,\sqrt{\frac{2\nu_c\,\mathcal P\,\Sigma}{n}}\,\mathrm dB
        + \frac{2\sqrt d}{n}\,c\,\tilde\sigma\,\mathrm dB',
        \qquad \mathcal P = R + \tfrac12\zeta^2

    with η̄, μ_c, ν_c and σ̃ of module `deterministic_equivalent`. The Euler-Maruyama method has
    strong order 1/2 and weak order 1. The risk, shape (times,), excludes the output noise.

    Parameters
    ----------
    model : LinearModel
        Covariance, target and label noise; the path starts from zero.
    schedule : Schedule
        Learning rate with one amplitude. The rate must not rise under private noise.
    rng : Generator
        Source of one Gaussian per coordinate and step, for the independent B and B' together.
    sample_size, zcdp_root, clip_constant : int, float and float
        Sample size n, rho of rho^2/2-zCDP (`inf` adds no noise), and clipping constant c.
    times : array_like, shape (times,)
        Increasing times in [0, 1]; each is rounded to a step.
    steps : int, optional
        Number of steps of the method; `sample_size` by default.
    form : {"corrected", "printed"}
        Drift as above, or twice this drift, as printed in the paper.

    Source
    ------
    bombari2025, equations (4.14) and (C.1). By (C.9) and (4.7), their drift has a spurious 2.
    """
    require_choice("form", form, DRIFTS)
    sizes = sample_size, sample_size if steps is None else steps
    sample_size, count = require_counts("sample_size and steps", sizes).tolist()
    zcdp_root, clip_constant, amplitude = require_scalars(
        zcdp_root=zcdp_root, clip_constant=clip_constant, schedule=schedule.amplitude
    )
    wanted = checked_times(times)
    rates = amplitude * schedule.shape(np.linspace(0, 1, count + 1))
    gamma = model.dimension / sample_size
    # The private noise of a step is exact: the integral of its variance is a difference.
    private = 2 * math.sqrt(model.dimension) * clip_constant / (sample_size * zcdp_root)
    if private > 0:
        require_falling(rates)
    increments = private * np.sqrt(np.maximum(rates[:-1] ** 2 - rates[1:] ** 2, 0))
    found = np.empty(len(wanted))
    _paths(
        rng,
        model.eigenvalues,
        -model.target,
        model.label_noise_std**2 / 2,
        DRIFTS[form] * np.minimum(rates[:-1], 2 / gamma) / count,
        np.minimum(rates[:-1], 2 / gamma) * math.sqrt(2 / (sample_size * count)),
        increments,
        clip_constant,
        np.round(wanted * count).astype(np.int64),
        found,
    )
    return require_answer("schedule and clip_constant", found)


def _interval_mean(kernel: Kernel, antiderivative: Kernel, ago: FloatArray) -> FloatArray:
    """Means of a kernel between neighbours in a decreasing sequence, from the kernel's integral."""
    widths = ago[:-1] - ago[1:]
    whole = antiderivative(ago)
    lengths = np.where(widths > 0, widths, 1.0)
    exact, middle = np.diff(whole) / (2 * lengths), kernel((ago[:-1] + ago[1:]) / 2)
    # A difference of nearly equal values would lose the digits that the midpoint keeps.
    narrow = widths < 1e-5 * (1 + ago[1:])
    found = np.where(narrow, middle, exact)
    larger = np.maximum(exact, middle)
    apart = (np.abs(exact - middle) > AGREEMENT * larger) & (widths > 0)
    if np.any(apart):
        lost = 16 * np.finfo(float).eps * whole[1:] / (2 * lengths) > AGREEMENT * larger
        found = np.where(apart, exact, found)
        for at in np.flatnonzero(apart & lost):
            mean = GRADED_WEIGHTS @ kernel(ago[at + 1] + widths[at] * GRADED_POINTS)
            near = abs(mean - middle[at]) <= AGREEMENT * mean
            found[at] = middle[at] if near else mean
    return found


def _scaled_incomplete_gamma(order: float, z: FloatArray) -> FloatArray:
    """Lower incomplete gamma function over z^order, finite at 0."""
    small = z < 1e-3
    near, safe = np.where(small, z, 0.0), np.where(small, 1.0, z)
    series = 1 / order + near * (
        -1 / (order + 1) + near * (1 / (2 * order + 4) + near * (-1 / (6 * order + 18)))
    )
    return np.where(small, series, gamma(order) * gammainc(order, safe) / safe**order)


@njit(cache=True, nogil=True)
def _paths(  # type: ignore[no-untyped-def]
    rng,
    eigenvalues,
    start,
    half_variance,
    drift,
    diffusion,
    private,
    clip_constant,
    record,
    risk_out,
):
    deviation = start.copy()
    kicks, scaled = np.empty(len(start)), np.empty(len(start))
    recorded = 0
    for step in range(len(drift) + 1):
        for i in range(len(deviation)):
            scaled[i] = eigenvalues[i] * deviation[i]
        risk = inner_product(scaled, deviation) / 2
        while recorded < len(record) and record[recorded] == step:
            risk_out[recorded] = risk
            recorded += 1
        if step < len(drift):
            loss = risk + half_variance
            # Beyond 40 standard deviations nothing is clipped.
            ratio = 40.0 if loss == 0.0 else min(clip_constant / math.sqrt(2 * loss), 40.0)
            descent = math.erf(ratio / math.sqrt(2.0))
            if ratio < 1e-3:
                # The closed form cancels here; the next term of its series is below rounding.
                variance = ratio * ratio * (1 - math.sqrt(8 / (9 * math.pi)) * ratio)
            else:
                variance = (
                    ratio * ratio * (1 - descent)
                    + descent
                    - math.sqrt(2 / math.pi) * ratio * math.exp(-ratio * ratio / 2)
                )
            pull = drift[step] * descent
            kick = diffusion[step] ** 2 * variance * loss
            noise = private[step] ** 2
            for i in range(len(deviation)):
                kicks[i] = math.sqrt(kick * eigenvalues[i] + noise) * rng.standard_normal()
            # Apart from the draws, so that a processor moves several at a time.
            for i in range(len(deviation)):
                deviation[i] += kicks[i] - pull * scaled[i]
