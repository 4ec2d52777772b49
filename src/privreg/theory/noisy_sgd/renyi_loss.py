"""Rényi loss of noisy homogenised SGD when one record is replaced: approximations, not a guarantee.

Every number here compares two Gaussian laws of a diffusion that stands for noisy SGD by a
conjecture, for one observed pair of records. It bounds no mechanism over all neighbouring data
sets: it is not a guarantee. The diffusion's variance also counts the sampling noise of the
other records, which a privacy adversary may know; `fixed_order_privacy` has the exact loss with
the data held fixed.

One record enters at the position s = ℓ/d through a discrete step of size η = γ(s)/d. In the
eigenbasis of Σ everything but that step is diagonal, so each covariance is a diagonal, common
to both data sets, plus a rank-two term, and a divergence costs O(d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.privacy.gaussian import renyi_divergence
from privreg.privacy.low_rank import LowRankUpdate, combine
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
from privreg.theory.noisy_sgd.release_geometry import (
    ReleaseGeometry,
    Variant,
    checked_times,
    release_geometry,
    require_apart,
)
from privreg.validation import (
    require_array,
    require_choice,
    require_instance,
    require_number,
)


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
        0 if t < s; `inf` where the mixture covariance is not positive definite.

    Raises
    ------
    ValueError
        If a value is out of range, or the records, times and position leave less than 1e-6 of the
        divergence, and 1e-9, to rounding.

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
    """D(first ‖ second) of averages whose law is known up to the record, as `average_divergence`.

    Raises
    ------
    ValueError
        If rounding leaves less than 1e-6 of it, and 1e-9.
    """
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
