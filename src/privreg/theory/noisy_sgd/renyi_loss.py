"""Rényi loss of noisy homogenised SGD when one record is replaced: approximations, not a guarantee.

Every number here compares two Gaussian laws of a diffusion, for one observed pair of records. It is
a conjecture that the diffusion approximates noisy SGD. No number bounds the loss over all
neighbouring data sets. The diffusion's variance includes sampling noise of the other records, but
an adversary may know these; `last_iterate_loss.fixed_order_divergence` is exact for fixed data.

One record enters at the position s = ℓ/d through a discrete step of size η = γ(s)/d. All other
changes are diagonal in the eigenbasis of Σ. Each covariance is a diagonal matrix, common to both
data sets, plus a rank-two matrix, so that a divergence costs O(d).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import (
    MOST,
    FloatArray,
    require_array,
    require_choice,
    require_count,
    require_counts,
    require_flag,
    require_number,
    require_real,
    require_scale,
    short,
)
from privreg.privacy.renyi import LowRankUpdate, combine, renyi_divergence
from privreg.schedules import ConstantRate, RateWithIntegral
from privreg.theory.noisy_sgd.diffusion import (
    HomogenisedSGD,
    Population,
    estimated_population,
    require_records,
)

# Error of the integrated squared rate: of a panel's share, and of the whole.
SHARE, SHARE_OF_TOTAL = 1e-6, 1e-9
# Far from where exponentials overflow.
GENTLE = 500.0
Variant = Literal["exact", "paper"]
# Variances are right to about 1e-13: what is left of their difference is right to 1e-6.
LEAST_SHARE = 1e-7
# Numbers in an array of several positions.
MOST_AT_ONCE = 1e5
Release = Literal["last", "average", "all"]
RELEASES: tuple[Release, ...] = get_args(Release)


@dataclass(frozen=True, eq=False)
class ReleaseLoss:
    """Rényi loss of a release when one record is replaced.

    Attributes
    ----------
    loss : float
        Larger loss of the two directions; `inf` if a divergence is infinite.
    by_direction : ndarray, shape (2,)
        Loss from the given to the replaced data set, and in the reverse direction.
    positions : ndarray, shape (p,)
        Times s of the step with the replaced record: number of steps before it, divided by d.
    divergences : ndarray, shape (2, p)
        Divergence at each position, in both directions.
    """

    loss: float
    by_direction: FloatArray
    positions: FloatArray
    divergences: FloatArray


def release_loss(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    record: int,
    replacement: tuple[ArrayLike, float],
    schedule: RateWithIntegral,
    gradient_noise_std: float,
    order: float,
    release: Release = "last",
    steps: ArrayLike | None = None,
    ridge: float = 0.0,
    start: ArrayLike | None = None,
    population: Population | None = None,
    shuffled: bool = True,
    finest: float | None = None,
) -> ReleaseLoss:
    r"""Rényi loss of a release of one-pass noisy SGD if one record is replaced.

    .. math::
        x_{k+1} = x_k - \tfrac{\gamma(k/d)}d\big(a_k(a_k^\top x_k - b_k) + \delta x_k
        + \sigma z_k\big), \qquad z_k \sim N(0, I_d), \quad k = 0..n-1

    Nothing is clipped. The law of a diffusion at time k/d approximates the law of x_k.

    Parameters
    ----------
    features, labels : array_like, shapes (n, d) and (n,)
        Records, one per step, at most 1e12 in size.
    record : int
        Index of the replaced record, in [0, n).
    replacement : (array_like of shape (d,), float)
        Features and label of the new record, at most 1e12 in size.
    schedule : RateWithIntegral
        Scaled rate γ(t) = d η at step k = t d, such as `ConstantRate(dimension * step_size)`.
    gradient_noise_std : float
        Standard deviation σ of the noise on each coordinate of a gradient.
    order : float
        Rényi order α, more than 1. The divergence is infinite above some order.
    release : {"last", "average", "all"}
        Release: the last iterate, the average of the iterates after `steps`, or all these iterates.
    steps : array_like of int, optional
        Ascending step counts in [1, n] after which iterates are taken. For "last" it is one number,
        n by default. The cost of "average" grows with the square of their number.
    ridge : float
        Penalty δ; may be 0.
    start : array_like, shape (d,), optional
        x_0, independent of the records, at most 1e12 in size; 0 by default.
    population : Population, optional
        Law of the records; by default their `estimated_population`, which is not private.
    shuffled : bool
        If True, records are visited in random order, and the loss is for the mixture over positions
        of the replaced record. If False, each record keeps its place.
    finest : float, optional
        If `shuffled`, least width of quadrature panels over positions; 1/d by default.

    Guarantee
    ---------
    None: an approximation that rests on a conjecture, for one pair of records (see the module).

    Examples
    --------
    >>> import numpy as np
    >>> from privreg.schedules import ConstantRate
    >>> rng = np.random.Generator(np.random.SFC64(1))
    >>> features = rng.standard_normal((200, 20)) / np.sqrt(20)
    >>> labels = features @ np.ones(20) + 0.1 * rng.standard_normal(200)
    >>> setting = dict(
    ...     record=0, replacement=(np.zeros(20), 0.0), schedule=ConstantRate(0.8),
    ...     gradient_noise_std=0.5, order=2.0,
    ... )
    >>> last = release_loss(features, labels, **setting)
    >>> both = release_loss(features, labels, release="all", steps=[100, 200], **setting)
    >>> 0 < last.loss < both.loss
    True

    Source
    ------
    lin2025, Algorithm 1, Theorems 4.3 to 4.5, equations (15), (21), (24), with variant "exact".
    """
    rows, targets = require_records(features, labels)
    n, d = rows.shape
    index = require_count("record", record, least=0, most=n - 1)
    other: Any
    try:
        other, other_label = replacement
    except (TypeError, ValueError):
        raise ValueError("replacement must be a pair (features, label), got no pair") from None
    others, other_labels = require_records([other], [other_label], d, of="replacement ")
    require_flag("shuffled", shuffled)
    require_choice("release", release, RELEASES)
    times = _release_steps(steps, release=release, sample_size=n) / d
    if population is None:
        population = estimated_population(rows, targets)
    if population.target.size != d:
        raise ValueError(f"population must have dimension {d}, got {population.target.size}")
    problem, basis = population.regression(start=start, ridge=ridge)
    law = HomogenisedSGD(problem, schedule, gradient_noise_std=gradient_noise_std, horizon=n / d)
    given_record = Record(rows[index] @ basis, float(targets[index]))
    pair = given_record, Record(others[0] @ basis, float(other_labels[0]))
    if shuffled:
        width = 1.0 / d if finest is None else finest
        positions, weights = position_quadrature(times, finest=width, schedule=schedule)
    else:
        # The iterate after k steps lies at k/d and does not know record k, counted from 0.
        positions, weights = np.nextafter([index / d], np.inf), np.array([law.horizon])
    divergence = iterates_divergence if release == "all" else average_divergence
    divergences = np.array(
        [
            [divergence(law, *each, times=times, position=at, order=order) for at in positions]
            for each in (pair, pair[::-1])
        ]
    )
    by_direction = shuffled_loss(divergences, weights, horizon=law.horizon, order=order)
    return ReleaseLoss(float(by_direction.max()), by_direction, positions, divergences)


class Record(NamedTuple):
    """One record: features in the eigenbasis of Σ, shape (d,), and label."""

    features: FloatArray
    label: float


def last_iterate_divergence(
    law: HomogenisedSGD,
    first: Record,
    second: Record,
    *,
    time: float,
    position: float,
    order: float,
    variant: Variant = "exact",
) -> float:
    r"""Divergence between the last iterates X_t of two runs that differ in one record.

    .. math::
        X_{s^+} = C X_{s^-} + \eta ba + e,\quad C = (1-\eta\delta)I-\eta aa^\top,\quad
        e\sim N(0,\eta^2\sigma^2I),\qquad
        V(t;s) = \Phi V(s^+)\Phi + V(t) - \Phi V(s)\Phi,\quad \Phi=\Phi(t,s)

    The differing step, at time s and of size η, uses the record (a, b). The covariance is V(s)
    before this step, V(s⁺) after it and V(t; s) at the release. `law` gives Φ, V(t), δ and σ.

    Parameters
    ----------
    law : HomogenisedSGD
        Law with gradient noise, and with all multiplicities equal to 1.
    first, second : Record
        Record at the position of the differing step, in the first and in the second data set.
    time, position : float
        Release time t and time s of the differing step, in [0, horizon].
    order : float
        Rényi order α, more than 1 and at most 1e12.
    variant : {"exact", "paper"}
        "exact" is D(first ‖ second). "paper" is the printed formula, which is D(second ‖ first).

    Returns
    -------
    float
        0 if t < s; `inf` if the mixture covariance is not positive definite. Results are accurate
        to a relative 1e-6 or an absolute 1e-9; less accurate ones are refused.

    Guarantee
    ---------
    None: an approximation that rests on a conjecture, for one pair of records.

    Source
    ------
    lin2025, equations (12)-(14), Theorem 4.3. The direction of (14) is a slip of the paper.
    """
    return average_divergence(
        law, first, second, times=[time], position=position, order=order, variant=variant
    )


def average_divergence(
    law: HomogenisedSGD,
    first: Record,
    second: Record,
    *,
    times: ArrayLike,
    position: float,
    order: float,
    variant: Variant = "exact",
) -> float:
    r"""Divergence between the averages of J iterates of two runs that differ in one record.

    Parameters, their ranges and the value `inf` are as for `last_iterate_divergence`, with `times`
    ascending, shape (J,). No guarantee is given.

    With "exact", iterates at times t_j < s < t_r around the differing step, at time s, have the
    covariance :math:`\Phi(t_r,s)\,C\,\Phi(s,t_j)V(t_j)`, in the symbols of
    `last_iterate_divergence`. "paper" omits C, as printed, and gives D(second ‖ first).

    Source
    ------
    lin2025, equations (18), (22), (23), Theorem 4.5.
    """
    pair = _checked(law, first, second, order)
    (geometry,) = release_geometries(law, times=times, position=[position], variant=variant)
    if geometry is None:
        return 0.0
    return pair_divergence(geometry, *(pair if variant == "exact" else pair[::-1]), order=order)


def iterates_divergence(
    law: HomogenisedSGD,
    first: Record,
    second: Record,
    *,
    times: ArrayLike,
    position: float,
    order: float,
    variant: Variant = "exact",
) -> float:
    r"""Divergence between the joint laws of J iterates of two runs that differ in one record.

    Parameters, their ranges and the value `inf` are as for `last_iterate_divergence`, with `times`
    ascending, shape (J,). No guarantee is given.

    By the Markov property only two iterates matter: Y, the last before the differing step, and Z,
    the first after it. "exact" uses both. Y's law is the same in both runs; Z is Z_i in run i:

    .. math::
        e^{(\alpha-1)D} = \mathbb E_Y\,e^{(\alpha-1)D(Z_1|Y\,\|\,Z_2|Y)}

    This is a Gaussian integral over the residuals of the two records, which are linear in Y. D is
    at least the divergence of Z alone. "paper" reverses the direction and drops Y, since the paper
    claims that only the suffix (the iterates after the differing step) counts.

    Source
    ------
    lin2025, Theorem 4.4 with equations (16)-(20). The suffix claim holds only if no iterate
    before the differing step is released.
    """
    first, second = _checked(law, first, second, order)
    released = _ascending(law.checked(times, "times"))
    position = float(law.checked(position, "position"))
    following = int(np.searchsorted(released, position, side="left"))
    if following == released.size:
        return 0.0
    after = float(released[following])
    if following == 0 or variant != "exact":
        return last_iterate_divergence(
            law, first, second, time=after, position=position, order=order, variant=variant
        )
    before = float(released[following - 1])
    prefix = law.variance(before)
    forecast = law.transition(position, before) ** 2 * prefix
    (geometry,) = release_geometries(law, times=[after], position=[position])
    assert geometry is not None  # the release time lies after the position
    # Given Y the state before the step has lost the variance that Y foretells.
    prior = np.maximum(geometry.prior - forecast, 0.0)
    shrink = 1.0 - geometry.step * law.problem.ridge
    base = geometry.base - (geometry.carry * shrink) ** 2 * (geometry.prior - prior)
    _require_apart(base, geometry.base)
    conditional = geometry._replace(base=base, cross=shrink * geometry.carry * prior, prior=prior)
    p, q = (_covariance(conditional, record) for record in (first, second))
    spread = _distinct_divergence(np.zeros(prior.size), p, q, order=order)
    mixture = combine(p, q, first_weight=1.0 - order, second_weight=order)
    if np.isinf(spread) or mixture is None:
        return np.inf
    features = np.column_stack([first.features, second.features])
    signs = -geometry.step * np.array([1.0, -1.0])
    mean = signs * (features.T @ geometry.mean - np.array([first.label, second.label]))
    covariance = np.outer(signs, signs) * (features.T @ (forecast[:, None] * features))
    form = mixture.inverse_form(geometry.carry[:, None] * features)
    return spread + _averaged_quadratic(form, mean, covariance, order)


def shuffled_loss(
    divergences: ArrayLike, weights: ArrayLike, *, horizon: float, order: float
) -> FloatArray:
    r"""Rényi loss of a mixture over the random position of the differing record.

    .. math::
        \varepsilon_\alpha = \frac1{\alpha-1}\ln\Big(\frac{T-\sum_jw_j}T
        + \frac1T\sum_jw_je^{(\alpha-1)D_j}\Big)

    Positions after the release, of total weight T - Σ w_j, cost nothing. The loss is an upper bound
    on the mixtures' divergence, since :math:`p^\alpha q^{1-\alpha}` is jointly convex.

    Parameters
    ----------
    divergences : array_like, shape (..., p)
        Divergence D_j at each position, 0 to `inf`; for several pairs, the supremum over pairs.
    weights : array_like, shape (p,)
        Quadrature weights, at least 0, with a sum of at most the horizon; may be empty.
    horizon, order : float
        Range T of the uniform position, and Rényi order α, more than 1 and at most 1e12.

    Source
    ------
    lin2025, equations (15), (21), (24) and Lemma C.3. Equation (21) lacks a "+".
    """
    order = require_number("order", order, above=1, most=MOST)
    masses = require_real("weights", weights, least=0)
    losses = require_real("divergences", divergences, least=0, infinite=True)
    if masses.ndim != 1 or losses.shape[-1:] != masses.shape:
        raise ValueError(
            "divergences and weights must have shapes (..., p) and (p,), "
            f"got {losses.shape} and {masses.shape}"
        )
    share = masses / require_scale("horizon", horizon)
    if not share.sum() <= 1.0 + 1e-9:
        raise ValueError(f"weights must have a sum of at most {horizon}, got {masses.sum()}")
    exponents = np.where(share > 0, (order - 1.0) * losses, 0.0)
    largest = exponents.max(axis=-1, initial=0.0)
    # Losses keep their digits in expm1; where it overflows its logarithm is shifted.
    gentle = np.log1p(np.expm1(np.minimum(exponents, GENTLE)) @ share)
    if np.any(largest > GENTLE):
        with np.errstate(divide="ignore"):
            parts = exponents + np.log(-np.expm1(-exponents)) + np.log(share)
        steep = np.logaddexp(0.0, np.logaddexp.reduce(parts, axis=-1))
        gentle = np.where(largest > GENTLE, steep, gentle)
    return np.asarray(gentle / (order - 1.0))


def position_quadrature(
    times: ArrayLike,
    *,
    finest: float,
    nodes_per_panel: int = 4,
    schedule: RateWithIntegral | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Quadrature over times of the differing step, finest at 0 and before releases.

    The loss changes fast within a few steps of position 0, where iterates have no spread yet, and
    just before each release. Between two such points, panels double in width from both ends. The
    loss grows with the square of the rate, so panels are halved until each panel's Gauss-Legendre
    rule integrates this square accurately.

    Parameters
    ----------
    times : array_like, shape (J,)
        Ascending release times, more than 0 and at most 1e12.
    finest, nodes_per_panel : float and int
        Largest width of the panels at the ends, such as 1/d, and number of nodes per panel.
    schedule : RateWithIntegral, optional
        Scaled rate; constant by default.

    Returns
    -------
    positions, weights : ndarray, shape (p,)
        Positions of the nodes, and weights that sum to the last time.
    """
    released = _ascending(times, above=0, most=MOST)
    finest = require_scale("finest", finest)
    rate = (ConstantRate(1.0) if schedule is None else schedule).rate
    points, masses = np.polynomial.legendre.leggauss(nodes_per_panel)

    def rule(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        width = (right - left)[:, None]
        positions = left[:, None] + 0.5 * width * (points + 1.0)
        return positions.ravel(), (0.5 * width * masses).ravel()

    def squares(left: FloatArray, right: FloatArray) -> FloatArray:
        positions, weights = rule(left, right)
        return (weights * rate(positions) ** 2).reshape(left.size, -1).sum(axis=1)

    breaks = [0.0]
    for begin, end in zip(np.concatenate([[0.0], released[:-1]]), released, strict=True):
        levels = max(1, int(np.ceil(np.log2(max((end - begin) / finest, 2.0)))))
        half = 0.5 ** np.arange(levels, 0, -1)
        breaks.extend(begin + (end - begin) * half)
        breaks.extend(end - (end - begin) * half[-2::-1])
        breaks.append(float(end))
    left, right = np.array(breaks[:-1]), np.array(breaks[1:])
    total, accepted = 0.0, []
    while left.size:
        middle = left + (right - left) / 2
        whole, first, second = squares(left, right), squares(left, middle), squares(middle, right)
        total = max(total, float(np.sum(first + second)))
        error = np.abs(first + second - whole)
        cut = (error > SHARE * whole) & (error > SHARE_OF_TOTAL * total)
        accepted.append(left[~cut])
        left, right = np.append(left[cut], middle[cut]), np.append(middle[cut], right[cut])
    edges = np.append(np.sort(np.concatenate(accepted)), released[-1])
    return rule(edges[:-1], edges[1:])


class ReleaseGeometry(NamedTuple):
    """Parts of a released average's law that do not depend on the record at the differing step.

    With record (a, b) at that step, the covariance is diag(`base`) + U K Uᵀ, with U = [`carry`·a,
    `cross`·a] and K = [[η² aᵀ diag(`prior`) a, -η], [-η, 0]]. The mean is moved by -η `carry`·a (aᵀ
    `mean` - b).
    """

    base: FloatArray
    carry: FloatArray
    cross: FloatArray
    prior: FloatArray
    mean: FloatArray
    step: float


def release_geometries(
    law: HomogenisedSGD, *, times: ArrayLike, position: ArrayLike, variant: Variant = "exact"
) -> Iterator[ReleaseGeometry | None]:
    """`ReleaseGeometry` of the average of the iterates at `times`, for each position (p,).

    An item is None if every iterate is released before its position. Positions between the same two
    iterates are computed together, in arrays of moderate size.
    """
    require_choice("variant", variant, get_args(Variant))
    if law.gradient_noise_std == 0.0:
        raise ValueError("gradient_noise_std must be more than 0 for a privacy loss, got 0.0")
    if np.any(law.problem.multiplicities != 1.0):
        raise ValueError("law must have all multiplicities equal to 1, got others")
    released = _ascending(law.checked(times, "times"))
    positions = law.checked(position, "position")
    before = np.searchsorted(released, positions)
    size = max(1, int(MOST_AT_ONCE / (released.size * law.problem.eigenvalues.size)))
    start = 0
    while start < positions.size:
        some, count = slice(start, start + size), before[start]
        same = positions[some][np.cumprod(before[some] == count, dtype=bool)]
        start += same.size
        if count == released.size:
            yield from [None] * same.size
        else:
            yield from _geometries(law, released[:count], released[count:], same, variant)


def pair_divergence(
    geometry: ReleaseGeometry, first: Record, second: Record, *, order: float
) -> float:
    """D(first ‖ second) to a relative 1e-6 or an absolute 1e-9; less accurate ones are refused."""
    pulls = [
        geometry.carry * features * (features @ geometry.mean - label)
        for features, label in (first, second)
    ]
    laws = [_covariance(geometry, record) for record in (first, second)]
    return _distinct_divergence(geometry.step * (pulls[1] - pulls[0]), *laws, order=order)


def _geometries(
    law: HomogenisedSGD,
    prefix: FloatArray,
    suffix: FloatArray,
    positions: FloatArray,
    variant: Variant,
) -> Iterator[ReleaseGeometry]:
    """Geometries at positions (p,) that split the release times into a prefix and a suffix."""
    count = prefix.size + suffix.size
    steps = law.schedule.rate(positions) / law.problem.dimension
    step = steps[:, None]
    shrink = 1.0 - step * law.problem.ridge
    prior = law.variance(positions)
    flows = law.transition(suffix[:, None], positions)
    carry = np.sum(flows, axis=0) / count
    held = law.variance(suffix)[:, None]
    # Variance of the part of the suffix's sum that is drawn after the position.
    fresh = held - flows**2 * prior
    base = _sum_variance(law, suffix, fresh) / count**2
    base = base + carry**2 * (shrink**2 * prior + (step * law.gradient_noise_std) ** 2)
    _require_apart(base, _sum_variance(law, suffix, held) / count**2)
    cross = shrink * carry * prior
    if prefix.size:
        held = law.variance(prefix)[:, None]
        link = np.sum(law.transition(positions, prefix[:, None]) * held, axis=0) / count
        kept = shrink if variant == "exact" else 1.0
        base = base + _sum_variance(law, prefix, held) / count**2 + 2.0 * kept * carry * link
        if variant == "exact":
            cross = cross + link
    means = law.mean(positions)
    return map(ReleaseGeometry, base, carry, cross, prior, means, steps.tolist())


def _sum_variance(law: HomogenisedSGD, times: FloatArray, variances: FloatArray) -> FloatArray:
    """Variance (p, d) of a sum over times; `variances` there: (J, p, d), or (J, 1, d) if equal."""
    decays = law.transition(times[1:], times[:-1])[:, None]
    total = variances[-1]
    later = np.zeros_like(total)
    for decay, variance in zip(decays[::-1], variances[-2::-1], strict=True):
        later = decay * (1.0 + later)
        total = total + variance * (1.0 + 2.0 * later)
    return total


def _require_apart(base: FloatArray, parts: FloatArray) -> None:
    """Refuse a difference of variances that is lost in the rounding of the larger terms."""
    if not np.all(base > LEAST_SHARE * parts):
        raise ValueError(
            "times and position must give a variance above rounding error, "
            f"got a relative variance of {np.min(base / parts):.2g}"
        )


def _distinct_divergence(
    shift: FloatArray, p: LowRankUpdate, q: LowRankUpdate, *, order: float
) -> float:
    """The divergence; if rounding has spoilt the laws, an error that blames features and labels."""
    try:
        return renyi_divergence(shift, p, q, order=order)
    except ValueError:
        raise ValueError(
            "features and labels must give two laws that differ in double precision, got equal ones"
        ) from None


def _covariance(geometry: ReleaseGeometry, record: Record) -> LowRankUpdate:
    features, step = record.features, geometry.step
    factors = np.column_stack([geometry.carry * features, geometry.cross * features])
    core = np.array([[step**2 * (features**2 @ geometry.prior), -step], [-step, 0.0]])
    return LowRankUpdate(geometry.base, factors, core)


def _averaged_quadratic(
    form: FloatArray, mean: FloatArray, covariance: FloatArray, order: float
) -> float:
    """ln E exp(α(α-1)/2 wᵀHw) / (α-1) for w ~ N(mean, covariance); `inf` where it diverges."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scale = order * (order - 1.0)
    gains, axes = np.linalg.eigh(root.T @ form @ root)
    if np.any(scale * gains >= 1.0):
        return np.inf
    image = axes.T @ root.T @ form @ mean
    # (I - sHV)^{-1}H = H + sHL(I - sLᵀHL)^{-1}LᵀH with V = LLᵀ, s the scale, stays symmetric.
    quadratic = mean @ form @ mean + scale * np.sum(image**2 / (1.0 - scale * gains))
    return float(0.5 * order * quadratic - 0.5 * np.sum(np.log1p(-scale * gains)) / (order - 1.0))


def _checked(law: HomogenisedSGD, first: Record, second: Record, order: float) -> list[Record]:
    require_number("order", order, above=1, most=MOST)
    features, labels = [first.features, second.features], [first.label, second.label]
    rows, targets = require_records(features, labels, law.problem.eigenvalues.size)
    return [Record(*each) for each in zip(rows, targets.tolist(), strict=True)]


def _ascending(times: ArrayLike, **bounds: float) -> FloatArray:
    released = require_array("times", times, shape=(None,), **bounds)
    if np.any(np.diff(released) <= 0):
        raise ValueError(f"times must be strictly ascending, got {short(released)}")
    return released


def ascending_steps(name: str, steps: ArrayLike, *, most: int) -> NDArray[np.int64]:
    """Check that steps of a run are strictly ascending, from 1 to `most`."""
    wanted = np.atleast_1d(require_counts(name, steps, least=1, most=most))
    if wanted.ndim != 1 or wanted.size == 0 or np.any(np.diff(wanted) <= 0):
        raise ValueError(f"{name} must be ascending whole numbers, got {short(steps)}")
    return wanted


def _release_steps(steps: ArrayLike | None, *, release: str, sample_size: int) -> FloatArray:
    if steps is None:
        if release != "last":
            raise ValueError(f"steps must be given for the release {release!r}, got None")
        steps = [sample_size]
    wanted = ascending_steps("steps", steps, most=sample_size)
    if release == "last" and wanted.size > 1:
        raise ValueError(f"steps must hold one step for release 'last', got {wanted.size} steps")
    return wanted.astype(np.float64)
