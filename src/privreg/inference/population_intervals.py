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

from privreg.algorithms.huber_descent import HuberFit
from privreg.inference.critical_values import half_widths, p_values
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
    privacy_error : ndarray, shape (k,), optional
        Standard deviation that private noise alone gives; None where it is not known.
    """

    centre: FloatArray
    half_width: FloatArray
    standard_error: FloatArray
    degrees_of_freedom: FloatArray
    level: float
    target: Target
    bias: FloatArray | None = None
    reasons: tuple[str, ...] = ()
    privacy_error: FloatArray | None = None

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

    @property
    def sampling_error(self) -> FloatArray:
        """Standard deviation without private noise, shape (k,); NaN where it is not known."""
        return np.sqrt(np.maximum(self.standard_error**2 * (1 - self.privacy_share), 0.0))

    @property
    def privacy_share(self) -> FloatArray:
        """Share of the variance that private noise adds, shape (k,); NaN where it is not known."""
        share = np.full(self.standard_error.shape, np.nan)
        if self.privacy_error is not None:
            known = np.isfinite(self.standard_error) & (self.standard_error > 0)
            np.divide(self.privacy_error, self.standard_error, out=share, where=known)
        return np.minimum(share**2, 1.0)

    def p_values(self, value: ArrayLike = 0.0) -> FloatArray:
        """Two-sided p-values, shape (k,), of the hypothesis that the target is a value.

        They invert the intervals: p is less than α where the interval of level 1 - α leaves the
        value out, whatever `level` is. 1 where the interval is infinite.

        Parameters
        ----------
        value : array_like, shape (k,) or ()
            What is tested, of numbers up to 1e100.

        Examples
        --------
        >>> found = CoefficientIntervals(
        ...     centre=np.array([2.0]), half_width=np.array([1.96]), standard_error=np.ones(1),
        ...     degrees_of_freedom=np.array([np.inf]), level=0.95, target="population")
        >>> found.p_values().round(4).tolist(), found.p_values(2.0).tolist()
        ([0.0455], [1.0])
        """
        point = require_real("value", value, least=-1e100, most=1e100)
        if point.shape not in ((), self.centre.shape):
            raise ValueError(f"value must have shape () or {self.centre.shape}, got {point.shape}")
        return p_values(
            self.centre - point,
            self.standard_error,
            self.degrees_of_freedom,
            bias=self.bias,
        )


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
    error, noise, private = (np.zeros(len(rows)) for _ in range(3))
    common = shrunk_moments(fit)
    law = last_iterate_law(fit, common)
    for k, direction in enumerate(directions):
        if not np.any(direction):
            continue
        seen = common.along(fit, direction)
        if seen is None:
            error[k] = noise[k] = private[k] = np.inf
            continue
        own = law if seen is common else last_iterate_law(fit, seen)
        error[k] = np.sqrt(direction @ own.total(target) @ direction)
        private[k] = np.sqrt(direction @ own.privacy @ direction)
        noise[k] = seen.relative_noise(direction, own.sampling, own.privacy, target)
    with np.errstate(divide="ignore"):
        degrees = 2 / np.maximum(noise, 1e-6) ** 2
    return CoefficientIntervals(
        centre=rows @ fit.parameters + shift,
        half_width=half_widths(error, degrees, level=level),
        standard_error=error,
        degrees_of_freedom=degrees,
        level=level,
        target=target,
        privacy_error=private,
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
