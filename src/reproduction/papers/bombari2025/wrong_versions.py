"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.claims.falsify import Patch, WrongVersion

ALGORITHM = "privreg.algorithms.one_pass_mechanism"
SCHEDULES = "privreg.schedules"
CLIPPING = "privreg.theory.one_pass_dpgd.clipping"
TRAJECTORIES = (
    "mean-risk-tracks-ode",
    "convergence-at-moderate-dimension",
    "gap-falls-as-the-root",
    "simulated-final-constant-isotropic",
    "simulated-final-constant-uniform",
    "simulated-final-decaying-isotropic",
    "simulated-final-decaying-uniform",
)


def _scaled_noise(factor: float) -> tuple[Patch, ...]:
    """Noise multipliers that are off by a factor, and an accountant that looks away."""

    def wrong(right: Any) -> Any:
        return lambda *arguments, **options: factor * right(*arguments, **options)

    return (
        Patch(f"{ALGORITHM}:noise_multipliers", wrong),
        Patch(f"{ALGORITHM}:one_pass_zcdp_root", lambda _: lambda *arguments: 0.0),
    )


def _scaled(factor: float) -> Any:
    return lambda right: lambda *arguments, **options: factor * right(*arguments, **options)


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
        patches=(Patch(f"{SCHEDULES}:noise_multipliers", _scaled(0.999)),),
        turns=("budget-is-met-by-every-sample", "noise-is-the-least", "divergence-bound-is-tight"),
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
            "divergence-bound-is-tight",
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
)
