"""Learning-rate schedules, and the private noise that each implies.

A `Schedule` lives on the unit time interval and scales with an amplitude; a `RateWithIntegral`
lives on [0, ∞) and knows its integral, which is what a diffusion limit needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Schedule(Protocol):
    """A non-increasing rate: an amplitude, or an array of them, times one shape in time."""

    @property
    def amplitude(self) -> ArrayLike: ...

    def shape(self, times: ArrayLike) -> NDArray[np.float64]:
        """Shape at the times in [0, 1], of their shape."""
        ...


@dataclass(frozen=True)
class Polynomial:
    r"""Polynomially decaying rate.

    .. math:: \tilde\eta(t) = \tilde\eta(0)\,(1-t)^{\alpha}

    With alpha = 0 all private noise is added to the output (output perturbation); with alpha = 1/2
    it is the same at each step; with larger alpha it decays.

    Parameters
    ----------
    initial : array_like, shape (...)
        Initial rates, more than 0.
    exponent : float
        alpha, at least 0.

    Source
    ------
    bombari2025, equation (5.1). Its Assumption 2 leaves out 0 < alpha < 1/2 and 1/2 < alpha < 1.
    """

    initial: ArrayLike
    exponent: float

    @property
    def amplitude(self) -> ArrayLike:
        return self.initial

    def shape(self, times: ArrayLike) -> NDArray[np.float64]:
        return np.maximum(1.0 - np.asarray(times, dtype=float), 0.0) ** self.exponent


@dataclass(frozen=True)
class Harmonic:
    r"""Harmonically decaying rate.

    .. math:: \tilde\eta(t) = \beta / (t + \tau)

    Parameters
    ----------
    numerator : array_like, shape (...)
        beta, more than 0.
    offset : float
        tau, more than 0.

    Source
    ------
    bombari2025, equation (5.18); its Appendix D.3 writes alpha for beta.
    """

    numerator: ArrayLike
    offset: float

    @property
    def amplitude(self) -> ArrayLike:
        return self.numerator

    def shape(self, times: ArrayLike) -> NDArray[np.float64]:
        return 1.0 / (np.asarray(times, dtype=float) + self.offset)


class RateWithIntegral(Protocol):
    """A scaled learning rate γ(t) = d · η at step k = t d, with its integral from 0."""

    def rate(self, time: ArrayLike) -> NDArray[np.float64]:
        """γ(t), elementwise."""
        ...

    def integral(self, time: ArrayLike) -> NDArray[np.float64]:
        """Γ(t), the integral of γ from 0 to t, elementwise."""
        ...


@dataclass(frozen=True)
class ConstantRate:
    r"""Constant scaled rate.

    .. math:: \gamma(t) = \gamma_0,\qquad \Gamma(t) = \gamma_0t

    Parameters
    ----------
    value : float
        gamma_0, more than 0.

    Source
    ------
    lin2025, section 5.
    """

    value: float

    def rate(self, time: ArrayLike) -> NDArray[np.float64]:
        return np.full(np.shape(time), self.value)

    def integral(self, time: ArrayLike) -> NDArray[np.float64]:
        return self.value * np.asarray(time, dtype=np.float64)


@dataclass(frozen=True)
class InverseSquareRootRate:
    r"""Rate that decays with the root of time.

    .. math::
        \gamma(t) = \frac{\gamma_0}{\sqrt{1+t/\tau}},\qquad
        \Gamma(t) = \frac{2\gamma_0t}{1+\sqrt{1+t/\tau}}

    Parameters
    ----------
    value : float
        gamma_0, more than 0.
    scale : float
        tau, more than 0.

    Source
    ------
    A schedule for which the theory of lin2025 holds; the paper draws constant ones only.
    """

    value: float
    scale: float = 1.0

    def rate(self, time: ArrayLike) -> NDArray[np.float64]:
        return self.value / np.sqrt(1.0 + np.asarray(time, dtype=np.float64) / self.scale)

    def integral(self, time: ArrayLike) -> NDArray[np.float64]:
        t = np.asarray(time, dtype=np.float64)
        # The difference of roots, without the cancellation at small t.
        return 2.0 * self.value * t / (np.sqrt(1.0 + t / self.scale) + 1.0)


def rate(schedule: Schedule, times: ArrayLike) -> NDArray[np.float64]:
    """Rates of a schedule, shape (*amplitude.shape, *times.shape)."""
    return np.multiply.outer(np.asarray(schedule.amplitude, dtype=float), schedule.shape(times))


def step_shape(schedule: Schedule, sample_size: int) -> NDArray[np.float64]:
    r"""Step sizes :math:`\eta_k = \tilde\eta(k/n)/n`, k = 1..n, of a schedule of unit amplitude.

    Source
    ------
    bombari2025, equation (4.4).
    """
    return schedule.shape(np.arange(1, sample_size + 1) / sample_size) / sample_size


def noise_multipliers(step_sizes: ArrayLike, *, zcdp_root: float) -> NDArray[np.float64]:
    r"""Private noise that spends the same budget on every sample of a one-pass run.

    .. math:: \rho^2 \sigma_k^2 = \eta_k^2 - \eta_{k+1}^2, \qquad \eta_{n+1} = 0

    Parameters
    ----------
    step_sizes : array_like, shape (..., n)
        Non-increasing, at least 0.
    zcdp_root : float
        rho, more than 0; the run is then rho^2/2-zCDP. `inf` adds no noise.

    Returns
    -------
    ndarray, shape (..., n)
        Multipliers sigma_k: step k adds noise of standard deviation 2 C sigma_k a coordinate, with
        C the norm that gradients are clipped to.

    Raises
    ------
    ValueError
        Step sizes that increase, for which no noise of this form exists.

    Source
    ------
    bombari2025, equation (4.2).
    """
    if not zcdp_root > 0:
        raise ValueError(f"zcdp_root must be more than 0, got {zcdp_root}")
    steps = np.asarray(step_sizes, dtype=float)
    following = np.concatenate([steps[..., 1:], np.zeros((*steps.shape[:-1], 1))], axis=-1)
    if np.any(following > steps * (1 + 1e-12)):
        raise ValueError("step_sizes must not increase, got a larger step after a smaller one")
    # The product form keeps all digits where neighbours almost agree.
    return np.sqrt(np.maximum(steps - following, 0.0) * (steps + following)) / zcdp_root
