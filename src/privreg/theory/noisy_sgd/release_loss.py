"""The Rényi loss of a release of noisy SGD in one call, from records: approximation, no guarantee.

It computes in turn the law of the iterates (`diffusion`), the divergence when one record is
replaced at a position (`renyi_loss`), and the loss at a random position (`shuffled_position`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.ranges import short
from privreg.schedules import RateWithIntegral
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
from privreg.theory.noisy_sgd.population import Population, estimated_population
from privreg.theory.noisy_sgd.renyi_loss import (
    IndistinctError,
    Record,
    Variant,
    average_divergence,
    iterates_divergence,
    last_iterate_divergence,
)
from privreg.theory.noisy_sgd.shuffled_position import position_quadrature, shuffled_loss
from privreg.validation import (
    require_array,
    require_choice,
    require_count,
    require_counts,
    require_flag,
    require_instance,
    require_number,
)

FloatArray = NDArray[np.float64]
Release = Literal["last", "average", "all"]
WITHIN = {"least": -1e30, "most": 1e30}
RELEASES: tuple[Release, ...] = get_args(Release)


@dataclass(frozen=True, eq=False)
class ReleaseLoss:
    """Rényi loss of a release when one record is replaced.

    Attributes
    ----------
    loss : float
        The larger of the two directions; `inf` where a divergence is infinite.
    by_direction : ndarray, shape (2,)
        Loss of the given records against the replaced ones, and the reverse.
    positions : ndarray, shape (p,)
        Times s of the differing step, in steps over d.
    divergences : ndarray, shape (2, p)
        Divergence given the position, in both directions.
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
    r"""Rényi loss of what one pass of noisy SGD releases, if one record is another.

    .. math::
        x_{k+1} = x_k - \tfrac{\gamma(k/d)}d\big(a_k(a_k^\top x_k - b_k) + \delta x_k
        + \sigma z_k\big), \qquad z_k \sim N(0, I_d), \quad k = 0..n-1

    without clipping. The law of x_k is approximated by that of a diffusion at time k/d.

    Parameters
    ----------
    features : array_like, shape (n, d)
    labels : array_like, shape (n,)
        The records, one a step, at least -1e30 and at most 1e30.
    record : int
        Index of the record that is replaced, in [0, n).
    replacement : (array_like of shape (d,), float)
        Features and label that it is replaced by, at least -1e30 and at most 1e30.
    schedule : RateWithIntegral
        Scaled rate γ(t) = d η at step k = t d, such as `ConstantRate(dimension * step_size)`.
    gradient_noise_std : float
        σ, noise added to each coordinate of a gradient, more than 0.
    order : float
        Rényi order α, more than 1. From some order on the divergence is infinite.
    release : {"last", "average", "all"}
        One iterate; the average of the iterates after `steps`; or those iterates themselves.
    steps : array_like of int, optional
        Numbers of steps in [1, n], ascending, after which iterates are taken; n alone for "last"
        unless given, where it is one number. The cost of "average" grows with their square.
    ridge : float
        Penalty δ, at least 0.
    start : array_like, shape (d,), optional
        x_0, independent of the records, at least -1e30 and at most 1e30; 0 by default.
    population : Population, optional
        Law of the records, not private if made of them; `population.estimated_population` of the
        records unless given.
    shuffled : bool
        Whether the records are visited in a random order, so that the loss is a mixture over the
        position; else each keeps its place.
    finest : float, optional
        Panel width of the quadrature over positions next to 0 and the release times, more than 0;
        1/d by default. Without effect on records in their places.

    Guarantee
    ---------
    None: an approximation by a conjecture, for one pair of records. It bounds no mechanism over all
    neighbouring data sets, and the diffusion's variance counts the sampling noise of the other
    records, which an adversary may know.

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
    lin2025, Algorithm 1, Theorems 4.3 to 4.5, equations (15), (21) and (24), in their exact
    variants.
    """
    rows = require_array("features", features, shape=(None, None), **WITHIN)
    n, d = rows.shape
    targets = require_array("labels", labels, shape=(n,), **WITHIN)
    index = require_count("record", record, least=0)
    if index >= n:
        raise ValueError(f"record must be less than {n}, the number of records, got {index}")
    try:
        given, given_label = replacement
    except (TypeError, ValueError):
        raise ValueError("replacement must be features and a label, got another object") from None
    other = require_array("replacement", given, shape=(d,), **WITHIN)
    other_label = float(require_array("replacement", given_label, shape=(), **WITHIN))
    require_flag("shuffled", shuffled)
    noise = require_number("gradient_noise_std", gradient_noise_std, above=0)
    alpha = require_number("order", order, above=1)
    require_choice("release", release, RELEASES)
    times = _release_steps(steps, release=release, sample_size=n) / d
    origin = np.zeros(d) if start is None else require_array("start", start, shape=(d,), **WITHIN)
    if population is not None:
        require_instance("population", population, Population)
    known = estimated_population(rows, targets) if population is None else population
    if known.target.size != d:
        raise ValueError(f"population must have dimension {d}, got {known.target.size}")
    problem, basis = known.regression(start=origin, ridge=ridge)
    law = HomogenisedSGD(problem, schedule, gradient_noise_std=noise, horizon=n / d)
    pair = (
        Record(rows[index] @ basis, float(targets[index])),
        Record(other @ basis, other_label),
    )
    if shuffled:
        width = 1.0 / d if finest is None else finest
        positions, weights = position_quadrature(times, finest=width, schedule=schedule)
    else:
        # The iterate after k steps lies at k/d and does not know record k, counted from 0.
        positions, weights = np.nextafter([index / d], np.inf), np.array([law.horizon])
    try:
        divergences = np.array(
            [
                [
                    release_divergence(
                        law, *ordered, release=release, times=times, position=place, order=alpha
                    )
                    for place in positions
                ]
                for ordered in (pair, pair[::-1])
            ]
        )
    except IndistinctError as error:
        raise ValueError(f"features, labels and replacement must be such that {error}") from None
    by_direction = shuffled_loss(divergences, weights, horizon=law.horizon, order=alpha)
    return ReleaseLoss(float(by_direction.max()), by_direction, positions, divergences)


def release_divergence(
    law: HomogenisedSGD,
    first: Record,
    second: Record,
    *,
    release: Release,
    times: FloatArray,
    position: float,
    order: float,
    variant: Variant = "exact",
) -> float:
    """Divergence of a release between two runs that differ in the record at one position.

    What is released is the iterate at the last of `times`, their average, or all of them (lin2025,
    Theorems 4.3, 4.5 and 4.4): an approximation, no guarantee.
    """
    if release == "last":
        last = float(times[-1])
        return last_iterate_divergence(
            law, first, second, time=last, position=position, order=order, variant=variant
        )
    divergence = average_divergence if release == "average" else iterates_divergence
    return divergence(
        law, first, second, times=times, position=position, order=order, variant=variant
    )


def _release_steps(steps: ArrayLike | None, *, release: str, sample_size: int) -> FloatArray:
    if steps is None:
        if release != "last":
            raise ValueError(f"steps must be given for the release {release!r}, got None")
        steps = [sample_size]
    wanted = np.atleast_1d(require_counts("steps", steps, least=1, most=sample_size))
    if wanted.ndim != 1 or wanted.size == 0 or np.any(np.diff(wanted) <= 0):
        raise ValueError(f"steps must be ascending whole numbers, got {short(steps)}")
    if release == "last" and wanted.size > 1:
        raise ValueError(f"steps must be one number for the release 'last', got {wanted.size}")
    return wanted.astype(np.float64)
