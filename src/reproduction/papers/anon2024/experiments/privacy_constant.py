"""What the noise of Theorem 4.1 guarantees, in three readings of its proof, and what would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Epsilon, Probability, Rising, SampleSize

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Theorem 4.1 and its proof"
READINGS = ("stated", "replace-one", "zero-out")


class Parameters(Strict):
    """Targets, and the sizes at which noise and private estimates are counted."""

    epsilons: Rising[Epsilon] = Field(description="Promised epsilon.")
    delta: Probability = Field(description="Promised delta.")
    sample_sizes: Rising[SampleSize] = Field(description="Sample sizes N.")
    failure_probability: Probability = Field(description="Of one private estimate.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Epsilon by reading, multipliers published and needed, rows that Option 2 needs."""
    import xarray as xr

    from privreg.algorithms.residual_estimate import private_groups_needed, private_share
    from privreg.algorithms.shaped_accounting import (
        gaussian_epsilon,
        published_noise_multiplier,
        published_readings,
        shaped_budget,
        shaped_noise_multiplier,
    )
    from privreg.noise.correlations import TreeCorrelation
    from privreg.privacy.budget import Budget

    epsilons, sizes, delta = parameters.epsilons, parameters.sample_sizes, parameters.delta
    readings = np.array([published_readings(epsilon=e, delta=delta) for e in epsilons])
    shape = (len(epsilons), len(sizes))
    published, needed, delivered = np.zeros(shape), np.zeros((2, *shape)), np.zeros((2, *shape))
    rows = np.zeros(shape)
    budgets = {
        (epsilon, neighbours): Budget.approximate(epsilon, delta, neighbours=neighbours)
        for epsilon in epsilons
        for neighbours in READINGS[1:]
    }
    for i, epsilon in enumerate(epsilons):
        for j, size in enumerate(sizes):
            tau = published_noise_multiplier(epsilon=epsilon, delta=delta, steps=size)
            published[i, j] = tau
            for k, neighbours in enumerate(READINGS[1:]):
                needed[k, i, j] = shaped_noise_multiplier(
                    budgets[epsilon, neighbours], correlation=TreeCorrelation(), steps=size
                )
                spent = shaped_budget(
                    tau, correlation=TreeCorrelation(), steps=size, neighbours=neighbours
                )
                delivered[k, i, j] = gaussian_epsilon(spent.rho, delta=delta)
            share, small = private_share(epsilon=epsilon, delta=delta, calls=size)
            rows[i, j] = private_groups_needed(
                epsilon=share,
                delta=small,
                failure_probability=parameters.failure_probability,
            )
    return xr.Dataset(
        {
            "epsilon": variable(
                ("promised", "reading"),
                readings[:, :3],
                "epsilon at the paper's noise by its own conversion",
            ),
            "exact_epsilon": variable(
                ("promised", "reading"),
                readings[:, 3:],
                "exact epsilon of a Gaussian mechanism at the paper's noise",
            ),
            "published_multiplier": variable(
                ("promised", "sample_size"), published, "noise multiplier tau of Theorem 4.1"
            ),
            "needed_multiplier": variable(
                ("neighbours", "promised", "sample_size"),
                needed,
                "least noise multiplier of the tree by zCDP",
            ),
            "delivered_epsilon": variable(
                ("neighbours", "promised", "sample_size"),
                delivered,
                "exact epsilon at the paper's noise, only nodes that enter a prefix counted",
            ),
            "rows_needed": variable(
                ("promised", "sample_size"),
                rows,
                "rows that the private residual estimate needs at least",
            ),
        },
        coords={
            "promised": variable("promised", epsilons, "epsilon that the paper promises"),
            "reading": variable("reading", list(READINGS), "reading of the proof"),
            "neighbours": variable("neighbours", list(READINGS[1:]), "neighbouring relation"),
            "sample_size": variable("sample_size", sizes, "number of rows N"),
        },
        attrs={"delta": delta},
    )
