"""Validation of the numbers that every theory of one-pass DP-GD takes, by name and range.

The range is far wider than any use and narrow enough that squares and products stay numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.spectra import Spectrum
from privreg.validation import entry, require_broadcast, require_real

SMALLEST, LARGEST = 1e-32, 1e32
ZERO_ALLOWED = ("label_noise_std", "risk", "signal")
INFINITY_ALLOWED = ("clip_constant", "zcdp_root")


def require_settings(*, infinite: bool = True, **values: Any) -> list[NDArray[np.float64]]:
    """Settings in range, in the order given: from 1e-32 to 1e32, of shapes that broadcast.

    Risks, signals and label noise may be 0. Where `infinite`, a clipping constant may be, which
    clips nothing, or a root, which adds no noise.
    """
    arrays = []
    for name, value in values.items():
        open_end = infinite and name in INFINITY_ALLOWED
        array = require_real(name, value, least=0, infinite=open_end)
        inside = (array >= SMALLEST) & (array <= LARGEST)
        inside |= (array == 0) & (name in ZERO_ALLOWED)
        inside |= np.isinf(array) & open_end
        if not np.all(inside):
            also = " or 0" if name in ZERO_ALLOWED else ", or `inf`" if open_end else ""
            raise ValueError(
                f"{name} must be from {SMALLEST:g} to {LARGEST:g}{also}, "
                f"got {entry(array, ~inside)}"
            )
        arrays.append(array)
    require_broadcast(**dict(zip(values, arrays, strict=True)))
    return arrays


def require_scalars(*, infinite: bool = True, **values: Any) -> list[float]:
    """As `require_settings`, for one number each."""
    arrays = require_settings(infinite=infinite, **values)
    for name, array in zip(values, arrays, strict=True):
        if array.ndim:
            raise ValueError(f"{name} must be one number, got shape {array.shape}")
    return [float(array) for array in arrays]


def require_signal(signal: ArrayLike, spectrum: Spectrum) -> NDArray[np.float64]:
    """D_i(0) of each mode, or of all."""
    (signals,) = require_settings(signal=signal)
    if signals.shape not in ((), spectrum.eigenvalues.shape):
        raise ValueError(
            f"signal must have shape () or {spectrum.eigenvalues.shape}, got {signals.shape}"
        )
    return signals


def require_falling(rates: NDArray[np.float64]) -> None:
    """Refuse rates, along time, that rise: private noise of a negative variance does not exist."""
    if np.any(rates[1:] > rates[:-1] * (1 + 1e-12)):
        raise ValueError("schedule must not increase under private noise, got one that does")
