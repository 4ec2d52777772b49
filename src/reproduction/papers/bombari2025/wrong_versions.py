"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reproduction.engine.falsify import Patch, WrongVersion, scaled

ALGORITHM = "privreg.algorithms.one_pass_dpgd"
SCHEDULES = "privreg.schedules"
CLIPPING = "privreg.theory.one_pass_dpgd.clipping"
EXPERIMENTS = "reproduction.papers.bombari2025.experiments"
SCALING = "privreg.theory.one_pass_dpgd.scaling_laws"
TRAJECTORIES = (
    "mean-risk-tracks-ode",
    "convergence-at-moderate-dimension",
    "gap-falls-as-the-root",
    "simulated-final-constant-isotropic",
    "simulated-final-constant-uniform",
    "simulated-final-decaying-isotropic",
    "simulated-final-decaying-uniform",
    "output-risk-of-single-runs",
)


def _scaled_noise(factor: float) -> tuple[Patch, ...]:
    """Noise multipliers that are off by a factor, and an accountant that looks away."""
    return (
        Patch(f"{ALGORITHM}:noise_multipliers", scaled(factor)),
        Patch(f"{ALGORITHM}:one_pass_zcdp_root", lambda _: lambda *arguments: 0.0),
    )


def _normal_part(right: Any) -> Any:
    from scipy.special import erfc

    def wrong(risk: Any, *, clip_constant: Any, label_noise_std: float) -> Any:
        ratio = clip_constant / np.sqrt(2 * risk + label_noise_std**2)
        whole = right(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
        return whole - ratio**2 * erfc(ratio / np.sqrt(2))

    return wrong


def _times_the_constant(power: float) -> Any:
    return lambda right: (
        lambda risk, *, clip_constant, label_noise_std: (
            np.asarray(clip_constant) ** power
            * right(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
        )
    )


def _at_the_mean(right: Any) -> Any:
    return lambda schedule, *, smallest, largest, **options: right(
        schedule, smallest=1.0, largest=1.0, **options
    )


def _more_risk(right: Any) -> Any:
    def wrong(*powers: float) -> Any:
        found = right(*powers)
        return replace(found, risk=1.05 * found.risk)

    return wrong


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
        says="The noise is three quarters of what the budget asks for.",
        runs={"trajectories": ("simulate",)},
        patches=_scaled_noise(0.75),
        turns=TRAJECTORIES,
    ),
    WrongVersion(
        name="accounting-of-too-little-noise",
        says="The noise multipliers are a tenth of a percent too small.",
        runs={"privacy_budget": ("theory",)},
        patches=(Patch(f"{SCHEDULES}:noise_multipliers", scaled(0.999)),),
        turns=(
            "budget-is-met-by-every-sample",
            "noise-is-the-least",
            "half-power-is-constant-noise",
            "divergence-within-budget",
        ),
    ),
    WrongVersion(
        name="schedule-half-a-step-off",
        says="The noise of each step is that of half a step later.",
        runs={"privacy_budget": ("theory",)},
        patches=(Patch(f"{SCHEDULES}:noise_multipliers", _half_a_step_off),),
        turns=(
            "budget-is-met-by-every-sample",
            "noise-is-the-least",
            "output-perturbation-is-noise-at-the-end",
            "half-power-is-constant-noise",
            "divergence-within-budget",
        ),
    ),
    WrongVersion(
        name="twice-the-drift",
        says="The drift of the diffusion is twice the clipped gradient, as printed.",
        runs={"diffusion": ("simulate",)},
        patches=(
            Patch(
                "privreg.theory.one_pass_dpgd.homogenised_sde:risk_path",
                lambda right: (
                    lambda *arguments, form, **options: right(*arguments, form="printed", **options)
                ),
            ),
        ),
        turns=("diffusion-corrected",),
    ),
    WrongVersion(
        name="descent-factor-of-a-wider-clip",
        says="The descent factor is that of a clipping constant one percent wider.",
        runs={"clipping_factors": ("theory",)},
        patches=(
            Patch(
                f"{CLIPPING}:descent_factor",
                lambda right: (
                    lambda risk, *, clip_constant, label_noise_std: right(
                        risk, clip_constant=1.01 * clip_constant, label_noise_std=label_noise_std
                    )
                ),
            ),
        ),
        turns=("clipping-closed-forms", "descent-factor-bound", "clipping-bounds-attained"),
    ),
    WrongVersion(
        name="variance-factor-of-unclipped-residuals",
        says="The variance factor lacks its first term, that of the clipped residuals.",
        runs={"clipping_factors": ("theory",)},
        patches=(Patch(f"{CLIPPING}:variance_factor", _normal_part),),
        turns=(
            "clipping-bounds-attained",
            "clipping-closed-forms",
            "variance-factor-lower-bound-small",
            "variance-factor-lower-bound-large",
            "variance-over-square-monotone",
            "variance-factor-at-one",
            "variance-factor-at-one-closed-form",
        ),
    ),
    WrongVersion(
        name="descent-factor-over-the-constant",
        says="The descent factor is divided by the clipping constant.",
        runs={"clipping_factors": ("theory",)},
        patches=(Patch(f"{CLIPPING}:descent_factor", _times_the_constant(-1.0)),),
        turns=(
            "clipping-bounds-attained",
            "clipping-closed-forms",
            "clipping-factors-increase",
            "descent-factor-bound",
        ),
    ),
    WrongVersion(
        name="descent-factor-times-the-constant",
        says="The descent factor is multiplied by the clipping constant.",
        runs={"clipping_factors": ("theory",)},
        patches=(Patch(f"{CLIPPING}:descent_factor", _times_the_constant(1.0)),),
        turns=(
            "clipping-bounds-attained",
            "clipping-closed-forms",
            "descent-factor-bound",
            "descent-over-ratio-monotone",
        ),
    ),
    WrongVersion(
        name="conversion-without-the-root-of-two",
        says="epsilon is rho^2/2 + rho sqrt(ln(1/delta)).",
        runs={"appendix_identities": ("theory",)},
        patches=(
            Patch(
                f"{EXPERIMENTS}.appendix_identities:_converted",
                lambda _: lambda root, failure: root**2 / 2 + root * np.sqrt(np.log(1 / failure)),
            ),
        ),
        turns=("conversion-of-zcdp",),
    ),
    WrongVersion(
        name="exponential-integral-of-the-neighbouring-order",
        says="The closed forms have exponential integrals of an order that is less by a third.",
        runs={"appendix_identities": ("theory",)},
        patches=(
            Patch(
                f"{EXPERIMENTS}.appendix_identities:_exponential_integral",
                lambda right: lambda order, x: right(order - 1 / 3, x),
            ),
        ),
        turns=(
            "constant-noise-closed-form",
            "exponential-integral-bounds",
        ),
    ),
    WrongVersion(
        name="exponents-of-more-risk",
        says="The exponents of Theorem 4 are a twentieth larger.",
        runs={"scaling_exponents": ("theory",)},
        patches=(Patch(f"{SCALING}:optimal_exponent", _more_risk),),
        turns=(
            "theorem-4-balances-exponents",
            "corollary-6-1-limits",
        ),
    ),
    WrongVersion(
        name="limits-without-a-cost-of-decay",
        says="Long schedules approach min(1, 2 (1 - b)) for phi > 0, too.",
        runs={"scaling_exponents": ("theory",)},
        patches=(
            Patch(
                f"{SCALING}:limiting_exponent",
                lambda _: lambda spectrum, signal, privacy: min(1.0, 2 * (1 - privacy)),
            ),
        ),
        turns=("corollary-6-1-limits",),
    ),
    WrongVersion(
        name="critical-power-with-another-signal",
        says="The critical privacy power is that of a signal with nine tenths of psi.",
        runs={"scaling_exponents": ("theory",)},
        patches=(
            Patch(
                f"{SCALING}:critical_privacy_power",
                lambda right: (
                    lambda spectrum, signal, schedule: right(
                        spectrum, 0.9 * signal - 0.01, schedule
                    )
                ),
            ),
        ),
        turns=(
            "corollary-6-1-limits",
            "corollary-6-1-threshold",
            "threshold-near-zero-by-signal",
        ),
    ),
    WrongVersion(
        name="kernels-of-another-signal",
        says="The signal's kernel is that of nine tenths of psi.",
        runs={"forgetting_kernels": ("theory",)},
        patches=(
            Patch(
                "privreg.theory.one_pass_dpgd.volterra:power_law_kernels",
                lambda right: lambda spectrum, signal: right(spectrum, 0.9 * signal),
            ),
        ),
        turns=(
            "kernels-decay-as-powers",
            "volterra-equals-modes",
            "kernels-by-quadrature",
        ),
    ),
    WrongVersion(
        name="comparison-of-isotropic-data",
        says="The comparison equations have the mean eigenvalue for both extremes.",
        runs={"comparison_bounds": ("theory",)},
        patches=(Patch("privreg.theory.one_pass_dpgd.comparison_odes:sandwich", _at_the_mean),),
        turns=("comparison-equation-below", "comparison-equation-above"),
    ),
)
