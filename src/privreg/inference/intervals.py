"""Confidence intervals from the iterates of private gradient descent, and their exact coverage.

Each construction turns iterates into m replicates (weighted sums) and treats the replicates as a
sample. Intervals are post-processing of released iterates and cost no privacy. The target is the
*empirical minimiser*, least squares on the same data, not the population parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
from privreg.algorithms.samples import Samples, as_samples, moments
from privreg.algorithms.whitened_descent import require_budget
from privreg.checks import (
    require_array,
    require_broadcast,
    require_choice,
    require_count,
    require_instance,
    require_number,
    require_real,
    require_scale,
)
from privreg.inference.population_intervals import TwoSided
from privreg.privacy.budget import Budget
from privreg.theory.full_batch_dpgd import GradientDescentLaw, clipping_bound, gradient_descent_law

FloatArray = NDArray[np.float64]
# The integrands decay exponentially on both sides in the logarithm of the frequency and are
# analytic in a strip of half-width π/2, so the trapezoid rule at this step is exact to rounding.
LOG_STEP = 0.05
LOG_REACH = 38.0
LARGEST_NONCENTRALITY = 1e5
Construction = Literal["batch_means", "checkpoints", "independent_runs"]
CONSTRUCTIONS: tuple[Construction, ...] = get_args(Construction)


@dataclass(frozen=True)
class Interval(TwoSided):
    """Two-sided intervals, centre ± half-width, one for each coordinate."""

    centre: FloatArray  # (..., p)
    half_width: FloatArray
    degrees_of_freedom: int  # of Student's t
    level: float  # nominal coverage of the empirical minimiser


def replicate_interval(replicates: ArrayLike, *, level: float) -> Interval:
    r"""Student's interval from replicates.

    .. math::
        \bar\theta_j \pm t_{(1+\ell)/2,\,m-1}\,\hat\sigma_j/\sqrt m, \qquad
        \hat\sigma_j^2 = \frac1{m-1}\sum_{l=1}^m(\theta_j^{(l)} - \bar\theta_j)^2

    for m ≥ 2 replicates, shape (..., m, p), and a level ℓ in (0, 1). The interval is exact if the
    replicates are independent, identically distributed Gaussians with the target θ̂ as mean.

    Source
    ------
    brown2024, equation (12), with t the (1 + ℓ)/2 quantile; the paper calls it the α-th percentile.

    Examples
    --------
    >>> found = replicate_interval([[1.0], [2.0], [3.0]], level=0.95)
    >>> found.centre.tolist(), found.half_width.round(3).tolist()
    ([2.0], [2.484])
    """
    sample = require_array("replicates", replicates, shape=(..., None, None))
    count = sample.shape[-2]
    if count < 2:
        raise ValueError(f"replicates must have shape (..., m, p) with m >= 2, got {sample.shape}")
    scale = t_quantile(count, level=level) / np.sqrt(count)
    return Interval(
        centre=sample.mean(axis=-2),
        half_width=scale * sample.std(axis=-2, ddof=1),
        degrees_of_freedom=count - 1,
        level=level,
    )


def batch_means(
    iterates: ArrayLike, *, level: float, replicates: int = 10, burn_in: int = 20
) -> Interval:
    """Interval from the averages of consecutive blocks of one run.

    Parameters
    ----------
    iterates : array_like, shape (..., N, p)
        Iterates θ_1, ..., θ_N of one run.
    level : float
        Nominal coverage in (0, 1). Neighbouring blocks are correlated, so actual coverage is lower
        for short blocks; `interval_quality` computes it.
    replicates : int
        Number m of replicates, at least 2.
    burn_in : int
        Number of first iterates left out. Each block has L = ⌊(N - burn_in)/m⌋ iterates.

    Source
    ------
    brown2024, section 3 (no formal guarantee is claimed) and section 4.2.
    """
    return _of_one_run("batch_means", iterates, level, replicates, burn_in)


def checkpoints(
    iterates: ArrayLike, *, level: float, replicates: int = 10, burn_in: int = 20
) -> Interval:
    """Interval from m iterates of one run: those of steps burn_in + l L for l = 1, ..., m.

    m is `replicates`, and L is ⌊(N - burn_in)/m⌋. Parameters are as for `batch_means`.

    Source
    ------
    brown2024, section 3, equation (87).
    """
    return _of_one_run("checkpoints", iterates, level, replicates, burn_in)


def independent_runs(iterates: ArrayLike, *, level: float, burn_in: int = 20) -> Interval:
    """Interval from m independent runs: each run's average after the burn-in is a replicate.

    Iterates, shape (..., m, T, p), are θ_1, ..., θ_T of each run. The noise must be scaled for all
    m T gradients. A burn-in of T - 1 keeps only the final iterate.

    Source
    ------
    brown2024, section 3 (final iterates) and section 4.2 (averages after 20 iterates).
    """
    runs = require_array("iterates", iterates, shape=(..., None, None, None))
    m, steps = runs.shape[-3:-1]
    weights = replicate_weights(
        "independent_runs", gradients=m * steps, replicates=m, burn_in=burn_in
    )
    return replicate_interval((weights @ runs)[..., 0, :], level=level)


@dataclass(frozen=True)
class IntervalQuality:
    """Exact coverage and expected length of intervals for the empirical minimiser, by feature."""

    coverage: FloatArray  # probability that an interval contains the minimiser, (p,)
    expected_length: FloatArray  # full length in units of a coefficient, (p,)
    clipping: float = 0.0  # probability that any gradient clips; bounds the error of `coverage`


def interval_quality(
    law: GradientDescentLaw,
    *,
    gradients: int,
    construction: Construction = "batch_means",
    replicates: int = 10,
    burn_in: int = 20,
    level: float = 0.95,
) -> IntervalQuality:
    r"""Exact coverage and expected length of intervals if no gradient is clipped.

    .. math::
        \theta^{(l)} = \sum_t W_{lt}\theta_t, \qquad
        \theta_j^{(\cdot)} - \hat\theta_j \sim N(b_j, C_j)

    A row of W holds the weights of iterates in a replicate. For coefficient j, the m replicates'
    bias b_j from the minimiser θ̂ and their covariance C_j enter `t_interval_coverage`.

    Parameters
    ----------
    law : GradientDescentLaw
        Law of the iterates, with noise scaled for `gradients`.
    gradients : int
        Total number N of noisy gradients, over all runs.
    construction : {"batch_means", "checkpoints", "independent_runs"}
        Kind of replicates; "independent_runs" are m runs of ⌊N / m⌋ steps each.
    replicates, burn_in, level
        As for `batch_means`; the burn-in applies to every run.

    Examples
    --------
    >>> import numpy as np
    >>> law = GradientDescentLaw(
    ...     eigenvalues=np.ones(2), eigenvectors=np.eye(2), minimiser=np.array([0.6, 0.8]),
    ...     start=np.zeros(2), step_size=0.25, gradient_noise_std=0.01,
    ... )
    >>> found = interval_quality(law, gradients=500)
    >>> [round(float(value), 3) for value in found.coverage]
    [0.943, 0.943]

    Source
    ------
    brown2024, sections 3 and 4.2; the paper simulates coverage, the exact calculation is ours.
    """
    require_instance("law", law, GradientDescentLaw)
    weights = replicate_weights(
        construction, gradients=gradients, replicates=replicates, burn_in=burn_in
    )
    bias, covariance = law.functionals(weights)
    if construction == "independent_runs":
        bias = np.repeat(bias, replicates, axis=-1)
        covariance = covariance * np.eye(replicates)
    return IntervalQuality(
        coverage=t_interval_coverage(bias, covariance, level=level),
        expected_length=2 * expected_half_width(bias, covariance, level=level),
    )


def interval_quality_of_data(
    samples: Samples,
    *,
    budget: Budget,
    clip_norm: float,
    step_size: float,
    gradients: int,
    construction: Construction = "batch_means",
    replicates: int = 10,
    burn_in: int = 20,
    level: float = 0.95,
    start: ArrayLike | None = None,
) -> IntervalQuality:
    """Coverage and length of intervals on a data set under a given budget (`interval_quality`).

    The result is exact if no gradient is clipped; else `clipping` bounds the error of `coverage`.
    It is not private: use it to choose parameters on public or synthetic data.

    Parameters
    ----------
    samples : Samples
        Data with more rows than features.
    budget : Budget
        Budget of all N gradients together, finite.
    clip_norm, step_size : float
        Clipping bound γ on a row's gradient norm, and step size η.
    gradients, construction, replicates, burn_in, level
        As for `interval_quality`; the number N of gradients sets the noise.
    start : array_like, shape (p,), optional
        Starting point θ_0, 0 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from privreg.algorithms.gaussian_samples import GaussianSamples
    >>> data = GaussianSamples(
    ...     4000, target=np.full(3, 3**-0.5), label_noise_std=0.5, seed=np.random.SeedSequence(7)
    ... )
    >>> found = interval_quality_of_data(
    ...     data, budget=Budget.zcdp(0.5), clip_norm=30.0, step_size=0.25, gradients=300
    ... )
    >>> bool(np.all(found.coverage > 0.9)), found.clipping < 1e-3
    (True, True)

    Source
    ------
    brown2024, sections 3 and 4.2, Lemmas 2.1 and 2.2.
    """
    clip_norm, samples = require_scale("clip_norm", clip_norm), as_samples(samples)
    noise = full_batch_noise_std(
        clip_norm=clip_norm,
        rho=require_budget(budget).rho,
        sample_size=samples.sample_size,
        gradients=gradients,
        neighbours=budget.neighbours,
    )
    law = gradient_descent_law(
        *moments(samples),
        sample_size=samples.sample_size,
        step_size=step_size,
        gradient_noise_std=float(noise),
        start=start,
    )
    if np.max(np.abs(law.contraction)) >= 1:
        raise ValueError(f"step_size must be small enough for descent to settle, got {step_size}")
    found = interval_quality(
        law,
        gradients=gradients,
        construction=construction,
        replicates=replicates,
        burn_in=burn_in,
        level=level,
    )
    runs = replicates if construction == "independent_runs" else 1
    steps = gradients // runs
    # Expected number of gradients that clip along one unclipped path.
    clipped = sum(
        steps * len(y) * clipping_bound(law, x, y, clip_norm=clip_norm, steps=steps)[1]
        for x, y, _ in samples.chunks()
    )
    return IntervalQuality(found.coverage, found.expected_length, min(1.0, runs * clipped))


def t_interval_coverage(bias: ArrayLike, covariance: ArrayLike, *, level: float) -> FloatArray:
    r"""Probability that Student's interval from m Gaussian replicates x covers the target.

    .. math::
        \Pr\Big[\bar x^2 \le \frac{t^2}{m}\hat\sigma^2\Big] = \Pr[x^\top Q x \le 0], \qquad
        Q = \frac{\mathbf 1\mathbf 1^\top}{m^2}
        - \frac{t^2}{m(m-1)}\Big(I - \frac{\mathbf 1\mathbf 1^\top}m\Big), \quad x \sim N(b, C)

    Parameters
    ----------
    bias : array_like, shape (..., m)
        Means b of the replicates minus the target; may be the scalar 0. Biases above 300 standard
        deviations are refused unless the answer is clearly 0 or 1.
    covariance : array_like, shape (..., m, m)
        Covariance C of the replicates, positive definite.
    level : float
        Level in (0, 1) of the Student quantile t; the coverage if b = 0 and C is a multiple of I.

    Source
    ------
    brown2024, equation (12), under the law of equations (88) to (94); Imhof (1961), equation (3.2).
    """
    bias, root, _, quantile = _replicates(bias, covariance, level)
    m = bias.shape[-1]
    ones = np.full((m, m), 1.0 / m)
    form = ones / m - quantile**2 / (m * (m - 1)) * (np.eye(m) - ones)
    weights, shifts = _diagonalise(form, bias, root)
    inside = np.empty(weights.shape[:-1])
    # One at a time: each needs a grid of its own, as fine as its bias makes the phase turn.
    for index in np.ndindex(inside.shape):
        inside[index] = _nonpositive_probability(weights[index], shifts[index])
    return inside


def expected_half_width(bias: ArrayLike, covariance: ArrayLike, *, level: float) -> FloatArray:
    r"""Expected half-width of Student's interval from m Gaussian replicates, shape (...).

    .. math::
        \frac{t}{\sqrt m}\,\mathbb E\,\hat\sigma, \qquad
        \mathbb E\sqrt S = \frac1{2\sqrt\pi}\int_0^\infty \big(1 - \mathbb E e^{-uS}\big)
        u^{-3/2}\,du, \quad S = \hat\sigma^2

    Arguments are as in `t_interval_coverage`; adding one number to all biases changes nothing.
    Source: ours, the Laplace transform of a quadratic form in normal variables.
    """
    bias, root, scale, quantile = _replicates(bias, covariance, level)
    m = bias.shape[-1]
    form = (np.eye(m) - 1.0 / m) / (m - 1)
    weights, shifts = _diagonalise(form, bias, root)
    frequencies = _log_grid(weights, reach=2 * LOG_REACH)
    product = np.maximum(weights, 0.0)[..., None, :] * frequencies[..., :, None]
    exponent = np.sum(
        0.5 * np.log1p(2 * product) + shifts[..., None, :] * product / (1 + 2 * product), axis=-1
    )
    integrand = -np.expm1(-exponent) / np.sqrt(frequencies)
    deviation = LOG_STEP / (2 * np.sqrt(np.pi)) * np.sum(integrand, axis=-1)
    return np.asarray(quantile / np.sqrt(m) * deviation * scale)


def replicate_weights(
    construction: Construction, *, gradients: int, replicates: int = 10, burn_in: int = 20
) -> FloatArray:
    """Weights, shape (m, N), of one run's iterates in the replicates.

    Batch means average blocks of ⌊(N - burn_in)/m⌋ iterates after the burn-in. Checkpoints pick the
    last iterate of each block. For "independent_runs" the shape is (1, ⌊N / m⌋): each run gives one
    replicate, the average of its iterates after the burn-in.
    """
    require_choice("construction", construction, CONSTRUCTIONS)
    count = require_count("gradients", gradients)
    replicates = require_count("replicates", replicates, least=2)
    burn_in = require_count("burn_in", burn_in, least=0)
    if construction == "independent_runs":
        steps = count // replicates
        if burn_in >= steps:
            raise ValueError(
                f"burn_in must be less than {steps}, the number of steps in each of "
                f"{replicates} runs, got {burn_in}"
            )
        weights = np.zeros((1, steps))
        weights[0, burn_in:] = 1 / (steps - burn_in)
        return weights
    block = (count - burn_in) // replicates
    if block < 1:
        raise ValueError(
            f"burn_in must be at most {count - replicates} for {replicates} replicates from "
            f"{count} iterates, got {burn_in}"
        )
    weights, order = np.zeros((replicates, count)), np.arange(replicates)
    if construction == "checkpoints":
        weights[order, burn_in + (order + 1) * block - 1] = 1
    else:
        used = slice(burn_in, burn_in + replicates * block)
        weights[:, used] = np.kron(np.eye(replicates), np.full(block, 1 / block))
    return weights


def t_quantile(replicates: int, *, level: float) -> float:
    """The (1 + level)/2 quantile of Student's t with `replicates` - 1 degrees of freedom."""
    return float(stdtrit(replicates - 1, _below_upper_end(level)))


def _below_upper_end(level: float) -> float:
    return (1 + require_number("level", level, above=0, below=1)) / 2


def _of_one_run(
    construction: Construction, iterates: ArrayLike, level: float, replicates: int, burn_in: int
) -> Interval:
    path = require_array("iterates", iterates, shape=(..., None, None))
    weights = replicate_weights(
        construction, gradients=path.shape[-2], replicates=replicates, burn_in=burn_in
    )
    return replicate_interval(weights @ path, level=level)


def _replicates(
    bias: ArrayLike, covariance: ArrayLike, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Bias and covariance root (scaled to a largest variance of 1), the scale, and Student's t."""
    matrix = require_array("covariance", covariance, shape=(..., None, None))
    m = matrix.shape[-1]
    if m != matrix.shape[-2] or m < 2:
        raise ValueError(f"covariance must have shape (..., m, m), m >= 2, got {matrix.shape}")
    largest = np.max(np.diagonal(matrix, axis1=-2, axis2=-1), axis=-1)
    if not np.all(largest > 0):
        raise ValueError("covariance must be positive definite, got a diagonal entry of 0 or less")
    if np.max(np.abs(matrix - np.swapaxes(matrix, -1, -2))) > 1e-9 * np.max(largest):
        raise ValueError("covariance must be symmetric, got an asymmetric matrix")
    try:
        root = np.asarray(np.linalg.cholesky(matrix / largest[..., None, None]), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be positive definite, got another matrix") from None
    shift = require_real("bias", bias)
    if require_broadcast(bias=shift, covariance=matrix[..., 0]) != matrix.shape[:-1]:
        raise ValueError(f"bias must broadcast to {matrix.shape[:-1]}, got {shift.shape}")
    scale = np.sqrt(largest)
    # Not by `t_quantile`, since exact coverages are compared with intervals that use it.
    quantile = stdtrit(m - 1, _below_upper_end(level))
    relative = np.broadcast_to(shift, matrix.shape[:-1]) / scale[..., None]
    return relative, root, scale, float(quantile)


def _diagonalise(
    form: FloatArray, bias: FloatArray, root: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights and noncentralities of the form as a sum of weighted noncentral chi-squares."""
    weights, vectors = np.linalg.eigh(np.swapaxes(root, -1, -2) @ form @ root)
    standard = np.linalg.solve(root, bias[..., None])
    return weights, (np.swapaxes(vectors, -1, -2) @ standard)[..., 0] ** 2


def _nonpositive_probability(weights: FloatArray, shifts: FloatArray) -> float:
    r"""P[Σ w_k χ²_1(δ_k²) ≤ 0] by Imhof's ½ - (1/π) ∫ sin θ(u) / (u ρ(u)) du, in s = ln u."""
    noncentrality = float(np.sum(shifts))
    if noncentrality > LARGEST_NONCENTRALITY:
        mean = np.sum(weights * (1 + shifts))
        deviation = np.sqrt(2 * np.sum(weights**2 * (1 + 2 * shifts)))
        if abs(mean) > 40 * deviation:
            return float(mean < 0)
        raise ValueError(
            f"bias must be within {np.sqrt(LARGEST_NONCENTRALITY):.0f} standard deviations of 0, "
            f"got {np.sqrt(noncentrality):.3g}"
        )
    step = min(LOG_STEP, 0.5 / np.sqrt(max(noncentrality, 1.0)))
    product = weights * _log_grid(weights, step=step)[:, None]
    square = product**2
    angle = 0.5 * np.sum(np.arctan(product) + shifts * product / (1 + square), axis=-1)
    log_modulus = np.sum(0.25 * np.log1p(square) + 0.5 * shifts * square / (1 + square), axis=-1)
    integral = step * np.sum(np.sin(angle) * np.exp(-log_modulus))
    return float(np.clip(0.5 - integral / np.pi, 0.0, 1.0))


def _log_grid(
    weights: FloatArray, *, step: float = LOG_STEP, reach: float = LOG_REACH
) -> FloatArray:
    """Frequencies, equally spaced in logarithm about the inverse of the largest weight."""
    scale = np.max(np.abs(weights), axis=-1, keepdims=True)
    return np.exp(np.arange(-reach, reach, step)) / scale
