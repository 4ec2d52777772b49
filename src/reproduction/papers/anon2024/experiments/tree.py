"""The tree of Figure 1 and Algorithm 3: its nodes, and the covariance of its prefix noise."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Estimate, Trial, per, stage
from reproduction.engine.summaries import trials_last

PLACE = "Figure 1, Algorithm 3"


class Parameters(Strict):
    """A tree of every step's noise."""

    leaves: q.Plural[q.Count] = Field(
        description="Leaves of the tree that is drawn, a power of two."
    )
    steps: q.Plural[q.Steps] = Field(description="Steps whose covariance is estimated.")
    draws: q.Plural[q.Count] = Field(description="Independent trees a trial.")

    _is_a_whole_tree = q.must(
        "leaves must be a power of two, got {self.leaves}",
        lambda self: self.leaves.bit_count() == 1,
    )

    @property
    def prefixes(self) -> np.ndarray:
        return np.arange(1, self.steps + 1)

    @property
    def nodes(self) -> list[tuple[int, int]]:
        """Height and number of each node, from the leaves up."""
        levels = range(self.leaves.bit_length())
        return [(level, block) for level in levels for block in range(self.leaves >> level)]


PREFIX = Axis("number of gradients in the prefix", "prefixes")
AXES = {"step": PREFIX, "other_step": PREFIX}


@per(
    "node",
    height="height above the leaves",
    first="first leaf below the node",
    last="last leaf below the node",
    enters="1 if the node's noise enters a prefix",
)
def nodes(parameters: Parameters) -> dict:
    level, block = np.array(parameters.nodes).T
    return {
        "height": level,
        "first": (block << level) + 1,
        "last": (block + 1) << level,
        # Left children, and the root once all leaves are in.
        "enters": (block % 2 == 0).astype(int),
    }


@per("step", "other_step", law="nodes shared by two prefixes")
def law(parameters: Parameters) -> np.ndarray:
    """The popcount law."""
    from privreg.noise.tree import tree_shared_nodes

    return tree_shared_nodes(parameters.prefixes[:, None], parameters.prefixes)


@per(largest_excess="nodes of a prefix over log2 of its length, rounded up")
def largest_excess(parameters: Parameters) -> float:
    from privreg.noise.tree import tree_shared_nodes

    prefixes = parameters.prefixes
    return (tree_shared_nodes(prefixes, prefixes) - np.ceil(np.log2(prefixes))).max()


@per("step", "other_step", moment="covariance of prefix noises in one trial")
def run(parameters: Parameters, trial: Trial) -> np.ndarray:
    """Second moments of drawn prefix noises."""
    from privreg.noise.tree import TreeNoise

    steps = parameters.steps
    noise = TreeNoise(parameters.draws, rng=trial.rng, steps=steps).draw(steps)
    prefixes = np.cumsum(noise, axis=0)
    return prefixes @ prefixes.T / parameters.draws


@per(
    "step",
    "other_step",
    covariance=Estimate("covariance of prefix noises in units of a node's variance"),
)
def covariance(parameters: Parameters, simulation: Dataset, theory: Dataset) -> tuple:
    """Covariance over all draws, and its exact standard error by the law."""
    law, count = theory.law.values.astype(float), _count(parameters, simulation)
    error = np.sqrt((np.outer(np.diag(law), np.diag(law)) + law**2) / count)
    return trials_last(simulation.moment).mean(axis=-1), error


@per(largest_score="largest deviation in standard errors")
def largest_score(parameters: Parameters, simulation: Dataset, theory: Dataset) -> float:
    found, error = covariance(parameters, simulation, theory)
    return (np.abs(found - theory.law.values.astype(float)) / error).max()


@per(scale=Estimate("least-squares scale of the covariance against the law"))
def scale(parameters: Parameters, simulation: Dataset, theory: Dataset) -> tuple:
    law, count = theory.law.values.astype(float), _count(parameters, simulation)
    found = trials_last(simulation.moment).mean(axis=-1)
    # ⟨S, K⟩ of a sample covariance S has variance 2 tr(K⁴)/n.
    error = np.sqrt(2 * np.trace(law @ law @ law @ law) / count)
    return np.sum(found * law) / np.sum(law**2), error / np.sum(law**2)


theory = stage(
    AXES, nodes, law, largest_excess, attributes=lambda parameters: {"leaves": parameters.leaves}
)
simulate = stage(AXES, run)
summarise = stage(AXES, covariance, largest_score, scale)


def _count(parameters: Parameters, simulation: Dataset) -> int:
    """Trees drawn in all trials."""
    return parameters.draws * simulation.sizes["trial"]
