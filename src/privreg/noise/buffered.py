r"""Toeplitz encoders that a few running sums multiply by: noise in memory that no run length fills.

The encoder's coefficients are a mixture of geometric sequences,

.. math:: c_0 = 1, \qquad c_t = \sum_{j=1}^m \omega_j \theta_j^t \quad (t \ge 1),

so that :math:`\tilde w = C^{-1} w` needs m vectors of memory instead of all of the past. The
square root's encoder is such a mixture in the limit, by

.. math:: (1 - x)^{-1/2} = \frac2\pi \int_{-\infty}^{\infty} \frac{e^v dv}{1 - x + e^{2v}},
    \qquad \theta(v) = \frac1{1 + e^{2v}},

and few nodes suffice because a mechanism's error is flat at the square root.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numba import njit
from scipy.optimize import nnls

from privreg.immutable import Immutable
from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.validation import (
    FloatArray,
    require_count,
    require_frozen,
    require_number,
)

_MOST_BUFFERS = 40
_FIT_STEPS = 160


@dataclass(frozen=True)
class BufferedToeplitz(Immutable):
    """A mechanism whose encoder is 1 and a mixture of geometric sequences.

    Privacy is that of this encoder and not of another that it approximates: pass `encoder()` to
    the functions of `privreg.noise.sensitivity`.

    Attributes
    ----------
    decays : ndarray, shape (buffers,)
        θ in [0, 1]; kept as a read-only copy, as the weights are.
    weights : ndarray, shape (buffers,)
        ω, at least 0, with Σ ω θ at most 1: the coefficients are then non-negative and
        non-increasing.
    steps : int
        Length of the run that the encoder is for.
    excess_error : float
        Largest relative difference, over all run lengths up to `steps`, between this mechanism and
        the one that it approximates in sensitivity times root mean square error of the last prefix
        sum. At least 0; 0 where it approximates none.
    """

    decays: FloatArray
    weights: FloatArray
    steps: int
    excess_error: float = 0.0

    def __post_init__(self) -> None:
        require_count("steps", self.steps)
        decays = require_frozen("decays", self.decays, shape=(None,), least=0, most=1)
        weights = require_frozen("weights", self.weights, shape=decays.shape)
        require_number("excess_error", self.excess_error, least=0)
        if np.any(weights < 0) or weights @ decays > 1:
            raise ValueError(
                "weights must be at least 0 with a sum of weights times decays of at most 1"
            )
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "weights", weights)

    def encoder(self) -> FloatArray:
        """Coefficients of C, shape (steps,), non-negative and non-increasing."""
        return _encoder(self.decays, self.weights, self.steps)

    def decoder(self) -> FloatArray:
        """Coefficients of its inverse B, shape (steps,), in O(steps × buffers)."""
        return _decoder(self.decays, self.weights, self.steps)


def buffered_square_root(
    steps: int, *, damping: float = 0.0, tolerance: float = 1e-3
) -> BufferedToeplitz:
    r"""The damped square root with as few buffers as a given error allows.

    Nodes are equidistant in :math:`v = \tfrac12\ln(1/\theta - 1)`, weights solve a non-negative
    least-squares problem for the relative error of the coefficients, and the number of buffers
    grows until the error of the mechanism, computed exactly for every run length, is within the
    tolerance.

    Parameters
    ----------
    steps : int
        Longest run.
    damping : float
        ν in [0, 1] of `toeplitz.damped_square_root`.
    tolerance : float
        Bound on `excess_error`, at least 1e-8.

    Returns
    -------
    BufferedToeplitz
        With 5 buffers for a thousand steps and 7 for a million at the default tolerance.

    Examples
    --------
    >>> mechanism = buffered_square_root(1000, tolerance=1e-3)
    >>> mechanism.decays.size <= 5 and mechanism.excess_error <= 1e-3
    True

    Source
    ------
    Dvijotham et al. (2024), Efficient and Near-Optimal Noise Generation for Streaming Differential
    Privacy, for the idea of buffers; nodes, weights and error derived.
    """
    require_count("steps", steps)
    damping = require_number("damping", damping, least=0, most=1)
    tolerance = require_number("tolerance", tolerance, least=1e-8)
    exact = _last_errors(
        damped_square_root_encoder(steps, damping=damping),
        damped_square_root(steps, damping=damping),
    )
    # Beyond a few times 1/ν the damping has closed what is left to fit.
    horizon = steps if damping == 0 else int(min(steps, np.ceil(20 / damping)))
    for buffers in range(1, _MOST_BUFFERS + 1):
        decays, weights = _fit(buffers, horizon)
        decays = decays * (1 - damping)
        excess = np.abs(
            _last_errors(_encoder(decays, weights, steps), _decoder(decays, weights, steps)) / exact
            - 1
        ).max()
        if excess <= tolerance:
            return BufferedToeplitz(decays, weights, steps, float(excess))
    raise ValueError(
        f"tolerance must be reachable with {_MOST_BUFFERS} buffers, got {tolerance} for "
        f"{steps} steps"
    )


def _fit(buffers: int, horizon: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights with the least relative error of c_1 ... c_horizon, over a few spacings."""
    lags = np.unique(np.round(np.geomspace(1, horizon, _FIT_STEPS)).astype(np.int64))
    index = np.arange(1, horizon + 1)
    target = np.cumprod((index - 0.5) / index)[lags - 1]
    ones = np.ones(lags.size)
    reach = 0.5 * np.log(horizon)
    lasts, firsts = [0.0, 0.3, 0.6, 0.9, 1.2], [-1.2, -0.9, -0.6, -0.3, 0.0, 0.3]
    tried: set[tuple[float, float]] = set()
    error, chosen, found = np.inf, (0.0, 0.0), (np.zeros(0), np.zeros(0))
    while True:
        for last, first in product(lasts, firsts):
            if (last, first) in tried:
                continue
            tried.add((last, first))
            nodes = np.linspace(-reach + first, last, buffers) if buffers > 1 else np.array([last])
            odds = np.exp(2 * nodes)
            decays = 1 / (1 + odds)
            basis = np.exp(-lags[:, None] * np.log1p(odds)) / target[:, None]
            weights, _ = nnls(basis, ones)
            distance = float(np.abs(basis @ weights - 1).max())
            if weights @ decays <= 1 and distance < error:
                error, chosen, found = distance, (last, first), (decays, weights)
        # A search whose best lies at the edge has not ended.
        wider = [_widened(grid, best) for grid, best in zip((lasts, firsts), chosen, strict=True)]
        if wider == [lasts, firsts]:
            return found
        lasts, firsts = wider


def _widened(grid: list[float], best: float) -> list[float]:
    if best == grid[0]:
        return [grid[0] - 0.3, *grid]
    return [*grid, grid[-1] + 0.3] if best == grid[-1] else grid


def _last_errors(encoder: FloatArray, decoder: FloatArray) -> FloatArray:
    """Sensitivity times root mean square error of the last prefix sum, for each run length."""
    prefixes = np.cumsum(decoder)
    return np.sqrt(np.cumsum(encoder**2) * np.cumsum(prefixes**2))


@njit(nogil=True, cache=True)
def _encoder(decays: FloatArray, weights: FloatArray, steps: int) -> FloatArray:
    coefficients = np.zeros(steps)
    coefficients[0] = 1.0
    terms = weights.copy()
    for step in range(1, steps):
        for j in range(decays.size):
            terms[j] *= decays[j]
            coefficients[step] += terms[j]
    return coefficients


@njit(nogil=True, cache=True)
def _decoder(decays: FloatArray, weights: FloatArray, steps: int) -> FloatArray:
    coefficients = np.zeros(steps)
    sums = np.zeros(decays.size)
    for step in range(steps):
        value = 1.0 if step == 0 else 0.0
        for j in range(decays.size):
            value -= weights[j] * sums[j]
        for j in range(decays.size):
            sums[j] = decays[j] * (sums[j] + value)
        coefficients[step] = value
    return coefficients
