"""Intervals for least-squares coefficients and new labels, from released values of a private fit.

Sampling and private noise have known laws. The bias from clipping the tail has a bound, estimated
from a private histogram. Everything here is post-processing and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, ndtr

from privreg.algorithms.huber_descent import default_settings
from privreg.algorithms.least_squares_descent import SQUARE, LeastSquaresFit, ProductTail
from privreg.algorithms.whitened_descent import raised, scale_is_hidden, shrunk_curvature
from privreg.checks import MOST
from privreg.inference.population_intervals import (
    LEAST_DEGREES,
    LIMIT,
    VISIBLE,
    CoefficientIntervals,
    LastIterateLaw,
    Target,
    half_widths,
    mean_diagonal,
    privacy_of_moved,
    require_question,
    scaled_along,
)
from privreg.kernels import plain_sum
from privreg.privacy.budget import Budget, gaussian_noise_std, sum_sensitivity
from privreg.theory.huber_descent import floored, privacy_covariance, sandwich, shrink_to

FloatArray = NDArray[np.float64]
# κ₀, the multiple of s_δ and the factor in `LeastSquaresLaw.largest_bias`; then the deviations of
# noise by which aᵀBa may lie below its noisy value. Chosen on tables, for coverage of the worst
# slope and length: benchmarks/interval_constants.py shows both at other values.
LEAST, SURE, GAIN = 0.3, 1.5, 8.0
BELOW = 0.3
NOISY = "the feature is hidden by the noise of the second moments"
COLLINEAR = "the feature is collinear with others, up to the noise"
UNSEEN = "too few rows for this budget to show the tail of the residuals"
UNCERTAIN = "the noise hides the standard error"
# Counts must exceed the level of new observations by so many deviations of noise (a convention).
COUNT_MARGIN = 1.0


def least_squares_intervals(
    fit: LeastSquaresFit,
    *,
    level: float = 0.95,
    target: Target = "population",
    functionals: ArrayLike | None = None,
    offset: ArrayLike = 0.0,
) -> CoefficientIntervals:
    r"""Intervals for least-squares coefficients, or for linear functionals of them.

    .. math::
        f^\top\theta \pm \frac{t_\nu}{z}\, c(b/s)\, s, \qquad
        s^2 = \tfrac{n}{n - p}\,a^\top\hat B a/n + u^\top V u, \quad u = W^\top f,\ a = \hat A^{-1}u

    f is a functional and W the whitening; Â, B̂ and V are as in `LeastSquaresLaw`; c(·) is the
    `bias_aware_quantile`. b is the largest bias from clipping (`LeastSquaresLaw.largest_bias`) and
    from shortened rows. t and z are Student's and the normal quantile, with ν = 2s⁴/Var s² from the
    noise in s². If nothing bounds a coefficient, its interval is infinite, with a stated reason.

    Notes
    -----
    If noise hides the histogram's counts, the tail is assumed to be no heavier than a power law. If
    noise hides the number of rows beyond this tail, their effect is not bounded. The factor κ in
    the largest bias of a slope (`largest_bias`) was chosen on tables and is not a bound. κ is small
    if a robust fit gives a similar slope, and larger otherwise. Along the mean κ is 1.
    """
    rows, shift = require_question(fit, level, target, functionals, offset)
    p = fit.parameters.size
    n = max(fit.sample_size, p + 1.0)
    law = least_squares_law(fit)
    error, privacy, bias = np.zeros((3, len(rows)))
    degrees, reasons = np.full(len(rows), np.inf), [""] * len(rows)
    unseen = tail_is_hidden(fit)
    for k, (row, direction) in enumerate(zip(rows, rows @ fit.whitening, strict=True)):
        if not np.any(direction):
            continue
        own = _along(fit, law, direction)
        reasons[k] = UNSEEN if unseen else "" if own is not None else _why(fit, row)
        if own is None or unseen:
            error[k] = privacy[k] = np.inf
            continue
        slope = np.linalg.solve(own.curvature, direction)
        length = float(slope @ slope)
        noise = fit.second_moment.noise_std * length
        middle = max(
            float(slope @ own.second_moment @ slope),
            float(slope @ fit.second_moment.value @ slope) - BELOW * noise,
        )
        sampling = n / (n - p) * middle / n if target == "population" else 0.0
        private = float(direction @ own.privacy @ direction)
        variance = sampling + private
        error[k] = np.sqrt(variance)
        bias[k] = law.largest_bias(direction, slope) + _shortened(fit, direction) * np.sqrt(length)
        privacy[k] = np.sqrt(private)
        # Noise E in A and B changes s² by -2 aᵀE_A M u + aᵀE_B a/n, for the whole covariance M of
        # the last iterate, with M u near (s²/‖u‖²) u.
        noisy = 2 * own.curvature_noise * float(np.linalg.norm(slope)) / np.linalg.norm(direction)
        share = (noise / n / variance) if target == "population" else 0.0
        relative = float(np.hypot(noisy, share))
        degrees[k] = 2 / max(relative, 1e-6) ** 2
        if degrees[k] <= LEAST_DEGREES:
            reasons[k] = UNCERTAIN
    return CoefficientIntervals(
        centre=rows @ fit.parameters + shift,
        half_width=half_widths(error, degrees, level=level, bias=bias),
        standard_error=error,
        degrees_of_freedom=degrees,
        level=level,
        target=target,
        bias=bias,
        reasons=tuple(reasons),
        privacy_error=privacy,
    )


def tail_is_hidden(fit: LeastSquaresFit) -> bool:
    """True if, by public numbers alone, noise hides the residuals' tail: no interval is finite."""
    each = fit.settings.scale_share / (fit.settings.warm_up_steps + 1)
    # Noise of a count in the histogram of residual scales; it exceeds the tail histogram's noise.
    std = fit.tail.counts.noise_std * max((1 - SQUARE) * fit.settings.tail_share / each, 1.0) ** 0.5
    return scale_is_hidden(noise_std=std, sample_size=fit.sample_size)


@dataclass(frozen=True)
class NewObservations:
    """Intervals for the labels of k new records, in the units of the fit.

    The nominal coverage `level` is an average over records of the population.
    """

    centre: FloatArray  # prediction of the robust start, about which the histogram was taken
    half_width: FloatArray
    level: float
    reason: str = ""  # why half-widths are infinite


def new_observations(
    fit: LeastSquaresFit, rows: FloatArray, *, level: float = 0.95
) -> NewObservations:
    r"""Intervals for labels of new records, for any law of the errors.

    .. math::
        x^\top\theta_H \pm t\,\frac{\sqrt p}{\min(\|z\|s^2, \sqrt p)}\sqrt{\frac{n + p}{n - p}},
        \qquad z = W^\top x,\ s = \min(1, R/\|z\|)

    θ_H is the robust start, R is `fit.cap`, and t the quantile of level ℓ of q/√p from its private
    histogram: a share ℓ of the records has q = ‖z‖s²|y - xᵀθ_H| at most t√p. The fit must protect
    rows, since a person's product sums over the person's rows. Half-widths are infinite if noise
    hides the quantile. Rows with ‖z‖s² < √p get longer intervals, and none get shorter ones. This
    only adds coverage.

    Notes
    -----
    Coverage ℓ is for a new record from the same population, on average over rows x as in conformal
    prediction. It is not the coverage at a stated x. The last factor allows for the records' own
    effect on θ_H, as in least squares. The counted share must exceed ℓ by one deviation of its
    noise. Within a bin, log q is taken as uniform, which adds coverage in a tail.
    Source: Ours; normalised conformal prediction divides scores by a length, too (Lei et al. 2018).
    """
    p, n = fit.parameters.size, fit.sample_size
    points = np.ascontiguousarray(rows)
    unseen = scale_is_hidden(noise_std=fit.tail.counts.noise_std, sample_size=n) or n <= p
    quantile = np.inf if unseen else _quantile(fit.tail, level)
    lengths = np.linalg.norm(points @ fit.whitening, axis=1)
    with np.errstate(divide="ignore"):
        # Beyond the cap a row of length ‖z‖ counts as one of R²/‖z‖.
        counted = np.minimum(np.minimum(lengths, fit.cap**2 / lengths), np.sqrt(p))
        grown = np.sqrt((n + p) / (n - p)) if n > p else np.inf
        half = np.where(counted > 0, quantile * grown * np.sqrt(p) / counted, np.inf)
    return NewObservations(
        centre=points @ fit.robust_start,
        half_width=half,
        level=level,
        reason="" if np.isfinite(quantile) else UNSEEN,
    )


class RobustDifference(NamedTuple):
    """Result of a χ² test that robust and least-squares slopes agree; it ignores clipping bias."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


def robust_difference(fit: LeastSquaresFit) -> RobustDifference:
    r"""Test whether the warm-up's robust slopes differ from the least-squares slopes.

    .. math::
        T = \frac{\|d\|^2}{v_H + v + m_2/(2n)}, \qquad d = (I - mm^\top) W^{-1}(\theta_K - \theta_H)

    T is compared with χ² of p - 1 degrees of freedom (p without intercept). θ_H and θ_K are the
    robust start and the last iterate, v_H and v their noise variances, and m is the direction of
    the mean. m₂/(2n), with m₂ = tr(B)/p, approximates the sampling variance of the difference.
    """
    law, (moved, variance) = least_squares_law(fit), _moved(fit)
    moved = moved - law.constant * float(law.constant @ moved)
    degrees = fit.parameters.size - int(np.any(law.constant))
    statistic = float(moved @ moved) / variance
    tail = float(chdtrc(degrees, statistic)) if degrees else 1.0
    return RobustDifference(statistic, degrees, tail)


def robust_gain(fit: LeastSquaresFit) -> float:
    r"""Variance of a least-squares coefficient relative to a robust fit's, for symmetric errors.

    .. math::
        \frac{v + m_2/n}{v_R + m_2/n}, \qquad
        v = \tfrac1p\operatorname{tr}V, \qquad
        v_R = \frac{(\Delta w s)^2\,p}{2\rho_R n^2 (2\Phi(w) - 1)^2 \pi^2}

    along a whitened coordinate. V is the known noise of the wide steps, and s the private residual
    scale. w and ρ_R are the clip and the final steps' budget of `default_settings`. Δ is 2 under
    replace-one, else 1; π = tr(A)/p; m₂ is a clipped product's mean square. Contributions of
    the clips and the start are left out.
    """
    law, n, p = least_squares_law(fit), fit.sample_size, fit.parameters.size
    typical = float(np.trace(law.curvature)) / p
    noise = privacy_covariance(
        law.curvature, fit.step_matrices, fit.gradient_noise_stds, start_covariance=np.zeros((p, p))
    )
    neighbours = fit.spending[0][1].neighbours
    budget = Budget(min(plain_sum(each.rho for _, each in fit.spending), MOST), neighbours)
    robust = default_settings(sample_size=max(1, round(n)), dimension=p, budget=budget)
    width = robust.clip_width * fit.residual_scale
    change = float(sum_sensitivity(1.0, neighbours=neighbours)) * width * np.sqrt(p)
    std = gaussian_noise_std(sensitivity=change, rho=budget.rho * robust.final_share) / n
    slope = typical * (2 * float(ndtr(robust.clip_width)) - 1)
    sampling = float(np.trace(law.second_moment)) / p / typical**2 / n
    return (float(np.trace(noise)) / p + sampling) / (float(std / slope) ** 2 + sampling)


@dataclass(frozen=True)
class LeastSquaresLaw:
    """Estimated law of the last iterate, in whitened coordinates φ = W⁻¹θ."""

    curvature: FloatArray  # A
    second_moment: FloatArray  # B
    privacy: FloatArray  # V, covariance of the last iterate about the minimiser on these records
    curvature_noise: float  # standard deviation of the noise that is left in uᵀAu
    excess: float  # m₁, bound on the mean excess of a gradient over the clip, divided by √p
    hidden: float  # h, the same for records that no count shows, which m₁ excludes
    rare: bool  # whether hidden records may outweigh all others
    constant: FloatArray  # unit vector m along the whitened mean row; 0 without intercept
    moved: FloatArray  # δ, by which the wide steps have moved the robust start
    moved_noise: float  # standard deviation of uᵀδ for a unit vector u
    left_out: float  # m₁ at the clip of the robust start

    def last_iterate(self, sample_size: float) -> LastIterateLaw:
        """Covariances of the last iterate, with the factor n/(n - p) of small samples."""
        p = len(self.curvature)
        n = max(sample_size, p + 1.0)
        whole = sandwich(self.curvature, self.second_moment, sample_size=n)
        return LastIterateLaw(sampling=n / (n - p) * whole, privacy=self.privacy)

    def largest_bias(self, direction: FloatArray, slope: FloatArray) -> float:
        r"""Largest bias that clipping causes in the coefficient along u, with a = A⁻¹u.

        .. math::
            b = (m_1\kappa + h\kappa_h)\|a - m m^\top a\| + (m_1 + h)|m^\top a|, \qquad
            \kappa = \min\Big(\kappa_0 + 8\,\frac{(|u^\top\delta| - 1.5\,s_\delta\|u\|)_+}
            {m_1(t_H)\,\|a\|},\ \sqrt p\Big)

        If the tail biases a coefficient, it biases the robust start more, as the start's clip t_H
        is narrower. The fit then moves from that start by δ (`moved`). m₁ is `excess`, h is
        `hidden`. κ₀ is 0.3 with an intercept, else 1. κ_h is at least 1; it is √p if hidden records
        (such as rare labels of 1, in similar rows) outweigh all others.
        """
        length = float(np.linalg.norm(slope))
        if length == 0:
            return 0.0
        noise = SURE * self.moved_noise * float(np.linalg.norm(direction))
        seen = max(abs(float(direction @ self.moved)) - noise, 0.0)
        least = LEAST if np.any(self.constant) else 1.0
        # The whole bias is no longer than √p m₁.
        lean = min(least + GAIN * seen / (self.left_out * length), float(np.sqrt(slope.size)))
        alike = float(np.sqrt(slope.size)) if self.rare else max(lean, 1.0)
        along = float(self.constant @ slope)
        rest, along = float(np.linalg.norm(slope - along * self.constant)), abs(along)
        return self.excess * (lean * rest + along) + self.hidden * (alike * rest + along)


def least_squares_law(fit: LeastSquaresFit) -> LeastSquaresLaw:
    """Law of the last iterate from private statistics."""
    p = fit.parameters.size
    curvature = shrunk_curvature(fit.curvature, thin=True)
    curvature = raised(curvature, fit.long_curvature, caution=1.0)
    typical = float(np.trace(curvature)) / p
    ratio = _mean_square(fit) / typical
    shrunk = shrink_to(
        ratio * curvature, fit.second_moment.value, noise_std=fit.second_moment.noise_std
    )
    # Relative deviation of the noise's square: a smaller weight is chance.
    hidden = min(1.0, 2 / np.sqrt(p * (p + 1)))
    spread = np.linalg.norm(fit.curvature.value - np.eye(p) * np.trace(fit.curvature.value) / p)
    expected = fit.curvature.noise_std * np.sqrt(p * (p + 1) / 2)
    weight = max(0.0, 1 - (expected / spread) ** 2) if spread > 0 else 0.0
    noise = fit.curvature.noise_std * float(np.sqrt(max(weight, hidden)))
    constant = np.zeros(p)
    if fit.centre is not None:
        constant = np.linalg.solve(fit.whitening, np.eye(p)[0])
        constant = constant / np.linalg.norm(constant)
    moved, moved_variance = _moved(fit)
    return LeastSquaresLaw(
        curvature=curvature,
        second_moment=floored(shrunk.matrix, 0.02 * ratio * typical),
        privacy=privacy_of_moved(fit, fit.moved, curvature, curvature_noise=noise),
        curvature_noise=noise,
        excess=fit.tail.excess(fit.tail_clip) - fit.tail.missing / (4 * fit.tail_clip),
        # From a deviation below the mean square to a deviation above.
        hidden=(fit.tail.missing + 2 * fit.tail.rare * fit.tail.square[1]) / 4 / fit.tail_clip,
        rare=fit.tail.rare,
        constant=constant,
        moved=moved,
        moved_noise=float(np.sqrt(moved_variance)),
        left_out=max(fit.tail.excess(fit.settings.clip_width * fit.residual_scale), 1e-100),
    )


def _moved(fit: LeastSquaresFit) -> tuple[FloatArray, float]:
    """Whitened change from robust start to last iterate, and its variance along a coordinate.

    Both fits use the same rows: the change has about half the sampling variance of one fit.
    """
    moved = np.asarray(np.linalg.solve(fit.whitening, fit.moved), dtype=np.float64)
    own = float(fit.step_matrices[-1][0, 0] * fit.gradient_noise_stds[-1]) ** 2
    return moved, fit.robust_start_variance + own + 0.5 * _mean_square(fit) / fit.sample_size


def _mean_square(fit: LeastSquaresFit) -> float:
    """tr(B)/p, but at least a quarter of the squared residual scale after the warm-up."""
    found, bound = mean_diagonal(fit.second_moment, fit.mean_square), fit.tail_clip**2
    return float(np.clip(found, min(0.25 * fit.residual_scale**2, bound), bound))


def _along(
    fit: LeastSquaresFit, law: LeastSquaresLaw, direction: FloatArray
) -> LeastSquaresLaw | None:
    """`ShrunkMoments.along` for this law; the limit is at least the value from long rows."""
    unit = direction / np.linalg.norm(direction)
    value, std = float(unit @ fit.curvature.value @ unit), fit.curvature.noise_std
    if value <= VISIBLE * std:
        return None
    long = float(unit @ fit.long_curvature.value @ unit) - fit.long_curvature.noise_std
    limited = max(value + LIMIT * std, long)
    shrunk = float(unit @ law.curvature @ unit)
    if limited >= shrunk:
        return law
    lowered = law.curvature - (shrunk - limited) * np.outer(unit, unit)
    curvature = floored(lowered, 0.5 * limited)
    return replace(
        law,
        curvature=curvature,
        second_moment=scaled_along(law.second_moment, unit, limited / shrunk),
        privacy=privacy_of_moved(fit, fit.moved, curvature, curvature_noise=std),
        curvature_noise=std,
    )


def _shortened(fit: LeastSquaresFit, direction: FloatArray) -> float:
    r"""Bound √(ℓ_u m₂ ℓ p)/R₁ on the bias of the gradient along u that shortened rows cause.

    This is the Cauchy–Schwarz inequality. ℓ_u is the curvature lost along u, beyond noise, and ℓ
    the typical loss. Shortened rows have ‖z‖² of at least R₁², so their share is ℓp/R₁².
    """
    p, unit = fit.parameters.size, direction / np.linalg.norm(direction)
    typical = float(np.trace(fit.curvature.value)) / p
    noise = float(np.hypot(fit.curvature.noise_std, fit.gram.noise_std))
    lost = max(typical - float(unit @ fit.curvature.value @ unit) - noise, 0.0)
    share = max(1 - typical, lost / p) * p / fit.short_cap**2
    return float(np.sqrt(lost * share * _mean_square(fit)))


def _why(fit: LeastSquaresFit, row: FloatArray) -> str:
    """Reason for an unbounded coefficient: hidden by noise, or collinear with others."""
    own = np.linalg.solve(fit.whitening, row)
    seen = float(own @ fit.curvature.value @ own)
    return COLLINEAR if seen > VISIBLE * fit.curvature.noise_std * float(own @ own) else NOISY


def _quantile(tail: ProductTail, level: float) -> float:
    """Smallest t that at least this share of records does not exceed, given the noise, or `inf`."""
    counts, edges = tail.counts.value, tail.edges
    below = np.cumsum(counts)[:-1]
    beyond = counts.sum() - below
    bins = np.arange(1, len(counts))
    hidden = np.hypot((1 - level) * np.sqrt(bins), level * np.sqrt(len(counts) - bins))
    spare = (1 - level) * below - level * beyond - COUNT_MARGIN * tail.counts.noise_std * hidden
    reached = np.flatnonzero(spare >= 0)
    if not reached.size:
        return float(np.inf)
    first = int(reached[0])
    if first == 0:
        return float(edges[0])
    share = spare[first - 1] / (spare[first - 1] - spare[first])
    return float(edges[first - 1] * (edges[first] / edges[first - 1]) ** share)
