"""The harmonic schedule at its best against its limits, its explicit constants, their bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    AspectRatio,
    ClipConstant,
    PositiveDeviation,
    Power,
    Some,
    StatedBudget,
)

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.one_pass_dpgd.rate_search import Best

PLACE = "Theorem 2, equations (D.105) and (D.109)"


class Parameters(Strict):
    """Two limits on isotropic data, and a range of aspect ratios for the explicit constants."""

    clip_constants: Some[ClipConstant] = Field(description="Clipping constants c.")
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )
    aspect_ratio: AspectRatio = Field(description="gamma at which rho = 1 has its limit.")
    private_aspect_ratio: AspectRatio = Field(
        description="gamma at which rho = gamma^b has its limit."
    )
    privacy_power: Annotated[Power, Field(gt=0.5, lt=1)] = Field(
        description="Power b of rho = gamma^b, more than 1/2: private noise dominates."
    )
    budgets: Some[StatedBudget] = Field(description="Budgets for the explicit constants.")
    aspect_ratios: Some[AspectRatio] = Field(
        description="Values of gamma for the explicit constants."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Optimise the harmonic schedule near its limits; evaluate the explicit constants."""
    import xarray as xr

    return xr.Dataset(
        _limits(parameters) | _explicit(parameters) | _offsets(parameters),
        coords={
            "clip_constant": variable(
                "clip_constant", parameters.clip_constants, "clipping constant c"
            ),
            "zcdp_root": variable(
                "zcdp_root", [b.root for b in parameters.budgets], "rho of rho^2/2-zCDP"
            ),
            "aspect_ratio": variable(
                "aspect_ratio", parameters.aspect_ratios, "aspect ratio gamma = d / n"
            ),
        },
    )


def _limits(parameters: Parameters) -> dict[str, tuple]:
    from privreg.theory.one_pass_dpgd import optimal_harmonic

    found = np.empty((5, len(parameters.clip_constants)))
    for at, clip_constant in enumerate(parameters.clip_constants):
        noise = {"clip_constant": clip_constant, "label_noise_std": parameters.label_noise_std}
        gamma = parameters.aspect_ratio
        best = _harmonic(gamma, zcdp_root=1.0, **noise)
        limit = float(optimal_harmonic.sampling_limit(**noise))
        least = optimal_harmonic.least_risk(aspect_ratio=gamma, **noise)
        tiny = parameters.private_aspect_ratio
        rho = tiny**parameters.privacy_power
        private = _harmonic(tiny, zcdp_root=rho, **noise)
        private_limit = float(optimal_harmonic.privacy_limit(**noise))
        found[:, at] = (
            best.final_risk / gamma,
            limit,
            best.final_risk / gamma / limit,
            best.final_risk / least,
            private.final_risk / (tiny / rho) ** 2 / private_limit,
        )
    meanings = {
        "harmonic_constant": "least risk of the harmonic schedule over gamma, rho = 1",
        "harmonic_limit": "limit of the least risk of the harmonic schedule over gamma",
        "harmonic_over_limit": "least risk of the harmonic schedule over its limit, rho = 1",
        "harmonic_over_least": "least risk of the harmonic schedule over that of any schedule",
        "private_harmonic_over_limit": "least risk of the harmonic schedule over its limit where "
        "private noise dominates",
    }
    return {
        name: variable("clip_constant", row, meaning)
        for (name, meaning), row in zip(meanings.items(), found, strict=True)
    }


def _explicit(parameters: Parameters) -> dict[str, tuple]:
    from privreg import spectra
    from privreg.theory.one_pass_dpgd import deterministic_equivalent, optimal_harmonic

    shape = (len(parameters.budgets), len(parameters.aspect_ratios))
    share, over = np.empty(shape), np.empty(shape)
    for p, g in np.ndindex(shape):
        gamma, rho = parameters.aspect_ratios[g], parameters.budgets[p].root
        found = optimal_harmonic.explicit_constants(
            aspect_ratio=gamma, zcdp_root=rho, label_noise_std=parameters.label_noise_std
        )
        risk = deterministic_equivalent.solve(
            spectra.isotropic(),
            found.schedule,
            aspect_ratio=gamma,
            zcdp_root=rho,
            clip_constant=found.clip_constant,
            label_noise_std=parameters.label_noise_std,
        ).final_risk.item()
        share[p, g], over[p, g] = risk / found.bound, risk / (gamma + (gamma / rho) ** 2)
    dims = ("zcdp_root", "aspect_ratio")
    return {
        "explicit_risk_over_bound": variable(
            dims, share, "risk with the explicit constants of the proof over the proof's bound"
        ),
        "explicit_risk_over_rate": variable(
            dims, over, "risk with the explicit constants over gamma + gamma^2 / rho^2"
        ),
    }


def _offsets(parameters: Parameters) -> dict[str, tuple]:
    """Offsets of (D.105) and of the text after Theorem 2, at rho = gamma^b."""
    from privreg import spectra
    from privreg.schedules import Harmonic
    from privreg.theory.one_pass_dpgd import deterministic_equivalent, optimal_harmonic

    noise = {"label_noise_std": parameters.label_noise_std}
    ratios = np.asarray(parameters.aspect_ratios)
    proof, text, over = np.empty((3, len(ratios)))
    for at, gamma in enumerate(ratios):
        rho = gamma**parameters.privacy_power
        found = optimal_harmonic.explicit_constants(aspect_ratio=gamma, zcdp_root=rho, **noise)
        proof[at] = found.schedule.offset
        text[at] = max(gamma, (gamma / rho) ** 2)
        risk = deterministic_equivalent.solve(
            spectra.isotropic(),
            Harmonic(1.5 * _inverse_descent(parameters), text[at]),
            aspect_ratio=gamma,
            zcdp_root=rho,
            clip_constant=parameters.clip_constants[0],
            **noise,
        ).final_risk.item()
        over[at] = risk / (gamma + (gamma / rho) ** 2)
    small = ratios <= 1e-4 * (1 + 1e-9)

    def slope(values: np.ndarray) -> float:
        return float(np.polyfit(np.log(ratios[small]), np.log(values[small]), 1)[0])

    return {
        "proof_offset_slope": variable(
            (), slope(proof), "log-log slope in gamma of the proof's offset, rho = gamma^b"
        ),
        "text_offset_slope": variable(
            (), slope(text), "log-log slope in gamma of max(gamma, gamma^2/rho^2), rho = gamma^b"
        ),
        "text_offset_risk_over_rate": variable(
            "aspect_ratio",
            over,
            "risk with the offset max(gamma, gamma^2/rho^2) over gamma + gamma^2/rho^2",
        ),
    }


def _inverse_descent(parameters: Parameters) -> float:
    from privreg.theory.one_pass_dpgd.clipping import descent_factor

    return 1 / float(
        descent_factor(
            0.0,
            clip_constant=parameters.clip_constants[0],
            label_noise_std=parameters.label_noise_std,
        )
    )


def _harmonic(
    aspect_ratio: float, *, zcdp_root: float, clip_constant: float, label_noise_std: float
) -> Best:
    from privreg import spectra
    from privreg.theory.one_pass_dpgd import rate_search

    return rate_search.harmonic(
        spectra.isotropic(),
        aspect_ratio=aspect_ratio,
        zcdp_root=zcdp_root,
        clip_constant=clip_constant,
        label_noise_std=label_noise_std,
    )
