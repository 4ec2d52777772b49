"""Intervals for the coefficients of a private Huber regression, from its released values.

The sandwich of the clipped loss gives the sampling variance; the law of the iterates gives the
variance from noise. Both use private second moments, shrunk because they are noisy; intervals allow
for the noise that is left. Everything here is post-processing and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from privreg.algorithms.huber_descent import HuberFit
from privreg.algorithms.least_squares_descent import LeastSquaresFit
from privreg.algorithms.whitened_descent import NoisyValue
from privreg.checks import (
    MOST,
    require_array,
    require_choice,
    require_instance,
    require_number,
    require_real,
)
from privreg.theory.huber_descent import (
    bias_aware_quantile,
    floored,
    privacy_covariance,
    sandwich,
    shrink_to,
    shrink_to_identity,
)

FloatArray = NDArray[np.float64]
# Deviations of a direction's own noise: by how many it must exceed 0 to be seen (noise alone does
# in one of 20), and by how many shrinkage may raise it (a convention).
VISIBLE, LIMIT = 1.645, 1.0
Target = Literal["population", "empirical"]
TARGETS: tuple[Target, ...] = get_args(Target)
# With fewer degrees of freedom the noise hides the variance itself: no finite interval is valid.
LEAST_DEGREES = 2.0
# Largest entry of a functional: a user's number times the quotient of two units.
LARGEST_ENTRY = 1e36


class TwoSided:
    """Centres and half-widths of intervals."""

    centre: FloatArray
    half_width: FloatArray

    def covers(self, target: ArrayLike) -> NDArray[np.bool_]:
        """True for each interval that contains its target (finite, of the centre's shape)."""
        return np.abs(self.centre - np.asarray(target)) <= self.half_width

    @property
    def length(self) -> FloatArray:
        """Full lengths, twice the half-widths."""
        return 2 * self.half_width


@dataclass(frozen=True)
class CoefficientIntervals(TwoSided):
    """Two-sided intervals, centre ± half-width.

    Attributes
    ----------
    centre, half_width, standard_error : ndarray, shape (k,)
        Estimates, half the intervals' lengths, and standard deviations, in the coefficients' units.
    degrees_of_freedom : ndarray, shape (k,)
        Degrees of freedom of Student's t, from the noise in the standard errors.
    level : float
        Nominal coverage of the target.
    target : str
        "population" for the minimiser in the population, "empirical" for the one on these records.
    bias : ndarray, shape (k,), optional
        Largest bias that the half-width allows for; None if it allows for no bias.
    reasons : tuple of str
        Reason for each infinite interval, an empty text for others; () if no reasons are known.
    privacy_error : ndarray, shape (k,), optional
        Standard deviation from private noise alone; None if unknown.
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
        """Standard deviation without private noise, shape (k,); NaN if unknown."""
        return np.sqrt(np.maximum(self.standard_error**2 * (1 - self.privacy_share), 0.0))

    @property
    def privacy_share(self) -> FloatArray:
        """Private noise's share of the variance, shape (k,); NaN if unknown."""
        share = np.full(self.standard_error.shape, np.nan)
        if self.privacy_error is not None:
            known = np.isfinite(self.standard_error) & (self.standard_error > 0)
            np.divide(self.privacy_error, self.standard_error, out=share, where=known)
        return np.minimum(share**2, 1.0)

    def p_values(self, value: ArrayLike = 0.0) -> FloatArray:
        r"""Two-sided p-values, shape (k,), for the hypothesis that the target is `value`.

        They invert the intervals: p is less than α if the interval of level 1 - α excludes the
        value, whatever `level` is. p is 1 if the interval is infinite. With standard error s, ν
        degrees of freedom, bias b and distance d from centre to value, p is the only solution α of

        .. math::
            \alpha = \Phi(r - q) + \Phi(-r - q), \qquad
            r = \frac bs,\ q = \frac{|d|}s\,\frac{z_{\alpha/2}}{t_{\nu,\alpha/2}}

        Examples
        --------
        >>> found = CoefficientIntervals(
        ...     centre=np.array([2.0]), half_width=np.array([1.96]), standard_error=np.ones(1),
        ...     degrees_of_freedom=np.array([np.inf]), level=0.95, target="population")
        >>> found.p_values().round(4).tolist(), found.p_values(2.0).tolist()
        ([0.0455], [1.0])
        """
        point = require_real("value", value, least=-MOST, most=MOST)
        if point.shape not in ((), self.centre.shape):
            raise ValueError(f"value must have shape () or {self.centre.shape}, got {point.shape}")
        error, away = self.standard_error, np.abs(self.centre - point)
        found = np.ones(error.shape)
        # Without a spread the interval is a point.
        found[(error == 0) & (away > 0)] = 0.0
        known = np.isfinite(error) & (error > 0) & (away > 0)
        known &= self.degrees_of_freedom > LEAST_DEGREES
        degrees, scaled = self.degrees_of_freedom[known], away[known] / error[known]
        shift = np.zeros(scaled.shape)
        if self.bias is not None:
            shift = self.bias[known] / error[known]
        low, high = np.full(scaled.shape, np.log(1e-300)), np.zeros(scaled.shape)
        # Bisection of log α: the right side falls with α.
        for _ in range(70):
            middle = (low + high) / 2
            half = np.exp(middle) / 2
            # Student's quantile is at least the normal one, and infinite beyond doubles.
            student, share = stdtrit(degrees, half), np.ones(half.shape)
            np.divide(ndtri(half), student, out=share, where=student < 0)
            quantile = scaled * np.clip(share, 0.0, 1.0)
            below = np.exp(middle) < ndtr(shift - quantile) + ndtr(-shift - quantile)
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        least = high <= np.log(1e-300) + 1e-9
        found[known] = np.where(least, 0.0, np.minimum(np.exp(high), 1.0))
        return found


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

    Â and B̂ are the curvature and second moment of `shrunk_moments`, W is the whitening, V the
    covariance from private noise, and κ_j the relative noise in the variance estimate.

    Parameters
    ----------
    fit : HuberFit
        Released values of a Huber regression.
    level : float
        Nominal coverage ℓ, in (0, 1).
    target : {"population", "empirical"}
        Target to cover: the minimiser in the population (the records are an independent sample), or
        the minimiser on these records, for which only private noise counts.
    functionals : array_like, shape (k, p), optional
        Rows f of functionals fᵀθ + o, with entries at most 1e36 in size; coefficients by default.
    offset : array_like, shape (k,) or ()
        Public offsets o.

    Notes
    -----
    If private noise hides a feature's second moment, the coefficient's interval is infinite. The
    clipped loss and least squares have the same population minimiser if errors are symmetric given
    the features. They have the same slopes if errors are independent of the features.
    """
    require_instance("fit", fit, HuberFit)
    rows, shift = require_question(fit, level, target, functionals, offset)
    error, noise, private = np.zeros((3, len(rows)))
    common = shrunk_moments(fit)
    law = last_iterate_law(fit, common)
    for k, direction in enumerate(rows @ fit.whitening):
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


def require_question(
    fit: HuberFit | LeastSquaresFit,
    level: float,
    target: Target,
    functionals: ArrayLike | None,
    offset: ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Checked rows of functionals, shape (k, p), by default the coefficients, and their offsets."""
    require_choice("target", target, TARGETS)
    require_number("level", level, above=0, below=1)
    p = fit.parameters.size
    rows = np.eye(p)
    if functionals is not None:
        within = {"least": -LARGEST_ENTRY, "most": LARGEST_ENTRY}
        rows = require_array("functionals", functionals, shape=(None, p), **within)
    shift = require_real("offset", offset)
    if shift.shape not in ((), (len(rows),)):
        raise ValueError(f"offset must have shape ({len(rows)},), got {shift.shape}")
    return rows, shift


def half_widths(
    standard_error: FloatArray,
    degrees_of_freedom: FloatArray,
    *,
    level: float,
    bias: FloatArray | None = None,
) -> FloatArray:
    r"""Half-widths of intervals with standard error s, ν degrees of freedom and bias at most b.

    .. math:: h = \frac{t_\nu}{z}\,c(b/s)\,s

    t_ν and z are the two-sided quantiles of Student's t and of the normal law, and c is the
    `bias_aware_quantile`. If b = 0, h = t_ν s.
    """
    error, degrees = standard_error, degrees_of_freedom
    known = np.isfinite(error) & (degrees > LEAST_DEGREES)
    quantile = np.full(error.shape, np.inf)
    quantile[known] = stdtrit(degrees[known], (1 + level) / 2)
    if bias is not None:
        normal = float(ndtri((1 + level) / 2))
        # Below a level of 1e-16 both quantiles are 0.
        student = quantile[known] / normal if normal > 0 else 1.0
        ratio = np.divide(bias, error, out=np.zeros(error.shape), where=known & (error > 0))
        quantile[known] = student * bias_aware_quantile(ratio[known], level=level)
    return np.multiply(quantile, error, out=np.zeros(error.shape), where=error > 0)


@dataclass(frozen=True)
class LastIterateLaw:
    """Estimated law of the last iterate, in coordinates φ = W⁻¹θ for the fit's whitening W."""

    sampling: FloatArray  # covariance of the empirical minimiser about the population's
    privacy: FloatArray  # covariance of the last iterate about the empirical minimiser

    def total(self, target: Target) -> FloatArray:
        """Covariance about the target, shape (p, p)."""
        return self.sampling + self.privacy if target == "population" else self.privacy


def last_iterate_law(fit: HuberFit, moments: ShrunkMoments | None = None) -> LastIterateLaw:
    """Law of the last iterate from private moments, by default those of the fit.

    Huber (1973) gives the small-sample factor (n/(n - p)) (1 + (p/n)(1 - π)/π)², π = tr(A)/p.
    """
    moments = shrunk_moments(fit) if moments is None else moments
    p = fit.parameters.size
    n = max(fit.sample_size, p + 1.0)
    mean = moments.mean_curvature
    correction = n / (n - p) * (1 + p / n * max(0.0, 1 - mean) / mean) ** 2
    return LastIterateLaw(
        sampling=correction * sandwich(moments.curvature, moments.second_moment, sample_size=n),
        privacy=privacy_of_moved(
            fit, fit.parameters, moments.curvature, curvature_noise=moments.step_noise
        ),
    )


@dataclass(frozen=True)
class CoefficientCovariance:
    """Covariances of coefficients about their target, (k, k), from sampling and from noise.

    If a coefficient's standard error is infinite, its variance is `inf` and its covariances NaN.
    """

    sampling: FloatArray
    privacy: FloatArray

    @property
    def total(self) -> FloatArray:
        """Sum of both parts, (k, k); its diagonal holds the intervals' squared standard errors."""
        return self.sampling + self.privacy


def coefficient_covariance(
    intervals: CoefficientIntervals, law: LastIterateLaw, directions: FloatArray
) -> CoefficientCovariance:
    r"""Covariance with the intervals' standard errors and the law's correlations.

    .. math:: C_{jk} = s_j s_k\, \frac{u_j^\top L u_k}{\sqrt{u_j^\top L u_j\; u_k^\top L u_k}}

    u are directions, L a covariance of the law, s standard errors: of sampling or of noise.
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


@dataclass(frozen=True)
class ShrunkMoments:
    """Curvature A and clipped gradients' second moment B, whitened, and the noise left in both."""

    curvature: FloatArray  # A
    second_moment: FloatArray  # B
    mean_curvature: float  # tr(A)/p
    # Standard deviations in uᵀAu and uᵀBu for a unit vector u, where the two were released.
    curvature_noise: float
    second_moment_noise: float
    # G, if A and B are multiples of the rows' second moment: uᵀGu is its noise's deviation along u.
    gram_noise: FloatArray

    @property
    def step_noise(self) -> float:
        """Noise of uᵀAu for typical u: from A or tr(A)/p × Gram matrix, whichever is larger."""
        typical = float(np.trace(self.gram_noise)) / len(self.gram_noise)
        return max(self.curvature_noise, self.mean_curvature * typical)

    def relative_noise(
        self, direction: FloatArray, sampling: FloatArray, privacy: FloatArray, target: str
    ) -> float:
        r"""Standard deviation of the noise in the estimate of uᵀCu, relative to uᵀCu.

        .. math::
            \delta(u^\top C u) = -2\,a^\top E_A\,c + a^\top E_B\,a/n, \qquad
            a = A^{-1}u,\ c = C u

        E_A and E_B are the noise of A and B; C is the covariance about the target. If A = πΣ and
        B = mΣ, the sampling part of C is proportional to Σ⁻¹ and the private part to Σ⁻².
        """
        direction = _unit(direction)
        # In rows, so that sums have one order.
        sampling, privacy = np.ascontiguousarray(sampling), np.ascontiguousarray(privacy)
        population = target == "population"
        covariance = sampling + privacy if population else privacy
        a, c = np.linalg.solve(self.curvature, direction), covariance @ direction
        parts = np.array([direction @ sampling @ direction, direction @ privacy @ direction])
        variance = 2 * self.curvature_noise**2 * ((a @ a) * (c @ c) + (a @ c) ** 2)
        shape = float(direction @ self.gram_noise @ direction)
        shape *= float(population) * parts[0] + 2 * parts[1]
        if population and self.second_moment_noise > 0:
            middle = float(a @ self.second_moment @ a)
            variance += (parts[0] * self.second_moment_noise * (a @ a) / middle) ** 2
        thinness = self.mean_curvature * float(a @ direction)
        return float(np.sqrt(variance + (shape * thinness) ** 2) / float(direction @ c))

    def along(self, fit: HuberFit, direction: FloatArray) -> ShrunkMoments | None:
        """Moments with uᵀAu, for this u, lowered to at most its noisy value plus one deviation.

        None if noise hides the direction. The limit undoes shrinkage that raises a small curvature.
        """
        unit = _unit(direction)
        shrunk = float(unit @ self.curvature @ unit)
        if fit.curvature is not None:
            found, std = float(unit @ fit.curvature.value @ unit), fit.curvature.noise_std
        else:
            before = fit.last_root @ unit
            found = self.mean_curvature * float(before @ fit.gram.value @ before)
            std = self.mean_curvature * fit.gram.noise_std * float(before @ before)
        if found <= VISIBLE * std:
            return None
        limited = found + LIMIT * std
        if limited >= shrunk:
            return self
        lowered = self.curvature - (shrunk - limited) * np.outer(unit, unit)
        seen = fit.curvature is not None
        return replace(
            self,
            curvature=floored(lowered, 0.5 * limited),
            second_moment=scaled_along(self.second_moment, unit, limited / shrunk),
            curvature_noise=std if seen else self.curvature_noise,
            gram_noise=self.gram_noise if seen else std / self.mean_curvature * np.eye(len(unit)),
        )


def shrunk_moments(fit: HuberFit) -> ShrunkMoments:
    r"""Estimate curvature A and second moment B from a fit, between plug-in and sandwich.

    .. math::
        \hat A = \hat\pi\hat\Sigma + \omega_A(\tilde A - \hat\pi\hat\Sigma), \qquad
        \hat B = \hat m\hat\Sigma + \omega_B(\tilde B - \hat m\hat\Sigma)

    Ã and B̃ are the noisy matrices of the fit, ω the weights of `shrink_to`, and π̂ and m̂ the
    private means of the diagonals. Σ̂ is the rows' second moment in whitened coordinates: the
    identity except along directions hidden by noise. ω = 0 is the plug-in for errors that do not
    depend on the features, and ω = 1 the sandwich.
    """
    p = fit.parameters.size
    # Below this weight the noise would hide a deviation from the identity.
    hidden = min(1.0, 2 / np.sqrt(p * (p + 1)))
    normal = 2 * float(ndtr(fit.settings.clip_width)) - 1
    bound = fit.clip_norm**2 / p
    mean = float(np.clip(mean_diagonal(fit.curvature, fit.mean_curvature), 0.1 * normal, 1.5))
    square = float(np.clip(mean_diagonal(fit.second_moment, fit.mean_square), 1e-3 * bound, bound))
    # The shrunk Gram matrix after the last root, scaled to a mean diagonal of 1.
    gram = shrink_to_identity(fit.gram.value, noise_std=fit.gram.noise_std).matrix
    shape = floored(fit.last_root.T @ gram @ fit.last_root, 0.05)
    shape = shape * (p / float(np.trace(shape)))
    if fit.curvature is None or fit.second_moment is None:
        left = fit.gram.noise_std * float(np.sqrt(max(fit.gram_weight, hidden)))
        gram_noise = left * fit.last_root.T @ fit.last_root
        return ShrunkMoments(mean * shape, square * shape, mean, 0.0, 0.0, gram_noise)
    matrix = (fit.curvature.value + fit.curvature.value.T) / 2
    a = shrink_to(mean * shape, matrix, noise_std=fit.curvature.noise_std)
    b = shrink_to(square * shape, fit.second_moment.value, noise_std=fit.second_moment.noise_std)
    return ShrunkMoments(
        curvature=floored(a.matrix, 0.05 * mean),
        second_moment=floored(b.matrix, 0.02 * square),
        mean_curvature=mean,
        curvature_noise=fit.curvature.noise_std * float(np.sqrt(max(a.weight, hidden))),
        second_moment_noise=fit.second_moment.noise_std * float(np.sqrt(max(b.weight, hidden))),
        gram_noise=np.zeros((p, p)),
    )


def privacy_of_moved(
    fit: HuberFit | LeastSquaresFit,
    moved: FloatArray,
    curvature: FloatArray,
    *,
    curvature_noise: float,
) -> FloatArray:
    """`privacy_covariance` with the start's error estimated from `moved`, the fit's total move."""
    # A share K of the start's error is left at the last iterate: they have covered I - K of it.
    left = identity = np.eye(len(curvature))
    for matrix in fit.step_matrices:
        left = left - matrix @ (curvature @ left)
    covered = np.linalg.solve(fit.whitening, moved)
    whole = np.linalg.lstsq(identity - left, covered, rcond=1e-3)[0]
    return privacy_covariance(
        curvature,
        fit.step_matrices,
        fit.gradient_noise_stds,
        start_covariance=np.outer(whole, whole),
        curvature_noise=curvature_noise,
    )


def mean_diagonal(matrix: NoisyValue | None, number: NoisyValue) -> float:
    """Mean of a matrix's diagonal, from the noisy matrix and a noisy mean, weighted by noise."""
    if matrix is None:
        return float(number.value)
    p = len(matrix.value)
    first, second = matrix.noise_std**2 / p, number.noise_std**2
    weight = second / (first + second) if first + second > 0 else 0.5
    return float(weight * np.trace(matrix.value) / p + (1 - weight) * float(number.value))


def scaled_along(matrix: FloatArray, unit: FloatArray, ratio: float) -> FloatArray:
    """Matrix whose quadratic form along a unit vector is multiplied by the ratio."""
    scaling = np.eye(len(unit)) + (np.sqrt(ratio) - 1) * np.outer(unit, unit)
    scaled: FloatArray = scaling @ matrix @ scaling
    return scaled


def _unit(direction: FloatArray) -> FloatArray:
    found = direction / float(np.max(np.abs(direction)))
    return np.asarray(found / np.linalg.norm(found))
