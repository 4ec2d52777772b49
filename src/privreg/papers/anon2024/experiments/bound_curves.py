"""The minimised bounds at sample sizes that people have, where logarithms are not small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import LogAxis, Strict

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Corollaries 4.3 and 4.5, Theorem 4.1"
METHODS = ("non-private", "identity", "designed")


class Parameters(Strict):
    """Bounds with unit noise, and with the paper's own noise at delta = N^-2."""

    decays: list[float] = Field(min_length=1, description="Decay exponents r.")
    sample_sizes: LogAxis = Field(description="Sample sizes N.")
    epsilon: float = Field(gt=0, description="epsilon of the paper's noise.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Bounds minimised over the step size, their best step sizes and fitted slopes."""
    import xarray as xr

    from privreg.algorithms.shaped_accounting import published_noise_multiplier
    from privreg.theory.shaped_noise.bounds import (
        designed_bound,
        fitted_exponent,
        identity_bound,
        minimise_over_step_size,
    )
    from privreg.theory.shaped_noise.decay import PowerLawDecay

    sizes = parameters.sample_sizes.values()
    noises: tuple[Literal["unit", "published"], ...] = ("unit", "published")
    shape = (len(noises), len(METHODS), len(parameters.decays), len(sizes))
    bound, step_size = np.zeros(shape), np.zeros(shape)
    exponent = np.zeros(shape[:-1])
    for index in np.ndindex(shape):
        noise, method = noises[index[0]], METHODS[index[1]]
        decay, size = PowerLawDecay(parameters.decays[index[2]]), sizes[index[3]]
        multiplier = 0.0
        if method != "non-private":
            multiplier = (
                1.0
                if noise == "unit"
                else published_noise_multiplier(
                    epsilon=parameters.epsilon, delta=size**-2, steps=round(size)
                )
            )
        formula = designed_bound if method == "designed" else identity_bound
        best = minimise_over_step_size(
            lambda eta, formula=formula, decay=decay, size=size, multiplier=multiplier: (
                formula(decay, sample_size=size, step_size=eta, noise_multiplier=multiplier).total
            ),
            sample_size=size,
        )
        bound[index], step_size[index] = best.value, best.step_size
    for index in np.ndindex(shape[:-1]):
        exponent[index] = fitted_exponent(sizes, bound[index])
    dims = ("noise", "method", "decay", "sample_size")
    return xr.Dataset(
        {
            "bound": variable(dims, bound, "least bound over step sizes, constants left out"),
            "step_size": variable(dims, step_size, "step size of the least bound"),
            "exponent": variable(dims[:-1], exponent, "fitted exponent over these sizes"),
        },
        coords={
            "noise": variable("noise", list(noises), "noise multiplier"),
            "method": variable("method", list(METHODS), "method"),
            "decay": variable("decay", parameters.decays, "decay exponent r"),
            "sample_size": variable("sample_size", sizes, "number of rows N"),
        },
    )
