"""The mechanisms of Table 3 and Figure 4, each with its prefix error at a noise multiplier of 1.

Baselines may restart after equal stretches of steps; the paper writes × S for S stretches. As in
the paper, S is the divisor of the number of participations that gives the least mean error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict

if TYPE_CHECKING:
    from privreg.noise.toeplitz import Errors

TREES = ("tree_aggregation", "full_honaker")
RESTARTED = (*TREES, "optimal_cc", "fft")
MECHANISMS = ("dp_sgd", *TREES, "optimal_cc", "nu_dp_ftrl", "fft", "banded", "multi_epoch")


class Participation(Strict):
    """Steps in which a record takes part: their number and their distance, in a fixed order."""

    steps: q.Steps = Field(description="Steps T.")
    participations: q.Steps = Field(description="Steps in which a record takes part.")
    separation: q.Steps = Field(description="Steps from one participation to the next.")


class Matrices(NamedTuple):
    """Decoder (Toeplitz coefficients or a matrix), its encoder and the encoder's sensitivity."""

    decoder: np.ndarray
    encoder: np.ndarray
    sensitivity: float


class Mechanism(NamedTuple):
    """Root mean square errors of prefix sums, with the sensitivity as a factor, and stretches S.

    The noise increments are the decoder times white draws. The standard deviation of the draws is
    the noise multiplier times the sensitivity of the encoder under the participation. FFT has no
    matrices here, since its errors are computed without them.
    """

    errors: Errors
    stretches: int
    matrices: Matrices | None = None


def prefix_errors(name: str, setting: Participation, stretches: int | None = None) -> Mechanism:
    """Errors of a mechanism; a baseline has its best number of stretches unless one is given."""
    most = setting.participations if name in RESTARTED else 1
    counts = [
        count
        for count in range(1, most + 1)
        if setting.participations % count == 0 and setting.steps % count == 0
    ]
    # Mechanisms are tried one after another, since each holds its matrices.
    tried = (_mechanism(name, setting, count) for count in ([stretches] if stretches else counts))
    return min(tried, key=lambda found: found.errors.mean)


def toeplitz_or_tree(name: str, steps: int, damping: float) -> tuple[np.ndarray, np.ndarray]:
    """Encoder and decoder of a mechanism in closed form; `damping` is that of nu-DP-FTRL."""
    from privreg.noise import toeplitz
    from privreg.noise.streams import full_honaker, tree_matrices

    if name == "tree_aggregation":
        return tree_matrices(steps)
    if name == "full_honaker":
        return full_honaker(steps)
    if name == "dp_sgd":
        return toeplitz.identity(steps), toeplitz.identity(steps)
    nu = damping if name == "nu_dp_ftrl" else 0.0
    encoder = toeplitz.damped_square_root_encoder(steps, damping=nu)
    return encoder, toeplitz.damped_square_root(steps, damping=nu)


def _mechanism(name: str, setting: Participation, stretches: int) -> Mechanism:
    from privreg.noise.toeplitz import workload_errors

    if name == "fft":
        return _fft(setting, stretches)
    matrices = _matrices(name, setting, stretches)
    errors = workload_errors(matrices.decoder, sensitivity=matrices.sensitivity)
    return Mechanism(errors, stretches, matrices)


def _matrices(name: str, setting: Participation, stretches: int) -> Matrices:
    from privreg.noise.optimal import best_damping, dense_optimum, toeplitz_optimum
    from privreg.noise.sensitivity import fixed_order_sensitivity, multi_participation_sensitivity
    from privreg.noise.toeplitz import dense_matrix, restarted

    steps, visits = setting.steps, setting.participations
    taking_part: dict[str, Any] = {"participations": visits, "separation": setting.separation}
    if name == "multi_epoch":
        best = dense_optimum(steps, epochs=visits)
        return Matrices(best.decoder, best.encoder, 1.0)
    if name == "banded":
        # The number of bands is the number of steps from one participation to the next.
        banded = toeplitz_optimum(steps, bands=setting.separation if visits > 1 else steps)
        sensitivity = float(np.linalg.norm(banded.encoder) * np.sqrt(visits))
        return Matrices(banded.decoder, banded.encoder, sensitivity)
    # The paper tunes nu by the mean error.
    damping = best_damping(steps, **taking_part) if name == "nu_dp_ftrl" else 0.0
    encoder, decoder = toeplitz_or_tree(name, steps // stretches, damping)
    if encoder.ndim == 1 and stretches == 1:
        return Matrices(decoder, encoder, multi_participation_sensitivity(encoder, **taking_part))
    encoder, decoder = (
        restarted(each if each.ndim == 2 else dense_matrix(each), copies=stretches)
        for each in (encoder, decoder)
    )
    return Matrices(decoder, encoder, fixed_order_sensitivity(encoder, **taking_part))


def _fft(setting: Participation, stretches: int) -> Mechanism:
    """Prefix sums inside a circulant matrix of twice the size, split into two equal roots."""
    from privreg.noise.toeplitz import Errors

    length, k = setting.steps // stretches, setting.participations // stretches
    response = np.abs(np.fft.rfft(np.ones(length), 2 * length))
    # Inner products of the root's columns by their distance; its rows have the same norm.
    products = np.abs(np.fft.irfft(response, 2 * length))
    lags = setting.separation * np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    # A record enters every stretch, and each prefix has the noise of all stretches so far.
    square = stretches * products[lags].sum() * products[0]
    mean, largest = np.sqrt(square * (stretches + 1) / 2), np.sqrt(square * stretches)
    errors = Errors(mean=float(mean), largest=float(largest), last=float(largest))
    return Mechanism(errors, stretches)
