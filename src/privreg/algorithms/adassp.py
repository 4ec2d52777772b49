"""AdaSSP (adaptive sufficient statistics): private ridge regression from noisy XᵀX and Xᵀy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privreg.algorithms.records import EXACT_ROWS
from privreg.algorithms.samples import Chunk, Samples, as_samples, build
from privreg.algorithms.whitened_descent import SplitBudget
from privreg.checks import (
    FloatArray,
    Immutable,
    require_instance,
    require_number,
    require_rng,
    require_scale,
    require_scales,
)
from privreg.noise.exact import UNITS, IntArray, squared_lengths, truncated, truncated_sum
from privreg.privacy.budget import (
    Budget,
    Neighbours,
    gram_sensitivity,
    sum_sensitivity,
    to_approximate,
)
from privreg.privacy.release import Diagnostic

RELEASES = 3  # λ_min, XᵀX and Xᵀy, in this order


class Bounds(NamedTuple):
    """Bounds on a feature row's norm and a label's absolute value, each from 1e-12 to 1e12."""

    feature_norm: float
    label: float


@dataclass(frozen=True, eq=False, init=False)
class ClippedSums(Immutable):
    """Non-private sums XᵀX and Xᵀy of clipped data, made by `clipped_sums` or `within`."""

    not_private: ClassVar[bool] = True
    bounds: Bounds
    gram: FloatArray
    moment: FloatArray

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(build, ClippedSums, **vars(self)), ()

    def within(self, bounds: Bounds) -> ClippedSums:
        """Same sums with looser bounds, whose larger sensitivities also hold for these sums."""
        if not all(wide >= own for wide, own in zip(bounds, self.bounds, strict=True)):
            raise ValueError(f"bounds must be at least those of the sums, {self.bounds}, got less")
        return build(ClippedSums, bounds=bounds, gram=self.gram, moment=self.moment)


class Sensitivities(NamedTuple):
    """ℓ2 sensitivities of the smallest eigenvalue of XᵀX, the upper triangle of XᵀX, and Xᵀy."""

    eigenvalue: float
    gram: float
    moment: float


def bounds_from_data(samples: Samples) -> Diagnostic[Bounds]:
    """Largest row norm and largest absolute label in the data.

    The bounds are the diagnostic's `non_private` value. A fit with these bounds has no privacy
    guarantee; it is for comparisons that favour AdaSSP on purpose.
    """
    samples = as_samples(samples)
    extremes = [
        (float(np.max(norms)), float(np.max(np.abs(labels))))
        for _, labels, norms in samples.chunks()
    ]
    if not extremes:
        raise ValueError("samples must have at least one row, got none")
    found = Bounds(*(max(column) for column in zip(*extremes, strict=True)))
    return Diagnostic(found, "bounds computed from the data")


def clipped_chunks(samples: Samples, *, bounds: Bounds) -> Iterator[Chunk]:
    """Chunks of the data, with rows shortened and labels clipped to the bounds.

    These chunks are for methods that need rows instead of sums.
    """
    bounds = require_bounds(bounds)
    for features, labels, norms in as_samples(samples).chunks():
        with np.errstate(over="ignore"):
            rows = features / np.maximum(1.0, norms / bounds.feature_norm)[:, None]
        shortened = np.minimum(norms, bounds.feature_norm)
        yield Chunk(rows, labels.clip(-bounds.label, bounds.label), shortened)


def clipped_sums(samples: Samples, *, bounds: Bounds) -> ClippedSums:
    """Sums XᵀX and Xᵀy of the data, with rows shortened and labels clipped to the bounds."""
    bounds, samples = require_bounds(bounds), as_samples(samples)
    gram, moment = np.zeros((samples.dimension,) * 2), np.zeros(samples.dimension)
    for rows, labels, _ in clipped_chunks(samples, bounds=bounds):
        gram += rows.T @ rows
        moment += rows.T @ labels
    return build(ClippedSums, bounds=bounds, gram=gram, moment=moment)


def require_bounds(bounds: Bounds) -> Bounds:
    """Check that both bounds are in range and return them as immutable numbers."""
    require_instance("bounds", bounds, Bounds)
    scales = {f"bounds.{name}": value for name, value in bounds._asdict().items()}
    return Bounds(*require_scales(**scales))


def sensitivities(bounds: Bounds, *, neighbours: Neighbours | str) -> Sensitivities:
    r"""Sensitivities to one record of λ_min (least eigenvalue of XᵀX), XᵀX and Xᵀy, in this order.

    .. math::
        \text{add-remove, zero-out: } (B_x^2,\; B_x^2,\; B_x B_y), \qquad
        \text{replace-one: } (B_x^2,\; \sqrt2 B_x^2,\; 2 B_x B_y)

    B_x and B_y are the bounds of rows and labels. Replacing a row z by x changes XᵀX by
    xxᵀ - zzᵀ. This difference's operator norm, at most B_x², bounds the change of an eigenvalue.
    Its Frobenius norm, at most √2 B_x² since ⟨xxᵀ, zzᵀ⟩ ≥ 0, bounds that of the upper triangle.

    Source
    ------
    Wang (2018), Algorithm 2, for add-remove; replace-one derived as above.
    """
    square = bounds.feature_norm**2
    return Sensitivities(
        eigenvalue=square,
        gram=float(gram_sensitivity(square, neighbours=neighbours)),
        moment=float(sum_sensitivity(bounds.feature_norm * bounds.label, neighbours=neighbours)),
    )


def largest_epsilon(delta: float) -> float:
    r"""Largest ε at which the conversion `to_approximate` certifies `adassp` as (ε, δ)-DP.

    This ε solves ε = ρ + 2√(ρ ln(1/δ)) with ρ = ε² / (6 ln(6/δ)).
    """
    log_term = np.log(6) - np.log(delta)
    return float(6 * (log_term - np.sqrt(2 * log_term * -np.log(delta) / 3)))


def adassp(
    samples: Samples | ClippedSums,
    *,
    bounds: Bounds,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    ridge_failure: float = 0.05,
) -> FloatArray:
    r"""AdaSSP with an (ε, δ) budget and Wang's noise scale.

    .. math::
        \tilde\theta = \big(X^\top X + s\Delta_{xx} W + \kappa I\big)^{-1}
        \big(X^\top y + s\Delta_{xy} z\big), \qquad s = \frac{3\sqrt{\ln(6/\delta)}}{\varepsilon}

    .. math::
        \kappa = \max\big(0,\; s\Delta_{xx}\sqrt{p\ln(2p^2/\beta)} - \tilde\lambda\big), \qquad
        \tilde\lambda = \max\big(0,\; \lambda_{\min} + s\Delta_\lambda Z
        - s\Delta_\lambda\sqrt{\ln(6/\delta)}\big)

    where the symmetric matrix W has a standard normal upper triangle, z (p,) and Z are standard
    normal, and X (n, p), y (n,) hold the data after clipping to the bounds. Δ_λ, Δ_xx, Δ_xy are the
    `sensitivities` of λ_min (the smallest eigenvalue of XᵀX), XᵀX and Xᵀy.

    Parameters
    ----------
    samples : Samples or ClippedSums
        Data, or `clipped_sums` of the data with the same bounds.
    bounds : Bounds
        Bounds chosen without looking at the data. Rows are shortened, and labels clipped,
        to these bounds. Bounds from `bounds_from_data` void the guarantee.
    epsilon : float
        Budget ε, from 1e-12 to `largest_epsilon(delta)`, the largest that this noise allows.
    delta : float
        Probability δ of the budget, in (0, 1).
    rng : Generator
        Source of the noise.
    neighbours : Neighbours
        Neighbouring relation; Wang (2018) uses add-remove.
    ridge_failure : float
        Probability β in (0, 1) that noise exceeds the ridge's allowance; privacy holds in any case.

    Returns
    -------
    ndarray, shape (p,)
        Estimate θ̃. Large noise makes the ridge κ large, which shrinks the estimate toward 0.

    Guarantee
    ---------
    If the bounds are chosen a priori, the noisy λ_min, XᵀX and Xᵀy together are ρ-zCDP under
    `neighbours`, with ρ = 3/(2s²) = ε² / (6 ln(6/δ)). The conversion
    `to_approximate` then gives (ε, δ)-DP, which each call checks. The usual argument spends ε/3 and
    δ/3 on each statistic, but at this noise scale a statistic is (ε/3, δ/3)-DP only if ε is small.

    Source
    ------
    Wang (2018), Algorithm 2; brown2024, section 4.1.
    """
    epsilon = require_scale("epsilon", epsilon)
    delta = require_number("delta", delta, above=0, below=1)
    log_term = np.log(6 / delta)
    multiplier = RELEASES * np.sqrt(log_term) / epsilon
    if not to_approximate(RELEASES / (2 * multiplier**2), delta=delta) <= epsilon:
        raise ValueError(
            f"epsilon must be at most {largest_epsilon(delta):.3g}, got {epsilon}: "
            "for a larger epsilon this noise scale does not guarantee (epsilon, delta)-DP"
        )
    return _fit(
        samples,
        bounds,
        multiplier,
        eigenvalue_shift=float(np.sqrt(log_term)),
        neighbours=neighbours,
        ridge_failure=ridge_failure,
        rng=rng,
    )


def adassp_zcdp(
    samples: Samples | ClippedSums,
    *,
    bounds: Bounds,
    budget: Budget,
    rng: np.random.Generator | None,
    ridge_failure: float = 0.05,
) -> FloatArray:
    r"""AdaSSP with a zCDP budget; the noisy λ_min, XᵀX and Xᵀy each cost a third of the budget.

    The estimate is that of `adassp` with :math:`s = \sqrt{3 / (2\rho)}`. The last term of λ̃ is
    :math:`s\Delta_\lambda\sqrt{2\ln(1/\beta)}`, a Gaussian tail bound that fails with probability
    β. Without a generator, the statistics are whole numbers with exact noise from secure bits.

    Guarantee
    ---------
    If the bounds are chosen a priori, the estimate is ρ-zCDP under the budget's neighbouring
    relation. It is a function of λ_min, XᵀX and Xᵀy with Gaussian noise. A record of zeros changes
    none of them, and the record count is not released. Without a generator, this also holds in
    machine arithmetic (`privreg.noise.exact`). A record then adds at most 2⁴⁰ units in norm to XᵀX
    and 2²⁰ to Xᵀy. λ_min is rounded down to j · 2²⁰ units; a record changes j by at most 2²⁰.

    Source: Wang (2018), Algorithm 2, with the Gaussian mechanism of brown2024, Claims A.4 and A.5.
    """
    if rng is None:
        return _exact_fit(samples, bounds, budget, ridge_failure)
    return _fit(
        samples,
        bounds,
        float(np.sqrt(RELEASES / (2 * budget.rho))),
        neighbours=budget.neighbours,
        ridge_failure=ridge_failure,
        rng=rng,
    )


def _fit(
    samples: Samples | ClippedSums,
    bounds: Bounds,
    multiplier: float,
    *,
    eigenvalue_shift: float | None = None,
    neighbours: Neighbours | str,
    ridge_failure: float,
    rng: np.random.Generator,
) -> FloatArray:
    """The estimate, with noise of standard deviation `multiplier` times the sensitivities.

    λ̃ is the noisy λ_min minus `eigenvalue_shift` noise deviations (default √(2 ln(1/β))).
    """
    require_rng("rng", rng)
    ridge_failure = require_number("ridge_failure", ridge_failure, above=0, below=1)
    if eigenvalue_shift is None:
        eigenvalue_shift = float(np.sqrt(-2 * np.log(ridge_failure)))
    sums = samples if isinstance(samples, ClippedSums) else clipped_sums(samples, bounds=bounds)
    if sums.bounds != bounds:
        raise ValueError(f"bounds must be those of the clipped sums, {sums.bounds}, got {bounds}")
    limits = sensitivities(sums.bounds, neighbours=neighbours)
    gram, moment = sums.gram, sums.moment
    p = len(moment)
    shifted = rng.standard_normal() - eigenvalue_shift
    eigenvalue = float(np.linalg.eigvalsh(gram)[0]) + multiplier * limits.eigenvalue * shifted
    noise, upper = multiplier * limits.gram, np.triu(rng.standard_normal((p, p)))
    noisy_gram = gram + noise * (upper + np.triu(upper, 1).T)
    noisy_moment = moment + multiplier * limits.moment * rng.standard_normal(p)
    return _solved(noisy_gram, noisy_moment, noise, eigenvalue, ridge_failure)


def _exact_fit(samples: Any, bounds: Bounds, budget: Budget, ridge_failure: float) -> FloatArray:
    """The estimate of `_fit` from whole numbers; released statistics are in the data's units."""
    bounds = require_bounds(bounds)
    ridge_failure = require_number("ridge_failure", ridge_failure, above=0, below=1)
    gram, moment = whole_sums(samples, bounds=bounds)
    p, size, shares = len(moment), bounds.feature_norm**2, SplitBudget(budget, None)
    spend = partial(shares.gaussian_mechanism, share=1 / RELEASES)
    upper, squared = np.triu_indices(p), UNITS**2
    below = spend("smallest eigenvalue", total=_units_below(gram), square=squared, size=size)
    entries = spend(
        "Gram matrix", total=gram[upper], square=shares.turns * squared**2, size=size / UNITS
    )
    moved = bounds.feature_norm * bounds.label
    pull = spend("moment", total=moment, square=shares.moves * squared, size=moved).value
    smallest = float(below.value) - below.noise_std * sqrt(-2 * log(ridge_failure))
    noisy = np.zeros((p, p))
    noisy[upper] = entries.value
    noisy += np.triu(noisy, 1).T
    return _solved(noisy, pull, entries.noise_std, smallest, ridge_failure)


def whole_sums(samples: Samples, *, bounds: Bounds) -> tuple[IntArray, IntArray]:
    """`clipped_sums` as whole numbers: units are 2⁻⁴⁰ (XᵀX) and 2⁻²⁰ (Xᵀy) of a record's bound."""
    samples, moved = as_samples(samples), bounds.feature_norm * bounds.label
    p = samples.dimension
    gram, moment = np.zeros((p, p), dtype=object), np.zeros(p, dtype=object)
    for rows, labels, _ in samples.chunks():
        # A row's length by itself: NumPy's own may depend on how many rows there are.
        factors = 1 / np.maximum(1.0, np.sqrt(squared_lengths(rows)) / bounds.feature_norm)
        clipped = factors * labels.clip(-bounds.label, bounds.label)
        moment += truncated_sum(rows, clipped, moved).astype(np.int64)
        whole = truncated(rows, factors, bounds.feature_norm)
        for first in range(0, len(rows), EXACT_ROWS):
            some = whole[first : first + EXACT_ROWS]
            gram += (some.T @ some).astype(np.int64)
    return gram, moment


def _solved(
    gram: FloatArray, moment: FloatArray, noise: float, smallest: float, failure: float
) -> FloatArray:
    """Ridge estimate, with a ridge that outweighs matrix noise of standard deviation `noise`."""
    p = len(moment)
    ridge = noise * np.sqrt(p * (np.log(2 * p**2) - np.log(failure))) - max(0.0, smallest)
    try:
        return np.asarray(np.linalg.solve(gram + max(0.0, ridge) * np.eye(p), moment))
    except np.linalg.LinAlgError:
        raise ValueError(
            "without noise, samples must have linearly independent features, got dependent ones"
        ) from None


def _units_below(gram: IntArray, unit: int = UNITS) -> IntArray:
    """Smallest eigenvalue in whole units u: the largest j with G - juI positive definite."""
    # Floating point proposes, proofs decide.
    j = max(0, int(np.linalg.eigvalsh(gram.astype(np.float64))[0] // unit)) + 1
    while j >= 0 and not _is_positive_definite(gram, j * unit):
        j -= 1
    while _is_positive_definite(gram, (j + 1) * unit):
        j += 1
    return np.array(j, dtype=object)


def _is_positive_definite(gram: IntArray, shift: int) -> bool:
    """True if G - shift I is proved to be positive definite; G is semi-definite.

    A Cholesky factor of a slightly smaller matrix is a proof; its backward error is at most about
    (p + 1) 2⁻⁵³ tr G (Rump 2006). A whole-number vector can be a counterexample. Other cases, near
    an eigenvalue, are left to fraction-free elimination (Bareiss).
    """
    numbers, matrix = gram.astype(np.float64), gram.astype(object)
    margin = 2.0**-50 * len(gram) * np.trace(numbers)
    try:
        np.linalg.cholesky(numbers - (shift + margin) * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        whole = np.rint(2.0**40 * np.linalg.eigh(numbers)[1][:, 0]).astype(np.int64).astype(object)
        if whole @ matrix @ whole <= shift * (whole @ whole):
            return False
    else:
        return True
    matrix[np.diag_indices_from(matrix)] -= shift
    last = 1
    while len(matrix):
        pivot = matrix[0, 0]
        if pivot <= 0:
            return False
        rest = matrix[1:, 1:] * pivot - np.multiply.outer(matrix[1:, 0], matrix[0, 1:])
        matrix, last = rest // last, pivot
    return True
