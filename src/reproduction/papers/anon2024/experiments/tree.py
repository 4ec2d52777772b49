"""The tree of Figure 1 and Algorithm 3: its nodes, and the covariance of its prefix noise."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.anon2024.setting import correlation_named, shared_nodes

PLACE = "Figure 1, Algorithm 3"


class Parameters(Strict):
    """A tree of every step's noise."""

    leaves: q.Plural[q.Count] = Field(description="Leaves of the drawn tree, a power of two.")
    steps: q.Plural[q.Steps] = Field(description="Steps whose covariance is estimated.")
    draws: q.Plural[q.Count] = Field(description="Independent trees a trial.")

    _is_a_whole_tree = q.must(
        "leaves must be a power of two, got {self.leaves}",
        lambda self: self.leaves.bit_count() == 1,
    )

    @property
    def prefixes(self) -> np.ndarray:
        return np.arange(1, self.steps + 1)


PREFIX = Axis("number of gradients in the prefix", "prefixes")
AXES = {"step": PREFIX, "other_step": PREFIX}


@per(
    "node",
    height="height above the leaves",
    first="first leaf below the node",
    last="last leaf below the node",
    enters="1 if the node's noise enters a prefix",
)
def nodes(parameters: Parameters) -> list[dict[str, int]]:
    # Left children's noise enters, and the root's once all leaves are in.
    return [
        {
            "height": level,
            "first": (block << level) + 1,
            "last": (block + 1) << level,
            "enters": int(block % 2 == 0),
        }
        for level in range(parameters.leaves.bit_length())
        for block in range(parameters.leaves >> level)
    ]


@per(
    law=Quantity("nodes shared by two prefixes", "step other_step"),
    largest_excess="largest excess of a prefix's nodes above ceil(log2 of its length)",
    largest_excess_from_two="the same excess for prefixes of two vectors or more",
)
def law(parameters: Parameters) -> dict:
    """The law of the tree's own matrices."""
    shared = shared_nodes(parameters.steps)[1:, 1:]
    excess = np.diag(shared) - np.ceil(np.log2(parameters.prefixes))
    return {
        "law": shared,
        "largest_excess": excess.max(),
        "largest_excess_from_two": excess[1:].max(),
    }


@per("step", "other_step", moment="covariance of prefix noises in one trial")
def run(parameters: Parameters, trial: Trial) -> np.ndarray:
    """Second moments of drawn prefix noises."""
    steps, draws = parameters.steps, parameters.draws
    noise = correlation_named("tree").stream(draws, steps=steps, rng=trial.rng).draw(steps)
    prefixes = np.cumsum(noise, axis=0)
    return prefixes @ prefixes.T / draws


@per(
    covariance=Estimate(
        "covariance of prefix noises in units of a node's variance", "step other_step"
    ),
    largest_score="largest deviation in standard errors",
    scale=Estimate("least-squares scale of the covariance against the law"),
)
def covariance(parameters: Parameters, simulation: Dataset, theory: Dataset) -> dict:
    """Covariance over all draws, and its exact standard error by the law."""
    law, count = theory.law.values.astype(float), parameters.draws * simulation.sizes["trial"]
    found = trials_last(simulation.moment).mean(axis=-1)
    error = np.sqrt((np.outer(np.diag(law), np.diag(law)) + law**2) / count)
    # ⟨S, K⟩ of a sample covariance S has variance 2 tr(K⁴)/n.
    error_of_scale = np.sqrt(2 * np.trace(law @ law @ law @ law) / count)
    return {
        "covariance": (found, error),
        "largest_score": (np.abs(found - law) / error).max(),
        "scale": np.array([np.sum(found * law), error_of_scale]) / np.sum(law**2),
    }


theory = stage(AXES, nodes, law, attributes=lambda parameters: {"leaves": parameters.leaves})
simulate = stage(AXES, run)
summarise = stage(AXES, covariance)
