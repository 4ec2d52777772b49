r"""Correlated noise step by step: :math:`\tilde w_t = \sum_{s \le t} \beta_{t-s} w_s`.

Every stream is an iterator over vectors of shape (dimension,) whose white noise w has standard
deviation `std`; `draw(count)` returns the next steps at once. A stream ends after `steps` items,
because the sensitivity that its privacy is accounted with belongs to that many steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft

from privreg.immutable import Uncopied
from privreg.noise.buffered import BufferedToeplitz
from privreg.noise.normals import standard_normal
from privreg.validation import (
    FloatArray,
    require_array,
    require_count,
    require_frozen,
    require_instance,
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
    """Iterator over noise vectors; see the module's description.

    Attributes
    ----------
    dimension : int
    steps : int or None
        Where the stream ends.
    count : int
        Steps taken so far.
    """

    def __init__(
        self, dimension: int, *, steps: int | None, rng: np.random.Generator, std: float
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
    rng : Generator
    std : float
        At least 0 and at most 1e50.
    steps : int, optional
        Endless by default.
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

    def _fill(self, block: FloatArray) -> None:
        block[:] = self._white(len(block))


class ToeplitzNoise(NoiseStream):
    r"""Exact noise of any Toeplitz decoder, by FFT over blocks that double in length.

    Parameters
    ----------
    decoder : array_like, shape (bands,)
        Coefficients β, at least -1e50 and at most 1e50, the first not 0; those beyond the last
        are 0.
    dimension : int
    rng : Generator
        Draws w step by step in one order, whatever the blocks.
    std : float
        Standard deviation of w: the noise multiplier times the encoder's sensitivity times the
        bound on the norm of a step's gradient; at least 0 and at most 1e50.
    steps : int, optional
        By default as many as there are coefficients; more only continue a decoder that is 0 from
        there on, such as anti-PGD's. The encoder that privacy is accounted with is the inverse of
        the coefficients with those zeros.

    Notes
    -----
    Memory for about 4 min(bands, steps) vectors, and O(log² bands) time a step and coordinate.

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
        # Read-only copies: the privacy of the stream was computed from these numbers.
        coefficients = require_frozen("decoder", decoder, shape=(None,), **_WITHIN)
        if coefficients[0] == 0:
            raise ValueError("decoder must start with a number other than 0, got 0")
        self._last = coefficients.size if steps is None else require_count("steps", steps)
        super().__init__(dimension, steps=self._last, rng=rng, std=std)
        self._decoder = np.trim_zeros(coefficients[: self._last], "b")
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


class BufferedNoise(NoiseStream):
    r"""Noise of a buffered Toeplitz mechanism, in memory for one vector a buffer.

    .. math:: \tilde w_t = w_t - \sum_j \omega_j s_{j,t}, \qquad
        s_{j,t+1} = \theta_j (s_{j,t} + \tilde w_t)

    Parameters
    ----------
    mechanism : BufferedToeplitz
        For example `buffered_square_root(steps)`; it says how far its error is from the exact
        mechanism's. The noise is its own, exactly, and so is its sensitivity.
    dimension : int
    rng : Generator
    std : float
        As in `ToeplitzNoise`, with the sensitivity of `mechanism.encoder()`; at least 0 and at most
        1e50.

    Examples
    --------
    >>> from privreg.noise.buffered import buffered_square_root
    >>> noise = BufferedNoise(buffered_square_root(100), dimension=3, rng=np.random.default_rng(0))
    >>> noise.draw(1000).shape
    (100, 3)
    """

    def __init__(
        self,
        mechanism: BufferedToeplitz,
        *,
        dimension: int,
        rng: np.random.Generator,
        std: float = 1.0,
    ) -> None:
        require_instance("mechanism", mechanism, BufferedToeplitz)
        super().__init__(dimension, steps=mechanism.steps, rng=rng, std=std)
        self._mechanism = mechanism
        self._sums = np.zeros((mechanism.decays.size, self.dimension))

    def _fill(self, block: FloatArray) -> None:
        mechanism = self._mechanism
        _fill_buffered(block, self._sums, mechanism.decays, mechanism.weights, self._std, self._rng)


class DenseNoise(NoiseStream):
    r"""Noise of any decoder matrix, for mechanisms that are not Toeplitz or that restart.

    Parameters
    ----------
    decoder : array_like, shape (steps, rows)
        At least -1e50 and at most 1e50. Row t mixes the white noise of step t: from
        `dense_optimum`, `full_honaker`, `restarted`.
    dimension : int
    rng : Generator
    std : float
        As in `ToeplitzNoise`, at least 0 and at most 1e50.

    Notes
    -----
    All of w, shape (rows, dimension), is drawn before the first step and stays in memory, since
    an early step may use any of it; O(rows) time a step and coordinate.
    """

    def __init__(
        self,
        decoder: ArrayLike,
        *,
        dimension: int,
        rng: np.random.Generator,
        std: float = 1.0,
    ) -> None:
        self._decoder = require_frozen("decoder", decoder, shape=(None, None), **_WITHIN)
        super().__init__(dimension, steps=len(self._decoder), rng=rng, std=std)
        self._all_white: FloatArray | None = None

    def _fill(self, block: FloatArray) -> None:
        if self._all_white is None:
            self._all_white = self._white(self._decoder.shape[1])
        np.matmul(self._decoder[self.count : self.count + len(block)], self._all_white, out=block)


def correlate_noise(decoder: ArrayLike, white: ArrayLike) -> FloatArray:
    """The product B w of a Toeplitz decoder with given white noise, by FFT.

    Parameters
    ----------
    decoder : array_like, shape (bands,)
        Coefficients, at least -1e50 and at most 1e50; those beyond the last are 0.
    white : array_like, shape (steps, dimension)
        At least -1e150 and at most 1e150.

    Returns
    -------
    ndarray, shape (steps, dimension)
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


@njit(nogil=True, cache=True)
def _fill_buffered(
    block: FloatArray,
    sums: FloatArray,
    decays: FloatArray,
    weights: FloatArray,
    std: float,
    rng: np.random.Generator,
) -> None:
    steps, dimension = block.shape
    for step in range(steps):
        row = block[step]
        for i in range(dimension):
            row[i] = std * rng.standard_normal()
        for j in range(decays.size):
            weight, total = weights[j], sums[j]
            for i in range(dimension):
                row[i] -= weight * total[i]
        for j in range(decays.size):
            decay, total = decays[j], sums[j]
            for i in range(dimension):
                total[i] = decay * (total[i] + row[i])
