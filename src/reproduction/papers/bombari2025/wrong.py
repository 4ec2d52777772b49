"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from reproduction.engine.falsify import Patch, WrongVersion, listed, scaled

ALGORITHM = "privreg.algorithms.one_pass_dpgd"
SCHEDULES = "privreg.schedules"
THEORY = "privreg.theory.one_pass_dpgd"
EXPERIMENTS = "reproduction.papers.bombari2025.experiments"
NOISE = (
    "budget-is-met-by-every-sample",
    "noise-is-the-least",
    "half-power-is-constant-noise",
    "divergence-within-budget",
)
DESCENT = ("clipping-closed-forms", "descent-factor-bound", "clipping-bounds-attained")
TRAJECTORIES = (
    "mean-risk-tracks-ode",
    "convergence-at-moderate-dimension",
    "gap-falls-as-the-root",
    "simulated-final-constant-isotropic",
    "simulated-final-constant-uniform",
    "simulated-final-decaying-isotropic",
    "simulated-final-decaying-uniform",
    "output-risk-of-single-runs",
    "output-noise-as-printed",
)


def _in_theory(
    experiment: str, target: str, wrong: Callable[[Any], Any], **about: Any
) -> WrongVersion:
    """A mistake in one function that the theory of an experiment calls."""
    return WrongVersion(runs={experiment: ("theory",)}, patches=(Patch(target, wrong),), **about)


def _with(**changes: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function whose named options are changed before each call."""
    return lambda right: (
        lambda *arguments, **options: right(
            *arguments,
            **options | {name: change(options[name]) for name, change in changes.items()},
        )
    )


def _scaled_noise(factor: float) -> tuple[Patch, ...]:
    """Noise multipliers that are off by a factor, and an accountant that does not notice."""
    return (
        Patch(f"{ALGORITHM}:noise_multipliers", scaled(factor)),
        Patch(f"{ALGORITHM}:one_pass_zcdp_root", lambda _: lambda *arguments: 0.0),
    )


def _normal_part(right: Any) -> Any:
    from scipy.special import erfc

    def wrong(risk: Any, **options: Any) -> Any:
        ratio = options["clip_constant"] / np.sqrt(2 * risk + options["label_noise_std"] ** 2)
        return right(risk, **options) - ratio**2 * erfc(ratio / np.sqrt(2))

    return wrong


def _times_the_constant(power: float) -> Any:
    return lambda right: (
        lambda risk, **options: (
            np.asarray(options["clip_constant"]) ** power * right(risk, **options)
        )
    )


def _half_a_step_off(right: Any) -> Any:
    def wrong(*arguments: Any, **options: Any) -> Any:
        noise = right(*arguments, **options)
        return np.append((noise[1:] + noise[:-1]) / 2, noise[-1:])

    return wrong


WRONG_VERSIONS = (
    WrongVersion(
        name="no-private-noise",
        says="The algorithm adds no noise at all.",
        runs={"trajectories": ("simulate",)},
        patches=_scaled_noise(0.0),
        turns=("ode-tracks-dpgd", *TRAJECTORIES),
    ),
    WrongVersion(
        name="three-quarters-of-the-noise",
        says="The noise has three quarters of the standard deviation that the budget requires.",
        runs={"trajectories": ("simulate",)},
        patches=_scaled_noise(0.75),
        turns=TRAJECTORIES,
    ),
    WrongVersion(
        name="twice-the-drift",
        says="The drift of the diffusion is twice the clipped gradient, as printed.",
        runs={"diffusion": ("simulate",)},
        patches=(Patch(f"{THEORY}.volterra:risk_path", _with(form=lambda _: "printed")),),
        turns=("diffusion-as-printed",),
    ),
    _in_theory(
        "privacy_budget",
        f"{SCHEDULES}:noise_multipliers",
        scaled(0.999),
        name="accounting-of-too-little-noise",
        says="The noise multipliers are a tenth of a percent too small.",
        turns=NOISE,
    ),
    _in_theory(
        "privacy_budget",
        f"{SCHEDULES}:noise_multipliers",
        _half_a_step_off,
        name="schedule-half-a-step-off",
        says="Each step has the noise that is due half a step later.",
        turns=(*NOISE, "output-perturbation-is-noise-at-the-end"),
    ),
    _in_theory(
        "clipping_factors",
        f"{THEORY}.deterministic_equivalent:descent_factor",
        _with(clip_constant=lambda constant: 1.01 * constant),
        name="descent-factor-of-a-wider-clip",
        says="The descent factor is computed for a clipping constant that is one percent larger.",
        turns=DESCENT,
    ),
    _in_theory(
        "clipping_factors",
        f"{THEORY}.deterministic_equivalent:variance_factor",
        _normal_part,
        name="variance-factor-of-unclipped-residuals",
        says="The variance factor lacks its first term, that of the clipped residuals.",
        turns=listed("""
            clipping-bounds-attained clipping-closed-forms variance-factor-lower-bound-small
            variance-factor-lower-bound-large variance-over-square-monotone
            variance-over-ratio-monotone variance-factor-at-one variance-factor-at-one-closed-form
        """),
    ),
    _in_theory(
        "clipping_factors",
        f"{THEORY}.deterministic_equivalent:descent_factor",
        _times_the_constant(-1.0),
        name="descent-factor-over-the-constant",
        says="The descent factor is divided by the clipping constant.",
        turns=(*DESCENT, "clipping-factors-increase"),
    ),
    _in_theory(
        "clipping_factors",
        f"{THEORY}.deterministic_equivalent:descent_factor",
        _times_the_constant(1.0),
        name="descent-factor-times-the-constant",
        says="The descent factor is multiplied by the clipping constant.",
        turns=(*DESCENT, "descent-over-ratio-monotone"),
    ),
    _in_theory(
        "appendix_identities",
        f"{EXPERIMENTS}.appendix_identities:_converted",
        lambda _: lambda root, failure: root**2 / 2 + root * np.sqrt(np.log(1 / failure)),
        name="conversion-without-the-root-of-two",
        says="epsilon is rho^2/2 + rho sqrt(ln(1/delta)).",
        turns=("conversion-of-zcdp",),
    ),
    _in_theory(
        "appendix_identities",
        f"{EXPERIMENTS}.appendix_identities:_exponential_integral",
        lambda right: lambda order, x: right(order - 1 / 3, x),
        name="exponential-integral-of-the-neighbouring-order",
        says="The closed forms have exponential integrals whose order is smaller by 1/3.",
        turns=("constant-noise-closed-form", "exponential-integral-bounds"),
    ),
    _in_theory(
        "scaling_exponents",
        f"{THEORY}.rates:optimal_exponent",
        lambda right: lambda *powers: replace(right(*powers), risk=1.05 * right(*powers).risk),
        name="exponents-of-more-risk",
        says="The risk exponents of Theorem 4 are 5 percent larger.",
        turns=("theorem-4-balances-exponents", "corollary-6-1-limits"),
    ),
    _in_theory(
        "scaling_exponents",
        f"{THEORY}.rates:limiting_exponent",
        lambda _: lambda spectrum, signal, privacy: min(1.0, 2 * (1 - privacy)),
        name="limits-without-a-cost-of-decay",
        says="For long schedules the exponent tends to min(1, 2 (1 - b)) for phi > 0, too.",
        turns=("corollary-6-1-limits",),
    ),
    _in_theory(
        "scaling_exponents",
        f"{THEORY}.rates:critical_privacy_power",
        lambda right: lambda phi, psi, alpha: right(phi, 0.9 * psi - 0.01, alpha),
        name="critical-power-with-another-signal",
        says="The critical privacy power is computed with 0.9 psi - 0.01 in place of psi.",
        turns=(
            "theorem-4-balances-exponents",
            "exponent-grows-with-schedule",
            "corollary-6-1-limits",
            "corollary-6-1-threshold",
            "threshold-near-zero-by-signal",
        ),
    ),
    _in_theory(
        "forgetting_kernels",
        f"{THEORY}.volterra:power_law_kernels",
        lambda right: lambda phi, psi: right(phi, 0.9 * psi),
        name="kernels-of-another-signal",
        says="The signal's kernel is computed with 0.9 psi in place of psi.",
        turns=("kernels-decay-as-powers", "volterra-equals-modes", "kernels-by-quadrature"),
    ),
    _in_theory(
        "comparison_bounds",
        f"{THEORY}.deterministic_equivalent:sandwich",
        _with(smallest=lambda _: 1.0, largest=lambda _: 1.0),
        name="comparison-of-isotropic-data",
        says="The comparison equations have the mean eigenvalue in place of the extreme ones.",
        turns=(
            "comparison-equation-below",
            "comparison-equation-above",
            "comparison-above-the-cap",
        ),
    ),
)
