"""Confidence intervals from the iterates of private gradient descent.

Each construction turns iterates into m replicates, weighted sums of them, and treats the replicates
as a sample: its mean gives the centre, its spread the half-width, with Student's t on m - 1 degrees
of freedom. Everything is post-processing of released iterates and costs no privacy. The target is
the *empirical minimiser*, least squares on the same data, not the population parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
from privreg.algorithms.samples import Samples, as_samples, moments
from privreg.checks import (
    require_answer,
    require_array,
    require_broadcast,
    require_choice,
    require_count,
    require_instance,
    require_number,
    require_real,
)
from privreg.privacy.budget import Budget
from privreg.theory.full_batch_dpgd import GradientDescentLaw, clipping_bound, gradient_descent_law

FloatArray = NDArray[np.float64]
# The integrands decay exponentially on both sides in the logarithm of the frequency and are
# analytic in a strip of half-width π/2, so the trapezoid rule at this step is exact to rounding.
LOG_STEP = 0.05
LOG_REACH = 38.0
LARGEST_NONCENTRALITY = 1e5


def t_interval_coverage(bias: ArrayLike, covariance: ArrayLike, *, level: float) -> FloatArray:
    r"""Probability that Student's interval from m Gaussian replicates covers its target.

    .. math::
        \Pr\Big[\bar x^2 \le \frac{t^2}{m}\hat\sigma^2\Big] = \Pr[x^\top Q x \le 0], \qquad
        Q = \frac{\mathbf 1\mathbf 1^\top}{m^2}
        - \frac{t^2}{m(m-1)}\Big(I - \frac{\mathbf 1\mathbf 1^\top}m\Big), \quad x \sim N(b, C)

    Parameters
    ----------
    bias : array_like, shape (..., m)
        Means b of the replicates less the target; 0 broadcasts.
    covariance : array_like, shape (..., m, m)
        Covariance C of the replicates, positive definite.
    level : float
        Nominal level of the interval in (0, 1), which sets t on m - 1 degrees of freedom.

    Returns
    -------
    ndarray, shape (...)
        Coverage in [0, 1]; equal to `level` for b = 0 and C a multiple of the identity.

    Raises
    ------
    ValueError
        If the covariance is not positive definite, or the bias is over 300 standard deviations and
        the answer neither plainly 0 nor 1.

    Source
    ------
    brown2024, equation (12), under the law of equations (88) to (94); Imhof (1961), equation (3.2).
    """
    bias, covariance, root, _ = _replicates(bias, covariance)
    m = covariance.shape[-1]
    quantile = _quantile(m, level)
    ones = np.full((m, m), 1.0 / m)
    form = ones / m - quantile**2 / (m * (m - 1)) * (np.eye(m) - ones)
    weights, shifts = _diagonalise(form, bias, root)
    require_answer("bias and covariance", weights)
    inside = np.empty(weights.shape[:-1])
    # One at a time: each needs a grid of its own, as fine as its bias makes the phase turn.
    for index in np.ndindex(inside.shape):
        inside[index] = _nonpositive_probability(weights[index], shifts[index])
    return require_answer("bias and covariance", inside)


def expected_half_width(bias: ArrayLike, covariance: ArrayLike, *, level: float) -> FloatArray:
    r"""Expected half-width of Student's interval from m Gaussian replicates.

    .. math::
        \frac{t}{\sqrt m}\,\mathbb E\,\hat\sigma, \qquad
        \mathbb E\sqrt S = \frac1{2\sqrt\pi}\int_0^\infty \big(1 - \mathbb E e^{-uS}\big)
        u^{-3/2}\,du, \quad S = \hat\sigma^2

    Parameters
    ----------
    bias : array_like, shape (..., m)
        Means of the replicates less any common value.
    covariance : array_like, shape (..., m, m)
        Covariance of the replicates, positive definite.
    level : float
        Nominal level in (0, 1).

    Returns
    -------
    ndarray, shape (...)

    Source
    ------
    Ours: the Laplace transform of a quadratic form in normal variables.
    """
    bias, covariance, root, scale = _replicates(bias, covariance)
    m = covariance.shape[-1]
    form = (np.eye(m) - 1.0 / m) / (m - 1)
    weights, shifts = _diagonalise(form, bias, root)
    frequencies = _log_grid(weights, reach=2 * LOG_REACH)
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.maximum(weights, 0.0)[..., None, :] * frequencies[..., :, None]
        exponent = np.sum(
            0.5 * np.log1p(2 * product) + shifts[..., None, :] * product / (1 + 2 * product),
            axis=-1,
        )
        integrand = -np.expm1(-exponent) / np.sqrt(frequencies)
        deviation = LOG_STEP / (2 * np.sqrt(np.pi)) * np.sum(integrand, axis=-1)
        width = _quantile(m, level) / np.sqrt(m) * deviation * scale
    return require_answer("bias and covariance", width)


def _replicates(
    bias: ArrayLike, covariance: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Bias, covariance and its root for a largest variance of 1, and the scale that was taken."""
    matrix = require_array("covariance", covariance, shape=(..., None, None))
    if matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] < 2:
        raise ValueError(f"covariance must have shape (..., m, m), m >= 2, got {matrix.shape}")
    largest = np.max(np.diagonal(matrix, axis1=-2, axis2=-1), axis=-1)
    if not np.all(largest > 0):
        raise ValueError("covariance must be positive definite, got a diagonal that is not")
    if np.max(np.abs(matrix - np.swapaxes(matrix, -1, -2))) > 1e-9 * np.max(largest):
        raise ValueError("covariance must be symmetric, got another matrix")
    matrix = matrix / largest[..., None, None]
    try:
        root = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "covariance must be positive definite, got a matrix that is not"
        ) from error
    shift = require_real("bias", bias)
    if require_broadcast(bias=shift, covariance=matrix[..., 0]) != matrix.shape[:-1]:
        raise ValueError(f"bias must broadcast to {matrix.shape[:-1]}, got {shift.shape}")
    scale = np.sqrt(largest)
    with np.errstate(over="ignore"):
        relative = np.broadcast_to(shift, matrix.shape[:-1]) / scale[..., None]
    return require_answer("bias and covariance", relative), matrix, root, scale


def _diagonalise(
    form: FloatArray, bias: FloatArray, root: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights and noncentralities of the form as a sum of weighted noncentral chi-squares."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            weights, vectors = np.linalg.eigh(np.swapaxes(root, -1, -2) @ form @ root)
            standard = np.linalg.solve(root, bias[..., None])
            shifts = (np.swapaxes(vectors, -1, -2) @ standard)[..., 0] ** 2
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be well conditioned, got a nearly singular one") from None
    return weights, require_answer("bias and covariance", shifts)


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


def _quantile(replicates: int, level: float) -> float:
    level = require_number("level", level, above=0, below=1)
    return float(stdtrit(replicates - 1, (1 + level) / 2))


Construction = Literal["batch_means", "checkpoints", "independent_runs"]
CONSTRUCTIONS: tuple[Construction, ...] = get_args(Construction)


@dataclass(frozen=True)
class Interval:
    """Two-sided intervals, centre ± half-width, one for each coordinate.

    Attributes
    ----------
    centre, half_width : ndarray, shape (..., p)
    degrees_of_freedom : int
        Of Student's t.
    level : float
        Nominal coverage of the empirical minimiser.
    """

    centre: FloatArray
    half_width: FloatArray
    degrees_of_freedom: int
    level: float

    def covers(self, target: ArrayLike) -> NDArray[np.bool_]:
        """Whether each interval contains the finite target, shape (..., p)."""
        point = require_real("target", target)
        require_broadcast(target=point, centre=self.centre)
        with np.errstate(over="ignore"):
            return np.abs(self.centre - point) <= self.half_width

    @property
    def length(self) -> FloatArray:
        """Full length, shape (..., p)."""
        return 2 * self.half_width


def replicate_interval(replicates: ArrayLike, *, level: float) -> Interval:
    r"""Student's interval from replicates.

    .. math::
        \bar\theta_j \pm t_{(1+\ell)/2,\,m-1}\,\hat\sigma_j/\sqrt m, \qquad
        \hat\sigma_j^2 = \frac1{m-1}\sum_{l=1}^m(\theta_j^{(l)} - \bar\theta_j)^2

    Parameters
    ----------
    replicates : array_like, shape (..., m, p)
        θ^(l), two or more.
    level : float
        ℓ in (0, 1).

    Returns
    -------
    Interval
        Exact for independent, identically distributed Gaussian replicates with mean θ̂_j.

    Source
    ------
    brown2024, equation (12), with t the *upper* quantile; the paper calls it the α-th percentile.

    Examples
    --------
    >>> found = replicate_interval([[1.0], [2.0], [3.0]], level=0.95)
    >>> found.centre.tolist(), found.half_width.round(3).tolist()
    ([2.0], [2.484])
    """
    sample = require_array("replicates", replicates, shape=(..., None, None))
    if sample.shape[-2] < 2:
        raise ValueError(f"replicates must have shape (..., m, p) with m >= 2, got {sample.shape}")
    return _interval("replicates", sample, level)


def _interval(name: str, sample: FloatArray, level: float) -> Interval:
    count = sample.shape[-2]
    scale = t_quantile(count, level=level) / np.sqrt(count)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, spread = sample.mean(axis=-2), scale * sample.std(axis=-2, ddof=1)
    return Interval(
        centre=require_answer(name, centre),
        half_width=require_answer(name, spread),
        degrees_of_freedom=count - 1,
        level=level,
    )


def independent_runs(iterates: ArrayLike, *, level: float, burn_in: int = 20) -> Interval:
    """Interval from m independent runs: each run's average after the burn-in is a replicate.

    Parameters
    ----------
    iterates : array_like, shape (..., m, T, p)
        θ_1..θ_T of each run, T more than `burn_in`. The runs' noise must be scaled for all m T
        gradients.
    level : float
        Nominal coverage in (0, 1).
    burn_in : int
        First iterates of every run left out; T - 1 keeps the final iterate alone.

    Returns
    -------
    Interval
        For the empirical minimiser, arrays (..., p).

    Source
    ------
    brown2024, section 3 (final iterates) and section 4.2 (averages after 20 iterates).
    """
    runs = require_array("iterates", iterates, shape=(..., None, None, None))
    if runs.shape[-3] < 2:
        raise ValueError(f"iterates must have shape (..., m, T, p) with m >= 2, got {runs.shape}")
    weights = average_weights(runs.shape[-2], burn_in=burn_in)
    return _from_iterates(weights, runs, level, squeeze=True)


def checkpoints(
    iterates: ArrayLike, *, level: float, replicates: int = 10, burn_in: int = 20
) -> Interval:
    """Interval from equally spaced iterates of one run, burn_in + l L with L = ⌊(N - burn_in)/m⌋.

    Parameters
    ----------
    iterates, level, replicates, burn_in
        As for `batch_means`.

    Returns
    -------
    Interval
        For the empirical minimiser, arrays (..., p).

    Source
    ------
    brown2024, section 3, equation (87).
    """
    path = require_array("iterates", iterates, shape=(..., None, None))
    weights = checkpoint_weights(path.shape[-2], replicates=replicates, burn_in=burn_in)
    return _from_iterates(weights, path, level)


def batch_means(
    iterates: ArrayLike, *, level: float, replicates: int = 10, burn_in: int = 20
) -> Interval:
    """Interval from the averages of consecutive blocks of one run.

    Parameters
    ----------
    iterates : array_like, shape (..., N, p)
        θ_1..θ_N.
    level : float
        Nominal coverage in (0, 1). Neighbouring blocks are correlated, so the actual coverage is
        below it for short blocks: `coverage.t_interval_coverage` says by how much.
    replicates : int
        m, at least 2.
    burn_in : int
        First iterates left out; block l is the L iterates after burn_in + (l - 1) L.

    Returns
    -------
    Interval
        For the empirical minimiser, arrays (..., p).

    Source
    ------
    brown2024, section 3 (no formal guarantee is claimed) and section 4.2.
    """
    path = require_array("iterates", iterates, shape=(..., None, None))
    weights = batch_mean_weights(path.shape[-2], replicates=replicates, burn_in=burn_in)
    return _from_iterates(weights, path, level)


def average_weights(steps: int, *, burn_in: int = 20) -> FloatArray:
    """Weights (1, T) of the average of the iterates after the burn-in."""
    steps, burn_in = require_count("steps", steps), require_count("burn_in", burn_in, least=0)
    if burn_in >= steps:
        raise ValueError(f"burn_in must be at least 0 and less than {steps}, got {burn_in}")
    weights = np.zeros((1, steps))
    weights[0, burn_in:] = 1 / (steps - burn_in)
    return weights


def checkpoint_weights(steps: int, *, replicates: int = 10, burn_in: int = 20) -> FloatArray:
    """Weights (m, N) that pick the last iterate of each block."""
    block = _block_length(steps, replicates, burn_in)
    weights = np.zeros((replicates, steps))
    order = np.arange(replicates)
    weights[order, burn_in + (order + 1) * block - 1] = 1
    return weights


def batch_mean_weights(steps: int, *, replicates: int = 10, burn_in: int = 20) -> FloatArray:
    """Weights (m, N) that average each block."""
    block = _block_length(steps, replicates, burn_in)
    weights = np.zeros((replicates, steps))
    used = slice(burn_in, burn_in + replicates * block)
    weights[:, used] = np.kron(np.eye(replicates), np.full(block, 1 / block))
    return weights


def replicate_weights(
    construction: Construction, *, gradients: int, replicates: int = 10, burn_in: int = 20
) -> FloatArray:
    """Weights (m, N) of a path's iterates in its replicates, as for `quality.interval_quality`.

    For "independent_runs" the shape is (1, ⌊N / m⌋): one run makes one replicate.
    """
    require_choice("construction", construction, CONSTRUCTIONS)
    count = require_count("gradients", gradients)
    if construction == "independent_runs":
        each = count // require_count("replicates", replicates, least=2)
        if each <= burn_in:
            raise ValueError(
                f"gradients must be at least {replicates * (burn_in + 1)} for {replicates} runs "
                f"longer than a burn-in of {burn_in}, got {count}"
            )
        return average_weights(each, burn_in=burn_in)
    make = batch_mean_weights if construction == "batch_means" else checkpoint_weights
    return make(count, replicates=replicates, burn_in=burn_in)


def t_quantile(replicates: int, *, level: float) -> float:
    """Upper (1 + level)/2 quantile of Student's t on m - 1 degrees of freedom."""
    level = require_number("level", level, above=0, below=1)
    return float(stdtrit(replicates - 1, (1 + level) / 2))


def _block_length(steps: int, replicates: int, burn_in: int) -> int:
    steps, burn_in = require_count("steps", steps), require_count("burn_in", burn_in, least=0)
    replicates = require_count("replicates", replicates, least=2)
    block = (steps - burn_in) // replicates
    if block < 1:
        raise ValueError(
            f"burn_in must be at most {steps - replicates} for {replicates} replicates of "
            f"{steps} iterates, got {burn_in}"
        )
    return block


def _from_iterates(
    weights: FloatArray, path: FloatArray, level: float, *, squeeze: bool = False
) -> Interval:
    with np.errstate(over="ignore", invalid="ignore"):
        sample = weights @ path
    return _interval("iterates", sample[..., 0, :] if squeeze else sample, level)


@dataclass(frozen=True)
class IntervalQuality:
    """Exact quality of intervals for the empirical minimiser, feature by feature."""

    coverage: FloatArray  # probability that an interval contains the minimiser, (p,)
    expected_length: FloatArray  # full length in units of a coefficient, (p,)
    clipping: float = 0.0  # probability that any gradient clips; `coverage` is off by no more


def interval_quality(
    law: GradientDescentLaw,
    *,
    gradients: int,
    construction: Construction = "batch_means",
    replicates: int = 10,
    burn_in: int = 20,
    level: float = 0.95,
) -> IntervalQuality:
    r"""Exact coverage and expected length under the unclipped law of the iterates.

    .. math::
        \theta^{(l)} = \sum_t W_{lt}\theta_t, \qquad
        \theta_j^{(\cdot)} - \hat\theta_j \sim N(b_j, C_j)

    A construction's replicates are weighted sums of Gaussian iterates, hence Gaussian with bias
    b_j, shape (m,), and covariance C_j, shape (m, m); Student's interval from them covers with the
    probability of `coverage.t_interval_coverage`.

    Parameters
    ----------
    law : GradientDescentLaw
        Law of the iterates, its noise scaled for `gradients`.
    gradients : int
        TOTAL number N of noisy gradients, over all runs.
    construction : {"batch_means", "checkpoints", "independent_runs"}
        How replicates are made; "independent_runs" are m runs of ⌊N / m⌋ steps each.
    replicates : int
        m, at least 2.
    burn_in : int
        First iterates left out, of the path or of every run.
    level : float
        Nominal coverage in (0, 1).

    Returns
    -------
    IntervalQuality
        With `clipping` 0: the law knows no clipping.

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
    brown2024, sections 3 and 4.2; its coverage is simulated, the exact one is ours.
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
    """Exact coverage and expected length of the intervals that a budget buys on a data set.

    Parameters
    ----------
    samples : Samples
        Data with more rows than features.
    budget : Budget
        Budget of all N gradients together, finite.
    clip_norm : float
        Clipping bound γ on a row's gradient norm, at least 1e-50 and at most 1e50.
    step_size : float
        η, at least 1e-50 and at most 1e50.
    gradients : int
        TOTAL number N of noisy gradients, over all runs.
    construction, replicates, burn_in, level
        As for `interval_quality`.
    start : array_like, shape (p,), optional
        θ_0, 0 by default.

    Returns
    -------
    IntervalQuality
        Coverage and length are exact without clipping; `clipping` bounds what it may change.

    Guarantee
    ---------
    None: computed from the data without noise. It is for choosing parameters on public or
    synthetic data, or for those who may see the data.

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
    require_instance("budget", budget, Budget)
    bound = require_number("clip_norm", clip_norm, least=1e-50, most=1e50)
    rho = require_number("budget.rho", budget.rho, above=0)
    total = require_count("gradients", gradients)
    samples = as_samples(samples)
    gram, moment = moments(samples)
    origin = None if start is None else require_array("start", start, shape=(samples.dimension,))
    law = gradient_descent_law(
        gram,
        moment,
        sample_size=samples.sample_size,
        step_size=require_number("step_size", step_size, least=1e-50, most=1e50),
        gradient_noise_std=float(
            full_batch_noise_std(
                clip_norm=bound,
                rho=rho,
                sample_size=samples.sample_size,
                gradients=total,
                neighbours=budget.neighbours,
            )
        ),
        start=origin,
    )
    if np.max(np.abs(law.contraction)) >= 1:
        raise ValueError(f"step_size must be small enough for descent to settle, got {step_size}")
    found = interval_quality(
        law,
        gradients=total,
        construction=construction,
        replicates=replicates,
        burn_in=burn_in,
        level=level,
    )
    runs = replicates if construction == "independent_runs" else 1
    clipped = runs * _expected_clips(law, samples, clip_norm=bound, steps=total // runs)
    return IntervalQuality(found.coverage, found.expected_length, min(1.0, clipped))


def _expected_clips(
    law: GradientDescentLaw, samples: Samples, *, clip_norm: float, steps: int
) -> float:
    """Expected number of gradients that clip along one unclipped path."""
    return sum(
        steps
        * len(labels)
        * clipping_bound(law, features, labels, clip_norm=clip_norm, steps=steps)[1]
        for features, labels, _ in samples.chunks()
    )
