"""The mechanisms of Table 3 and Figure 4, each with its prefix error at a noise multiplier of 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from privreg.noise.errors import Errors

MECHANISMS = (
    "dp_sgd",
    "tree_aggregation",
    "full_honaker",
    "optimal_cc",
    "nu_dp_ftrl",
    "fft",
    "banded",
    "multi_epoch",
)
# A dense optimum beyond this many steps takes more than minutes.
DENSE_STEPS = 2100


class Participation(NamedTuple):
    """A record takes part in so many steps, `separation` apart, in a fixed order."""

    steps: int
    participations: int
    separation: int


def prefix_errors(mechanism: str, setting: Participation) -> Errors:
    """Root mean square errors of the prefix sums, sensitivity included."""
    return _MAKERS[mechanism](setting)


def _dp_sgd(setting: Participation) -> Errors:
    from privreg.noise.toeplitz import identity

    return _toeplitz(identity(setting.steps), identity(setting.steps), setting)


def _optimal_cc(setting: Participation) -> Errors:
    from privreg.noise.toeplitz import damped_square_root_encoder, square_root

    steps = setting.steps
    return _toeplitz(square_root(steps), damped_square_root_encoder(steps, damping=0.0), setting)


def _nu_dp_ftrl(setting: Participation) -> Errors:
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


def _banded(setting: Participation) -> Errors:
    """Best Toeplitz encoder with as many bands as steps lie between two participations."""
    from privreg.noise.errors import workload_errors
    from privreg.noise.optimal import toeplitz_optimum

    bands = setting.separation if setting.participations > 1 else setting.steps
    found = toeplitz_optimum(setting.steps, bands=bands)
    sensitivity = np.linalg.norm(found.encoder) * np.sqrt(setting.participations)
    return workload_errors(found.decoder, sensitivity=float(sensitivity))


def _fft(setting: Participation) -> Errors:
    """Prefix sums inside a circulant matrix of twice the size, split into two equal roots."""
    from privreg.noise.errors import Errors

    steps, k, b = setting
    response = np.abs(np.fft.rfft(np.ones(steps), 2 * steps))
    # Inner products of the root's columns by their distance; its rows have the same norm.
    products = np.abs(np.fft.irfft(response, 2 * steps))
    lags = b * np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    error = float(np.sqrt(products[lags].sum() * products[0]))
    return Errors(mean=error, largest=error, last=error)


def _tree(setting: Participation) -> Errors:
    from privreg.noise.tree import tree_matrices

    return _dense(*tree_matrices(setting.steps), setting)


def _full_honaker(setting: Participation) -> Errors:
    from privreg.noise.tree import full_honaker

    return _dense(*full_honaker(setting.steps), setting)


def _multi_epoch(setting: Participation) -> Errors:
    from privreg.noise.dense import dense_optimum
    from privreg.noise.errors import workload_errors

    if setting.steps > DENSE_STEPS:
        raise ValueError(f"steps must be at most {DENSE_STEPS}, got {setting.steps}")
    found = dense_optimum(setting.steps, epochs=setting.participations, tolerance=1e-4)
    return workload_errors(found.decoder, sensitivity=1.0)


def _toeplitz(decoder: np.ndarray, encoder: np.ndarray, setting: Participation) -> Errors:
    from privreg.noise.errors import workload_errors
    from privreg.noise.sensitivity import multi_participation_sensitivity

    sensitivity = multi_participation_sensitivity(
        encoder, participations=setting.participations, separation=setting.separation
    )
    return workload_errors(decoder, sensitivity=sensitivity)


def _dense(encoder: np.ndarray, decoder: np.ndarray, setting: Participation) -> Errors:
    from privreg.noise.errors import workload_errors
    from privreg.noise.sensitivity import fixed_order_sensitivity

    sensitivity = fixed_order_sensitivity(
        encoder, participations=setting.participations, separation=setting.separation
    )
    return workload_errors(decoder, sensitivity=sensitivity)


_MAKERS: dict[str, Callable[[Participation], Errors]] = {
    "dp_sgd": _dp_sgd,
    "tree_aggregation": _tree,
    "full_honaker": _full_honaker,
    "optimal_cc": _optimal_cc,
    "nu_dp_ftrl": _nu_dp_ftrl,
    "fft": _fft,
    "banded": _banded,
    "multi_epoch": _multi_epoch,
}
