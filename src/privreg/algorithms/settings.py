"""Settings that several algorithms share: clipping norms, starts, steps, the setting to release."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import Samples, as_samples
from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    Shape,
    require_array,
    require_counts,
    require_instance,
    require_rng,
    short,
)
from privreg.privacy.budget import Neighbours
from privreg.privacy.release import OneOfMany


def require_clip_norm(
    clip_norm: ArrayLike, *, name: str = "clip_norm", shape: Shape = (...,)
) -> FloatArray:
    """Clipping norms of the domain, or infinite ones; at least one."""
    bounds = require_array(name, clip_norm, shape=shape, least=LEAST, infinite=True)
    if np.any((bounds > MOST) & np.isfinite(bounds)):
        raise ValueError(f"{name} must be at most {MOST:g}, or infinite, got {short(bounds)}")
    return bounds


def require_run(
    mechanism: Any, kind: type[Any], samples: Samples, rng: np.random.Generator
) -> Samples:
    """The data set of a mechanism of a kind, with its number of rows, and a source of noise."""
    require_instance("mechanism", mechanism, kind)
    require_rng("rng", rng)
    samples = as_samples(samples)
    if samples.sample_size != mechanism.sample_size:
        raise ValueError(
            f"samples must have the mechanism's sample_size rows, {mechanism.sample_size}, "
            f"got {samples.sample_size}"
        )
    return samples


def initial_point(start: ArrayLike | None, dimension: int) -> FloatArray:
    """A descent's start in memory of its own, 0 by default."""
    point = np.zeros(dimension)
    if start is not None:
        point += require_array("start", start, shape=(dimension,), least=-MOST, most=MOST)
    return point


def require_increasing(
    name: str, steps: ArrayLike, *, least: int = 1, most: int
) -> NDArray[np.int64]:
    """Whole numbers in a range, each larger than the one before; may be empty."""
    found = require_counts(name, steps, least=least, most=most)
    if found.ndim != 1 or np.any(np.diff(found) < 1):
        raise ValueError(f"{name} must increase within {least}..{most}, got {short(steps)}")
    return found


def require_places(neighbours: Neighbours | str) -> Neighbours:
    """Replace-one or zero-out neighbours, in which other records keep their places."""
    relation = Neighbours(neighbours)
    if relation is Neighbours.ADD_REMOVE:
        raise ValueError(
            "neighbours must be 'replace-one' or 'zero-out', got 'add-remove': a record more would "
            "move the later ones to other steps"
        )
    return relation


def released_setting(
    settings: OneOfMany,
    setting: int | tuple[int, ...] | None,
    *,
    clip_norm: FloatArray,
    noise: FloatArray,
) -> tuple[tuple[int, ...], float, float]:
    """Index, clipping norm and noise of the setting to release, of settings that share noise."""
    if not np.all(np.isfinite(clip_norm)):
        # A row that nothing clips can end the run, and with it every other setting.
        raise ValueError("setting must be of a run with finite clip_norm throughout for a release")
    index = settings.take(setting)
    if not noise[index] > 0:
        raise ValueError(f"setting must have noise for a release, got {noise[index]:g}")
    return index, float(clip_norm[index]), float(noise[index])
