r"""Correlated noise step by step: :math:`\tilde w_t = \sum_{s \le t} \beta_{t-s} w_s`.

Every stream is an iterator over vectors of shape (dimension,) whose white noise w has standard
deviation `std`; `draw(count)` returns the next steps at once. A stream ends after `steps` items,
because the sensitivity that its privacy is accounted with belongs to that many steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft

from privreg.validation import FloatArray, require_array, require_count, require_number

_FIRST_BLOCK = 64


class NoiseStream(ABC):
    """Iterator over correlated noise vectors; see the module's description."""

    def __init__(
        self, dimension: int, *, steps: int | None, rng: np.random.Generator, std: float
    ) -> None:
        self.dimension = require_count("dimension", dimension)
        self.steps = None if steps is None else require_count("steps", steps)
        self.count = 0
        self._std = require_number("std", std, least=0)
        self._rng = rng
        self._ready = np.empty((0, self.dimension))
        self._taken = 0

    def __iter__(self) -> Iterator[FloatArray]:
        return self

    def __next__(self) -> FloatArray:
        if self.count == self.steps:
            raise StopIteration
        if self._taken == len(self._ready):
            self._ready, self._taken = self._next_block(), 0
        self._taken += 1
        self.count += 1
        return self._ready[self._taken - 1]

    def draw(self, count: int) -> FloatArray:
        """The next `count` items, shape (count, dimension); fewer where the stream ends first."""
        require_count("count", count)
        left = count if self.steps is None else min(count, self.steps - self.count)
        block = np.empty((left, self.dimension))
        for row in block:
            row[:] = next(self)
        return block

    @abstractmethod
    def _next_block(self) -> FloatArray:
        """One or more further steps, shape (any, dimension)."""

    def _white(self, count: int) -> FloatArray:
        noise = self._rng.standard_normal((count, self.dimension))
        noise *= self._std
        return noise


class WhiteNoise(NoiseStream):
    """Independent noise.

    Parameters
    ----------
    dimension : int
    rng : Generator
    std : float
    steps : int, optional
        Endless by default: its sensitivity is 1 at any length.
    """

    def __init__(
        self,
        dimension: int,
        *,
        rng: np.random.Generator,
        std: float = 1.0,
        steps: int | None = None,
    ) -> None:
        super().__init__(dimension, steps=steps, rng=rng, std=std)

    def _next_block(self) -> FloatArray:
        return self._white(1)


class ToeplitzNoise(NoiseStream):
    r"""Exact noise of any Toeplitz decoder, by FFT over blocks that double in length.

    Parameters
    ----------
    decoder : array_like, shape (bands,)
        Coefficients β; those beyond the last are 0.
    dimension : int
    rng : Generator
        Draws w step by step in one order, whatever the blocks.
    std : float
    steps : int, optional
        By default as many as there are coefficients; more only continue a decoder that is 0 from
        there on, such as anti-PGD's.

    Notes
    -----
    Memory for about 3 min(bands, steps) vectors, and O(log² bands) time a step and coordinate.

    Examples
    --------
    >>> noise = ToeplitzNoise([1.0, -1.0], dimension=3, rng=np.random.default_rng(0), steps=5)
    >>> len(list(noise))
    5
    """

    def __init__(
        self,
        decoder: ArrayLike,
        *,
        dimension: int,
        rng: np.random.Generator,
        std: float = 1.0,
        steps: int | None = None,
    ) -> None:
        self._decoder = require_array("decoder", decoder, shape=(None,))
        steps = self._decoder.size if steps is None else steps
        super().__init__(dimension, steps=steps, rng=rng, std=std)
        self._decoder = np.trim_zeros(self._decoder[:steps], "b")
        self._past = np.empty((0, self.dimension))
        self._length = _FIRST_BLOCK

    def _next_block(self) -> FloatArray:
        assert self.steps is not None
        length = min(self._length, self.steps - self.count)
        history = len(self._past)
        white = np.concatenate([self._past, self._white(length)])
        block = correlate_noise(self._decoder, white)[history:]
        self._past = white[max(len(white) - self._decoder.size + 1, 0) :]
        self._length = min(2 * self._length, max(self._decoder.size, _FIRST_BLOCK))
        return block


def correlate_noise(decoder: ArrayLike, white: ArrayLike) -> FloatArray:
    """The product B w of a Toeplitz decoder with given white noise, by FFT.

    Parameters
    ----------
    decoder : array_like, shape (bands,)
        Coefficients; those beyond the last are 0.
    white : array_like, shape (steps, dimension)

    Returns
    -------
    ndarray, shape (steps, dimension)
    """
    noise = require_array("white", white, shape=(None, None))
    steps = len(noise)
    kernel = require_array("decoder", decoder, shape=(None,))[:steps]
    if kernel.size <= 8:
        product = kernel[0] * noise
        for lag in range(1, kernel.size):
            product[lag:] += kernel[lag] * noise[: steps - lag]
        return product
    size = next_fast_len(steps + kernel.size - 1, real=True)
    spectrum = rfft(kernel, size)[:, None] * rfft(noise, size, axis=0)
    return np.asarray(irfft(spectrum, size, axis=0))[:steps]
