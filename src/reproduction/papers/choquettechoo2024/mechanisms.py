"""The mechanisms of Table 3 and Figure 4, each with its prefix error at a noise multiplier of 1.

Baselines may start anew after equal stretches of steps, the paper's suffix × S; as there, the
number of stretches with the least mean error is taken, from those that divide the participations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from privreg.noise.errors import Errors

MechanismName = Literal[
    "dp_sgd",
    "tree_aggregation",
    "full_honaker",
    "optimal_cc",
    "nu_dp_ftrl",
    "fft",
    "banded",
    "multi_epoch",
]
MECHANISMS: tuple[MechanismName, ...] = get_args(MechanismName)
# A dense optimum beyond this many steps takes more than minutes.
DENSE_STEPS = 2100


class Participation(NamedTuple):
    """A record takes part in so many steps, `separation` apart, in a fixed order."""

    steps: int
    participations: int
    separation: int


class Mechanism(NamedTuple):
    """Root mean square errors of the prefix sums, sensitivity included, and the stretches S.

    The matrices give the noise itself: increments are the decoder times draws whose standard
    deviation is the noise multiplier times the sensitivity of the encoder under the participation.
    FFT has none here, for its errors come without them.
    """

    errors: Errors
    stretches: int
    matrices: Matrices | None = None


class Matrices(NamedTuple):
    """Decoder as Toeplitz coefficients or as a matrix, and the encoder that it belongs to."""

    decoder: np.ndarray
    encoder: np.ndarray
    sensitivity: float


def prefix_errors(
    mechanism: str, setting: Participation, stretches: int | None = None
) -> Mechanism:
    """Errors of a mechanism, a baseline with its best number of stretches or the one given."""
    maker = _MAKERS.get(mechanism)
    if maker is not None:
        return maker(setting)
    k = setting.participations
    counts = [count for count in range(1, k + 1) if k % count == 0 and setting.steps % count == 0]
    if stretches is not None:
        counts = [stretches]
    # One after another: each holds its matrices.
    tried = (_RESTARTED[mechanism](setting, count) for count in counts)
    return min(tried, key=lambda found: found.errors.mean)


def _dp_sgd(setting: Participation) -> Mechanism:
    from privreg.noise.toeplitz import identity

    return _toeplitz(identity(setting.steps), identity(setting.steps), setting)


def _optimal_cc(setting: Participation, stretches: int) -> Mechanism:
    from privreg.noise.toeplitz import damped_square_root_encoder, dense_matrix, square_root

    length = setting.steps // stretches
    decoder, encoder = square_root(length), damped_square_root_encoder(length, damping=0.0)
    if stretches == 1:
        return _toeplitz(decoder, encoder, setting)
    return _dense(dense_matrix(encoder), dense_matrix(decoder), setting, stretches)


def _nu_dp_ftrl(setting: Participation) -> Mechanism:
    from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder

    steps, damping = setting.steps, tuned_damping(setting)
    return _toeplitz(
        damped_square_root(steps, damping=damping),
        damped_square_root_encoder(steps, damping=damping),
        setting,
    )


def tuned_damping(setting: Participation) -> float:
    """The damping of least mean error, which is how the paper tunes it."""
    from privreg.noise.optimal import best_damping

    return best_damping(
        setting.steps, participations=setting.participations, separation=setting.separation
    )


def _banded(setting: Participation) -> Mechanism:
    """Best Toeplitz encoder with as many bands as steps lie between two participations."""
    from privreg.noise.optimal import toeplitz_optimum

    bands = setting.separation if setting.participations > 1 else setting.steps
    found = toeplitz_optimum(setting.steps, bands=bands)
    sensitivity = np.linalg.norm(found.encoder) * np.sqrt(setting.participations)
    return _mechanism(Matrices(found.decoder, found.encoder, float(sensitivity)))


def _fft(setting: Participation, stretches: int) -> Mechanism:
    """Prefix sums inside a circulant matrix of twice the size, split into two equal roots."""
    from privreg.noise.errors import Errors

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


def _tree(setting: Participation, stretches: int) -> Mechanism:
    from privreg.noise.tree import tree_matrices

    return _dense(*tree_matrices(setting.steps // stretches), setting, stretches)


def _full_honaker(setting: Participation, stretches: int) -> Mechanism:
    from privreg.noise.tree import full_honaker

    return _dense(*full_honaker(setting.steps // stretches), setting, stretches)


def _multi_epoch(setting: Participation) -> Mechanism:
    from privreg.noise.dense import dense_optimum

    if setting.steps > DENSE_STEPS:
        raise ValueError(f"steps must be at most {DENSE_STEPS}, got {setting.steps}")
    found = dense_optimum(setting.steps, epochs=setting.participations, tolerance=1e-4)
    return _mechanism(Matrices(found.decoder, found.encoder, 1.0))


def _toeplitz(decoder: np.ndarray, encoder: np.ndarray, setting: Participation) -> Mechanism:
    from privreg.noise.sensitivity import multi_participation_sensitivity

    sensitivity = multi_participation_sensitivity(
        encoder, participations=setting.participations, separation=setting.separation
    )
    return _mechanism(Matrices(decoder, encoder, sensitivity))


def _dense(
    encoder: np.ndarray, decoder: np.ndarray, setting: Participation, stretches: int
) -> Mechanism:
    from privreg.noise.sensitivity import fixed_order_sensitivity
    from privreg.noise.toeplitz import restarted

    whole = restarted(encoder, copies=stretches)
    sensitivity = fixed_order_sensitivity(
        whole, participations=setting.participations, separation=setting.separation
    )
    return _mechanism(Matrices(restarted(decoder, copies=stretches), whole, sensitivity), stretches)


def _mechanism(matrices: Matrices, stretches: int = 1) -> Mechanism:
    from privreg.noise.errors import workload_errors

    errors = workload_errors(matrices.decoder, sensitivity=matrices.sensitivity)
    return Mechanism(errors, stretches, matrices)


_MAKERS: dict[str, Callable[[Participation], Mechanism]] = {
    "dp_sgd": _dp_sgd,
    "nu_dp_ftrl": _nu_dp_ftrl,
    "banded": _banded,
    "multi_epoch": _multi_epoch,
}
_RESTARTED: dict[str, Callable[[Participation, int], Mechanism]] = {
    "tree_aggregation": _tree,
    "full_honaker": _full_honaker,
    "optimal_cc": _optimal_cc,
    "fft": _fft,
}
