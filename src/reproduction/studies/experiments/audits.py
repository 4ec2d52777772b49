"""Audits: how much of its promise each private algorithm really loses, at least."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Positive, Probability

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Guarantees of the private algorithms"
KINDS = ("algorithm", "control")


class Parameters(Strict):
    """One promise for all; a trial runs every algorithm once on each of two neighbours."""

    promised_mu: Positive = Field(description="Promise √(2ρ) of each algorithm.")
    confidence: Probability = Field(description="Of each audit by itself.")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """One number of a run of every algorithm and control on both data sets of its pair."""
    import xarray as xr

    from reproduction.studies.mechanisms import ALGORITHMS, CONTROLS

    made = {
        kind: [make(parameters.promised_mu) for make in listed.values()]
        for kind, listed in zip(KINDS, (ALGORITHMS, CONTROLS), strict=True)
    }
    found = {kind: np.zeros((len(listed), 2, len(trials))) for kind, listed in made.items()}
    for at, trial in enumerate(trials):
        for kind, listed in made.items():
            for index, audited in enumerate(listed):
                for which in (0, 1):
                    found[kind][index, which, at] = audited.run(which, trial.rng)
    return xr.Dataset(
        {
            f"{kind}_output": variable(
                (kind, "data_set", "trial"), values, f"output of the {kind}, reduced to a number"
            )
            for kind, values in found.items()
        },
        coords=_coordinates(),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Lower confidence bounds on the loss, over the promise; an audit takes both orders."""
    import xarray as xr

    from privreg.auditing import audit
    from privreg.privacy.budget import Budget

    promised = Budget.gaussian_dp(parameters.promised_mu)
    variables = {}
    for kind in KINDS:
        shares = [
            audit(first, second, confidence=parameters.confidence).share(promised)
            for first, second in simulation[f"{kind}_output"].values
        ]
        variables[f"{kind}_share"] = variable(
            kind, shares, f"lower bound on the loss of the {kind} over its promise"
        )
    return xr.Dataset(variables, coords=_coordinates() | {"trial": simulation.trial.variable})


def _coordinates() -> dict[str, tuple]:
    from reproduction.studies.mechanisms import ALGORITHMS, CONTROLS

    return {
        "algorithm": variable("algorithm", list(ALGORITHMS), "private algorithm"),
        "control": variable("control", list(CONTROLS), "mechanism whose loss is known"),
        "data_set": variable("data_set", ["first", "second"], "data set of the pair"),
    }
