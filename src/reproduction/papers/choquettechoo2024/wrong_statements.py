"""Neighbours of what this paper states, which the ledger's evidence must refuse."""

from __future__ import annotations

import numpy as np

from reproduction.engine.falsify import WrongStatement, plus, power, times

HALF, OTHER_WAY = times(2.0), times(-1.0)

WRONG_STATEMENTS = (
    WrongStatement(
        name="half-of-each-bound",
        says="Every bound is half of the printed one; of a lower bound, twice.",
        observes={
            "theory/regression_bounds": {
                "largest_integral_share": HALF,
                "doubled_over_printed_lower": times(0.5),
            },
            "theory/special_integrals": {
                "equal_rates_ratio": HALF,
                "unequal_rates_ratio": HALF,
                "quadratic_form_ratio": HALF,
            },
            "theory/decomposition": {"drive": HALF, "response": HALF, "base": HALF},
            "theory/transfer_functions": {"correlated_share_constant": HALF},
            "theory/gaussian_moments": {
                "fourth_moment_ratio": HALF,
                "trace_ratio": HALF,
                "shrinkage_ratio": HALF,
            },
            "theory/finite_time_steps": {
                "label_response_ratio": HALF,
                "absolute_response_ratio": HALF,
            },
            "theory/helper_lemmas": {
                "half_exponential_constant": HALF,
                "coefficient_sum": HALF,
                "trace_ratio": HALF,
                "tail_sum_ratio": HALF,
                "tail_constant": times(0.5),
            },
            "theory/spectrum_rates": {"effective_dimension": HALF},
        },
        turns=(
            "integral-bounds-c4",
            "lower-bound-c18",
            "integral-bounds-c21",
            "quadratic-form-f17",
            "next-order-c12",
            "base-covariance-c10",
            "directions-of-noisy-ftrl-c23",
            "gaussian-fourth-moments-c3",
            "trace-below-fourth-moment",
            "trace-shrinks-f18",
            "expected-response-d9",
            "half-exponential-decay-d3",
            "coefficient-sum-d15",
            "trace-of-products-f19",
            "tail-sum-bound-f20",
            "gaussian-tail-constant-f7",
            "absolute-response-d10",
            "effective-dimension-of-two-levels",
        ),
    ),
    WrongStatement(
        name="neighbouring-exponents",
        says="Rates have another exponent, of a tenth or less where the range allows.",
        observes={
            "theory/mean_estimation": {
                "independent_constant": power("step_size", 0.1),
                "log_squared_constant": lambda seen: seen * np.log(8 / seen.step_size),
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
                "over_frequency_bound": power("step_share", -0.5),
                "independent_share_spread": times(16**0.3),
            },
            "theory/decomposition": {
                "orders": power("step_share", -1.0),
                "remainder": power("step_share", -1.0),
                "label_noise_ratio": power("step_share", -0.2),
            },
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
            "theory/helper_lemmas": {
                "sensitivity_ratio": power("damping", 0.1),
            },
            "theory/finite_time_isotropic": {"last_slope": plus(0.5)},
            "theory/finite_time_rates": {"risk_ratio": power("steps", 1.0)},
            "theory/algorithm_forms": {"unclipped_exponent": plus(0.05)},
        },
        turns=(
            "mean-independent-rate",
            "mean-optimal-rate",
            "mean-never-worse",
            "mean-better-at-small-steps",
            "regression-sgd-rate",
            "regression-ftrl-rate",
            "exponential-separation",
            "table-4-ftrl",
            "upper-bound-c14",
            "lower-bound-for-all-coefficients",
            "label-part-of-theorem-2-2",
            "upper-bound-c15",
            "directions-of-noisy-sgd-c16",
            "higher-orders-c11",
            "remainder-vanishes-c13",
            "sgd-covariance-f3",
            "fichtenberger-sensitivity",
            "sensitivity-increases",
            "damped-sensitivity-is-bounded",
            "anti-pgd-sensitivity",
            "damped-anti-pgd-exponent",
            "damped-anti-pgd-rate-c24",
            "damped-anti-pgd-at-the-largest-step-c24",
            "damped-anti-pgd-geometric-mean",
            "finite-time-rates",
            "finite-time-ftrl-better",
            "without-clipping-no-privacy",
        ),
    ),
    WrongStatement(
        name="printed-numbers-off",
        says="The slopes of Figure 2 are 0.06 larger, and nu-DP-FTRL combines a draw more.",
        observes={
            "simulation/scaling_dimension": {"slope": plus(-0.06)},
            "simulation/scaling_decay": {"slope": plus(-0.06)},
            "theory/algorithm_forms": {"draws_a_step": plus(-1.0)},
        },
        turns=(
            "slope-sgd-dimension",
            "slope-sgd-effective-dimension",
            "slope-ftrl-effective-dimension",
            "draws-of-a-training-step",
        ),
    ),
    WrongStatement(
        name="orders-the-other-way",
        says="What is said to be smaller, tighter or slower is the larger one.",
        observes={
            "simulation/scaling_step": {"slope": OTHER_WAY},
            "theory/convex_programs": {
                "gap": power("condition_number", -2.0),
                "ratio": times(1 / 1.1),
                "growth": OTHER_WAY,
            },
            "theory/bound_convergence": {"last_gain": plus(-0.001)},
            "theory/algorithm_forms": {
                "leading_block_change": times(0.0),
            },
        },
        turns=(
            "better-step-size-dependence",
            "convex-gap-is-multiplicative",
            "convex-ftrl-below-sgd",
            "convex-optimised-grows-slowest",
            "alternating-minimisation-converges",
            "anytime-mechanisms",
        ),
    ),
    WrongStatement(
        name="neighbouring-lemmas",
        says="Lemmas with a constant a per cent off, without a lower order, or another kernel.",
        observes={
            "theory/special_integrals": {
                "elliptic_over_upper": times(1.01),
                "divergence_slope": plus(0.01),
                "third_kind_constant": plus(0.25),
            },
            "theory/transfer_functions": {
                "noise_response_error": lambda seen: seen.copy(data=seen.values[::-1]),
                "least_section_eigenvalue": times(0.99),
            },
            "theory/gaussian_moments": {
                "fourth_moment": times(3 / 2.9),
                "misspecified_ratio": times(5.0),
            },
        },
        turns=(
            "elliptic-bounds-f10",
            "infinite-integral-f14",
            "third-kind-bound-f11",
            "transfer-function-c9",
            "operators-are-positive-c6",
            "strict-sub-gaussian-moments-f5",
            "misspecified-models-c12",
        ),
    ),
)
