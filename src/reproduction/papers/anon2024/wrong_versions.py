"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.falsify import Patch, WrongVersion, scaled

ACCOUNTING = "privreg.algorithms.shaped_accounting"
CORRELATIONS = "privreg.noise.correlations"
EXPERIMENTS = "reproduction.papers.anon2024.experiments"


def _half_the_variance(right: Any) -> Any:
    return lambda *arguments, std=1.0, **options: right(*arguments, std=std / np.sqrt(2), **options)


def _never_taken_back(_: Any) -> Any:
    from privreg.noise.streams import WhiteNoise

    return WhiteNoise


def _as_the_proof_says(right: Any) -> Any:
    def wrong(**options: Any) -> Any:
        found = right(**options)
        return found._replace(replace_one=found.stated, exact_replace_one=found.exact_stated)

    return wrong


def _in_the_wrong_norm(_: Any) -> Any:
    from reproduction.papers.anon2024.experiments.privacy_steps import _SHAPE, _SHIFT

    return float(_SHIFT @ _SHAPE @ _SHIFT)


def _half_of_the_logarithm(right: Any) -> Any:
    return lambda rho, delta: right(rho, delta**0.5)


def _never_subtracted(_: Any) -> Any:
    return lambda prefix, before: prefix


def _neighbours_alone(right: Any) -> Any:
    return lambda size: np.triu(right(size), 1) & ~np.triu(np.ones((size, size), bool), 2)


def _plain_norms(right: Any) -> Any:
    def wrong(features: Any, labels: Any, norms: Any, *rest: Any) -> Any:
        plain = np.linalg.norm(features, axis=1)[:, None] * np.ones_like(norms)
        return right(features, labels, plain, *rest)

    return wrong


WRONG_VERSIONS = (
    WrongVersion(
        name="half-the-noise-variance",
        says="A node's noise has half of its variance.",
        runs={
            "algorithm_forms": ("theory",),
            "noise_errors": ("simulate",),
            "tree": ("simulate",),
        },
        patches=(
            Patch(f"{CORRELATIONS}:TreeNoise", _half_the_variance),
            Patch("privreg.noise.tree:TreeNoise", _half_the_variance),
        ),
        turns=("algorithms-line-by-line", "popcount-law", "tree-error-is-exact"),
    ),
    WrongVersion(
        name="nodes-never-taken-back",
        says="Every step adds fresh noise and none is taken back, which is called a tree.",
        runs={
            "algorithm_forms": ("theory",),
            "noise_errors": ("simulate",),
            "tree": ("simulate",),
        },
        patches=(
            Patch(f"{CORRELATIONS}:TreeNoise", _never_taken_back),
            Patch("privreg.noise.tree:TreeNoise", _never_taken_back),
        ),
        turns=("algorithms-line-by-line", "popcount-law", "tree-error-is-exact"),
    ),
    WrongVersion(
        name="printed-constant-called-safe",
        says="A replaced record is charged what the proof charges, for a sensitivity of psi.",
        runs={"privacy_constant": ("theory",)},
        patches=(Patch(f"{ACCOUNTING}:published_readings", _as_the_proof_says),),
        turns=("three-readings", "three-readings-exact"),
    ),
    WrongVersion(
        name="half-the-published-noise",
        says="The noise multiplier of Theorem 4.1 is halved.",
        runs={"privacy_constant": ("theory",)},
        patches=(Patch(f"{ACCOUNTING}:published_noise_multiplier", scaled(0.5)),),
        turns=("blank-rows-are-covered", "output-alone-of-fixed-gradients"),
    ),
    WrongVersion(
        name="estimate-without-its-factor",
        says="Option 1 estimates the mean square itself in place of twice it.",
        runs={"gradient_bounds": ("simulate",)},
        patches=(
            Patch("privreg.algorithms.residual_estimate:public_residual_scale", scaled(0.5**0.5)),
        ),
        turns=("estimate-is-an-upper-bound-b3",),
    ),
    WrongVersion(
        name="half-of-the-squared-norm",
        says="Tails of Lemmas B.2 and B.13 have half of the squared sub-Gaussian norm.",
        runs={"gradient_bounds": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.gradient_bounds:GAUSSIAN_SCALE", lambda right: right / 2),),
        turns=("product-with-features-b2", "tail-of-a-form-b13"),
    ),
    WrongVersion(
        name="neighbouring-privacy-lemmas",
        says="Lemma 2.6 has the norm of Sigma, and Lemma B.1 half of its logarithm.",
        runs={"privacy_steps": ("theory",)},
        patches=(
            Patch(f"{EXPERIMENTS}.privacy_steps:_SQUARED_SHIFT", _in_the_wrong_norm),
            Patch(f"{EXPERIMENTS}.privacy_steps:_least_conversion", _half_of_the_logarithm),
        ),
        turns=(
            "shaped-gaussian-mechanism-2-6",
            "conversion-b1",
            "best-order-of-the-conversion",
        ),
    ),
    WrongVersion(
        name="increments-are-prefixes",
        says="(B.4) adds the noise of the prefix, and (B.14) lists the step before alone.",
        runs={"algorithm_forms": ("theory",)},
        patches=(
            Patch(f"{EXPERIMENTS}.algorithm_forms:_increment", _never_subtracted),
            Patch(f"{EXPERIMENTS}.algorithm_forms:_listed", _neighbours_alone),
        ),
        turns=("update-is-sgd-with-increments", "uncorrelated-increments-b14"),
    ),
    WrongVersion(
        name="clipping-in-the-plain-norm",
        says="Gradients are clipped in the Euclidean norm, whatever the noise's covariance.",
        runs={"algorithm_forms": ("theory",)},
        patches=(Patch("privreg.algorithms.shaped_dp_ftrl:step_rows", _plain_norms),),
        turns=("algorithms-line-by-line",),
    ),
)
