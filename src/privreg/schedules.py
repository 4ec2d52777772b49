"""Learning-rate schedules, and the private noise that each implies.

A `Schedule` is defined on the unit time interval and is scaled by an amplitude. A
`RateWithIntegral` is defined on [0, ∞) and gives its integral, which a diffusion limit needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import (
    MOST,
    FloatArray,
    Immutable,
    frozen,
    require_array,
    require_count,
    require_number,
    require_real,
    require_scale,
    require_scales,
    short,
)

# Optimal rates grow as 1/γ, and limits of bombari2025 are taken down to γ = 1e-32.
LARGEST = 1e32
# A larger power of 1 - t would lose digits that the difference has rounded away.
STEEP = 64
LEAST_SQUARED = 1e-140
_unit = partial(require_real, "times", least=0, most=1)
_time = partial(require_real, "time", least=0, most=MOST)


class Schedule(Protocol):
    """Non-increasing learning rate: one amplitude, or an array of them, times one `shape`."""

    @property
    def amplitude(self) -> ArrayLike: ...

    def shape(self, times: ArrayLike) -> FloatArray:
        """Rate divided by the amplitude, at times in [0, 1]; an array like `times`."""
        ...


@dataclass(frozen=True)
class Polynomial(Immutable):
    r"""Learning rate that decays from t = 0 to t = 1 as a power of the remaining time 1 - t.

    .. math:: \tilde\eta(t) = \tilde\eta(0)\,(1-t)^{\alpha}

    With alpha = 0 all private noise is added to the output (output perturbation). With alpha = 1/2
    the noise is the same at each step; with larger alpha it decays.

    Parameters
    ----------
    initial : array_like, shape (...)
        Initial rates, more than 0 and at most 1e32; may be empty.
    exponent : float
        alpha, at least 0 and at most 1e12.

    Source
    ------
    bombari2025, equation (5.1). Assumption 2 there leaves out 0 < alpha < 1/2 and 1/2 < alpha < 1.

    Examples
    --------
    >>> schedule = Polynomial(3.0, 0.5)
    >>> (schedule.amplitude * schedule.shape([0.0, 0.75, 1.0])).tolist()
    [3.0, 1.5, 0.0]
    """

    initial: ArrayLike
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", _require_amplitude("initial", self.initial))
        require_number("exponent", self.exponent, least=0, most=MOST)

    @property
    def amplitude(self) -> ArrayLike:
        return self.initial

    def shape(self, times: ArrayLike) -> FloatArray:
        """(1 - t)^α at times in [0, 1]."""
        t = _unit(times)
        if self.exponent <= STEEP:
            return np.maximum(1.0 - t, 0.0) ** self.exponent
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(self.exponent * np.log1p(-t)))

    def __str__(self) -> str:
        return f"{_amplitudes(self.initial)}·(1 - t)^{self.exponent:g}"


@dataclass(frozen=True)
class Harmonic(Immutable):
    r"""Learning rate that decays as 1 / (t + tau), for times t from 0 to 1.

    .. math:: \tilde\eta(t) = \beta / (t + \tau)

    Parameters
    ----------
    numerator : array_like, shape (...)
        beta, more than 0 and at most 1e32; may be empty.
    offset : float
        tau, from 1e-32 to 1e32; a search for optimal rates needs this wide range.

    Source
    ------
    bombari2025, equation (5.18). Appendix D.3 of the paper writes alpha for beta.
    """

    numerator: ArrayLike
    offset: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "numerator", _require_amplitude("numerator", self.numerator))
        require_number("offset", self.offset, least=1 / LARGEST, most=LARGEST)

    @property
    def amplitude(self) -> ArrayLike:
        return self.numerator

    def shape(self, times: ArrayLike) -> FloatArray:
        """1 / (t + τ) at times in [0, 1]."""
        return 1.0 / (_unit(times) + self.offset)

    def __str__(self) -> str:
        return f"{_amplitudes(self.numerator)}/(t + {self.offset:.3g})"


class RateWithIntegral(Protocol):
    """Scaled rate γ(t) = d η_k at time t = k/d (d features, step size η_k), and its integral."""

    def rate(self, time: ArrayLike) -> FloatArray:
        """γ(t), elementwise, at times of at least 0."""
        ...

    def integral(self, time: ArrayLike) -> FloatArray:
        """Γ(t), the integral of γ from 0 to t, elementwise, at times of at least 0."""
        ...


@dataclass(frozen=True)
class ConstantRate:
    r"""Constant scaled rate: number of features times step size, gamma_0 = `value` at all times.

    .. math:: \gamma(t) = \gamma_0,\qquad \Gamma(t) = \gamma_0t

    Source
    ------
    lin2025, section 5.
    """

    value: float

    def __post_init__(self) -> None:
        # An integer would give integer rates, whose squares wrap around.
        object.__setattr__(self, "value", require_scale("value", self.value))

    def rate(self, time: ArrayLike) -> FloatArray:
        return np.full(_time(time).shape, self.value)

    def integral(self, time: ArrayLike) -> FloatArray:
        return self.value * _time(time)


@dataclass(frozen=True)
class InverseSquareRootRate:
    r"""Scaled rate, dimension times step size, that decays as the inverse square root of time.

    .. math::
        \gamma(t) = \frac{\gamma_0}{\sqrt{1+t/\tau}},\qquad
        \Gamma(t) = \frac{2\gamma_0t}{1+\sqrt{1+t/\tau}}

    `value` is gamma_0, `scale` is tau, and Gamma is the integral of the rate gamma.

    Source
    ------
    The theory of lin2025 covers this schedule; the paper's figures use constant rates only.
    """

    value: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        require_scales(value=self.value, scale=self.scale)

    def rate(self, time: ArrayLike) -> FloatArray:
        return self.value / np.sqrt(1.0 + _time(time) / self.scale)

    def integral(self, time: ArrayLike) -> FloatArray:
        t = _time(time)
        # The difference of roots, without the cancellation at small t.
        return 2.0 * self.value * t / (np.sqrt(1.0 + t / self.scale) + 1.0)


def rate(schedule: Schedule, times: ArrayLike) -> FloatArray:
    """Rates of a schedule at times in [0, 1], shape (*amplitude.shape, *times.shape)."""
    return np.multiply.outer(np.asarray(schedule.amplitude, dtype=float), schedule.shape(times))


def step_shape(schedule: Schedule, sample_size: int) -> FloatArray:
    r"""Step sizes :math:`\eta_k = \tilde\eta(k/n)/n`, k = 1..n, of a schedule η̃ at unit amplitude.

    Source
    ------
    bombari2025, equation (4.4).
    """
    sample_size = require_count("sample_size", sample_size)
    return schedule.shape(np.arange(1, sample_size + 1) / sample_size) / sample_size


def noise_multipliers(step_sizes: ArrayLike, *, zcdp_root: float) -> FloatArray:
    r"""Noise multipliers sigma_k that spend the same budget on every sample of a one-pass run.

    .. math:: \rho^2 \sigma_k^2 = \eta_k^2 - \eta_{k+1}^2, \qquad \eta_{n+1} = 0

    Step k adds noise of standard deviation 2 C sigma_k per coordinate, where C is the clipping norm
    of gradients. This makes the run rho^2/2-zCDP, with rho = `zcdp_root`; `inf` adds no noise. Step
    sizes eta_k, shape (..., n), must not increase: otherwise a sigma_k^2 would be negative.

    Source
    ------
    bombari2025, equation (4.2).
    """
    zcdp_root = require_scale("zcdp_root", zcdp_root, infinite=True)
    steps = require_array("step_sizes", step_sizes, shape=(..., None), least=0, most=MOST)
    following = np.concatenate([steps[..., 1:], np.zeros((*steps.shape[:-1], 1))], axis=-1)
    if np.any(following > steps * (1 + 1e-12)):
        raise ValueError("step_sizes must not increase, got a larger step after a smaller one")
    # The product form keeps all digits where neighbours almost agree.
    roots = np.sqrt(np.maximum(steps - following, 0.0) * (steps + following))
    # Squares of smaller steps lose digits: they get the larger noise of a last step.
    return np.where(steps < LEAST_SQUARED, steps, roots) / zcdp_root


def require_schedule(schedule: Schedule) -> Schedule:
    """Return the schedule, or raise an error if it lacks an amplitude or a shape."""
    if not (hasattr(schedule, "amplitude") and callable(getattr(schedule, "shape", None))):
        raise ValueError(f"schedule must be a Schedule, got {type(schedule).__name__}")
    return schedule


def require_rate(schedule: RateWithIntegral) -> RateWithIntegral:
    """Return the schedule, or raise an error if it lacks a rate or its integral."""
    if not (callable(getattr(schedule, "rate", None)) and hasattr(schedule, "integral")):
        raise ValueError(f"schedule must have `rate` and `integral`, got {short(schedule)}")
    return schedule


def _require_amplitude(name: str, value: ArrayLike) -> ArrayLike:
    amplitudes = require_real(name, value, above=0, most=LARGEST)
    return frozen(amplitudes) if amplitudes.ndim else value


def _amplitudes(values: ArrayLike) -> str:
    numbers = [f"{value:.3g}" for value in np.ravel(np.asarray(values, dtype=float))]
    return numbers[0] if len(numbers) == 1 else f"[{', '.join(numbers)}]"
