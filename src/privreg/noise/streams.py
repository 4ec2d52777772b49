r"""Correlated noise step by step: :math:`\tilde w_t = \sum_{s \le t} \beta_{t-s} w_s`.

A stream iterates over vectors of shape (dimension,) whose white noise w has standard deviation
`std`. It ends after `steps` items, because the sensitivity that its privacy is accounted with
belongs to that many steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft

from privreg.immutable import Uncopied
from privreg.noise.normals import standard_normal
from privreg.validation import (
    FloatArray,
    require_array,
    require_count,
    require_frozen,
    require_number,
    require_rng,
)

_FIRST_BLOCK = 64
# One transform of as many numbers stays in the caches. Of more, a product is made of so many at
# once, and from so many steps on in blocks.
_IN_CACHE = 1 << 17
_LONG = 16_384
_BLOCKS = 4
_AT_ONCE = 1 << 16
# Noise and its multipliers up to here stay far from overflow.
LARGEST = 1e50
_WITHIN = {"least": -LARGEST, "most": LARGEST}


class NoiseStream(Uncopied, ABC):
    """Iterator over noise vectors; `draw(count)` takes several, and `count` are taken so far."""

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
        self._std = require_number("std", std, least=0, most=LARGEST)
        self._rng = require_rng("rng", rng)

    def __iter__(self) -> Iterator[FloatArray]:
        return self

    def __next__(self) -> FloatArray:
        if self.count == self.steps:
            raise StopIteration
        return self.draw(1)[0]

    def draw(self, count: int) -> FloatArray:
        """The next `count` items, shape (count, dimension); fewer where the stream ends first."""
        count = require_count("count", count)
        if self._is_torn:
            raise ValueError("stream must be made anew after a draw that failed half way, got one")
        left = count if self.steps is None else min(count, self.steps - self.count)
        block = np.zeros((left, self.dimension))
        # What was drawn and not given would be missing from what later steps take back.
        self._is_torn = True
        self._fill(block)
        self._is_torn = False
        self.count += left
        return block

    @abstractmethod
    def _fill(self, block: FloatArray) -> None:
        """Write the next steps into the rows of a block of zeros."""

    def _white(self, count: int) -> FloatArray:
        noise = standard_normal(self._rng, (count, self.dimension))
        noise *= self._std
        return noise


class WhiteNoise(NoiseStream):
    """Independent noise, of sensitivity 1 at any length.

    Parameters
    ----------
    dimension : int
        Length of a vector.
    rng : Generator
        Source of the noise.
    std : float
        At least 0 and at most 1e50.
    steps : int, optional
        Endless by default.
    """

    def _fill(self, block: FloatArray) -> None:
        block[:] = self._white(len(block))


class ToeplitzNoise(NoiseStream):
    """Exact noise of any Toeplitz decoder, by FFT over blocks that double in length.

    The decoder's coefficients, shape (steps,), start with a number other than 0. `std` is the noise
    multiplier times the encoder's sensitivity times the bound on a step's gradient. White noise is
    drawn step by step in one order, whatever the blocks. Memory is about four vectors for each
    coefficient up to the last that is not 0, time O(log² steps) a step and coordinate.
    """

    def __init__(
        self,
        decoder: ArrayLike,
        *,
        dimension: int,
        rng: np.random.Generator,
        std: float = 1.0,
    ) -> None:
        # Read-only copies: the privacy of the stream was computed from these numbers.
        coefficients = require_frozen("decoder", decoder, shape=(None,), **_WITHIN)
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
    """The product B w of a Toeplitz decoder with given white noise, by FFT.

    Parameters
    ----------
    decoder : array_like, shape (bands,)
        Coefficients, at least -1e50 and at most 1e50; those beyond the last are 0.
    white : array_like, shape (steps, dimension)
        At least -1e150 and at most 1e150.
    """
    noise = require_array("white", white, shape=(None, None), least=-1e150, most=1e150)
    steps = len(noise)
    kernel = require_array("decoder", decoder, shape=(None,), **_WITHIN)[:steps]
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
