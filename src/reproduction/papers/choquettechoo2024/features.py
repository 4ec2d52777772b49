"""Fixed features of images: pixels standardised by public constants, and moduli of wavelets.

Each feature depends on one image only, so that features cost no privacy.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

FEATURE_MAPS = ("pixels", "wavelets")
# Mean and standard deviation of each channel, published with the data sets.
PUBLIC_CONSTANTS = {
    "mnist_digits": ((0.1307,), (0.3081,)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
}
# Images with more pixels than this are first averaged over blocks.
MOST_PIXELS = 200
ORIENTATIONS = 4
# Weights below this change no sum of pixels in single precision. They and their products would be
# subnormal numbers, with which some processors are many times slower.
NEGLIGIBLE = 1e-30
_BLOCK = 4096


def feature_map(name: str, images: NDArray[np.uint8], *, dataset: str, scale: float) -> Floats:
    """Features of images, and a constant; each row is a square picture, channel by channel.

    Features are pixels, averaged over the smallest blocks that leave at most 200; or moduli of
    complex wavelets in 4 directions and the brightness, averaged over blocks of 4 x 4. Rows have
    norm 1, so that clipping treats all rows alike; `scale` is the largest grey value.
    """
    means, stds = PUBLIC_CONSTANTS[dataset]
    channels = len(means)
    side = isqrt(images.shape[1] // channels)
    shift = np.repeat(np.array(means), side**2).astype(np.float32)
    spread = np.repeat(np.array(stds), side**2).astype(np.float32)
    weights = _pixel_weights(side, channels) if name == "pixels" else _wavelets(side, channels)
    parts = []
    for at in range(0, len(images), _BLOCK):
        pixels = (images[at : at + _BLOCK] / np.float32(scale) - shift) / spread
        parts.append(_normalised(_features(name, pixels.astype(np.float32), weights, side)))
    return np.concatenate(parts)


def _features(name: str, pixels: Floats, weights: Floats, side: int) -> Floats:
    found: Floats = pixels @ weights
    if name == "pixels":
        return found
    half = side // 2
    parts = found.reshape(len(pixels), -1, 2, half, half)
    moduli = np.sqrt(np.einsum("nkpij,nkpij->nkij", parts, parts))
    even = half - half % 2
    blocks = moduli[..., :even, :even].reshape(*moduli.shape[:2], even // 2, 2, even // 2, 2)
    means = blocks.mean(axis=(3, 5)).reshape(len(pixels), -1)
    return np.asarray(means, dtype=np.float32)


def _normalised(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.maximum(lengths, np.float32(1e-6))
    with_constant = np.concatenate([rows, np.ones((len(rows), 1), np.float32)], axis=1)
    return np.asarray(with_constant / np.sqrt(2.0), dtype=np.float32)


def _pixel_weights(side: int, channels: int) -> Floats:
    """Averages over blocks of each channel, shape (channels × side², features)."""
    blocks = (size for size in range(1, side + 1) if side % size == 0)
    block = next(size for size in blocks if channels * (side // size) ** 2 <= MOST_PIXELS)
    one = np.kron(np.eye(side // block), np.ones((block, 1)) / block)
    return np.kron(np.eye(channels), np.kron(one, one)).astype(np.float32)


def _wavelets(side: int, channels: int) -> Floats:
    """Real and imaginary parts of Morlet wavelets on every second pixel, and the brightness."""
    grid = np.arange(side)
    centres = np.arange(side // 2) * 2 + 0.5
    rows, columns = np.meshgrid(grid, grid, indexing="ij")
    down = rows.ravel()[:, None] - np.repeat(centres, centres.size)
    across = columns.ravel()[:, None] - np.tile(centres, centres.size)
    window = np.exp(-(down**2 + across**2) / 2 / 1.6**2)
    window /= window.sum(axis=0).max()
    parts = [window, np.zeros_like(window)]
    for angle in np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS:
        phase = 0.6 * np.pi * (np.cos(angle) * across + np.sin(angle) * down)
        wave = np.exp(1j * phase)
        # Without its mean a wavelet does not respond to brightness.
        wave -= (window * wave).sum(axis=0) / window.sum(axis=0)
        parts += [(window * wave).real, (window * wave).imag]
    stacked = np.concatenate(parts, axis=1)
    stacked[np.abs(stacked) < NEGLIGIBLE] = 0
    # Colour channels are averaged.
    return np.concatenate([stacked / channels] * channels).astype(np.float32)
