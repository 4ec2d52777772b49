"""What the law of a released average of noisy homogenised SGD shares among all records.

One record enters at the position s through a discrete step of size η = γ(s)/d. In the eigenbasis of
Σ everything but that step is diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.ranges import short
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
from privreg.validation import require_array, require_choice, require_instance, require_number

Variant = Literal["exact", "paper"]
# Variances are right to about 1e-13: what is left of their difference is right to 1e-6.
LEAST_SHARE = 1e-7
# Numbers in an array of several positions.
MOST_AT_ONCE = 1e5


class ReleaseGeometry(NamedTuple):
    """What the law of a released average shares among all records that may sit at the position.

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
    """The law of the average of the iterates at `times` up to the record at `position`.

    Parameters
    ----------
    law : HomogenisedSGD
        With noise and unit multiplicities.
    times : array_like, shape (J,)
        Ascending, in [0, horizon].
    position : float
        In [0, horizon].
    variant : {"exact", "paper"}
        As for `average_divergence`.

    Returns
    -------
    ReleaseGeometry or None
        None if every iterate is released before the position, so that no record matters.
    """
    position = require_number("position", position, least=0)
    return next(release_geometries(law, times=times, position=[position], variant=variant))


def release_geometries(
    law: HomogenisedSGD, *, times: ArrayLike, position: ArrayLike, variant: Variant = "exact"
) -> Iterator[ReleaseGeometry | None]:
    """`release_geometry` at each of several positions, most of them computed at once.

    Parameters
    ----------
    law, times, variant
        As for `release_geometry`.
    position : array_like, shape (p,)
        In [0, horizon].
    """
    require_instance("law", law, HomogenisedSGD)
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
