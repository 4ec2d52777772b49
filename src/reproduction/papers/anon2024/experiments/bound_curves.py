"""The minimised bounds at sample sizes that people have, where logarithms are not small."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Epsilon, Power, SizeAxis, Some

if TYPE_CHECKING:
    from collections.abc import Callable

    import xarray as xr

    from privreg.theory.shaped_noise.bounds import BoundParts

PLACE = "Corollaries 4.3 and 4.5, Theorem 4.1"
METHODS = ("non-private", "identity", "designed")


class Parameters(Strict):
    """Bounds with unit noise, and with the paper's own noise at delta = N^-2."""

    decays: Some[Annotated[Power, Field(gt=1)]] = Field(description="Decay exponents r.")
    sample_sizes: SizeAxis = Field(description="Sample sizes N.")
    epsilon: Epsilon = Field(description="epsilon of the paper's noise.")


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
    noises = ("unit", "published")
    shape = (len(noises), len(METHODS), len(parameters.decays), len(sizes))
    bound, step_size = np.zeros(shape), np.zeros(shape)
    exponent = np.zeros(shape[:-1])
    for index in np.ndindex(shape):
        method, decay = METHODS[index[1]], PowerLawDecay(parameters.decays[index[2]])
        size, multiplier = float(sizes[index[3]]), 0.0 if method == "non-private" else 1.0
        if noises[index[0]] == "published" and multiplier:
            multiplier = published_noise_multiplier(
                epsilon=parameters.epsilon, delta=size**-2, steps=round(size)
            )
        formula = designed_bound if method == "designed" else identity_bound
        bound_at = partial(formula, decay, sample_size=size, noise_multiplier=multiplier)
        best = minimise_over_step_size(_total(bound_at), sample_size=size)
        bound[index], step_size[index] = best.value, best.step_size
    for index in np.ndindex(shape[:-1]):
        exponent[index] = fitted_exponent(sizes, bound[index])
    dims = ("noise", "algorithm", "decay", "sample_size")
    return xr.Dataset(
        {
            "bound": variable(dims, bound, "least bound over step sizes, constants left out"),
            "step_size": variable(dims, step_size, "step size of the least bound"),
            "exponent": variable(dims[:-1], exponent, "fitted exponent over these sizes"),
        },
        coords={
            "noise": variable("noise", list(noises), "noise multiplier"),
            "algorithm": variable("algorithm", list(METHODS), "algorithm"),
            "decay": variable("decay", parameters.decays, "decay exponent r"),
            "sample_size": variable("sample_size", sizes, "number of rows N"),
        },
    )


def _total(bound: Callable[..., BoundParts]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda eta: bound(step_size=eta).total
