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
from scipy.special import stdtrit

from privreg.algorithms.huber_fit import HuberFit
from privreg.inference.shrunk_moments import ShrunkMoments, shrunk_moments
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
# Fewer say that the noise hides the variance itself: no finite interval is honest.
LEAST_DEGREES = 2.0


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
    bias : ndarray, shape (k,), optional
        Largest bias that the half-width allows for; None where there is none.
    reasons : tuple of str
        Why an interval is infinite, an empty text where it is not; empty where no reason is known.
    """

    centre: FloatArray
    half_width: FloatArray
    standard_error: FloatArray
    degrees_of_freedom: FloatArray
    level: float
    target: Target
    bias: FloatArray | None = None
    reasons: tuple[str, ...] = ()

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
    """

    sampling: FloatArray
    privacy: FloatArray

    def total(self, target: Target) -> FloatArray:
        """Covariance about the target, (p, p)."""
        require_choice("target", target, TARGETS)
        return self.sampling + self.privacy if target == "population" else self.privacy


def last_iterate_law(fit: HuberFit, moments: ShrunkMoments | None = None) -> LastIterateLaw:
    r"""Law of the last iterate from private statistics.

    Parameters
    ----------
    fit : HuberFit
    moments : ShrunkMoments, optional
        Those of the fit (`shrunk_moments`) by default.

    Returns
    -------
    LastIterateLaw

    Source
    ------
    Ours; the factor (n/(n - p)) (1 + (p/n)(1 - π)/π)² for small samples is Huber's (1973).
    """
    require_instance("fit", fit, HuberFit)
    moments = (
        shrunk_moments(fit)
        if moments is None
        else require_instance("moments", moments, ShrunkMoments)
    )
    p = fit.parameters.size
    n = max(fit.sample_size, p + 1.0)
    mean = moments.mean_curvature
    correction = n / (n - p) * (1 + p / n * max(0.0, 1 - mean) / mean) ** 2
    return LastIterateLaw(
        sampling=correction * sandwich(moments.curvature, moments.second_moment, sample_size=n),
        privacy=privacy_covariance(
            moments.curvature,
            list(fit.step_matrices),
            fit.gradient_noise_stds,
            start_covariance=_start_error(fit, moments),
            curvature_noise=moments.step_noise,
        ),
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
        Rows c of functionals cᵀθ + o, of entries up to 1e100; the coefficients by default.
    offset : array_like, shape (k,) or ()
        o, public.

    Returns
    -------
    CoefficientIntervals
        Of infinite width where private noise hides the feature's own second moment, so that
        nothing bounds the coefficient.

    Notes
    -----
    The population minimiser of the clipped loss is that of least squares if the errors are
    symmetric given the features, or, but for the intercept, independent of them.
    """
    require_instance("fit", fit, HuberFit)
    require_target(target)
    level = require_number("level", level, above=0, below=1)
    rows, shift = require_functionals(functionals, offset, dimension=fit.parameters.size)
    directions = rows @ fit.whitening
    error, noise = np.zeros(len(rows)), np.zeros(len(rows))
    common = shrunk_moments(fit)
    law = last_iterate_law(fit, common)
    for k, direction in enumerate(directions):
        if not np.any(direction):
            continue
        seen = common.along(fit, direction)
        if seen is None:
            error[k] = noise[k] = np.inf
            continue
        own = law if seen is common else last_iterate_law(fit, seen)
        error[k] = np.sqrt(direction @ own.total(target) @ direction)
        noise[k] = seen.relative_noise(direction, own.sampling, own.privacy, target)
    with np.errstate(divide="ignore"):
        degrees = 2 / np.maximum(noise, 1e-6) ** 2
    finite = degrees > LEAST_DEGREES
    quantile = np.full(len(rows), np.inf)
    quantile[finite] = stdtrit(degrees[finite], (1 + level) / 2)
    return CoefficientIntervals(
        centre=rows @ fit.parameters + shift,
        half_width=quantile * error,
        standard_error=error,
        degrees_of_freedom=degrees,
        level=level,
        target=target,
    )


def require_target(target: Target) -> None:
    """What is to be covered."""
    require_choice("target", target, TARGETS)


def require_functionals(
    functionals: ArrayLike | None, offset: ArrayLike, *, dimension: int
) -> tuple[FloatArray, FloatArray]:
    """Rows (k, p) of functionals, the coefficients by default, and their offset."""
    rows = np.eye(dimension)
    if functionals is not None:
        shape = (None, dimension)
        rows = require_array("functionals", functionals, shape=shape, least=-1e100, most=1e100)
    shift = require_real("offset", offset)
    if shift.shape not in ((), (len(rows),)):
        raise ValueError(f"offset must have shape ({len(rows)},), got {shift.shape}")
    return rows, shift


def _start_error(fit: HuberFit, moments: ShrunkMoments) -> FloatArray:
    """Square of what the start was away, from how far the iterates have come, (p, p).

    A share K of the start's error is left at the last iterate, so that the iterates have covered
    I - K of it.
    """
    left = np.eye(fit.parameters.size)
    for matrix in fit.step_matrices:
        left = left - matrix @ (moments.curvature @ left)
    covered = np.linalg.solve(fit.whitening, fit.parameters)
    whole = np.linalg.lstsq(np.eye(len(left)) - left, covered, rcond=1e-3)[0]
    return np.outer(whole, whole)
