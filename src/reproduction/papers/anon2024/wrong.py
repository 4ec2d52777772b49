"""Deliberate mistakes that this paper's ledger must notice."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.falsify import (
    Patch,
    WrongStatement,
    WrongVersion,
    listed,
    plus,
    power,
    scaled,
    times,
)

SHAPED = "privreg.algorithms.shaped_dp_ftrl"
PUBLISHED = "reproduction.papers.anon2024.published"
EXPERIMENTS = "reproduction.papers.anon2024.experiments"
HALF = times(2.0)


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


def _neighbours_alone(right: Any) -> Any:
    return lambda size: np.triu(right(size), 1) & ~np.triu(np.ones((size, size), bool), 2)


def _plain_norms(right: Any) -> Any:
    def wrong(features: Any, labels: Any, norms: Any, *rest: Any) -> Any:
        plain = np.linalg.norm(features, axis=1)[:, None] * np.ones_like(norms)
        return right(features, labels, plain, *rest)

    return wrong


def _wrong_tree(name: str, says: str, wrong: Any) -> WrongVersion:
    """Wrong version with other noise of the nodes."""
    return WrongVersion(
        name=name,
        says=says,
        runs={"algorithm_forms": ("theory",), "noise_errors": ("simulate",), "tree": ("simulate",)},
        patches=(Patch("privreg.noise.streams:TreeNoise", wrong),),
        turns=("algorithms-line-by-line", "popcount-law", "tree-error-is-exact"),
    )


WRONG_VERSIONS = (
    _wrong_tree(
        "half-the-noise-variance", "A node's noise has half of its variance.", _half_the_variance
    ),
    _wrong_tree(
        "nodes-never-taken-back",
        "Each step of the tree adds fresh noise, and no step takes any back.",
        _never_taken_back,
    ),
    WrongVersion(
        name="printed-constant-called-safe",
        says="A replaced record is charged as in the proof, for a sensitivity of psi.",
        runs={"privacy_constant": ("theory",)},
        patches=(Patch(f"{PUBLISHED}:published_readings", _as_the_proof_says),),
        turns=("three-readings",),
    ),
    WrongVersion(
        name="half-the-published-noise",
        says="The noise multiplier of Theorem 4.1 is halved.",
        runs={"privacy_constant": ("theory",)},
        patches=(Patch(f"{PUBLISHED}:published_noise_multiplier", scaled(0.5)),),
        turns=("blank-rows-are-covered", "output-alone-of-fixed-gradients"),
    ),
    WrongVersion(
        name="estimate-without-its-factor",
        says="Option 1 estimates the mean square, not twice the mean square.",
        runs={"gradient_bounds": ("simulate",)},
        patches=(Patch(f"{SHAPED}:public_residual_scale", scaled(0.5**0.5)),),
        turns=("estimate-is-an-upper-bound-b3",),
    ),
    WrongVersion(
        name="half-of-the-squared-norm",
        says="Tails of Lemmas B.2 and B.13 have half of the squared sub-Gaussian norm.",
        runs={"gradient_bounds": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.gradient_bounds:GAUSSIAN_SCALE", lambda right: right / 2),),
        turns=("product-with-features-b2", "label-noise-b2", "tail-of-a-form-b13"),
    ),
    WrongVersion(
        name="neighbouring-privacy-lemmas",
        says="Lemma 2.6 has the norm of Sigma, not of Sigma^-1; Lemma B.1 half its logarithm.",
        runs={"privacy_steps": ("theory",)},
        patches=(
            Patch(f"{EXPERIMENTS}.privacy_steps:_SQUARED_SHIFT", _in_the_wrong_norm),
            Patch(
                f"{EXPERIMENTS}.privacy_steps:_least_conversion",
                lambda right: lambda rho, delta: right(rho, delta**0.5),
            ),
        ),
        turns=listed("""
            shaped-gaussian-mechanism-2-6 integrand-of-lemma-2-6
            gaussian-mechanism-in-definition-2-5 conversion-b1 best-order-of-the-conversion
        """),
    ),
    WrongVersion(
        name="increments-are-prefixes",
        says="(B.4) adds the noise of the whole prefix, and (B.14) lists only the step before.",
        runs={"algorithm_forms": ("theory",)},
        patches=(
            Patch(
                f"{EXPERIMENTS}.algorithm_forms:_increment", lambda _: lambda prefix, before: prefix
            ),
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

WRONG_STATEMENTS = (
    WrongStatement(
        name="half-of-each-bound",
        says="Every bound of the appendix is half of the printed one.",
        observes={
            "theory/privacy_steps": {"composed_epsilon_ratio": HALF},
            "theory/algorithm_forms": {"most_nodes_over_levels": HALF},
            "theory/moment_steps": dict.fromkeys(
                ("average_ratio", "head_ratio", "product_ratio"), HALF
            ),
            "theory/variance_steps": {"rough_ratio": HALF},
            "theory/effective_dimension": {
                "nonprivate_variance_step": HALF,
                "bias_step": HALF,
                "private_step": HALF,
                "designed_first_step": HALF,
                "designed_second_step": HALF,
            },
            "theory/gradient_bounds": {"tail_constant": times(0.5), "one_step_ratio": HALF},
            "simulation/effective_dimension": dict.fromkeys(
                ("inverse_over_bound", "forward_ratio", "worst_direction"), HALF
            ),
            "simulation/gradient_bounds": {"least_form": times(0.5)},
        },
        turns=listed("""
            residual-estimates-compose nodes-of-a-record risk-by-second-moments-b6 rough-bound-b7
            products-of-steps-b12 elementary-head-bound nonprivate-variance-b7
            bias-of-bounded-starts-b8 private-variance-b11 first-part-of-b33 second-part-of-b33
            tail-of-a-form-b13 one-step-b19 trace-of-the-public-design-b10
            trace-of-the-public-design-b11 public-features-suffice
            leave-one-out-forms-b16
        """),
    ),
    WrongStatement(
        name="neighbouring-exponents",
        says="The exponents of rates are off by a few hundredths, those of N in Lemmas B.8 and B.9 "
        "and (B.18) by a quarter.",
        observes={
            "theory/exponents": {
                "gap": plus(0.02),
                "exponential_gap": plus(0.05),
                "step_exponent": plus(0.02),
                "exponential_step_exponent": plus(0.05),
                "dimension_spread": times(1e10**0.05),
                "exponential_dimension_spread": times(6**0.5),
                "advantage": plus(0.02),
            },
            "theory/moment_steps": dict.fromkeys(
                ("label_variance_ratio", "middle_variance_ratio", "bias_ratio"),
                power("bound_size", 0.25),
            ),
            "simulation/dimensions": {"relative": power("ratio", 0.1)},
        },
        turns=listed("""
            nonprivate-exponent identity-exponent designed-exponent exponential-exponents
            step-sizes-of-the-proofs exponential-step-sizes exponential-step-size-of-the-design
            effective-dimension-of-power-laws identity-better-below-two variance-bound-b8
            middle-bound-b18 bias-bound-b9 no-dependence-on-the-dimension
        """),
    ),
    WrongStatement(
        name="less-noise-for-the-same-promise",
        says="The promise of Theorem 4.1 is kept with 0.9 of its noise variance.",
        observes={
            "theory/privacy_constant": {"epsilon_share": times(0.9**-0.5)},
            "theory/privacy_steps": {"multiplier_ratio": times(1 / 0.9)},
        },
        turns=("privacy-of-rho", "noise-is-large-enough-for-rho"),
    ),
)
