"""Least risk over clipping constants and rates together, against the lower bound of its rate."""

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
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Proposition 5.1, equations (5.2) and (5.4)"
GRID = ("privacy_power", "exponent", "clip_constant", "aspect_ratio")


class Parameters(Strict):
    """Output perturbation and constant noise on isotropic data, over clipping constants."""

    aspect_ratios: Annotated[Some[AspectRatio], Field(min_length=2)] = Field(
        description="gamma = d / n, decreasing."
    )
    privacy_powers: Some[Annotated[Power, Field(lt=1)]] = Field(
        description="b of rho = gamma^b, b < 1."
    )
    clip_constants: Annotated[Some[ClipConstant], Field(min_length=2)] = Field(
        description="Clipping constants c."
    )
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Best rate of each setting up to 2 / gamma, and what is left over the stated rate."""
    import xarray as xr

    from privreg import spectra
    from privreg.theory.one_pass_dpgd import rate_search
    from reproduction.experiment.progress import track

    exponents = (0.0, 0.5)
    shape = (
        len(parameters.privacy_powers),
        len(exponents),
        len(parameters.clip_constants),
        len(parameters.aspect_ratios),
    )
    risk, rate = np.empty(shape), np.empty(shape)
    cells = list(np.ndindex(shape))
    for at in track(cells, total=len(cells), label="clipping and rates"):
        power, exponent = parameters.privacy_powers[at[0]], exponents[at[1]]
        gamma = parameters.aspect_ratios[at[3]]
        risk[at] = rate_search.polynomial(
            spectra.isotropic(),
            exponent=exponent,
            aspect_ratio=gamma,
            zcdp_root=gamma**power,
            clip_constant=parameters.clip_constants[at[2]],
            label_noise_std=parameters.label_noise_std,
        ).final_risk
        growth = np.log(1 / gamma) ** (1 / (1 + exponent))
        rate[at] = gamma * growth + (gamma ** (1 - power) * growth) ** 2
    over = risk / rate
    least = over.min(axis=2)
    moderate = np.asarray(parameters.clip_constants) <= 1
    return xr.Dataset(
        {
            "risk": variable(GRID, risk, "least excess risk over the initial rate"),
            "risk_over_rate": variable(GRID, over, "least excess risk over the stated rate"),
            "least_over_rate": variable(
                ("privacy_power", "exponent", "aspect_ratio"),
                least,
                "least excess risk over clipping constants and rates, over the stated rate",
            ),
            "moderate_over_least": variable(
                ("privacy_power", "exponent", "aspect_ratio"),
                risk[:, :, moderate].max(axis=2) / risk.min(axis=2),
                "largest over least optimised risk, clipping constants up to 1 over all",
            ),
        },
        coords={
            "privacy_power": variable(
                "privacy_power", parameters.privacy_powers, "power b of rho = gamma^b"
            ),
            "exponent": variable("exponent", exponents, "schedule exponent alpha"),
            "clip_constant": variable(
                "clip_constant", parameters.clip_constants, "clipping constant c"
            ),
            "aspect_ratio": variable(
                "aspect_ratio", parameters.aspect_ratios, "aspect ratio gamma = d / n"
            ),
        },
    )
