"""Sum of clipped least-squares gradients over a data set, for many parameter vectors at once.

A chunk of rows serves all parameter vectors while it is in cache: two matrix products with a
one-pass clipping of the residuals in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import (
    LONGEST,
    ROWS_PER_CHUNK,
    SHORTEST,
    ArraySamples,
    Chunk,
    Samples,
    as_samples,
    checked_data,
    rescaled,
    row_norms,
)
from privreg.validation import require_answer, require_array, require_real, short

FloatArray = NDArray[np.float64]
# Beyond, the fitted values of rescaled rows would no longer be small beside rescaled labels.
LARGEST_PARAMETER = 1e40


def clipped_gradient_sum(
    chunks: Iterator[Chunk], parameters: ArrayLike, *, clip_norm: ArrayLike
) -> tuple[FloatArray, NDArray[np.int64]]:
    r"""Negative sum (p, lanes) of clipped gradients at (p, lanes), and the number (lanes,) clipped.

    .. math::
        -\sum_i \mathrm{CLIP}_\gamma\big(-\mathbf x_i r_i\big)
        = \sum_i \mathbf x_i\, \mathrm{clip}\big(r_i, \pm\gamma / \|\mathbf x_i\|\big),
        \qquad r_i = y_i - \mathbf x_i^\top\theta

    The right-hand side is the negative gradient of a sum of Huber losses, one width a row; it needs
    no n × p array of gradients. The number of clipped rows is a non-private diagnostic.

    Guarantee
    ---------
    A row adds a vector of norm at most γ, for every finite row from subnormal to 1e308, up to a
    relative rounding error of p + 4 units in the last place. It is a statement about sums of real
    numbers: the sum itself is rounded.

    Source
    ------
    brown2024, Algorithm 1 line 3 and section 2.5.
    """
    theta = require_array("parameters", parameters, shape=(None, None))
    bounds = require_clip_norm(clip_norm)
    if bounds.shape != theta.shape[1:]:
        raise ValueError(f"clip_norm must have shape {theta.shape[1:]}, got {bounds.shape}")
    if np.max(np.abs(theta)) > LARGEST_PARAMETER:
        raise ValueError(f"parameters must be at most {LARGEST_PARAMETER:g}, got larger ones")
    given = [checked_data(chunk.features, chunk.labels) for chunk in chunks]
    rows = [Chunk(features, labels, row_norms(features)) for features, labels in given]
    with np.errstate(over="ignore", invalid="ignore"):
        sums, clipped = sum_clipped(iter(rescale_chunks(rows, bounds)), theta, bounds)
    return require_answer("chunks and parameters", sums), clipped


def sum_clipped(
    chunks: Iterator[Chunk], theta: FloatArray, bounds: FloatArray
) -> tuple[FloatArray, NDArray[np.int64]]:
    """As `clipped_gradient_sum`, for chunks that `rescale_chunks` has seen and checked numbers."""
    lanes = theta.shape[1]
    sums = np.zeros(theta.shape)
    clipped = np.zeros(lanes, dtype=np.int64)
    block = max(16, min(ROWS_PER_CHUNK, 32768 // lanes))
    buffer = np.empty((block, lanes))
    for features, labels, norms in chunks:
        for first in range(0, labels.size, block):
            rows = features[first : first + block]
            residuals = np.matmul(rows, theta, out=buffer[: len(rows)])
            stop = first + len(rows)
            _clip_residuals(residuals, labels[first:stop], norms[first:stop], bounds, clipped)
            sums += rows.T @ residuals
    return sums, clipped


def rescale_chunks(chunks: Iterable[Chunk], clip_norm: FloatArray) -> Iterable[Chunk]:
    """Chunks whose clipped gradients double precision can compute; as they are without clipping.

    Where some clips are infinite and others not, a row beyond the range raises ValueError: nothing
    of such a run is private.
    """
    clips = np.isfinite(clip_norm)
    for chunk in chunks:
        if not np.any(clips):
            yield chunk
            continue
        found = rescaled(chunk)
        if found is not chunk and not np.all(clips):
            raise ValueError(
                f"clip_norm must be finite for rows beyond [{SHORTEST:g}, {LONGEST:g}] in length, "
                "got an infinite one beside finite ones"
            )
        yield found


@dataclass(frozen=True)
class WalkedSamples:
    """The rows that `walk` makes of the chunks of other samples."""

    _norms_are_own: ClassVar[bool] = True
    samples: Samples
    sample_size: int
    walk: Callable[[Iterator[Chunk]], Iterable[Chunk]]

    @property
    def dimension(self) -> int:
        return self.samples.dimension

    def chunks(self) -> Iterator[Chunk]:
        return iter(self.walk(self.samples.chunks()))


def rescale_samples(samples: Samples, clip_norm: FloatArray) -> Samples:
    """Data whose chunks are `rescaled`; the data themselves where that would change nothing."""
    samples = as_samples(samples)
    if isinstance(samples, ArraySamples) and samples.is_within_range:
        # Seen once, so that no pass pays for looking again: the arrays are read-only.
        return samples
    rescale = partial(rescale_chunks, clip_norm=clip_norm)
    return WalkedSamples(samples, samples.sample_size, rescale)


def require_clip_norm(clip_norm: ArrayLike, *, name: str = "clip_norm") -> FloatArray:
    """Clipping norms that products with rescaled rows can hold, or infinite ones."""
    bounds = require_real(name, clip_norm, least=SHORTEST, infinite=True)
    beyond = bounds[bounds > LONGEST]
    if beyond.size and not np.all(np.isinf(beyond)):
        raise ValueError(f"{name} must be at most {LONGEST:g}, or infinite, got {short(bounds)}")
    return bounds


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _clip_residuals(
    fitted: FloatArray,
    labels: FloatArray,
    norms: FloatArray,
    clip_norm: FloatArray,
    clipped: NDArray[np.int64],
) -> None:
    rows, lanes = fitted.shape
    for i in range(rows):
        # A row of zeros has no gradient to clip: its width is infinite.
        inverse = 1.0 / norms[i]
        for lane in range(lanes):
            width = clip_norm[lane] * inverse
            residual = labels[i] - fitted[i, lane]
            clipped[lane] += abs(residual) > width
            fitted[i, lane] = min(max(residual, -width), width)
