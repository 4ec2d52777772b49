"""Intervals for the coefficients of a private Huber regression, from what it released.

The population parameter differs from the released one by sampling and by private noise. The law of
the iterates gives the second part, the sandwich of the clipped loss the first; both are computed
from private second moments, whose own noise is known, shrunk and allowed for. Everything here is
post-processing and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from privreg.algorithms.huber_descent import HuberFit
from privreg.inference.shrunk_moments import ShrunkMoments, shrunk_moments
from privreg.theory.bias_aware import bias_aware_quantile
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
# With fewer degrees of freedom the noise hides the variance itself: no finite interval is honest.
LEAST_DEGREES = 2.0
# Of a bias or a distance to the standard error, so that no quantile overflows.
LARGEST_RATIO = 1e100


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
    """Estimated law of the last iterate, in whitened coordinates φ = W⁻¹θ."""

    sampling: FloatArray  # covariance of the empirical minimiser about the population's
    privacy: FloatArray  # covariance of the last iterate about the empirical minimiser

    def total(self, target: Target) -> FloatArray:
        """Covariance about the target, (p, p)."""
        return self.sampling + self.privacy if target == "population" else self.privacy


def last_iterate_law(fit: HuberFit, moments: ShrunkMoments | None = None) -> LastIterateLaw:
    """Law of the last iterate from private statistics, those of the fit by default.

    Source
    ------
    Ours; the factor (n/(n - p)) (1 + (p/n)(1 - π)/π)² for small samples is Huber's (1973).
    """
    moments = shrunk_moments(fit) if moments is None else moments
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
    require_choice("target", target, TARGETS)
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


@dataclass(frozen=True)
class CoefficientCovariance:
    """Covariance of coefficients about their target, (k, k), in parts of sampling and of noise.

    Where nothing bounds a coefficient its variance is `inf` and its covariances are NaN.
    """

    sampling: FloatArray
    privacy: FloatArray

    @property
    def total(self) -> FloatArray:
        """Sum of both, (k, k); its diagonal is the square of the intervals' standard errors."""
        return self.sampling + self.privacy


def coefficient_covariance(
    intervals: CoefficientIntervals, law: LastIterateLaw, directions: FloatArray
) -> CoefficientCovariance:
    r"""Covariance with the intervals' standard errors and the law's correlations.

    .. math:: C_{jk} = s_j s_k\, \frac{u_j^\top L u_k}{\sqrt{u_j^\top L u_j\; u_k^\top L u_k}}

    for L and s those of sampling, and those of private noise.
    """
    assert intervals.privacy_error is not None
    error = intervals.standard_error
    size = np.max(np.abs(directions), axis=1, keepdims=True)
    directions = directions / np.where(size > 0, size, 1.0)
    known = np.isfinite(error)
    sampling = np.where(known, np.nan_to_num(intervals.sampling_error), np.inf)
    return CoefficientCovariance(
        sampling=_with_errors(directions @ law.sampling @ directions.T, sampling),
        privacy=_with_errors(directions @ law.privacy @ directions.T, intervals.privacy_error),
    )


def _with_errors(matrix: FloatArray, error: FloatArray) -> FloatArray:
    """The matrix scaled to a diagonal of squared errors."""
    root = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    seen = root > 0
    scale = np.where(seen, np.where(np.isfinite(error), error, 0.0) / np.where(seen, root, 1.0), 0)
    found = np.outer(scale, scale) * ((matrix + matrix.T) / 2)
    found[~np.isfinite(error)] = np.nan
    found[:, ~np.isfinite(error)] = np.nan
    np.fill_diagonal(found, error**2)
    return found


def half_widths(
    standard_error: FloatArray,
    degrees_of_freedom: FloatArray,
    *,
    level: float,
    bias: FloatArray | None = None,
) -> FloatArray:
    r"""Half-widths of intervals of standard error s, ν degrees of freedom and a bias of at most b.

    .. math:: h = \frac{t_\nu}{z}\,c(b/s)\,s, \qquad \Phi(c - t) - \Phi(-c - t) = \ell

    with Student's and the normal quantile t and z; without bias h = t_ν s.

    Source
    ------
    Armstrong and Kolesár (2018), equation (10), for c.
    """
    error, degrees = standard_error, degrees_of_freedom
    known = np.isfinite(error) & (degrees > LEAST_DEGREES)
    quantile = np.full(error.shape, np.inf)
    quantile[known] = stdtrit(degrees[known], (1 + level) / 2)
    if bias is not None:
        normal = float(ndtri((1 + level) / 2))
        # Below a level of 1e-16 both quantiles are 0.
        student = quantile[known] / normal if normal > 0 else 1.0
        ratio = _ratio(bias[known], error[known])
        quantile[known] = student * bias_aware_quantile(ratio, level=level)
    found = np.zeros(error.shape)
    return np.multiply(quantile, error, out=found, where=error > 0)


def p_values(
    distance: ArrayLike,
    standard_error: ArrayLike,
    degrees_of_freedom: ArrayLike,
    *,
    bias: ArrayLike | None = None,
) -> FloatArray:
    r"""The α at which `half_widths` of level 1 - α equal a distance: tests invert intervals.

    .. math::
        \alpha = \Phi(t - c) + \Phi(-t - c), \qquad
        t = \frac bs,\ c = \frac{|d|}s\,\frac{z_{\alpha/2}}{t_{\nu,\alpha/2}}

    The right side falls with α, so that it has one solution, found by bisection of log α.
    """
    error = require_array("standard_error", standard_error, shape=(None,), least=0, infinite=True)
    same: dict[str, Any] = {"shape": error.shape, "least": 0}
    degrees = require_array("degrees_of_freedom", degrees_of_freedom, **same, infinite=True)
    shift = np.zeros(error.shape) if bias is None else require_array("bias", bias, **same)
    away = np.abs(require_array("distance", distance, shape=error.shape))
    found = np.ones(error.shape)
    # Without a spread the interval is a point.
    found[(error == 0) & (away > 0)] = 0.0
    known = np.isfinite(error) & (error > 0) & (degrees > LEAST_DEGREES) & (away > 0)
    ratio = _ratio(shift[known], error[known])
    with np.errstate(over="ignore"):
        scaled = np.minimum(away[known] / error[known], LARGEST_RATIO)
    found[known] = _solved(scaled, degrees[known], ratio)
    return found


def _solved(distance: FloatArray, degrees: FloatArray, shift: FloatArray) -> FloatArray:
    low, high = np.full(distance.shape, np.log(1e-300)), np.zeros(distance.shape)
    for _ in range(70):
        middle = (low + high) / 2
        half = np.exp(middle) / 2
        # Student's quantile is at least the normal one, and beyond doubles where it is infinite.
        student, share = stdtrit(degrees, half), np.ones(half.shape)
        np.divide(ndtri(half), student, out=share, where=student < 0)
        quantile = distance * np.clip(share, 0.0, 1.0)
        below = np.exp(middle) < ndtr(shift - quantile) + ndtr(-shift - quantile)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(high <= np.log(1e-300) + 1e-9, 0.0, np.minimum(np.exp(high), 1.0))


def _ratio(bias: FloatArray, error: FloatArray) -> FloatArray:
    found = np.zeros(error.shape)
    with np.errstate(over="ignore"):
        np.divide(bias, error, out=found, where=error > 0)
    return np.minimum(found, LARGEST_RATIO)
