"""Accuracy of private softmax models by mechanism and budget, with the errors of their noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    DataArray,
    Dataset,
    Mean,
    Quantity,
    Trial,
    kept,
    means,
    per,
    stage,
)
from reproduction.papers.choquettechoo2024.experiments import prefix_errors
from reproduction.papers.choquettechoo2024.features import FEATURE_MAPS
from reproduction.papers.choquettechoo2024.mechanisms import MECHANISMS, Mechanism, Participation
from reproduction.papers.choquettechoo2024.private_runs import TRAINED, Runs

if TYPE_CHECKING:
    from reproduction.papers.choquettechoo2024.training import Schedule

PLACE = "Section 4, Figure 4(a) and Appendix G"
IMAGES = {"mnist_digits": "MNIST in place of CIFAR-10", "cifar10": "CIFAR-10"}


class Parameters(Strict):
    """Appendix G's schedule on one table of images."""

    dataset: Literal["mnist_digits", "cifar10"] = Field(description="Table of images.")
    sample_size: q.SampleSize = Field(description="Training images n.")
    validation: q.Plural[q.SampleSize] = Field(
        description="Images that the learning rates are chosen with."
    )
    test: q.SampleSize = Field(description="Test images.")
    epochs: q.Steps = Field(description="Epochs, in one order.")
    steps_per_epoch: q.Steps = Field(description="Steps of an epoch.")
    clip_norm: q.ClipNorm = Field(description="Norm that gradients are clipped to.")
    momentum: Annotated[q.NonNegative, Field(lt=1)] = Field(
        description="Momentum; DP-SGD has none."
    )
    cooldown: q.Share = Field(description="Share of the steps with a falling rate.")
    final_rate: q.Share = Field(description="Last learning rate over the first.")
    epsilons: q.Rising[q.Epsilon] = Field(description="Budgets epsilon.")
    delta: q.Delta = Field(description="delta of all budgets.")
    rate_factors: q.Some[q.Positive] = Field(
        description="Rates tried, times the prefix error of the mean gradients."
    )
    noiseless_rates: q.Some[q.StepSize] = Field(description="Rates tried without noise.")

    _a_step_has_a_record = q.at_most("steps_per_epoch", "sample_size")

    @model_validator(mode="after")
    def _the_table_has_the_rows(self) -> Self:
        from privreg import data
        from privreg.data import splits, stand_ins

        sizes = {
            "train": self.sample_size,
            "normalisation": self.validation,
            "validation": self.test,
        }
        data.require_split(self.dataset, **sizes)
        fitted = splits.shrunk(sizes, stand_ins.ROWS[self.dataset])["train"]
        if self.steps_per_epoch > fitted:
            raise ValueError(
                f"steps_per_epoch must be at most {fitted}, the training images of the stand-in, "
                f"got {self.steps_per_epoch}"
            )
        return self

    @property
    def participation(self) -> Participation:
        return Participation(self.epochs * self.steps_per_epoch, self.epochs, self.steps_per_epoch)

    @property
    def settings(self) -> list[Participation]:
        return [self.participation]

    @property
    def noise_multipliers(self) -> np.ndarray:
        r"""Noise over sensitivity that releases all iterates of a run within a budget, 1/√(2ρ).

        Neighbours are zero-out; one Gaussian mechanism with the sensitivity of the whole matrix.
        """
        from privreg.privacy.budget import Budget

        budgets = [
            Budget.approximate(epsilon, self.delta, neighbours="zero-out")
            for epsilon in self.epsilons
        ]
        return np.array([1 / budget.root for budget in budgets])

    def schedule(self, batch_size: int) -> Schedule:
        from reproduction.papers.choquettechoo2024.training import Schedule

        return Schedule(batch_size, self.epochs, self.cooldown, self.final_rate, self.clip_norm)


AXES = {
    "feature_map": Axis("features", FEATURE_MAPS),
    "mechanism": Axis("mechanism", TRAINED),
    "epsilon": Axis("privacy budget epsilon", "epsilons"),
    "noise_multiplier": Axis(
        "noise multiplier of the whole run", "noise_multipliers", along="epsilon"
    ),
}
GRID = ("feature_map", "mechanism", "epsilon")


@per(
    multi_epoch_decoder=Quantity("decoder of ME", "step source"),
    multi_epoch_sensitivity="sensitivity of its encoder",
)
def multi_epoch(mechanisms: list[list[Mechanism]]) -> dict:
    """The matrix of the mechanism that takes long to find."""
    matrices = mechanisms[0][MECHANISMS.index("multi_epoch")].matrices
    assert matrices is not None
    return {
        "multi_epoch_decoder": matrices.decoder.astype(np.float32),
        "multi_epoch_sensitivity": matrices.sensitivity,
    }


@per(
    *GRID,
    rate="learning rate over 1 less the momentum",
    rate_factor="learning rate times the prefix error of the mean gradients",
)
def rates(runs: Runs, feature_map: str) -> dict:
    """Of a run that is not reported."""
    found = runs.rates[feature_map].private
    return {"rate": found, "rate_factor": found * runs.noise_levels}


@per(
    "feature_map",
    noiseless_rate="learning rate without noise",
)
def noiseless_rate(runs: Runs, feature_map: str) -> float:
    return runs.rates[feature_map].noiseless


@per(
    "feature_map",
    accuracy=Quantity("share of right test labels", "mechanism epsilon"),
    noiseless_accuracy="share of right test labels without noise",
)
def run(runs: Runs, trial: Trial, feature_map: str) -> dict:
    accuracy, noiseless = runs.accuracies(feature_map, trial.rng)
    return {"accuracy": accuracy, "noiseless_accuracy": noiseless}


@per(*GRID, lead=Mean("accuracy of nu-DP-FTRL less this one's"))
def lead(simulation: Dataset) -> DataArray:
    """By trial."""
    return simulation.accuracy.sel(mechanism="nu_dp_ftrl", drop=True) - simulation.accuracy


theory = stage(
    prefix_errors.AXES,
    prefix_errors.errors,
    prefix_errors.dampings,
    multi_epoch,
    shared={"mechanisms": prefix_errors.mechanisms},
)
simulate = stage(
    AXES,
    rates,
    noiseless_rate,
    run,
    shared={"runs": Runs},
    attributes=lambda parameters: {"images": IMAGES[parameters.dataset]},
    released="diagnostic",
)
summarise = stage(AXES, means(run), lead, kept(rates, noiseless_rate), released="diagnostic")
