"""The tree of Figure 1 and Algorithm 3: its nodes, and the covariance of its prefix noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, Steps

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Figure 1, Algorithm 3"


class Parameters(Strict):
    """A tree of every step's noise."""

    leaves: Annotated[Count, Field(ge=2)] = Field(
        description="Leaves of the tree that is drawn, a power of two."
    )
    steps: Annotated[Steps, Field(ge=2)] = Field(description="Steps whose covariance is estimated.")
    draws: Annotated[Count, Field(ge=2)] = Field(description="Independent trees a trial.")

    @model_validator(mode="after")
    def _is_a_whole_tree(self) -> Self:
        if self.leaves & (self.leaves - 1):
            raise ValueError(f"leaves must be a power of two, got {self.leaves}")
        return self


def theory(parameters: Parameters) -> xr.Dataset:
    """Nodes from the leaves up, which of them enter a prefix, and the popcount law."""
    import xarray as xr

    from privreg.noise.tree import tree_shared_nodes

    leaves = parameters.leaves
    height, first, last, enters = [], [], [], []
    for level in range(leaves.bit_length()):
        for block in range(leaves >> level):
            height.append(level)
            first.append((block << level) + 1)
            last.append((block + 1) << level)
            # Left children, and the root once all leaves are in.
            enters.append(int(block % 2 == 0))
    steps = np.arange(1, parameters.steps + 1)
    law = tree_shared_nodes(steps[:, None], steps)
    excess = np.diag(law) - np.ceil(np.log2(steps))
    return xr.Dataset(
        {
            "height": variable("node", height, "height above the leaves"),
            "first": variable("node", first, "first leaf below the node"),
            "last": variable("node", last, "last leaf below the node"),
            "enters": variable("node", enters, "1 if the node's noise enters a prefix"),
            "largest_excess": variable(
                (), excess.max(), "nodes of a prefix over log2 of its length, rounded up"
            ),
            "law": variable(("step", "other_step"), law, "nodes shared by two prefixes"),
        },
        coords={
            "step": variable("step", steps, "number of gradients in the prefix"),
            "other_step": variable("other_step", steps, "number of gradients in the prefix"),
        },
        attrs={"leaves": leaves},
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Second moments of drawn prefix noises."""
    import xarray as xr

    from privreg.noise.tree import TreeNoise

    steps = parameters.steps
    moment = np.empty((steps, steps, len(trials)))
    for at, trial in enumerate(trials):
        noise = TreeNoise(parameters.draws, rng=trial.rng, steps=steps).draw(steps)
        prefixes = np.cumsum(noise, axis=0)
        moment[:, :, at] = prefixes @ prefixes.T / parameters.draws
    index = np.arange(1, steps + 1)
    return xr.Dataset(
        {
            "moment": variable(
                ("step", "other_step", "trial"), moment, "covariance of prefix noises in one trial"
            )
        },
        coords={
            "step": variable("step", index, "number of gradients in the prefix"),
            "other_step": variable("other_step", index, "number of gradients in the prefix"),
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Covariance over all draws, its exact standard error, and its largest deviation in it."""
    import xarray as xr

    law = theory.law.values.astype(float)
    found = simulation.moment.values.mean(axis=-1)
    count = parameters.draws * simulation.sizes["trial"]
    error = np.sqrt((np.outer(np.diag(law), np.diag(law)) + law**2) / count)
    scores = np.abs(found - law) / error
    dims = ("step", "other_step")
    return xr.Dataset(
        {
            "covariance": variable(
                dims,
                found,
                "covariance of prefix noises in units of a node's variance",
                standard_error="covariance_standard_error",
            ),
            "covariance_standard_error": variable(dims, error, "its standard error by the law"),
            "largest_score": variable((), scores.max(), "largest deviation in standard errors"),
            "scale": variable(
                (),
                np.sum(found * law) / np.sum(law**2),
                "least-squares scale of the covariance against the law",
                standard_error="scale_standard_error",
            ),
            "scale_standard_error": variable(
                (), _scale_error(law, count), "standard error of that scale"
            ),
        },
        coords={name: simulation[name].variable for name in (*dims, "trial")},
    )


def _scale_error(law: np.ndarray, count: int) -> float:
    # ⟨S, K⟩ of a sample covariance S has variance 2 tr(K⁴)/n.
    return float(np.sqrt(2 * np.trace(law @ law @ law @ law) / count) / np.sum(law**2))
