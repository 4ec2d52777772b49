"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.claims.falsify import Patch, WrongVersion

ACCOUNTING = "privreg.algorithms.shaped_accounting"
CORRELATIONS = "privreg.noise.correlations"


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


def _half(right: Any) -> Any:
    return lambda **options: 0.5 * right(**options)


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
        patches=(Patch(f"{ACCOUNTING}:published_noise_multiplier", _half),),
        turns=("blank-rows-are-covered",),
    ),
    WrongVersion(
        name="clipping-in-the-plain-norm",
        says="Gradients are clipped in the Euclidean norm, whatever the noise's covariance.",
        runs={"algorithm_forms": ("theory",)},
        patches=(Patch("privreg.algorithms.shaped_dp_ftrl:step_rows", _plain_norms),),
        turns=("algorithms-line-by-line",),
    ),
)
