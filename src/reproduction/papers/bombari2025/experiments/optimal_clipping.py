"""Optimised risk of isotropic DP-GD over clipping constants, against the stated best rate."""

from __future__ import annotations

from pydantic import Field

from privreg import spectra
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, per, stage
from reproduction.papers.bombari2025 import equivalent, setting

PLACE = "Proposition 5.1, equations (5.2) and (5.4)"


class Parameters(setting.Labelled):
    """Output perturbation and constant noise on isotropic data, over clipping constants."""

    aspect_ratios: q.Several[q.AspectRatio] = Field(description="gamma = d / n, decreasing.")
    privacy_powers: q.Some[q.Power] = Field(description="b of rho = gamma^b, b < 1.")
    clip_constants: q.Several[q.ClipConstant] = Field(description="Clipping constants c.")


AXES = {
    "privacy_power": Axis("power b of rho = gamma^b", "privacy_powers"),
    "exponent": Axis(setting.EXPONENT.meaning, (0.0, 0.5)),
    "clip_constant": setting.CLIP_CONSTANT,
    "aspect_ratio": setting.ASPECT_RATIO,
}


@per(
    *AXES,
    risk="least excess risk over the initial rate",
    risk_over_rate="least excess risk divided by the stated rate",
)
def tuned(parameters: Parameters, exponent: float, aspect_ratio: float, **cell: float) -> dict:
    privacy_power = cell["privacy_power"]
    at = aspect_ratio, aspect_ratio**privacy_power, cell["clip_constant"]
    risk = equivalent.tuned(parameters, spectra.isotropic(), exponent, *at).final_risk
    growth = setting.growth(exponent, aspect_ratio)
    rate = aspect_ratio * growth + (aspect_ratio ** (1 - privacy_power) * growth) ** 2
    return {"risk": risk, "risk_over_rate": risk / rate}


@per(
    "privacy_power",
    "exponent",
    "aspect_ratio",
    least_over_rate="least excess risk of all constants and rates, divided by the stated rate",
    moderate_over_least="largest optimised risk at constants up to 1, divided by the least of all",
)
def over_clip_constants(earlier: Dataset, **cell: float) -> dict:
    at = earlier.sel(cell)
    moderate = at.risk[at.clip_constant <= 1].max()
    return {
        "least_over_rate": at.risk_over_rate.min(),
        "moderate_over_least": moderate / at.risk.min(),
    }


theory = stage(AXES, tuned, over_clip_constants)
