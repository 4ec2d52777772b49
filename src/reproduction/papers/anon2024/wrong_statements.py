"""Neighbours of what this paper states, which the ledger's evidence must refuse."""

from __future__ import annotations

from reproduction.engine.falsify import WrongStatement, plus, power, times

HALF = times(2.0)

WRONG_STATEMENTS = (
    WrongStatement(
        name="half-of-each-bound",
        says="Every bound of the appendix is half of the printed one.",
        observes={
            "theory/exponents": {"dimension_over_horizon": HALF},
            "theory/privacy_steps": {"composed_epsilon_ratio": HALF},
            "theory/algorithm_forms": {"most_nodes_over_levels": HALF},
            "theory/moment_steps": {
                "average_ratio": HALF,
                "head_ratio": HALF,
                "product_ratio": HALF,
            },
            "theory/variance_steps": {"rough_ratio": HALF},
            "theory/effective_dimension": {
                "nonprivate_variance_step": HALF,
                "bias_step": HALF,
                "private_step": HALF,
                "designed_first_step": HALF,
                "designed_second_step": HALF,
                "largest_trace_ratio": HALF,
            },
            "theory/gradient_bounds": {"tail_constant": times(0.5), "one_step_ratio": HALF},
            "simulation/effective_dimension": {
                "inverse_over_bound": HALF,
                "forward_ratio": HALF,
                "worst_direction": HALF,
            },
            "simulation/gradient_bounds": {"least_form": times(0.5)},
        },
        turns=(
            "effective-dimension-below-the-sample-size",
            "residual-estimates-compose",
            "nodes-of-a-record",
            "risk-by-second-moments-b6",
            "rough-bound-b7",
            "products-of-steps-b12",
            "elementary-head-bound",
            "nonprivate-variance-b7",
            "bias-of-bounded-starts-b8",
            "private-variance-b11",
            "first-part-of-b33",
            "second-part-of-b33",
            "tail-of-a-form-b13",
            "trace-of-the-design-b33",
            "one-step-b19",
            "trace-of-the-public-design-b10",
            "trace-of-the-public-design-b11",
            "public-features-suffice",
            "leave-one-out-forms-b16",
        ),
    ),
    WrongStatement(
        name="neighbouring-exponents",
        says="Rates have exponents that differ by a few hundredths, those of N in Lemmas "
        "B.8 and B.9 and (B.18) by a quarter.",
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
            "theory/moment_steps": {
                "label_variance_ratio": power("bound_size", 0.25),
                "middle_variance_ratio": power("bound_size", 0.25),
                "bias_ratio": power("bound_size", 0.25),
            },
            "simulation/dimensions": {"relative": power("ratio", 0.1)},
        },
        turns=(
            "nonprivate-exponent",
            "identity-exponent",
            "designed-exponent",
            "exponential-exponents",
            "step-sizes-of-the-proofs",
            "exponential-step-sizes",
            "effective-dimension-of-power-laws",
            "designed-outperforms-above-two",
            "identity-better-below-two",
            "variance-bound-b8",
            "middle-bound-b18",
            "bias-bound-b9",
            "no-dependence-on-the-dimension",
        ),
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
