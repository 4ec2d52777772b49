"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.falsify import Patch, WrongVersion, scaled

MECHANISM = "privreg.algorithms.dp_ftrl"
EXPERIMENTS = "reproduction.papers.choquettechoo2024.experiments"
INTEGRALS = "privreg.theory.correlated_noise.spectral_integrals"


def _white(_: Any) -> Any:
    return lambda decoder, white: white


def _decoder_norm(_: Any) -> Any:
    def wrong(decoder: np.ndarray, **options: Any) -> float:
        column = decoder if decoder.ndim == 1 else decoder[:, 0]
        return float(np.linalg.norm(column))

    return wrong


def _one_step(_: Any) -> Any:
    return lambda decoder, **options: 1.0


def _next_lag(right: Any) -> Any:
    return lambda rate, lag: right(rate, lag + 1)


def _root_of_the_modulus(right: Any) -> Any:
    return lambda parameter: right(np.sqrt(parameter))


def _features_own(_: Any) -> Any:
    return lambda mean, outer: outer


def _not_centred(_: Any) -> Any:
    return lambda mean, outer: 1.1 * mean - outer


def _larger_damping(right: Any) -> Any:
    return lambda family, damping: right(family, 1.1 * damping)


def _other_sign(right: Any) -> Any:
    return lambda frequency, eta, eigenvalues: right(frequency, -eta, eigenvalues)


def _before_this_step(_: Any) -> Any:
    return lambda beta, white, t: beta[1 : t + 1] @ white[:t][::-1]


def _strictly_below(right: Any) -> Any:
    return lambda steps: right(steps) - np.eye(steps)


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
        patches=(Patch(f"{MECHANISM}:_record_change", scaled(2 / 3)),),
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
        name="neighbouring-closed-forms",
        says="F.12 has the next lag, F.13, F.15, F.16 are a per cent off, F.8 and F.9 have K(m).",
        runs={"special_integrals": ("theory",)},
        patches=(
            Patch(f"{EXPERIMENTS}.special_integrals:_cosine_form", _next_lag),
            Patch(f"{EXPERIMENTS}.special_integrals:_rational_form", scaled(1.01)),
            Patch(f"{INTEGRALS}:inverse_distance_integral", scaled(1.01)),
            Patch(f"{INTEGRALS}:distance_ratio_integral", scaled(1.01)),
            Patch("scipy.special:ellipk", _root_of_the_modulus),
        ),
        turns=(
            "integral-f12",
            "integral-f13",
            "integral-f15",
            "integral-f16",
            "first-kind-f8",
            "third-kind-f9",
        ),
    ),
    WrongVersion(
        name="base-recursion-with-features",
        says="The base recursion contracts with the feature's own matrix in place of H.",
        runs={"decomposition": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.decomposition:_base_matrix", _features_own),),
        turns=("orders-and-remainder-add-up", "parts-uncorrelated-c19"),
    ),
    WrongVersion(
        name="fluctuations-not-centred",
        says="The features' matrices fluctuate around something a tenth larger than H.",
        runs={"decomposition": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.decomposition:_fluctuation", _not_centred),),
        turns=("remainder-uncorrelated-with-noise-c20", "parts-uncorrelated-c19"),
    ),
    WrongVersion(
        name="neighbouring-transfer-functions",
        says="Systems answer with -eta in M, B has a larger damping, variances are a per cent off.",
        runs={"transfer_functions": ("theory",)},
        patches=(
            Patch(f"{EXPERIMENTS}.transfer_functions:_response", _other_sign),
            Patch(f"{EXPERIMENTS}.transfer_functions:family_noise", _larger_damping),
            Patch("scipy.linalg:solve_discrete_lyapunov", scaled(1.01)),
        ),
        turns=(
            "transfer-function-c8",
            "transfer-function-c9",
            "limiting-sensitivity-c1",
            "white-noise-variance-f2",
        ),
    ),
    WrongVersion(
        name="noise-without-its-own-step",
        says="The correlated noise of a step has no draw of its own.",
        runs={"finite_time_steps": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.finite_time_steps:_injected", _before_this_step),),
        turns=("parts-unrolled-by-draws-d2",),
    ),
    WrongVersion(
        name="prefix-sums-without-the-last",
        says="A of Section A.1 sums the vectors before each step.",
        runs={"algorithm_forms": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.algorithm_forms:_sums", _strictly_below),),
        turns=(
            "matrix-form-of-the-update",
            "prefix-error-is-a-frobenius-norm",
            "undamped-coefficients-are-a-square-root",
        ),
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
