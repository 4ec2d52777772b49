"""Data sets that are read in chunks of rows, and sums of clipped gradients.

Rows are in arrays or are regenerated at every pass, so that a data set need not fit in memory. The
norms that bound a row's influence are always computed from the rows that are summed. The library's
own samples cannot change; samples of other classes are checked in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable
from zlib import crc32

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    Immutable,
    Shape,
    frozen,
    require_answer,
    require_array,
    require_count,
    require_counts,
    require_instance,
    require_rng,
    short,
)
from privreg.privacy.budget import Neighbours
from privreg.privacy.release import OneOfMany

T = TypeVar("T")
ROWS_PER_CHUNK = 1024
# Between these lengths, and with such labels and parameters, no product of a clipped step leaves
# double precision; rows beyond are `rescaled`.
SHORTEST, LONGEST = 1e-50, 1e50
LARGEST_LABEL, LARGEST_PARAMETER = 1e110, 1e40
# Shares of the bound below which a weight counts as 0: roots stay far from the ends of precision.
NEGLIGIBLE = 1e-30


class Chunk(NamedTuple):
    """Some rows: features (rows, p), labels (rows,) and Euclidean norms of the features (rows,)."""

    features: FloatArray
    labels: FloatArray
    norms: FloatArray


@runtime_checkable
class Samples(Protocol):
    """Data set of n rows and p features that can be read any number of times.

    For a class of your own, the library computes the norms of rows itself. It raises ValueError if
    rows are not finite, differ from the stated number or shape, or change between passes.
    """

    @property
    def sample_size(self) -> int:
        """Number of rows n."""

    @property
    def dimension(self) -> int:
        """Number of features p."""

    def chunks(self) -> Iterator[Chunk]:
        """All rows, in the same order and with the same values at every call."""


@dataclass(frozen=True)
class ArraySamples(Immutable):
    """Data set in memory.

    Parameters
    ----------
    features : array_like, shape (n, p)
        Finite features, copied to read-only memory, so norms stay valid; shape (0, p) if empty.
    labels : array_like, shape (n,)
        Finite labels, one per row.

    Attributes
    ----------
    norms : ndarray, shape (n,)
        Euclidean norms of the rows, correct for every finite row; `inf` if too large for a double.
    is_within_range : bool
        True if clipped gradients can be computed without rescaling any row (`rescaled`).
    """

    not_private: ClassVar[bool] = True
    _norms_are_own: ClassVar[bool] = True
    features: FloatArray
    labels: FloatArray
    norms: FloatArray = field(init=False, repr=False)
    is_within_range: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # After the copy, which is read-only.
        self._keep(*map(frozen, checked_data(self.features, self.labels)))

    def _keep(self, features: FloatArray, labels: FloatArray) -> None:
        norms = frozen(row_norms(features))
        for name, array in (("features", features), ("labels", labels), ("norms", norms)):
            object.__setattr__(self, name, array)
        object.__setattr__(self, "is_within_range", is_within_range(labels, norms))

    @classmethod
    def _of_own(cls, features: FloatArray, labels: FloatArray) -> Self:
        """Data set that keeps finite arrays uncopied; no other reference to them may exist."""
        found, features = object.__new__(cls), np.ascontiguousarray(features)
        features.flags.writeable = labels.flags.writeable = False
        found._keep(features, labels)
        return found

    @property
    def sample_size(self) -> int:
        return self.features.shape[0]

    @property
    def dimension(self) -> int:
        return self.features.shape[1]

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, self.sample_size, ROWS_PER_CHUNK):
            rows = slice(first, first + ROWS_PER_CHUNK)
            yield Chunk(self.features[rows], self.labels[rows], self.norms[rows])


class _CheckedSamples:
    """Samples of another class: each pass checks the rows and computes their norms."""

    _norms_are_own = True

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.sample_size = require_count("samples: sample_size", samples.sample_size, least=0)
        self.dimension = samples.dimension
        self._checksums: tuple[int, int] | None = None

    def chunks(self) -> Iterator[Chunk]:
        rows, checksums = 0, (0, 0)
        chunk: Any
        for chunk in self.samples.chunks():
            if not isinstance(chunk, tuple) or len(chunk) < 2:
                kind = type(chunk).__name__
                raise ValueError(f"samples must have chunks of type Chunk, got {kind}")
            if np.size(chunk[1]) == 0:
                continue
            shape = (None, self.dimension)
            # Copies: others may use the memory of one chunk for the next.
            features = require_array("samples: features", chunk[0], shape=shape).copy()
            labels = require_array("samples: labels", chunk[1], shape=features.shape[:1]).copy()
            rows += len(labels)
            if rows > self.sample_size:
                break
            checksums = crc32(features.data, checksums[0]), crc32(labels.data, checksums[1])
            yield Chunk(features, labels, row_norms(features))
        if rows != self.sample_size:
            raise ValueError(f"samples must have {self.sample_size} rows in total, got {rows}")
        if self._checksums not in (None, checksums):
            raise ValueError("samples must have the same rows in every pass, got different ones")
        self._checksums = checksums


def build(kind: type[T], **values: Any) -> T:
    """Make an object of a class that users cannot construct; its arrays are read-only."""
    found = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(found, name, frozen(value) if isinstance(value, np.ndarray) else value)
    return found


def moments(samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Gram matrix XᵀX, shape (p, p), and moment Xᵀy, shape (p,), in one pass. Not private."""
    samples = as_samples(samples)
    gram, moment = sum_moments(samples.chunks(), samples.dimension)
    require_answer("samples", np.vstack([gram, moment]))
    return gram, moment


def sum_moments(chunks: Iterable[Chunk], dimension: int) -> tuple[FloatArray, FloatArray]:
    """The `moments` of some chunks; not finite if rows are too long."""
    gram, moment = np.zeros((dimension, dimension)), np.zeros(dimension)
    with np.errstate(over="ignore", invalid="ignore"):
        for features, labels, _ in chunks:
            gram += features.T @ features
            moment += features.T @ labels
    return gram, moment


def as_samples(samples: Samples) -> Samples:
    """Data set with checked norms; raises ValueError if the argument is not a data set."""
    # By the type itself: a subclass may give other rows.
    if vars(type(samples)).get("_norms_are_own"):
        return samples
    if not isinstance(samples, Samples):
        raise ValueError(
            f"samples must be ArraySamples or GaussianSamples, got {type(samples).__name__}"
        )
    return _CheckedSamples(samples)


def checked_data(
    features: ArrayLike, labels: ArrayLike, *, shape: Shape | None = None
) -> tuple[FloatArray, FloatArray]:
    """Features (n, p) and labels (n,), finite doubles; n may be 0 unless a shape is given."""
    # None stands for a length of at least 1.
    empty = getattr(features, "shape", ())[:1] == (0,)
    rows = require_array("features", features, shape=shape or (0 if empty else None, None))
    return rows, require_array("labels", labels, shape=rows.shape[:1])


def row_norms(features: FloatArray) -> FloatArray:
    """Euclidean norms of finite rows; `inf` if too large for a double."""
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", features, features)
        norms = np.sqrt(squares)
        # Squares outside this range have lost digits, or everything.
        lost = ~((squares > 1e-280) & (squares < 1e280))
        if np.any(lost):
            largest = np.max(np.abs(features[lost]), axis=1, keepdims=True)
            relative = features[lost] / np.where(largest > 0, largest, 1.0)
            norms[lost] = largest[:, 0] * np.sqrt(np.einsum("ij,ij->i", relative, relative))
    return norms


def rescaled(chunk: Chunk) -> Chunk:
    r"""Rows rescaled so that their squared lengths do not overflow; clipped gradients stay equal.

    A row longer than 1e50 is shortened to 1e50 together with its label. This keeps the gradient's
    direction, and the length of a clipped gradient. A row shorter than 1e-50 is lengthened to
    1e-50, and its label is divided by the same factor: :math:`\|x\|y` stays the same, and
    :math:`\|x\|^2\theta` is negligible beside it. A label beyond ±1e110 is set to ±1e110: the
    row's gradient is clipped either way. The change of a row does not depend on other rows.
    """
    features, labels, norms = chunk
    if is_within_range(labels, norms):
        return chunk
    outside = (norms > LONGEST) | ((norms < SHORTEST) & (norms > 0))
    if np.any(outside):
        rows = features[outside]
        largest = np.max(np.abs(rows), axis=1)
        relative = rows / largest[:, None]
        root = np.sqrt(np.einsum("ij,ij->i", relative, relative))
        long = norms[outside] > LONGEST
        length = np.where(long, LONGEST, SHORTEST)
        features, labels, norms = features.copy(), labels.copy(), norms.copy()
        features[outside] = relative * (length / root)[:, None]
        with np.errstate(over="ignore", under="ignore"):
            factor = np.where(long, LONGEST / largest / root, largest / SHORTEST * root)
            labels[outside] *= factor
        norms[outside] = length
    return Chunk(features, np.clip(labels, -LARGEST_LABEL, LARGEST_LABEL), norms)


def is_within_range(labels: FloatArray, norms: FloatArray) -> bool:
    """True if `rescaled` would change none of the rows."""
    inside = ((norms >= SHORTEST) & (norms <= LONGEST)) | (norms == 0)
    return bool(np.all(inside) and np.max(np.abs(labels), initial=0.0) <= LARGEST_LABEL)


class WeightedChunk(NamedTuple):
    """Weighted rows as in `Chunk`, with the square roots (rows,) of their weights.

    `Records` needs the roots to clip the unweighted residual.
    """

    features: FloatArray
    labels: FloatArray
    norms: FloatArray
    roots: FloatArray


@dataclass(frozen=True)
class WeightedSamples(ArraySamples):
    r"""Rows in memory, already multiplied by `roots` (n,), the square roots √w̃ of their weights.

    .. math::
        (\sqrt{\tilde w}\,x, \sqrt{\tilde w}\,y), \qquad \tilde w = \mathrm{clip}(w, 0, W)/W

    where W is the bound of the weights w. Least squares on these rows is weighted least squares. A
    row of weight 0 holds only zeros. The 1 of an intercept is also multiplied by √w̃.
    """

    _norms_are_own: ClassVar[bool] = True
    weighted: ClassVar[bool] = True
    roots: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        roots = require_array("roots", self.roots, shape=self.labels.shape, least=0, most=1)
        object.__setattr__(self, "roots", frozen(roots))


def weight_roots(weights: ArrayLike, bound: float) -> FloatArray:
    """Roots √w̃ of `WeightedSamples`, record by record; weights below 1e-30 W count as 0."""
    shares = np.clip(np.asarray(weights, dtype=float), 0.0, bound) / bound
    return np.sqrt(np.where(shares < NEGLIGIBLE, 0.0, shares))


def clipped_gradient_sum(
    chunks: Iterable[Chunk], parameters: ArrayLike, *, clip_norm: ArrayLike
) -> tuple[FloatArray, NDArray[np.int64]]:
    r"""Negative sum of clipped gradients, and number of clipped rows, at each column of θ.

    .. math::
        -\sum_i \mathrm{CLIP}_\gamma\big(-\mathbf x_i r_i\big)
        = \sum_i \mathbf x_i\, \mathrm{clip}\big(r_i, \pm\gamma / \|\mathbf x_i\|\big),
        \qquad r_i = y_i - \mathbf x_i^\top\theta

    The right-hand side is the negative gradient of a sum of Huber losses, with one width per row.
    This form needs no n × p array of gradients. Results have shapes (p, lanes) and (lanes,). Counts
    of clipped rows are not private.

    Guarantee
    ---------
    Every finite row, from subnormal to 1e308, adds a vector of norm at most γ, up to a relative
    rounding error of p + 4 units in the last place. It covers exact sums; the result is rounded.

    Source: brown2024, Algorithm 1 line 3 and section 2.5.
    """
    theta, bounds = np.asarray(parameters, dtype=float), np.asarray(clip_norm, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        return sum_clipped(rescale_chunks(chunks, bounds), theta, bounds)


def sum_clipped(
    chunks: Iterable[Chunk], theta: FloatArray, bounds: FloatArray
) -> tuple[FloatArray, NDArray[np.int64]]:
    """As `clipped_gradient_sum`, for chunks from `rescale_chunks`."""
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


def rescale_chunks(chunks: Iterable[Chunk], clip_norm: FloatArray) -> Iterator[Chunk]:
    """Chunks, rescaled so that clipped gradients do not overflow; unchanged without any clipping.

    If some clips are infinite and others finite, a row that needs rescaling raises ValueError. Such
    a run is not private, so the error may depend on rows.
    """
    clips = np.isfinite(clip_norm)
    for chunk in chunks:
        if not np.any(clips):
            yield chunk
            continue
        found = rescaled(chunk)
        if found is not chunk and not np.all(clips):
            raise ValueError(
                f"clip_norm must be all finite or all infinite if rows have lengths outside "
                f"[{SHORTEST:g}, {LONGEST:g}], got finite and infinite norms"
            )
        yield found


def clippable_chunks(samples: Samples, clip_norm: FloatArray) -> Callable[[], Iterator[Chunk]]:
    """Function that, at each call, reads the data set again and applies `rescale_chunks`."""
    if isinstance(samples, ArraySamples) and samples.is_within_range:
        # Seen once, so that no pass pays for looking again: the arrays are read-only.
        return samples.chunks
    return lambda: rescale_chunks(samples.chunks(), clip_norm)


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


def require_clip_norm(
    clip_norm: ArrayLike, *, name: str = "clip_norm", shape: Shape = (...,)
) -> FloatArray:
    """Clipping norms, at least one; each must be in the allowed range or infinite."""
    bounds = require_array(name, clip_norm, shape=shape, least=LEAST, infinite=True)
    if np.any((bounds > MOST) & np.isfinite(bounds)):
        raise ValueError(f"{name} must be at most {MOST:g}, or infinite, got {short(bounds)}")
    return bounds


def require_run(
    mechanism: Any, kind: type[Any], samples: Samples, rng: np.random.Generator
) -> Samples:
    """Data set with the mechanism's number of rows; checks the types of all arguments."""
    require_instance("mechanism", mechanism, kind)
    require_rng("rng", rng)
    samples = as_samples(samples)
    if samples.sample_size != mechanism.sample_size:
        raise ValueError(
            f"samples must have as many rows as the mechanism, {mechanism.sample_size}, "
            f"got {samples.sample_size}"
        )
    return samples


def initial_point(start: ArrayLike | None, dimension: int) -> FloatArray:
    """Starting point of a descent, 0 by default, as a copy that shares no memory."""
    point = np.zeros(dimension)
    if start is not None:
        point += require_array("start", start, shape=(dimension,), least=-MOST, most=MOST)
    return point


def require_increasing(
    name: str, steps: ArrayLike, *, least: int = 1, most: int
) -> NDArray[np.int64]:
    """Check that whole numbers lie in a range and strictly increase; there may be none."""
    found = require_counts(name, steps, least=least, most=most)
    if found.ndim != 1 or np.any(np.diff(found) < 1):
        raise ValueError(f"{name} must increase and lie in [{least}, {most}], got {short(steps)}")
    return found


def require_places(neighbours: Neighbours | str) -> Neighbours:
    """Check that neighbours are replace-one or zero-out; add-remove would shift later records."""
    relation = Neighbours(neighbours)
    if relation is Neighbours.ADD_REMOVE:
        raise ValueError(
            "neighbours must be 'replace-one' or 'zero-out', got 'add-remove': one more record "
            "would move all later records to other steps"
        )
    return relation


def released_setting(
    settings: OneOfMany,
    setting: int | tuple[int, ...] | None,
    *,
    clip_norm: FloatArray,
    noise: FloatArray,
) -> tuple[tuple[int, ...], float, float]:
    """Index, clipping norm and noise of the released setting.

    Only one setting may be released, because all settings share the same noise.
    """
    if not np.all(np.isfinite(clip_norm)):
        # A row that nothing clips can end the run, and with it every other setting.
        raise ValueError("setting must come from a run with only finite clip norms, got inf")
    index = settings.take(setting)
    if not noise[index] > 0:
        raise ValueError(f"setting must add noise to be released, got noise {noise[index]:g}")
    return index, float(clip_norm[index]), float(noise[index])
