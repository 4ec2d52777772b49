"""Rényi loss of noisy homogenised SGD when one record is replaced: approximations, not a guarantee.

Every number here compares two Gaussian laws of a diffusion that stands for noisy SGD by a
conjecture, for one observed pair of records. It bounds no mechanism over all neighbouring data
sets: it is not a guarantee. The diffusion's variance also counts the sampling noise of the
other records, which a privacy adversary may know; `fixed_order_loss` has the exact loss with
the data held fixed.

One record enters at the position s = ℓ/d through a discrete step of size η = γ(s)/d. In the
eigenbasis of Σ everything but that step is diagonal, so each covariance is a diagonal, common
to both data sets, plus a rank-two term, and a divergence costs O(d).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.privacy.gaussian import renyi_divergence
from privreg.privacy.low_rank import LowRankUpdate, combine
from privreg.ranges import short
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
from privreg.validation import require_array, require_choice, require_instance, require_number

Variant = Literal["exact", "paper"]
# Variances are right to about 1e-13: what is left of their difference is right to 1e-6.
LEAST_SHARE = 1e-7
# Numbers in an array of several positions.
MOST_AT_ONCE = 1e5


class Record(NamedTuple):
    """One record: features in the eigenbasis of Σ, shape (d,), and its label."""

    features: NDArray[np.float64]
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

    Parameters
    ----------
    law : HomogenisedSGD
        With noise and unit multiplicities.
    first, second : Record
        The record at the position in the one data set and in the other.
    time : float
        Release time t in [0, horizon].
    position : float
        Time s of the differing step, in [0, horizon].
    order : float
        Rényi order α, more than 1.
    variant : {"exact", "paper"}
        "exact" is D(first ‖ second). "paper" is the printed formula, which is D(second ‖ first).

    Returns
    -------
    float
        0 if t < s; `inf` where the mixture covariance is not positive definite. Right to 1e-6 of
        itself or to 1e-9, or refused.

    Guarantee
    ---------
    None: an approximation by a conjecture, for one pair of records.

    Source
    ------
    lin2025, equations (12)-(14), Theorem 4.3. The direction of (14) is a slip of the paper.
    """
    require_instance("law", law, HomogenisedSGD)
    time = require_number("time", time, least=0, most=law.horizon * (1 + 1e-12))
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

    Parameters, range and the value `inf` as for :func:`last_iterate_divergence`, with `times`
    ascending, shape (J,).

    With "exact" an iterate before the differing step keeps its covariance with one after it,
    :math:`\Phi(t_r,s)\,C\,\Phi(s,t_j)V(t_j)`. With "paper" that block lacks the C, as printed,
    and the direction is reversed.

    Guarantee
    ---------
    None: an approximation by a conjecture, for one pair of records.

    Source
    ------
    lin2025, equations (18), (22), (23), Theorem 4.5.
    """
    first, second = _checked(law, first, second, order, variant)
    geometry = release_geometry(law, times=times, position=position, variant=variant)
    if geometry is None:
        return 0.0
    pair = (first, second) if variant == "exact" else (second, first)
    return pair_divergence(geometry, *pair, order=order)


class IndistinctError(ValueError):
    """Records that double precision cannot tell apart."""


def pair_divergence(
    geometry: ReleaseGeometry, first: Record, second: Record, *, order: float
) -> float:
    """D(first ‖ second) of averages of a known geometry, right to 1e-6, or to 1e-9, or refused."""
    shift = geometry.step * (_pull(geometry, second) - _pull(geometry, first))
    laws = [_covariance(geometry, record) for record in (first, second)]
    return _distinct_divergence(shift, *laws, order=order)


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

    Parameters, range and the value `inf` as for :func:`last_iterate_divergence`, with `times`
    ascending, shape (J,).

    By the Markov property only the last iterate Y before the step and the first iterate Z after it
    matter. With "exact" both count: Y has the same law in both runs, so

    .. math::
        e^{(\alpha-1)D} = \mathbb E_Y\,e^{(\alpha-1)D(Z_1|Y\,\|\,Z_2|Y)}

    which is a Gaussian integral in the two residuals that Y foretells; it is never less than the
    divergence of Z alone. With "paper" Y is dropped (the claim that the divergence is that of the
    suffix), and the direction is reversed.

    Guarantee
    ---------
    None: an approximation by a conjecture, for one pair of records.

    Source
    ------
    lin2025, Theorem 4.4 with equations (16)-(20). The suffix claim holds only if no iterate
    before the differing step is released.
    """
    first, second = _checked(law, first, second, order, variant)
    released = checked_times(times, law.horizon)
    position = require_number("position", position, least=0, most=law.horizon * (1 + 1e-12))
    following = int(np.searchsorted(released, position, side="left"))
    if following == released.size:
        return 0.0
    after = float(released[following])
    if following == 0 or variant == "paper":
        return last_iterate_divergence(
            law, first, second, time=after, position=position, order=order, variant=variant
        )
    before = float(released[following - 1])
    prefix = law.variance(before)
    forecast = law.transition(position, before) ** 2 * prefix
    geometry = release_geometry(law, times=[after], position=position, variant=variant)
    assert geometry is not None  # the release time lies after the position
    # Given Y the state before the step has lost the variance that Y foretells.
    prior = np.maximum(geometry.prior - forecast, 0.0)
    shrink = 1.0 - geometry.step * law.problem.ridge
    base = geometry.base - (geometry.carry * shrink) ** 2 * (geometry.prior - prior)
    require_apart(base, geometry.base)
    conditional = geometry._replace(
        base=base,
        cross=shrink * geometry.carry * prior,
        prior=prior,
    )
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


def _distinct_divergence(
    shift: NDArray[np.float64], p: LowRankUpdate, q: LowRankUpdate, *, order: float
) -> float:
    """The divergence, or a refusal that names the records where rounding has spoilt their laws."""
    try:
        return renyi_divergence(shift, p, q, order=order)
    except ValueError as error:
        raise IndistinctError(
            f"first and second must be records that double precision can tell apart, got {error}"
        ) from None


def _pull(geometry: ReleaseGeometry, record: Record) -> NDArray[np.float64]:
    features = np.asarray(record.features, dtype=np.float64)
    return geometry.carry * features * (features @ geometry.mean - record.label)


def _covariance(geometry: ReleaseGeometry, record: Record) -> LowRankUpdate:
    features = np.asarray(record.features, dtype=np.float64)
    factors = np.column_stack([geometry.carry * features, geometry.cross * features])
    step = geometry.step
    core = np.array([[step**2 * (features**2 @ geometry.prior), -step], [-step, 0.0]])
    return LowRankUpdate(geometry.base, factors, core)


def _averaged_quadratic(
    form: NDArray[np.float64],
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
    order: float,
) -> float:
    """ln E exp(α(α-1)/2 wᵀHw) / (α-1) for w ~ N(mean, covariance); `inf` where it diverges."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scale = order * (order - 1.0)
    gains, axes = np.linalg.eigh(root.T @ form @ root)
    if np.any(scale * gains >= 1.0):
        return np.inf
    image = axes.T @ root.T @ form @ mean
    # (I - cHC)^{-1}H = H + cHL(I - cLᵀHL)^{-1}LᵀH with C = LLᵀ stays symmetric.
    quadratic = mean @ form @ mean + scale * np.sum(image**2 / (1.0 - scale * gains))
    return float(0.5 * order * quadratic - 0.5 * np.sum(np.log1p(-scale * gains)) / (order - 1.0))


def _checked(
    law: HomogenisedSGD, first: Record, second: Record, order: float, variant: str
) -> tuple[Record, Record]:
    """The two records, from whose numbers the divergences can be computed."""
    require_instance("law", law, HomogenisedSGD)
    require_number("order", order, above=1)
    require_choice("variant", variant, ("exact", "paper"))
    records = []
    for name, record in (("first", first), ("second", second)):
        require_instance(name, record, Record)
        within = {"least": -1e30, "most": 1e30}
        shape = law.problem.eigenvalues.shape
        features = require_array(name, record.features, shape=shape, **within)
        label = require_array(name, record.label, shape=(), **within)
        records.append(Record(features, float(label)))
    return records[0], records[1]


class ReleaseGeometry(NamedTuple):
    """Parts of a released average's law that all records which may sit at the position share.

    With record (a, b) there, the covariance is diag(`base`) + U K Uᵀ, where
    U = [`carry`·a, `cross`·a] and K = [[η² aᵀ diag(`prior`) a, -η], [-η, 0]], and the mean is moved
    by -η `carry`·a (aᵀ `mean` - b).
    """

    base: NDArray[np.float64]
    carry: NDArray[np.float64]
    cross: NDArray[np.float64]
    prior: NDArray[np.float64]
    mean: NDArray[np.float64]
    step: float


def release_geometry(
    law: HomogenisedSGD, *, times: ArrayLike, position: float, variant: Variant = "exact"
) -> ReleaseGeometry | None:
    """`release_geometries` at one position; None if every iterate is released before it."""
    position = require_number("position", position, least=0)
    return next(release_geometries(law, times=times, position=[position], variant=variant))


def release_geometries(
    law: HomogenisedSGD, *, times: ArrayLike, position: ArrayLike, variant: Variant = "exact"
) -> Iterator[ReleaseGeometry | None]:
    """Law of the average of the iterates at `times` up to the record, at several positions."""
    if law.gradient_noise_std == 0.0:
        raise ValueError("law must have gradient noise for a privacy loss, got none")
    if np.any(law.problem.multiplicities != 1.0):
        raise ValueError("law must have multiplicities of 1, since records have coordinates")
    require_choice("variant", variant, ("exact", "paper"))
    released = checked_times(times, law.horizon)
    most = law.horizon * (1 + 1e-12)
    places = require_array("position", position, shape=(None,), least=0, most=most)
    return _by_block(law, released, places, variant)


def _by_block(
    law: HomogenisedSGD,
    released: NDArray[np.float64],
    positions: NDArray[np.float64],
    variant: Variant,
) -> Iterator[ReleaseGeometry | None]:
    """Geometries at neighbours with the same iterates before them, in arrays of moderate size."""
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


def _geometries(
    law: HomogenisedSGD,
    prefix: NDArray[np.float64],
    suffix: NDArray[np.float64],
    positions: NDArray[np.float64],
    variant: Variant,
) -> Iterator[ReleaseGeometry]:
    """Geometries at positions (p,) between a prefix and a suffix of the release times."""
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
    require_apart(base, _sum_variance(law, suffix, held) / count**2)
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


def _sum_variance(
    law: HomogenisedSGD, times: NDArray[np.float64], variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Variance of the sum over ascending times of processes with the law's decay, (p, d).

    `variances` are theirs at the times, shape (J, p, d), or (J, 1, d) where they have the same.
    """
    decays = law.transition(times[1:], times[:-1])[:, None]
    total = variances[-1]
    later = np.zeros_like(total)
    for decay, variance in zip(decays[::-1], variances[-2::-1], strict=True):
        later = decay * (1.0 + later)
        total = total + variance * (1.0 + 2.0 * later)
    return total


def require_apart(base: NDArray[np.float64], parts: NDArray[np.float64]) -> None:
    """Refuse a variance that is lost in the rounding of the larger ones it is a difference of."""
    if not np.all(base > LEAST_SHARE * parts):
        raise ValueError(
            "times and position must leave a variance that double precision can tell from 0, "
            f"got a share of {np.min(base / parts):.2g}"
        )


def checked_times(times: ArrayLike, horizon: float) -> NDArray[np.float64]:
    """Ascending times in [0, horizon]."""
    released = require_array("times", times, shape=(None,), least=0, most=horizon * (1 + 1e-12))
    if np.any(np.diff(released) <= 0):
        raise ValueError(f"times must be strictly ascending, got {short(released)}")
    return released
