"""Accuracy of private softmax models by mechanism and budget, with the errors of their noise."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Mean, Quantity, Trial, means, per, stage
from reproduction.papers.choquettechoo2024.experiments import amplification, prefix_errors
from reproduction.papers.choquettechoo2024.features import FEATURE_MAPS
from reproduction.papers.choquettechoo2024.mechanisms import MECHANISMS, Mechanism, Participation
from reproduction.papers.choquettechoo2024.private_runs import SAMPLED, TRAINED, Runs

PLACE = "Section 4, Figure 4(a) and Appendix G"
IMAGES = {"mnist_digits": "MNIST in place of CIFAR-10", "cifar10": "CIFAR-10"}


class Parameters(Strict):
    """Appendix G's schedule on one table of images."""

    dataset: Literal["mnist_digits", "cifar10"] = Field(description="Table of images.")
    sample_size: q.SampleSize = Field(description="Training images n.")
    validation: q.SampleSize = Field(description="Images that learning rates are chosen with.")
    test: q.SampleSize = Field(description="Test images.")
    epochs: q.Steps = Field(description="Epochs, in one order.")
    steps_per_epoch: q.Steps = Field(description="Steps of an epoch.")
    clip_norm: q.ClipNorm = Field(description="Norm that gradients are clipped to.")
    momentum: q.Probability = Field(description="Momentum; DP-SGD has none.")
    cooldown: q.Share = Field(description="Share of the steps with a falling rate.")
    final_rate: q.Share = Field(description="Last learning rate divided by the first.")
    epsilons: q.Rising[q.Epsilon] = Field(description="Budgets epsilon.")
    delta: q.Delta = Field(description="delta of all budgets.")
    rate_factors: q.Some[q.Positive] = Field(description="Rates tried, times the prefix error.")
    noiseless_rates: q.Some[q.StepSize] = Field(description="Rates tried without noise.")

    @model_validator(mode="after")
    def _the_table_has_the_rows(self) -> Self:
        from privreg import data
        from privreg.data import tables
        from privreg.data.sources import SOURCES

        data.require_split(self.dataset, **self.sizes)
        fitted = tables.shrunk(self.sizes, SOURCES[self.dataset].stand_in_rows)["train"]
        if self.steps_per_epoch > fitted:
            raise ValueError(
                f"steps_per_epoch must be at most {fitted}, the training images of the stand-in, "
                f"got {self.steps_per_epoch}"
            )
        return self

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of images by use, with the names of `privreg.data.tables.split`."""
        return {
            "train": self.sample_size,
            "normalisation": self.validation,
            "validation": self.test,
        }

    @property
    def participation(self) -> Participation:
        visits, between = self.epochs, self.steps_per_epoch
        return Participation(steps=visits * between, participations=visits, separation=between)

    @property
    def schedules(self) -> list[Participation]:
        return [self.participation]

    @property
    def noise_multipliers(self) -> np.ndarray:
        r"""Noise divided by sensitivity, 1/√(2ρ), at which releasing all iterates meets a budget.

        Neighbours are zero-out. A run is one Gaussian mechanism with the sensitivity of its matrix.
        """
        from privreg.privacy.budget import Budget

        budgets = [Budget.approximate(e, self.delta, neighbours="zero-out") for e in self.epsilons]
        return np.array([1 / budget.root for budget in budgets])

    @property
    def sampled_multipliers(self) -> np.ndarray:
        """Noise multipliers of DP-SGD on Poisson-sampled batches; a step has sensitivity 1."""
        at = amplification.Sampling(**dict(self.participation), delta=self.delta)
        return np.array([amplification.sampled_std(epsilon, at) for epsilon in self.epsilons])


AXES = {
    "feature_map": Axis("features", FEATURE_MAPS),
    "mechanism": Axis("mechanism", (*TRAINED, SAMPLED)),
    "epsilon": Axis("privacy budget epsilon", "epsilons"),
}


@per(
    multi_epoch_decoder=Quantity("decoder of ME", "step source"),
    multi_epoch_sensitivity="sensitivity of its encoder",
)
def multi_epoch(mechanisms: list[list[Mechanism]]) -> dict:
    """Decoder and sensitivity of ME, which takes long to compute."""
    matrices = mechanisms[0][MECHANISMS.index("multi_epoch")].matrices
    assert matrices is not None
    return {
        "multi_epoch_decoder": matrices.decoder.astype(np.float32),
        "multi_epoch_sensitivity": matrices.sensitivity,
    }


@per(
    "feature_map",
    accuracy=Quantity("share of right test labels", "mechanism epsilon"),
    noiseless_accuracy="share of right test labels without noise",
)
def run(runs: Runs, trial: Trial, feature_map: str) -> dict:
    return runs.accuracies(feature_map, trial.rng)


@per("feature_map", "mechanism", "epsilon", lead=Mean("accuracy of nu-DP-FTRL minus this one's"))
def lead(simulation: Dataset) -> Any:
    """Lead of nu-DP-FTRL in accuracy, by trial."""
    return simulation.accuracy.sel(mechanism="nu_dp_ftrl", drop=True) - simulation.accuracy


theory = stage(
    prefix_errors.AXES,
    prefix_errors.errors,
    multi_epoch,
    shared={"mechanisms": prefix_errors.mechanisms},
)
simulate = stage(
    AXES,
    run,
    shared={"runs": Runs},
    attributes=lambda parameters: {"images": IMAGES[parameters.dataset]},
    released="diagnostic",
)
summarise = stage(AXES, means(run), lead, released="diagnostic")
