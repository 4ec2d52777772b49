"""Guarantee of the noise of Theorem 4.1 in three readings of its proof, and sufficient noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from privreg.algorithms.shaped_dp_ftrl import private_groups_needed, private_share
from privreg.privacy.budget import Budget, gaussian_epsilon
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, per, stage
from reproduction.papers.anon2024 import published

PLACE = "Theorem 4.1 and its proof"
READINGS = ("stated", "replace-one", "zero-out")


class Parameters(Strict):
    """Targets, and the sizes at which noise and private estimates are counted."""

    epsilons: q.Rising[q.Epsilon] = Field(description="Promised epsilon.")
    delta: q.Delta = Field(description="Promised delta.")
    sample_sizes: q.Rising[q.SampleSize] = Field(description="Sample sizes N.")
    failure_probability: q.Probability = Field(description="That a private estimate fails.")


AXES = {
    "neighbours": Axis("neighbouring relation", READINGS[1:]),
    "promised": Axis("epsilon that the paper promises", "epsilons"),
    "reading": Axis("reading of the proof", READINGS),
    "sample_size": Axis("number of rows N", "sample_sizes"),
    "any_size": Axis("number of rows N", (1e3, 1e6, 1e9, 1e12)),
}


@per(
    "promised",
    "reading",
    epsilon="epsilon at the paper's noise by its own conversion",
    exact_epsilon="exact epsilon of a Gaussian mechanism at the paper's noise",
    epsilon_share="epsilon by the paper's conversion, divided by the promise",
    exact_share="exact epsilon divided by the promise",
)
def readings(parameters: Parameters, promised: float) -> dict:
    found = published.published_readings(epsilon=promised, delta=parameters.delta)
    shares = np.array(found) / promised
    return {
        "epsilon": found[:3],
        "exact_epsilon": found[3:],
        "epsilon_share": shares[:3],
        "exact_share": shares[3:],
    }


@per(
    "neighbours",
    "promised",
    "sample_size",
    needed_constant="least variance of a node by zCDP, divided by k log(1/delta) / epsilon^2",
    needed_constant_without_levels="the same variance divided by log(1/delta) / epsilon^2",
    delivered_epsilon="exact epsilon at the paper's noise, only nodes that enter a prefix counted",
)
def by_size(parameters: Parameters, neighbours: Any, promised: float, sample_size: int) -> dict:
    """Noise that the promise needs, and the privacy of the paper's noise."""
    from privreg.algorithms import shaped_dp_ftrl
    from privreg.noise.streams import TreeCorrelation, tree_levels

    given: Any = {"correlation": TreeCorrelation(), "steps": sample_size}
    budget = Budget.approximate(promised, parameters.delta, neighbours=neighbours)
    needed = shaped_dp_ftrl.shaped_noise_multiplier(budget, **given)
    constant = (needed * promised) ** 2 / np.log(1 / parameters.delta)
    tau = published.published_noise_multiplier(
        epsilon=promised, delta=parameters.delta, steps=sample_size
    )
    spent = shaped_dp_ftrl.shaped_budget(tau, neighbours=neighbours, **given)
    return {
        "needed_constant": constant / tree_levels(sample_size),
        "needed_constant_without_levels": constant,
        "delivered_epsilon": gaussian_epsilon(spent.rho, delta=parameters.delta),
    }


@per(
    "promised", "sample_size", rows_needed="rows that the private residual estimate needs at least"
)
def rows_needed(parameters: Parameters, promised: float, sample_size: int) -> int:
    """Private rows needed if each of N calls takes its share of the budget."""
    share, small = private_share(epsilon=promised, delta=parameters.delta, calls=sample_size)
    chance = parameters.failure_probability
    return private_groups_needed(epsilon=share, delta=small, failure_probability=chance)


@per(
    "any_size", estimating_share="private rows that the estimates need, divided by N/2, epsilon = 1"
)
def estimating_share(parameters: Parameters, any_size: float) -> float:
    """Private rows needed, divided by N/2, with N/2 calls and log(N/2) rows per group."""
    half = any_size / 2
    return rows_needed(parameters, 1.0, int(half)) * np.log(half) / half


@per(
    "promised",
    "sample_size",
    output_share="exact epsilon of the average alone divided by the promise, for gradients that "
    "depend on no iterate and replaced rows",
)
def output_share(parameters: Parameters, promised: float, sample_size: int) -> float:
    """Privacy loss of the average for the first record, which moves every prefix by 2 psi."""
    delta, prefixes, variance = parameters.delta, sample_size - 1, 0.0
    tau = published.published_noise_multiplier(epsilon=promised, delta=delta, steps=sample_size)
    # Of the sum of all prefix noises, in units of a node's: squared uses of each node, added.
    for height in range(prefixes.bit_length()):
        span = 1 << height
        # A left child serves the prefixes from its completion until its parent's.
        starts = np.arange(span, sample_size, 2 * span)
        variance += float(np.sum(np.minimum(span, sample_size - starts) ** 2.0))
    return gaussian_epsilon(2 * (prefixes / tau) ** 2 / variance, delta=delta) / promised


theory = stage(AXES, blocks_of=globals())
