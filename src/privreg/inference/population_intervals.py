"""Intervals for the coefficients of a private Huber regression, from what it released.

The population parameter differs from the released one by sampling and by private noise. The law of
the iterates gives the second part, the sandwich of the clipped loss the first; both are computed
from private second moments, whose own noise is known, shrunk and allowed for. Everything here is
post-processing and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from privreg.algorithms.huber_descent import HuberFit, NoisyValue
from privreg.theory.huber_descent.known_noise import shrink_to_identity
from privreg.theory.huber_descent.last_iterate import privacy_covariance, sandwich
from privreg.validation import (
    require_array,
    require_broadcast,
    require_choice,
    require_instance,
    require_number,
    require_real,
)

FloatArray = NDArray[np.float64]
Target = Literal["population", "empirical"]
TARGETS: tuple[Target, ...] = get_args(Target)
LEAST_DEGREES = 3.0


@dataclass(frozen=True)
class CoefficientIntervals:
    """Two-sided intervals, centre ± half-width.

    Attributes
    ----------
    centre, half_width, standard_error : ndarray, shape (k,)
    degrees_of_freedom : ndarray, shape (k,)
        Of Student's t; what the noise in the standard errors is worth.
    level : float
        Nominal coverage of the target.
    target : str
        "population": what the rows were drawn from; "empirical": the minimiser on these rows.
    """

    centre: FloatArray
    half_width: FloatArray
    standard_error: FloatArray
    degrees_of_freedom: FloatArray
    level: float
    target: Target

    def covers(self, target: ArrayLike) -> NDArray[np.bool_]:
        """Whether each interval contains the target, shape (k,)."""
        point = require_real("target", target)
        require_broadcast(target=point, centre=self.centre)
        return np.abs(self.centre - point) <= self.half_width

    @property
    def length(self) -> FloatArray:
        """Full length, shape (k,)."""
        return 2 * self.half_width

    @property
    def lower(self) -> FloatArray:
        """Lower ends, shape (k,)."""
        return self.centre - self.half_width

    @property
    def upper(self) -> FloatArray:
        """Upper ends, shape (k,)."""
        return self.centre + self.half_width


@dataclass(frozen=True)
class LastIterateLaw:
    r"""Estimated law of the last iterate, in whitened coordinates φ = W⁻¹θ.

    Attributes
    ----------
    sampling : ndarray, shape (p, p)
        Covariance of the empirical minimiser about the population's.
    privacy : ndarray, shape (p, p)
        Covariance of the last iterate about the empirical minimiser.
    curvature, second_moment : ndarray, shape (p, p)
        A and B after shrinkage.
    curvature_noise, second_moment_noise : float
        Standard deviation of what noise is left in uᵀAu and uᵀBu for a unit vector u.
    """

    sampling: FloatArray
    privacy: FloatArray
    curvature: FloatArray
    second_moment: FloatArray
    curvature_noise: float
    second_moment_noise: float

    def relative_noise(self, direction: FloatArray, target: Target) -> float:
        r"""Standard deviation of the noise in an estimated variance uᵀCu, relative to it.

        .. math::
            -2\,a^\top E_A\,c + a^\top E_B\,a/n, \qquad a = A^{-1}u,\ c = C u
        """
        covariance = self.total(target)
        a = np.linalg.solve(self.curvature, direction)
        c = covariance @ direction
        n = self._sample_size()
        variance = 2 * self.curvature_noise**2 * ((a @ a) * (c @ c) + (a @ c) ** 2)
        if target == "population":
            variance += (self.second_moment_noise * (a @ a) / n) ** 2
        return float(np.sqrt(variance) / (direction @ c))

    def total(self, target: Target) -> FloatArray:
        """Covariance about the target, (p, p)."""
        return self.sampling + self.privacy if target == "population" else self.privacy

    def _sample_size(self) -> float:
        unscaled = sandwich(self.curvature, self.second_moment, sample_size=1.0)
        return float(np.trace(unscaled) / np.trace(self.sampling))


def last_iterate_law(fit: HuberFit) -> LastIterateLaw:
    r"""Law of the last iterate from private statistics.

    .. math::
        \hat A = \hat\pi I + \omega_A(\tilde A - \hat\pi I), \qquad
        \hat B = \hat m I + \omega_B(\tilde B - \hat m I)

    with the noisy Ã and B̃ of the fit, the weights of `shrink_to_identity`, and the privately
    released means π̂ and m̂ of their diagonals. At ω = 0 this is the plug-in variance of
    errors that do not depend on the features, at ω = 1 the sandwich. Without second moments it is
    the plug-in with the values that normal errors would have.

    Parameters
    ----------
    fit : HuberFit

    Returns
    -------
    LastIterateLaw

    Source
    ------
    Ours; the degrees-of-freedom factor (n/(n - p)) (1 + (p/n)(1 - π)/π)² is Huber's (1973).
    """
    require_instance("fit", fit, HuberFit)
    p = fit.parameters.size
    n = max(fit.sample_size, p + 1.0)
    curvature, second, noise_a, noise_b, mean = _moments(fit, p)
    correction = n / (n - p) * (1 + p / n * max(0.0, 1 - mean) / mean) ** 2
    start = fit.start_scale**2 * np.eye(p)
    return LastIterateLaw(
        sampling=correction * sandwich(curvature, second, sample_size=n),
        privacy=privacy_covariance(
            curvature,
            list(fit.step_matrices),
            fit.gradient_noise_stds,
            start_covariance=start,
            curvature_noise=noise_a,
        ),
        curvature=curvature,
        second_moment=second,
        curvature_noise=noise_a,
        second_moment_noise=noise_b,
    )


def population_intervals(
    fit: HuberFit,
    *,
    level: float = 0.95,
    target: Target = "population",
    functionals: ArrayLike | None = None,
    offset: ArrayLike = 0.0,
) -> CoefficientIntervals:
    r"""Intervals for coefficients, or for linear functionals of them.

    .. math::
        \theta_j \pm t_{(1+\ell)/2,\,\nu_j}\sqrt{(W C W^\top)_{jj}}, \qquad
        C = \hat A^{-1}\hat B\hat A^{-\top}/n + V, \quad \nu_j = 2/\kappa_j^2

    where κ_j is the relative noise that the variance itself has from privacy.

    Parameters
    ----------
    fit : HuberFit
        What `huber_descent` released.
    level : float
        ℓ in (0, 1).
    target : {"population", "empirical"}
        What is to be covered: the minimiser in the population that the records are an independent
        sample of, or that on the same records, for which only the private noise counts.
    functionals : array_like, shape (k, p), optional
        Rows c of functionals cᵀθ + o; the coefficients by default.
    offset : array_like, shape (k,) or ()
        o, public.

    Returns
    -------
    CoefficientIntervals

    Notes
    -----
    The population minimiser of the clipped loss is that of least squares if the errors are
    symmetric given the features, or independent of them (but for the intercept).
    """
    require_instance("fit", fit, HuberFit)
    require_choice("target", target, TARGETS)
    level = require_number("level", level, above=0, below=1)
    p = fit.parameters.size
    rows = np.eye(p)
    if functionals is not None:
        rows = require_array("functionals", functionals, shape=(None, p))
    law = last_iterate_law(fit)
    directions = rows @ fit.whitening
    covariance = law.total(target)
    error = np.sqrt(np.einsum("kp,pq,kq->k", directions, covariance, directions))
    noise = np.array([law.relative_noise(u, target) if np.any(u) else 0.0 for u in directions])
    degrees = np.clip(2 / np.maximum(noise, 1e-6) ** 2, LEAST_DEGREES, 1e12)
    quantile = np.asarray(stdtrit(degrees, (1 + level) / 2))
    quantile = np.where(degrees > 1e6, ndtri((1 + level) / 2), quantile)
    return CoefficientIntervals(
        centre=rows @ fit.parameters + require_real("offset", offset),
        half_width=quantile * error,
        standard_error=error,
        degrees_of_freedom=degrees,
        level=level,
        target=target,
    )


def _moments(fit: HuberFit, p: int) -> tuple[FloatArray, FloatArray, float, float, float]:
    """A and B after shrinkage, what noise is left in them, and the mean of A's diagonal."""
    curvature, second, trace = fit.curvature, fit.second_moment, fit.mean_curvature
    width = fit.settings.clip_width
    if curvature is None or second is None or trace is None:
        inside = 2 * float(ndtr(width)) - 1
        density = float(np.exp(-(width**2) / 2) / np.sqrt(2 * np.pi))
        square = inside - 2 * width * density + width**2 * (1 - inside)
        return inside * np.eye(p), fit.residual_scale**2 * square * np.eye(p), 0.0, 0.0, inside
    mean, _ = _mean_curvature(curvature, trace, p)
    least = 0.1 * (2 * float(ndtr(width)) - 1)
    mean = float(np.clip(mean, least, 1.5))
    bound = fit.clip_norm**2 / p
    middle = float(np.clip(np.trace(second.value) / p, 1e-3 * bound, bound))
    matrix = curvature.value
    noise_a = curvature.noise_std
    if not fit.symmetric:
        # The mean of independent noises above and below the diagonal.
        matrix = (matrix + matrix.T) / 2
    a = shrink_to_identity(matrix, noise_std=noise_a, scale=mean)
    b = shrink_to_identity(second.value, noise_std=second.noise_std, scale=middle)
    # Below this weight the noise would hide a deviation from the identity.
    hidden = min(1.0, 2 / np.sqrt(p * (p + 1)))
    return (
        _lifted(a.matrix, 0.25 * mean),
        _lifted(b.matrix, 0.1 * middle),
        noise_a * float(np.sqrt(max(a.weight, hidden))),
        second.noise_std * float(np.sqrt(max(b.weight, hidden))),
        mean,
    )


def _mean_curvature(curvature: NoisyValue, trace: NoisyValue, p: int) -> tuple[float, float]:
    """Mean of A's diagonal from both of its releases, weighted by their noise."""
    first, second = curvature.noise_std**2 / p, trace.noise_std**2
    weight = second / (first + second) if first + second > 0 else 0.5
    mean = weight * np.trace(curvature.value) / p + (1 - weight) * float(trace.value)
    return float(mean), float(np.sqrt(weight**2 * first + (1 - weight) ** 2 * second))


def _lifted(matrix: FloatArray, floor: float) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    lifted: FloatArray = (vectors * np.maximum(values, floor)) @ vectors.T
    return lifted
