r"""Streams of noise (Toeplitz, tree-aggregated or independent), and their sensitivity.

A stream yields vectors of shape (dimension,), made from white noise w of standard deviation `std`.
It ends after `steps` items, because its privacy is accounted for that number of steps only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.linalg import lapack

from privreg.checks import (
    MOST,
    FloatArray,
    Uncopied,
    require_array,
    require_count,
    require_fields,
    require_frozen,
    require_number,
    require_rng,
)
from privreg.kernels import standard_normal
from privreg.noise.sensitivity import single_participation_sensitivity
from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder

_FIRST_BLOCK = 64
# Products of up to so many numbers are one transform, which stays in the caches. Larger ones are
# cut: from `_LONG` steps on into `_BLOCKS` blocks, and into coordinates of `_AT_ONCE` numbers.
_IN_CACHE = 1 << 17
_LONG, _BLOCKS = 16_384, 4
_AT_ONCE = 1 << 16


class NoiseStream(Uncopied, ABC):
    """Iterator over noise vectors; `draw(n)` returns the next n; `count` is the number drawn."""

    def __init__(
        self,
        dimension: int,
        *,
        rng: np.random.Generator,
        std: float = 1.0,
        steps: int | None = None,
    ) -> None:
        self.dimension = require_count("dimension", dimension)
        self.steps = None if steps is None else require_count("steps", steps)
        self.count = 0
        self._is_torn = False
        self._std = require_number("std", std, least=0)
        self._rng = require_rng("rng", rng)

    def __iter__(self) -> Iterator[FloatArray]:
        return self

    def __next__(self) -> FloatArray:
        if self.count == self.steps:
            raise StopIteration
        return self.draw(1)[0]

    def draw(self, count: int) -> FloatArray:
        """Next `count` vectors, shape (count, dimension); fewer if the stream ends first."""
        self._require_process()
        if self._is_torn:
            raise ValueError("stream must not be used after a failed draw: create a new one")
        left = count if self.steps is None else min(count, self.steps - self.count)
        block = np.zeros((left, self.dimension))
        # A draw that fails half way has used noise that was not given, which later steps subtract.
        self._is_torn = True
        self._fill(block)
        self._is_torn = False
        self.count += left
        return block

    @abstractmethod
    def _fill(self, block: FloatArray) -> None:
        """Write the noise of the next steps into the rows of a block of zeros."""

    def _white(self, count: int) -> FloatArray:
        noise = standard_normal(self._rng, (count, self.dimension))
        noise *= self._std
        return noise


class WhiteNoise(NoiseStream):
    """Stream of independent noise, of sensitivity 1; endless unless `steps` is given."""

    def _fill(self, block: FloatArray) -> None:
        block[:] = self._white(len(block))


class ToeplitzNoise(NoiseStream):
    """Exact noise of any Toeplitz decoder, by FFT over blocks that double in length.

    The decoder's coefficients, shape (steps,), start with a nonzero number. `std` is the noise
    multiplier times the encoder's sensitivity times the bound on a step's gradient. White noise is
    drawn in step order, whatever the block lengths. Memory is about four vectors for each
    coefficient up to the last nonzero one. Time is O(log² steps) per step and coordinate.
    """

    def __init__(
        self, decoder: ArrayLike, *, dimension: int, rng: np.random.Generator, std: float = 1.0
    ) -> None:
        # Read-only copies: the privacy of the stream was computed from these numbers.
        coefficients = require_frozen("decoder", decoder, shape=(None,), least=-MOST, most=MOST)
        if coefficients[0] == 0:
            raise ValueError("decoder must start with a number other than 0, got 0")
        self._last = coefficients.size
        super().__init__(dimension, rng=rng, std=std, steps=self._last)
        self._decoder = np.trim_zeros(coefficients, "b")
        self._past = np.zeros((0, self.dimension))
        self._ready = np.zeros((0, self.dimension))
        self._made = 0

    def _fill(self, block: FloatArray) -> None:
        filled = 0
        while filled < len(block):
            if not len(self._ready):
                self._ready = self._next_block()
            taken = min(len(self._ready), len(block) - filled)
            block[filled : filled + taken] = self._ready[:taken]
            self._ready = self._ready[taken:]
            filled += taken

    def _next_block(self) -> FloatArray:
        longest = max(self._decoder.size, _FIRST_BLOCK)
        length = min(max(self._made, _FIRST_BLOCK), longest, self._last - self._made)
        history = len(self._past)
        white = np.concatenate([self._past, self._white(length)])
        self._past = white[max(len(white) - self._decoder.size + 1, 0) :].copy()
        self._made += length
        return correlate_noise(self._decoder, white)[history:]


def correlate_noise(decoder: ArrayLike, white: ArrayLike) -> FloatArray:
    """Product of a Toeplitz decoder, shape (bands,), and noise, shape (steps, dimension), by FFT.

    Missing coefficients of the decoder are 0.
    """
    noise = require_array("white", white, shape=(None, None))
    steps = len(noise)
    kernel = require_array("decoder", decoder, shape=(None,))[:steps]
    if kernel.size <= 8:
        product = kernel[0] * noise
        for lag in range(1, kernel.size):
            product[lag:] += kernel[lag] * noise[: steps - lag]
        return product
    whole = next_fast_len(steps + kernel.size - 1, real=True)
    if whole * noise.shape[1] <= _IN_CACHE:
        spectrum = rfft(kernel, whole)[:, None] * rfft(noise, whole, axis=0)
        return np.asarray(irfft(spectrum, whole, axis=0))[:steps]
    # Blocks of the noise meet blocks of the coefficients, so that transforms fit into the caches.
    length = steps if steps < _LONG else next_fast_len(-(-steps // _BLOCKS), real=True)
    count, lags = -(-steps // length), -(-kernel.size // length)
    size = next_fast_len(length + min(length, kernel.size) - 1, real=True)
    spectra = rfft(np.pad(kernel, (0, lags * length - kernel.size)).reshape(lags, length), size)
    # A coordinate's steps are contiguous.
    product = np.zeros((noise.shape[1], count * length))
    product[:, :steps] = noise.T
    coordinates = max(1, _AT_ONCE // size)
    for first in range(0, len(product), coordinates):
        rows = product[first : first + coordinates]
        blocks = rfft(rows.reshape(len(rows), count, length).swapaxes(0, 1), size)
        rows[:] = 0.0
        for at in range(count):
            response = spectra[0] * blocks[at]
            for lag in range(1, min(lags, at + 1)):
                response += spectra[lag] * blocks[at - lag]
            reached = rows[:, at * length : at * length + size]
            reached += irfft(response, size)[:, : reached.shape[1]]
    return product[:, :steps].T


class TreeNoise(NoiseStream):
    r"""Stream of tree-aggregated noise; it stores one vector per level of the tree.

    The t-th item is the increment :math:`\xi_t = \nu_t - \nu_{t-1}` of the prefix noise ν. In each
    coordinate, ν_s and ν_t have covariance `std`² times the number of nodes that both prefixes use.
    For noise of covariance Σ, multiply items by a root of Σ. `std` is the standard deviation of a
    node's noise: noise multiplier × `tree_sensitivity` × bound on a step's vector. Privacy
    accounted with `tree_sensitivity(steps)` covers at most `steps` items; by default the stream is
    endless. Source: anon2024, Algorithm 3, with steps counted from 1; choquettechoo2024, Table 3.
    """

    @cached_property
    def _nodes(self) -> dict[int, FloatArray]:
        return {}

    def _fill(self, block: FloatArray) -> None:
        for row, count in enumerate(range(self.count + 1, self.count + len(block) + 1)):
            level = (count & -count).bit_length() - 1
            node = self._white(1)[0]
            block[row] = node
            for below in range(level):
                block[row] -= self._nodes.pop(below)
            self._nodes[level] = node


def tree_levels(steps: int) -> int:
    r"""Number of tree levels, :math:`\lceil \log_2 N \rceil + 1` (anon2024, Algorithm 3)."""
    return (steps - 1).bit_length() + 1


def tree_sensitivity(steps: int) -> float:
    r"""Sensitivity of a tree over N steps to a record that takes part in one step.

    .. math:: \gamma = \sqrt{\lfloor \log_2 N \rfloor + 1}

    Guarantee
    ---------
    Assume that adding, removing or zeroing out a record changes one step only, and that a step's
    vector has norm at most 1. With node noise of standard deviation σγ, all prefix sums together
    are 1/(2σ²)-zCDP. A step is in `tree_levels(N)` nodes; at most γ² of them enter prefix sums.
    """
    return float(np.sqrt(steps.bit_length()))


def tree_matrices(steps: int) -> tuple[FloatArray, FloatArray]:
    """Tree encoder (nodes, steps) and decoder (steps, nodes), for nodes that enter a prefix sum.

    The decoder maps node noise to the increments of `TreeNoise`; decoder @ encoder is the identity.

    Source
    ------
    choquettechoo2024, Table 3 (TreeAgg).
    """
    steps = require_count("steps", steps)
    rows, prefix_rows = [], []
    index = np.arange(1, steps + 1)
    for level in range(steps.bit_length()):
        for block in range(0, steps >> level, 2):
            first, last = block << level, (block + 1) << level
            rows.append((index > first) & (index <= last))
            # The node is in use from its completion until its right sibling completes.
            prefix_rows.append((index >= last) & (index < last + (1 << level)))
    encoder = np.array(rows, dtype=np.float64)
    prefixes = np.array(prefix_rows, dtype=np.float64).T
    return encoder, np.diff(prefixes, axis=0, prepend=0.0)


def full_honaker(steps: int) -> tuple[FloatArray, FloatArray]:
    r"""Tree encoder (nodes, steps) and decoder (steps, nodes) with least-variance prefix sums.

    .. math:: B = C^+ = (C^\top C)^{-1} C^\top

    C has one row for each complete node of the tree, right children included. The decoder is not
    lower-triangular in time: a prefix sum uses nodes that later steps complete. All noise is
    therefore drawn before the first step.

    Source
    ------
    Honaker (2015); choquettechoo2024, Table 3 (Full Honaker).
    """
    steps = require_count("steps", steps)
    index = np.arange(steps)
    nodes, gram = [], np.zeros((steps, steps))
    for level in range(steps.bit_length()):
        nodes.append((index >> level == np.arange(steps >> level)[:, None]).astype(np.float64))
        for block in range(steps >> level):
            under = slice(block << level, (block + 1) << level)
            gram[under, under] += 1.0
    half, _ = lapack.dpotri(lapack.dpotrf(gram)[0])
    # Columns of a node: those of its two children, which at first are of the inverse itself.
    columns = [np.triu(half) + np.triu(half, 1).T]
    for level in range(1, steps.bit_length()):
        pairs = columns[-1][:, : steps >> level << 1]
        columns.append(pairs[:, ::2] + pairs[:, 1::2])
    return np.concatenate(nodes), np.concatenate(columns, axis=1)


@runtime_checkable
class Correlation(Protocol):
    """Correlation of noise over steps, for records that take part in one step."""

    def sensitivity(self, steps: int) -> float:
        """Largest norm of the encoded gradients' change if one gradient moves by a unit vector."""

    def stream(self, dimension: int, *, steps: int, rng: np.random.Generator) -> NoiseStream:
        """Stream of noise increments ξ_t, one for each step t, made from standard normal draws."""

    def increment_terms(self, step: int) -> tuple[list[int], list[int]] | None:
        """Steps whose draws the increment ξ_t subtracts; steps whose draws no later one needs.

        t = `step` ≥ 1. None if increments combine many draws; the noise scale must then be fixed.
        """


@dataclass(frozen=True)
class TreeCorrelation:
    """Tree aggregation (anon2024, Algorithm 3): prefix t uses one node for each binary 1 of t.

    Examples
    --------
    >>> round(TreeCorrelation().sensitivity(1000) ** 2)
    10
    """

    def sensitivity(self, steps: int) -> float:
        return tree_sensitivity(steps)

    def stream(self, dimension: int, *, steps: int, rng: np.random.Generator) -> NoiseStream:
        return TreeNoise(dimension, rng=rng, steps=steps)

    def increment_terms(self, step: int) -> tuple[list[int], list[int]] | None:
        level = (step & -step).bit_length() - 1
        children = [step - (1 << below) for below in range(level)]
        return children, children


@dataclass(frozen=True)
class IndependentCorrelation:
    """Independent noise in every step, as in DP-SGD; each record is in one step of a pass."""

    def sensitivity(self, steps: int) -> float:
        return 1.0

    def stream(self, dimension: int, *, steps: int, rng: np.random.Generator) -> NoiseStream:
        return WhiteNoise(dimension, rng=rng, steps=steps)

    def increment_terms(self, step: int) -> tuple[list[int], list[int]] | None:
        return [], [step]


@dataclass(frozen=True)
class SquareRootCorrelation:
    """Noise of the damped square root (ν-DP-FTRL of choquettechoo2024), correlated over all steps.

    Parameters
    ----------
    damping : float
        Damping ν in [0, 1], such as step size × typical eigenvalue; 1 gives independent noise.
    """

    damping: float

    def __post_init__(self) -> None:
        require_fields(self, damping=partial(require_number, least=0, most=1))

    def sensitivity(self, steps: int) -> float:
        encoder = damped_square_root_encoder(steps, damping=self.damping)
        return single_participation_sensitivity(encoder)

    def stream(self, dimension: int, *, steps: int, rng: np.random.Generator) -> NoiseStream:
        decoder = damped_square_root(steps, damping=self.damping)
        return ToeplitzNoise(decoder, dimension=dimension, rng=rng)

    def increment_terms(self, step: int) -> tuple[list[int], list[int]] | None:
        return None
