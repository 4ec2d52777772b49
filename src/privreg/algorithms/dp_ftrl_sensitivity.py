"""Sensitivity of DP-FTRL's correlated releases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privreg.noise.inverse import require_inverse
from privreg.noise.sensitivity import (
    fixed_order_sensitivity,
    multi_participation_bound,
    multi_participation_sensitivity,
    single_participation_sensitivity,
)
from privreg.validation import (
    require_real,
)

FloatArray = NDArray[np.float64]

# Above this many steps the matrix of a Toeplitz encoder is not built.
DENSE_STEPS = 4096
# Steps, norms and noise up to here stay far from overflow in every product.
LARGEST = 1e50
# What the encoder's error may add to a sensitivity without being added: 16 ulp.
ROUNDING = 2.0**-48


def _sensitivity(decoder: FloatArray, *, epochs: int, steps_per_epoch: int) -> float:
    encoder, column_error = require_inverse("decoder", decoder)
    # So that squares of its entries can be summed.
    encoder = require_real("inverse of decoder", encoder, least=-LARGEST, most=LARGEST)
    gamma = _encoder_sensitivity(encoder, epochs=epochs, steps_per_epoch=steps_per_epoch)
    # A record moves a sum of one column an epoch, each wrong by this much at most.
    error = epochs * column_error
    return float(gamma if error <= ROUNDING * gamma else gamma + error)


def _encoder_sensitivity(encoder: FloatArray, *, epochs: int, steps_per_epoch: int) -> float:
    if epochs == 1:
        return single_participation_sensitivity(encoder)
    if encoder.ndim == 1:
        if np.all(encoder >= 0) and np.all(np.diff(encoder) <= 0):
            measure = multi_participation_sensitivity
        elif encoder.size > DENSE_STEPS:
            measure = multi_participation_bound
        else:
            measure = fixed_order_sensitivity
        return measure(encoder, participations=epochs, separation=steps_per_epoch)
    return fixed_order_sensitivity(encoder, participations=epochs, separation=steps_per_epoch)
