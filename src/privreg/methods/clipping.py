"""Clipped residuals: their moments, errors in finite samples, and shifts of the target."""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtr, erf, eval_hermitenorm, factorial, gammaincinv, gammaln, xlogy

from privreg.checks import frozen
from privreg.kernels import inner_product
from privreg.methods.problem import MOST_SHIFT, WHOLE_LAWS, LabelNoiseLaw, Problem, Rows

FloatArray = NDArray[np.float64]
FIRST_CALLS, _calls = 512, count()
# Clips of this many standard deviations remove less than the last bit of what they leave.
UNCLIPPED = 9.0
ROOT_HALF = sqrt(0.5)
# A mean error is treated as Gaussian if its kurtosis changes the drift by a third of this.
CENTRED = 1e-2
# Density of |r| at 0 for a residual r of variance 1.
DENSITY = sqrt(2 / np.pi)
# A larger energy has diverged; this value replaces it, so that residual variances are finite.
LARGEST = 1e100
# Taylor series of the share in the ratio of width to deviation, about points 32 to a unit: the
# first term that is left out is at most 1e-16 of the value, and 2e-15 of the density.
POINTS, DEGREE = 32, 7
# Degrees of freedom ν of label noise.
DEGREES = {"student_t5": 5.0, "student_t3": 3.0}
# Probabilities at which the scales are cut, the largest scales first: their cells are the finest.
CUTS = (0.0, 0.002, 0.015, 0.06, 0.16, 0.32, 0.52, 0.72, 0.88, 1.0)
# Laplace's density has a peak, which the smallest scales make.
PEAKED = (*CUTS[:-2], 0.8, 0.88, 0.93, 0.96, 0.98, 0.993, 1.0)


@lru_cache(maxsize=8)
def whole_labels(law: str) -> tuple[FloatArray, FloatArray]:
    """Labels (0 and 1, or counts), standardised to mean 0 and variance 1, with probabilities."""
    mean = float(law.partition("_")[2])
    numbers, chances = np.arange(2.0), np.array([1 - mean, mean])
    if law.startswith("poisson"):
        numbers = np.arange(max(mean - 8 * sqrt(mean), 0) // 1, mean + 8 * sqrt(mean) + 8)
        chances = np.exp(xlogy(numbers, mean) - mean - gammaln(numbers + 1))
        chances /= chances.sum()
    values = numbers - mean
    return frozen(np.asarray(values / sqrt(values**2 @ chances))), frozen(chances)


@lru_cache(maxsize=8)
def squared_scales(law: LabelNoiseLaw) -> tuple[FloatArray, FloatArray]:
    r"""Squared scales S² of label noise and their probabilities, (cells,) each.

    .. math:: \xi = \sigma S Z, \qquad Z \sim N(0, 1),\quad \mathbb E S^2 = 1 \text{ exactly}

    Student's t has :math:`S^2 = (\nu - 2) / \chi^2_\nu`; Laplace's law has an exponential S². Each
    whole-number label has its own scale S, its distance from the mean. Each cell of probability is
    represented by the conditional mean of S² in it. For Student's t this mean follows from

    .. math:: \mathbb E\Big[\frac{\nu - 2}{\chi^2_\nu};\ a < \chi^2_\nu < b\Big]
        = \Pr(a < \chi^2_{\nu - 2} < b),

    For an exponential S², between its upper quantiles at u and v, it follows from

    .. math:: \mathbb E[S^2; u < e^{-S^2} < v] = v - v \log v - u + u \log u.
    """
    if law == "gaussian":
        return frozen(np.ones(1)), frozen(np.ones(1))
    if law.startswith(WHOLE_LAWS):
        values, chances = whole_labels(law)
        return frozen(values**2), chances
    cuts = np.array(PEAKED if law == "laplace" else CUTS)
    if law == "laplace":
        parts = cuts - xlogy(cuts, cuts)
    else:
        degrees = DEGREES[law]
        parts = chdtr(degrees - 2, 2 * gammaincinv(degrees / 2, cuts))
    weights = np.diff(cuts)
    squares = np.diff(parts) / weights
    return frozen(squares), frozen(weights)


def noise_moments(
    width: FloatArray,
    *,
    label_noise_std: float,
    law: LabelNoiseLaw = "gaussian",
    other_variance: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    r"""P(|r| ≤ w) and E min(|r|, w)²; r is label noise plus a prediction's Gaussian error."""
    share, second = _clipped(width, other_variance, _noise(label_noise_std, law))
    return share[()], second[()]


def _noise(label_noise_std: float, law: LabelNoiseLaw) -> tuple[FloatArray, FloatArray]:
    """Variances of the label noise's Gaussian mixture, and their probabilities."""
    squares, chances = squared_scales(law)
    return label_noise_std**2 * squares, np.array(chances)


def _series() -> FloatArray:
    r"""Taylor coefficients of π(w) = P(|z| ≤ w), z normal, about points, (points, degree + 1).

    .. math:: \pi'(w) = \sqrt{2/\pi}\,e^{-w^2/2}
    """
    at = np.arange(round(UNCLIPPED * POINTS) + 1) / POINTS
    orders = np.arange(DEGREE)
    derivatives = (-1.0) ** orders * eval_hermitenorm(orders, at[:, None]) / factorial(orders + 1)
    found = np.column_stack([erf(at * ROOT_HALF), derivatives])
    found[:, 1:] *= DENSITY * np.exp(-(at[:, None] ** 2) / 2)
    return frozen(found)


SERIES = _series()


@njit(nogil=True, cache=True, error_model="numpy")
def _of_ratio(ratio: float) -> tuple[float, float, float]:
    r"""π = P(|z| ≤ w), f = E min(|z|, w) and q = E min(|z|, w)² at w = width/deviation.

    .. math:: f = w(1 - \pi) + \pi'(0) - \pi'(w), \qquad q = w^2(1 - \pi) + \pi - w\pi'(w)
    """
    # Without branches, so that loops over rows are vectorised; NaN stays NaN.
    width = ratio if ratio < UNCLIPPED else UNCLIPPED
    point = np.uint32(width * POINTS + 0.5)
    away = width - point / POINTS if ratio >= 0 else np.nan
    share, density = SERIES[point, DEGREE], 0.0
    for order in range(DEGREE - 1, -1, -1):
        density = density * away + share
        share = share * away + SERIES[point, order]
    square, beyond = width * width, 1 - share
    # Near 0 the difference of two terms would lose digits.
    inside = DENSITY * square * width * (1 / 3 - square * (0.1 - square * (1 / 56 - square / 432)))
    inside = inside if width < 0.5 / POINTS else share - width * density
    return share, width * beyond + (DENSITY - density), square * beyond + inside


@njit(nogil=True, cache=True, error_model="numpy")
def _mixed(
    widths: FloatArray,
    others: FloatArray,
    variances: FloatArray,
    chances: FloatArray,
    found: FloatArray,
) -> None:
    """Unclipped share and clipped second moment of a centred mixture, added to `found`."""
    for cell in range(len(variances)):
        for row in range(len(widths)):
            whole = variances[cell] + others[row]
            share, _, second = _of_ratio(widths[row] / sqrt(whole))
            found[0, row] += chances[cell] * share
            found[1, row] += chances[cell] * (whole * second)


def _clipped(
    widths: FloatArray, others: FloatArray | float, noise: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Unclipped share and clipped second moment of centred residuals, (2, ...), by broadcasting."""
    # Copies, so that compiled code sees one kind of array.
    flat = np.empty((2, *np.broadcast(widths, others).shape))
    flat[0], flat[1] = widths, others
    found = np.zeros_like(flat)
    width, other = flat.reshape(2, -1)
    _mixed(width, other, *noise, found.reshape(2, -1))
    return found


class ClippedRows(NamedTuple):
    """Rows of a problem, and its label noise as a mixture of Gaussians, for compiled code."""

    weights: FloatArray  # (rows,)
    energies: FloatArray  # (groups, rows)
    fourths: FloatArray  # their squares
    quartics: FloatArray  # means over rows, (groups,)
    multiplicities: FloatArray
    peaks: FloatArray
    variances: FloatArray  # (cells,)
    chances: FloatArray


def clipped_rows(problem: Problem, rows: Rows) -> ClippedRows:
    """Rows of a problem and its label noise, for `clipped_slopes`."""
    # Copies, so that compiled code sees one kind of array.
    energies = np.array(rows.energies.T, order="C")
    return ClippedRows(
        np.array(rows.weights),
        energies,
        energies**2,
        rows.weights @ rows.energies**2,
        np.array(rows.multiplicities),
        np.array(rows.peaks),
        *_noise(problem.label_noise_std, problem.label_noise_law),
    )


@njit(nogil=True, cache=True, error_model="numpy")
def clipped_slopes(
    rows: ClippedRows,
    widths: FloatArray,
    factors: FloatArray,
    squared_bias: FloatArray,
    variance: FloatArray,
    slopes: FloatArray,
) -> float:
    r"""Return the share of unclipped residuals; fill `slopes` with rates of errors and variances.

    Slopes, (3, groups), are means over rows of x_j² times three numbers. The first, the drift, is
    the clipped residual's mean over the unclipped one's: the rate at which mean error falls. The
    second is the probability of no clipping: the rate at which a deviation falls. The third is the
    clipped second moment. The first two include the row's factor, the third its square.

    A group g has squared mean errors c_g along its coordinates, energy E_g in a row, and peak κ_g
    (see `Rows`). Over random directions, a row's mean prediction error M has variance V and

    .. math:: V = \sum_g c_g E_g, \qquad \mathbb E M^4 = (3 - 2d)\,\mathbb E V^2, \qquad
        d = \sum_g \kappa_g c_g^2\,\mathbb E E_g^2 \Big/ \mathbb E V^2.

    d is 1 for one feature, and for a one-hot row, which has the error of one category. M is
    replaced by :math:`\pm\sqrt{aV} + N(0, (1 - a)V)`, :math:`a = \sqrt d / (1 + \sqrt d(1 - d)/3)`:
    the fourth moment agrees with M's if d is 1 or near 0, and E|M| to 0.6 %.
    """
    groups, size = rows.energies.shape
    # Squares are products, which Python and the compiler round alike.
    bias, spread, peaked = np.empty(groups), 1 / LARGEST, 0.0
    means, others = np.zeros(size), np.zeros(size)
    for group in range(groups):
        bias[group] = squared_bias[group] if squared_bias[group] < LARGEST else LARGEST
        energy = bias[group] + (variance[group] if variance[group] < LARGEST else LARGEST)
        peaked += rows.peaks[group] * (bias[group] * bias[group]) * rows.quartics[group]
        for row in range(size):
            others[row] += energy * rows.energies[group, row]
            means[row] += bias[group] * rows.energies[group, row]
    for row in range(size):
        spread += rows.weights[row] * (means[row] * means[row])
    root = min(sqrt(peaked / spread), 1.0)
    kept = 1 / (1 + root * (1 - root * root) / 3)
    noise = inner_product(rows.chances, rows.variances)
    # A row with a mean needs two ratios; its second one is stored behind the ratios of all rows.
    off, count = np.empty(size, np.int64), 0
    for row in range(size):
        square = kept * root * means[row]
        means[row] = 0.0
        if square * (1 + kept * root / CENTRED) > others[row] + noise:
            off[count] = row
            count += 1
            means[row] = sqrt(square)
            others[row] = max(others[row] - square, 0.0)
    stds, ratios = np.empty(size), np.empty(2 * size)
    series, moments = np.empty((3, 2 * size)), np.zeros((3, size))
    for cell in range(len(rows.variances)):
        chance = rows.chances[cell]
        for row in range(size):
            stds[row] = sqrt(rows.variances[cell] + others[row])
            ratios[row] = (widths[row] + means[row]) / stds[row]
        for at in range(count):
            ratios[size + at] = (widths[off[at]] - means[off[at]]) / stds[off[at]]
        for at in range(size + count):
            series[0, at], series[1, at], series[2, at] = _of_ratio(abs(ratios[at]))
        for at in range(count):
            row, above = off[at], ratios[size + at]
            share, first = series[0, size + at], series[1, size + at]
            second, mean, std = series[2, size + at], means[row], stds[row]
            if above < 0:
                share, first, second = -share, first + 2 * above, 2 * (above * above) - second
            share = (share + series[0, row]) / 2
            first = mean + std * (first - series[1, row]) / 2
            second = std * std * (second + series[2, row]) / 2 + mean * (2 * first - mean)
            if above <= -UNCLIPPED:
                first, second = widths[row], widths[row] * widths[row]
            series[0, row], series[2, row], stds[row] = share, max(second, first * first), 1.0
            moments[2, row] += chance * (first - mean * share)
        for row in range(size):
            moments[0, row] += chance * series[0, row]
            moments[1, row] += chance * (stds[row] * stds[row] * series[2, row])
    for at in range(count):
        moments[2, off[at]] /= means[off[at]] * (means[off[at]] * means[off[at]])
    whole = 0.0
    for row in range(size):
        whole += rows.weights[row] * moments[0, row]
        load = rows.weights[row] * factors[row]
        moments[0, row] *= load
        moments[1, row] *= load * factors[row]
        moments[2, row] *= load
    for group in range(groups):
        share = inner_product(moments[0], rows.energies[group])
        # A group's part of the fourth cumulant moves the drift away from the share.
        excess = kept * kept * rows.peaks[group] * bias[group]
        excess *= inner_product(moments[2], rows.fourths[group])
        second = inner_product(moments[1], rows.energies[group])
        slopes[0, group] = (share + excess) / rows.multiplicities[group]
        slopes[1, group] = share / rows.multiplicities[group]
        slopes[2, group] = second / rows.multiplicities[group]
    return whole


def slopes_at_once(*given: Any) -> float:
    """`clipped_slopes`; the first calls run in Python (2 ms each), since compiling takes 2 s."""
    return (clipped_slopes.py_func if next(_calls) < FIRST_CALLS else clipped_slopes)(*given)


@njit(nogil=True, cache=True, error_model="numpy")
def all_clipped_slopes(
    rows: ClippedRows,
    wanted: NDArray[np.bool_],
    widths: FloatArray,
    factors: FloatArray,
    squared_bias: FloatArray,
    variance: FloatArray,
    slopes: FloatArray,
) -> None:
    """`clipped_slopes` of the wanted settings; each array has an additional first axis."""
    for at in range(len(wanted)):
        if wanted[at]:
            given = widths[at], factors[at], squared_bias[at], variance[at]
            clipped_slopes(rows, *given, slopes[at])


def finite(energy: FloatArray) -> FloatArray:
    """The energy, or `LARGEST` if it has diverged: the residual variance must be finite."""
    return np.fmin(energy, LARGEST)


# A fixed point that still changes by this much is solved for by bracketing.
ITERATIONS, SETTLED = 12, 1e-3
# Between the exponentials of these nothing overflows.
LARGEST_LOGARITHM = 700.0
NODES = 7


def sampling_inflation(
    widths: FloatArray,
    weights: FloatArray,
    *,
    ratio: float,
    label_noise_std: float,
    law: LabelNoiseLaw = "gaussian",
    other_variance: FloatArray | float = 0.0,
) -> FloatArray:
    r"""Sampling variance of a Huber minimiser, divided by its limit for p/n → 0 (the sandwich).

    For large n and p with κ = p/n fixed, the prediction of a left-out row has variance τ², and

    .. math::
        \kappa = \frac{c}{1 + c}\Pr(|r| \le w(1 + c)), \qquad
        \kappa\tau^2 = c^2\,\mathbb E\,\mathrm{clip}\Big(\frac{r}{1+c}, \pm w\Big)^2, \qquad
        r \sim \sigma\xi + N(0, v + \tau^2)

    for clips w, (settings, rows). Without clipping the ratio is 1/(1 - κ). The ratio is `inf` if
    there are too few rows.
    Source: El Karoui, Bean, Bickel, Lim and Yu (2013), system (S), with Huber's loss.
    """
    other = np.broadcast_to(np.asarray(other_variance, dtype=np.float64), (len(widths),))
    if ratio < 1e-12:
        return np.ones(len(widths))
    noise = _noise(label_noise_std, law)

    def mean(growth: FloatArray | float, variance: FloatArray | float) -> FloatArray:
        """Row means of unclipped share and clipped second moment, with clips times `growth`."""
        grown, others = widths * np.reshape(growth, (-1, 1)), np.reshape(variance, (-1, 1))
        return np.asarray(_clipped(grown, others, noise) @ weights)

    share = mean(1.0, other)[0]
    # The score at θ* does not include the privacy noise in r.
    plain = mean(1.0, 0.0)[1] / share**2
    before, tau, c = np.zeros_like(plain), ratio * plain, ratio / np.maximum(share, ratio)
    for _ in range(ITERATIONS):
        if np.all(np.abs(tau - before) <= 1e-12 * tau):
            break
        before = tau
        grown = ratio / np.maximum(mean(1 + c, other + tau)[0], 1e-12)
        c = np.where(grown < 0.9, grown / (1 - grown), np.inf)
        kept = np.minimum(c, 1e6)
        score = mean(np.minimum(1 + c, 1e6), tau)[1]
        tau = (kept / (1 + kept)) ** 2 * score / ratio
    # It circles where much is clipped, and is slow where p is near n.
    unsettled = ~((c < np.inf) & (np.abs(tau - before) <= SETTLED * tau))
    for at in np.flatnonzero(unsettled):
        tau[at] = _solved(widths[at], weights, noise, ratio=ratio, other=float(other[at]))
    return tau / (ratio * plain)


def _solved(
    widths: FloatArray,
    weights: FloatArray,
    noise: tuple[FloatArray, FloatArray],
    *,
    ratio: float,
    other: float,
) -> float:
    """τ² of one setting, widths (rows,), by nested brackets; `inf` if p is at least n."""
    if ratio >= 1:
        return np.inf

    def mean(growth: float, variance: float) -> list[float]:
        return list(_clipped(widths * growth, variance, noise) @ weights)

    def growth(variance: float) -> float:
        # log(1 + c), in which κ's equation increases; at narrow clips c / (1 + c) is nearly 1.
        def excess(log_growth: float) -> float:
            inside, _ = mean(np.exp(log_growth), other + variance)
            return -float(np.expm1(-log_growth) * inside) - ratio

        low, high = -float(np.log1p(-ratio)), LARGEST_LOGARITHM
        # Where nothing is clipped the least is the root, up to its rounding.
        if excess(low) >= 0 or excess(high) <= 0:
            return low if excess(low) >= 0 else high
        return float(brentq(excess, low, high, xtol=1e-10))

    def gain(log_variance: float) -> float:
        variance = float(np.exp(log_variance))
        found = growth(variance)
        _, square = mean(np.exp(found), variance)
        return float(np.expm1(-found) ** 2 * square) / ratio / variance - 1

    low, high = -1.0, 1.0
    while low > -LARGEST_LOGARITHM and gain(low) <= 0:
        low, high = max(4 * low, -LARGEST_LOGARITHM), low
    while high < LARGEST_LOGARITHM and gain(high) >= 0:
        low, high = high, min(4 * abs(high), LARGEST_LOGARITHM)
    if not gain(low) > 0 > gain(high):
        return np.inf
    return float(np.exp(brentq(gain, low, high, xtol=1e-5)))


def sample_nodes(
    ratio: float, *, extra_variance: float = 0.0, nodes: int = NODES
) -> tuple[FloatArray, FloatArray]:
    r"""Quadrature for the eigenvalues of a sample's second moment, relative to the population's.

    The eigenvalues follow the law of Marchenko and Pastur with ratio κ = p/n. Its orthogonal
    polynomials are shifted Chebyshev polynomials: the Jacobi matrix has diagonal 1, 1 + κ, 1 + κ,
    ... and off-diagonal √κ. An independent symmetric Gaussian error of relative size τ adds τ²p to
    the off-diagonal's square, as a semicircle law would; at least three moments are exact.
    """
    variance = ratio + extra_variance
    shift = ratio**2 / variance if variance > 0 else 0.0
    diagonal = np.concatenate([[1.0], np.full(nodes - 1, 1 + shift)])
    beside = np.full(nodes - 1, np.sqrt(variance))
    points, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return points, vectors[0] ** 2


def count_nodes(
    probability: FloatArray, sample_size: int, *, nodes: int = 15
) -> tuple[FloatArray, FloatArray]:
    """Quantiles (groups, nodes) of a category's count divided by its mean, and their weights."""
    from scipy.stats import binom  # a second, for one-hot rows alone

    levels = (np.arange(nodes) + 0.5) / nodes
    counts = binom.ppf(levels, sample_size, np.minimum(probability, 1.0)[:, None])
    means = np.maximum(counts.mean(axis=1, keepdims=True), 1 / nodes)
    return counts / means, np.full(nodes, 1 / nodes)


def squared_shift(
    problem: Problem,
    rows: Rows,
    widths: FloatArray,
    *,
    leverage: FloatArray | float = 1.0,
    covered: FloatArray | float = 1.0,
) -> FloatArray:
    r"""Mean squared shift of the target in a coordinate, (settings, groups), for a misfit κ of 1.

    The least-squares residual r is uncorrelated with the features. A clipped regression makes its
    score uncorrelated with them: :math:`\psi = \ell(x)\,\mathrm{clip}(r, \pm w(x))`, where ℓ,
    (rows,), is the `leverage` left to a long row. ζ is the part of ψ uncorrelated with r. Features
    explain ζ if the noise's skewness depends on the features, or if the regression is not linear.
    If the features explain a share κ² of the variance of ζ, one Newton step moves θ* by d with

    .. math:: d^\top\Sigma d = \kappa^2\,\frac{\mathbb E\,\zeta^2}{A^2},\qquad
        A = \mathbb E\,\ell\,1\{|r| \le w\},

    Every eigenvector gets the same part of dᵀΣd, since the direction of d is unknown. `covered` is
    the share of the shift that a descent has completed. κ is `Problem.misfit`. Steps do not depend
    on κ: the result is for κ = 1, and 0 if κ is 0. w has shape (settings, rows).
    """
    if problem.misfit == 0:
        return np.zeros((len(widths), len(rows.eigenvalues)))
    variance = problem.label_noise_std**2
    curvature, cross, square = 0.0, 0.0, 0.0
    for scale, weight in zip(*squared_scales(problem.label_noise_law), strict=True):
        share, second = noise_moments(widths, label_noise_std=sqrt(variance * scale))
        whole = (leverage * share) @ rows.weights
        curvature = curvature + weight * whole
        # E clip(r) r of a Gaussian, by Stein's lemma.
        cross = cross + weight * variance * scale * whole
        square = square + weight * (leverage**2 * second) @ rows.weights
    rest = np.maximum(square - cross**2 / variance, 0.0)
    explained = rest / curvature**2
    return np.asarray(covered**2 * explained[:, None] / (problem.dimension * rows.eigenvalues))


def clipped_count_bias(problem: Problem) -> float:
    r"""Excess risk, with one-hot rows, from counts beyond the declared bound B; 0 for other labels.

    .. math:: \frac12 \sum_k \lambda_k\, \mathbb E[(Y_k - B)_+]^2, \qquad
        \mathbb E(Y_k - B)_+ = \mu_k P(Y_k \ge \lfloor B \rfloor) - B P(Y_k > B)

    A category's counts Y_k are as spread as their own mean μ_k is high, so that a bound many
    deviations of all labels away may be near it.
    """
    law, _, mean = problem.label_noise_law.partition("_")
    if problem.feature_law != "one_hot" or law != "poisson":
        return 0.0
    unit = problem.label_noise_std / sqrt(float(mean))
    own = np.maximum(float(mean) + problem.signal / unit, 1e-300)
    most = float(mean) + problem.label_bound / unit
    whole = most // 1
    # P(Y ≥ k) is the probability that χ² with 2k degrees of freedom is below 2μ.
    lost = own * chdtr(2 * whole, 2 * own) - most * chdtr(2 * whole + 2, 2 * own)
    return float(problem.eigenvalues @ (unit * lost) ** 2) / 2


def slope_shift(problem: Problem, rows: Rows, widths: FloatArray) -> FloatArray:
    r"""Share by which clips w, (settings, rows), change slopes if labels are whole numbers.

    .. math:: \frac{\mathbb E f^2 |K - A|}{\mathbb E f^2 A},\qquad f = x^\top\theta^\ast,\quad
        K = \frac{\mathbb E |\xi| \min(|\xi|, w - s)}{\mathbb E \xi^2},\quad A = P(|\xi| \le w - s)

    If the mean label of an exponential family rises, the clipped residual ξ rises by the share K of
    it; if the prediction rises, ξ falls by A. s is the deviation of labels' means. The result is at
    least the mean of 1 - K, since skewed labels also move the mean of ξ. It is above `MOST_SHIFT`
    if the mixture's clipped square misses by a tenth of the variance.
    """
    if not problem.label_noise_law.startswith(WHOLE_LAWS):
        return np.zeros(len(widths))
    values, chances = whole_labels(problem.label_noise_law)
    left = np.maximum(widths - sqrt(2 * problem.null_risk), 0.0)[..., None] / problem.label_std
    gained = np.minimum(np.abs(values), left) @ (chances * np.abs(values))
    pulled = (np.abs(values) <= left) @ chances
    signal = rows.weights * rows.quadratic(rows.squared_signal)
    shift = np.abs(gained - pulled) @ signal / np.maximum(pulled @ signal, 1e-300)
    wide = widths[..., None] / problem.label_noise_std
    square = np.minimum(np.abs(values), wide) ** 2 @ chances
    mixed = noise_moments(wide[..., 0], label_noise_std=1.0, law=problem.label_noise_law)[1]
    missed = np.abs(square - mixed) @ rows.weights * (MOST_SHIFT / 0.1)
    return np.asarray(np.max([shift, 1 - gained @ rows.weights, missed], axis=0))
