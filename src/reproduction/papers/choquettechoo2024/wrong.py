"""Deliberate mistakes and altered statements, with the entries whose verdicts must change."""

from __future__ import annotations

from collections.abc import Callable
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

MECHANISM = "privreg.algorithms.dp_ftrl"
INTEGRALS = "privreg.theory.correlated_noise.stationary"
OTHER_WAY = times(-1.0)


def _in(place: str, wrong: Callable[[Any], Any]) -> Patch:
    """A mistake in one of the paper's recipes."""
    return Patch(f"reproduction.papers.choquettechoo2024.experiments.{place}", wrong)


def _uncorrelated(_: Any) -> Any:
    return lambda decoder, white: white


def _decoder_norm(_: Any) -> Any:
    return lambda decoder, **_: float(np.linalg.norm(decoder.reshape(len(decoder), -1)[:, 0]))


def _positive(right: Any) -> Any:
    return lambda *arguments, **options: np.abs(right(*arguments, **options))


def _halved(names: str) -> dict[str, Any]:
    """The evidence if upper bounds had half their size and lower bounds twice."""
    return dict.fromkeys(names.split(), times(2.0))


WRONG_VERSIONS = (
    WrongVersion(
        name="independent-noise-called-correlated",
        says="The noise is scaled for correlated draws and drawn independently.",
        runs={
            "algorithm_forms": ("theory",),
            "mean_estimation": ("simulate",),
            "scaling_decay": ("simulate",),
        },
        patches=(
            Patch("privreg.noise.streams:correlate_noise", _uncorrelated),
            Patch("privreg.algorithms.dp_ftrl:correlate_noise", _uncorrelated),
        ),
        turns=listed("""
            algorithm-1-line-by-line mean-simulation regression-exact-decay
            slope-ftrl-effective-dimension
        """),
    ),
    WrongVersion(
        name="sensitivity-of-the-decoder",
        says="The sensitivity is a column norm of the coefficients' matrix, not of its inverse.",
        runs={"joint_privacy": ("theory",)},
        patches=(Patch(f"{MECHANISM}:_sensitivity", _decoder_norm),),
        turns=listed("noise-of-theorem-1-1 sensitivity-is-the-largest-column"),
    ),
    WrongVersion(
        name="two-thirds-of-the-noise",
        says="The noise is two thirds of what the budget asks for.",
        runs={"joint_privacy": ("theory",)},
        patches=(Patch(f"{MECHANISM}:_record_change", scaled(2 / 3)),),
        turns=listed("noise-of-theorem-1-1"),
    ),
    WrongVersion(
        name="accounting-step-by-step",
        says="A record is charged for its own step alone, as if the noise were independent.",
        runs={"joint_privacy": ("theory",)},
        patches=(Patch(f"{MECHANISM}:_sensitivity", lambda _: lambda decoder, **_: 1.0),),
        turns=listed("noise-of-theorem-1-1 sensitivity-is-the-largest-column"),
    ),
    WrongVersion(
        name="neighbouring-closed-forms",
        says="F.12 has the next lag, F.13, F.15, F.16 are a per cent off, F.8 and F.9 have K(m).",
        runs={"special_integrals": ("theory",)},
        patches=(
            _in(
                "special_integrals:_cosine_form",
                lambda right: lambda rate, lag: right(rate, lag + 1),
            ),
            _in("special_integrals:_rational_form", scaled(1.01)),
            Patch(f"{INTEGRALS}:inverse_distance_integral", scaled(1.01)),
            Patch(f"{INTEGRALS}:distance_ratio_integral", scaled(1.01)),
            Patch("scipy.special:ellipk", lambda right: lambda m: right(np.sqrt(m))),
        ),
        turns=listed("""
            integral-f12 integral-f13 integral-f15 integral-f16 first-kind-f8 third-kind-f9
        """),
    ),
    WrongVersion(
        name="base-recursion-with-features",
        says="The base recursion contracts with the feature's own matrix in place of H.",
        runs={"decomposition": ("theory",)},
        patches=(_in("decomposition:_base_matrix", lambda _: lambda mean, outer: outer),),
        turns=listed("orders-and-remainder-add-up parts-uncorrelated-c19"),
    ),
    WrongVersion(
        name="fluctuations-not-centred",
        says="The features' matrices fluctuate around 1.1 H.",
        runs={"decomposition": ("theory",)},
        patches=(
            _in("decomposition:_fluctuation", lambda _: lambda mean, outer: 1.1 * mean - outer),
        ),
        turns=listed("remainder-uncorrelated-with-noise-c20 parts-uncorrelated-c19"),
    ),
    WrongVersion(
        name="neighbouring-transfer-functions",
        says="Systems have -eta in M, B has a larger damping, variances are a per cent off.",
        runs={"transfer_functions": ("theory",)},
        patches=(
            _in(
                "transfer_functions:_response",
                lambda right: lambda frequency, eta, values: right(frequency, -eta, values),
            ),
            _in(
                "transfer_functions:family_noise",
                lambda right: lambda name, damping: right(name, 1.1 * damping),
            ),
            Patch("scipy.linalg:solve_discrete_lyapunov", scaled(1.01)),
        ),
        turns=listed("""
            transfer-function-c8 transfer-function-c9 limiting-sensitivity-c1
            white-noise-variance-f2
        """),
    ),
    WrongVersion(
        name="noise-without-its-own-step",
        says="The correlated noise of a step lacks the draw of that step.",
        runs={"finite_time_steps": ("theory",)},
        patches=(
            _in(
                "finite_time_steps:_injected",
                lambda _: lambda beta, white, t: beta[1 : t + 1] @ white[:t][::-1],
            ),
        ),
        turns=listed("parts-unrolled-by-draws-d2"),
    ),
    WrongVersion(
        name="prefix-sums-without-the-last",
        says="The matrix A of Section A.1 sums only the vectors before each step.",
        runs={"algorithm_forms": ("theory",)},
        patches=(
            _in("algorithm_forms:_sums", lambda right: lambda steps: right(steps) - np.eye(steps)),
        ),
        turns=listed("""
            matrix-form-of-the-update equation-3-as-printed
            undamped-coefficients-are-a-square-root
        """),
    ),
    WrongVersion(
        name="coefficients-all-positive",
        says="The coefficients are positive: they add earlier noise instead of cancelling it.",
        runs={"algorithm_forms": ("theory",), "mean_estimation": ("theory",)},
        patches=(Patch("privreg.noise.toeplitz:damped_square_root", _positive),),
        turns=listed("""
            mean-coefficients-tail mean-negative-coefficients mean-noise-is-anti-correlated
            mean-optimal-coefficients undamped-coefficients-are-a-square-root
            mean-coefficients-exponential-tail
        """),
    ),
)

WRONG_STATEMENTS = (
    WrongStatement(
        name="half-of-each-bound",
        says="Every upper bound is half of the printed one, every lower bound twice.",
        observes={
            "theory/regression_bounds": {
                "largest_integral_share": times(2.0),
                "doubled_over_printed_lower": times(0.5),
            },
            "theory/special_integrals": _halved(
                "equal_rates_ratio unequal_rates_ratio quadratic_form_ratio"
            ),
            "theory/decomposition": _halved("drive base"),
            "theory/transfer_functions": _halved("correlated_share_constant"),
            "theory/gaussian_moments": _halved("fourth_moment_ratio mean_shrinkage_ratio"),
            "theory/finite_time_steps": _halved("label_response_ratio absolute_response_ratio"),
            "theory/helper_lemmas": _halved(
                "half_exponential_constant coefficient_sum trace_ratio tail_sum_ratio"
            )
            | {"tail_constant": times(0.5), "tuned_rate_ratio": times(2.0)},
        },
        turns=listed("""
            integral-bounds-c4 lower-bound-c18 integral-bounds-c21 quadratic-form-f17
            next-order-c12 base-covariance-c10 directions-of-noisy-ftrl-c23
            gaussian-fourth-moments-c3 trace-shrinks-f18 tuned-rate-f21
            expected-response-d9 half-exponential-decay-d3 coefficient-sum-d15
            trace-of-products-f19 tail-sum-value-f20 gaussian-tail-constant-f7
            absolute-response-d10
            transform-below-the-euclidean-norm
        """),
    ),
    WrongStatement(
        name="neighbouring-exponents",
        says="Exponents of rates are changed, by a tenth or less where the range allows.",
        observes={
            "theory/mean_estimation": {
                "independent_constant": power("step_size", 0.1),
                "ratio": power("step_size", -0.25),
            },
            "theory/spectrum_rates": {
                "constant": power("dimension", 0.25),
                "theorem_constant": power("dimension", 0.2),
                "exponent": plus(0.15),
            },
            "theory/regression_bounds": {
                "over_upper": power("step_share", -0.5),
                "least_risk_constant": power("step_share", 0.5),
                "label_part_constant": power("step_share", 0.5),
            },
            "theory/transfer_functions": {
                "frequency_order": power("step_share", 0.1),
                "independent_share_spread": times(16**0.3),
            },
            "theory/decomposition": {"remainder_decline": times(3.0)},
            "theory/coefficient_rates": {
                "sensitivity_slope": times(1.1),
                "risk_slope": plus(0.1),
                "squared_sensitivity": power("steps", -0.5),
            },
            "theory/separation": {
                "damped_constant": power("step_size", 0.1),
                "last_damping_constant": power("small_dimension", 0.1),
                "geometric_constant": power("step_size", 0.05),
                "geometric_constant_of_spectra": power("small_dimension", 0.05),
            },
            "theory/helper_lemmas": {"sensitivity_ratio": power("damping", 0.1)},
            "theory/finite_time_isotropic": {"last_slope": plus(0.5)},
            "theory/finite_time_rates": {"risk_ratio": power("steps", 1.0)},
        },
        turns=listed("""
            mean-independent-rate mean-never-worse mean-better-at-small-steps
            regression-sgd-rate regression-ftrl-rate exponential-separation table-4-ftrl
            upper-bound-c14 lower-bound-for-all-coefficients label-part-of-theorem-2-2
            directions-of-noisy-sgd-c16 remainder-vanishes-c13 fichtenberger-sensitivity
            damped-sensitivity-is-bounded anti-pgd-sensitivity damped-anti-pgd-exponent
            damped-anti-pgd-rate-c24 damped-anti-pgd-at-the-largest-step-c24
            damped-anti-pgd-geometric-mean finite-time-rates finite-time-ftrl-better
            order-of-equation-20
        """),
    ),
    WrongStatement(
        name="printed-numbers-off",
        says="The slopes of Figure 2 are 0.06 larger, and a step combines one more draw.",
        observes={
            "simulation/scaling_dimension": {"slope": plus(-0.06)},
            "simulation/scaling_decay": {"slope": plus(-0.06)},
            "theory/algorithm_forms": {"draws_a_step": plus(-1.0)},
        },
        turns=listed("""
            slope-sgd-dimension slope-sgd-effective-dimension slope-ftrl-effective-dimension
            draws-of-a-training-step
        """),
    ),
    WrongStatement(
        name="orders-the-other-way",
        says="Every comparison (smaller, tighter, slower) is reversed.",
        observes={
            "simulation/scaling_step": {"slope": OTHER_WAY},
            "theory/convex_programs": {
                "gap": power("condition_number", -2.0),
                "ratio": times(1 / 1.1),
                "growth": OTHER_WAY,
            },
            "theory/bound_convergence": {"last_gain": plus(-0.001)},
            "theory/algorithm_forms": {"leading_block_change": times(0.0)},
        },
        turns=listed("""
            better-step-size-dependence convex-gap-is-multiplicative convex-ftrl-below-sgd
            convex-optimised-grows-slowest alternating-minimisation-converges anytime-mechanisms
        """),
    ),
    WrongStatement(
        name="neighbouring-lemmas",
        says="Lemmas have a constant that is 1 % off, or lack a lower-order term.",
        observes={
            "theory/special_integrals": {
                "elliptic_over_upper": times(1.01),
                "divergence_slope": plus(0.01),
                "third_kind_constant": plus(0.25),
            },
            "theory/transfer_functions": {"least_section_eigenvalue": times(0.99)},
            "theory/gaussian_moments": {"fourth_moment": times(3 / 2.9)},
        },
        turns=listed("""
            elliptic-bounds-f10 infinite-integral-f14 third-kind-bound-f11
            operators-are-positive-c6 strict-sub-gaussian-moments-f5
        """),
    ),
)
