"""Audits: lower bounds on the privacy loss of each algorithm, relative to the promised loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from reproduction.engine.parameters import Strict
from reproduction.engine.quantities import Positive, Probability
from reproduction.engine.recipe import Axis, Dataset, Quantity, Trials, per, stage
from reproduction.engine.summaries import trials_last

if TYPE_CHECKING:
    import numpy as np


PLACE = "Guarantees of the private algorithms"
# Number of runs of an audit on each data set.
LEAST_TRIALS = 20


class Parameters(Strict):
    """One promised loss for all; a trial runs each algorithm once on both data sets of its pair."""

    promised_mu: Annotated[Positive, Field(ge=1e-3, le=1e3)] = Field(
        description="Promised loss μ = √(2ρ) of each algorithm."
    )
    confidence: Probability = Field(description="Confidence level of each single audit.")


def _mechanisms() -> dict[str, Any]:
    from reproduction.studies.mechanisms import ALGORITHMS, CONTROLS

    return {"algorithm": ALGORITHMS, "control": CONTROLS}


AXES = {
    "algorithm": Axis("private algorithm", lambda: list(_mechanisms()["algorithm"])),
    "control": Axis("mechanism whose loss is known", lambda: list(_mechanisms()["control"])),
    "data_set": Axis("data set of the pair", ["first", "second"]),
}


@per(
    algorithm_output=Quantity("output of the algorithm, reduced to a number", "algorithm data_set"),
    control_output=Quantity("output of the control, reduced to a number", "control data_set"),
)
def outputs(parameters: Parameters, trials: Trials) -> Iterator[dict[str, list[list[float]]]]:
    """One number per run of each algorithm and control, on both data sets of its pair."""
    made = {
        f"{kind}_output": [make(parameters.promised_mu) for make in listed.values()]
        for kind, listed in _mechanisms().items()
    }
    for trial in trials:
        yield {
            name: [[run(which, trial.rng) for which in (0, 1)] for run in listed]
            for name, listed in made.items()
        }


@per(
    algorithm_share=Quantity(
        "lower bound on the algorithm's loss over the promised loss", "algorithm"
    ),
    control_share=Quantity("lower bound on the control's loss over the promised loss", "control"),
)
def shares(parameters: Parameters, simulation: Dataset) -> dict[str, list[float]]:
    """Lower confidence bounds on loss / promised loss; an audit takes a pair in both orders."""
    from privreg.auditing import audit
    from privreg.privacy.budget import Budget

    promised = Budget.gaussian_dp(parameters.promised_mu)

    def share(pair: np.ndarray) -> float:
        return audit(*pair, confidence=parameters.confidence).share(promised)

    return {
        "algorithm_share": [share(pair) for pair in trials_last(simulation.algorithm_output)],
        "control_share": [share(pair) for pair in trials_last(simulation.control_output)],
    }


simulate = stage(AXES, outputs)
summarise = stage(AXES, shares, data_set=AXES["data_set"])
