"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.claims.falsify import Patch, WrongVersion

MECHANISM = "privreg.algorithms.dp_ftrl"


def _scaled(factor: float) -> Any:
    return lambda right: lambda *arguments, **options: factor * right(*arguments, **options)


def _white(_: Any) -> Any:
    return lambda decoder, white: white


def _decoder_norm(_: Any) -> Any:
    def wrong(decoder: np.ndarray, **options: Any) -> float:
        column = decoder if decoder.ndim == 1 else decoder[:, 0]
        return float(np.linalg.norm(column))

    return wrong


def _one_step(_: Any) -> Any:
    return lambda decoder, **options: 1.0


def _positive(right: Any) -> Any:
    return lambda *arguments, **options: np.abs(right(*arguments, **options))


WRONG_VERSIONS = (
    WrongVersion(
        name="independent-noise-called-correlated",
        says="The noise is scaled for a correlation and drawn without it.",
        runs={
            "algorithm_forms": ("theory",),
            "mean_estimation": ("simulate",),
            "scaling_decay": ("simulate",),
        },
        patches=(
            Patch("privreg.noise.streams:correlate_noise", _white),
            Patch("privreg.algorithms.ftrl_simulation:correlate_noise", _white),
        ),
        turns=(
            "algorithm-1-line-by-line",
            "mean-simulation",
            "regression-exact-decay",
            "slope-ftrl-effective-dimension",
        ),
    ),
    WrongVersion(
        name="sensitivity-of-the-decoder",
        says="The sensitivity is a column norm of the coefficients in place of their inverse's.",
        runs={"joint_privacy": ("theory",)},
        patches=(Patch(f"{MECHANISM}:_sensitivity", _decoder_norm),),
        turns=("noise-of-theorem-1-1", "sensitivity-is-the-largest-column"),
    ),
    WrongVersion(
        name="two-thirds-of-the-noise",
        says="The noise is two thirds of what the budget asks for.",
        runs={"joint_privacy": ("theory",)},
        patches=(Patch(f"{MECHANISM}:_record_change", _scaled(2 / 3)),),
        turns=("noise-of-theorem-1-1",),
    ),
    WrongVersion(
        name="accounting-step-by-step",
        says="A record is charged for its own step alone, as if the noise were independent.",
        runs={"joint_privacy": ("theory",)},
        patches=(Patch(f"{MECHANISM}:_sensitivity", _one_step),),
        turns=("noise-of-theorem-1-1", "sensitivity-is-the-largest-column"),
    ),
    WrongVersion(
        name="coefficients-all-positive",
        says="The coefficients add to earlier noise in place of taking it back.",
        runs={"algorithm_forms": ("theory",), "mean_estimation": ("theory",)},
        patches=(Patch("privreg.noise.toeplitz:damped_square_root", _positive),),
        turns=(
            "mean-coefficients-tail",
            "mean-negative-coefficients",
            "mean-noise-is-anti-correlated",
            "mean-optimal-coefficients",
            "undamped-coefficients-are-a-square-root",
        ),
    ),
)
