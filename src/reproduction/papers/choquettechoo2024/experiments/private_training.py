"""Accuracy of private softmax models by mechanism and budget, with the errors of their noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipNorm,
    Epsilon,
    NonNegative,
    Positive,
    Probability,
    Rising,
    SampleSize,
    Share,
    Some,
    Steps,
    StepSize,
    at_most,
)
from reproduction.experiment.summaries import mean_and_error
from reproduction.papers.choquettechoo2024.experiments.prefix_errors import error_table
from reproduction.papers.choquettechoo2024.features import FEATURE_MAPS
from reproduction.papers.choquettechoo2024.mechanisms import (
    MECHANISMS,
    Participation,
    prefix_errors,
)
from reproduction.papers.choquettechoo2024.private_runs import TRAINED, Runs

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials
    from reproduction.papers.choquettechoo2024.training import Schedule

PLACE = "Section 4, Figure 4(a) and Appendix G"
IMAGES = {"mnist_digits": "MNIST in place of CIFAR-10", "cifar10": "CIFAR-10"}
DIMS = ("feature_map", "mechanism", "epsilon")
# The generator that rates are chosen with; reported trials count from 0.
TUNING_TRIAL = 1_000_000


class Parameters(Strict):
    """Appendix G's schedule on one table of images."""

    dataset: Literal["mnist_digits", "cifar10"] = Field(description="Table of images.")
    sample_size: SampleSize = Field(description="Training images n.")
    validation: Annotated[SampleSize, Field(ge=2)] = Field(
        description="Images that the learning rates are chosen with."
    )
    test: SampleSize = Field(description="Test images.")
    epochs: Steps = Field(description="Epochs, in one order.")
    steps_per_epoch: Steps = Field(description="Steps of an epoch.")
    clip_norm: ClipNorm = Field(description="Norm that gradients are clipped to.")
    momentum: Annotated[NonNegative, Field(lt=1)] = Field(description="Momentum; DP-SGD has none.")
    cooldown: Share = Field(description="Share of the steps with a falling rate.")
    final_rate: Share = Field(description="Last learning rate over the first.")
    epsilons: Rising[Epsilon] = Field(description="Budgets epsilon.")
    delta: Probability = Field(description="delta of all budgets.")
    rate_factors: Some[Positive] = Field(
        description="Rates tried, times the prefix error of the mean gradients."
    )
    noiseless_rates: Some[StepSize] = Field(description="Rates tried without noise.")

    _a_step_has_a_record = at_most("steps_per_epoch", "sample_size")

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

    def schedule(self, batch_size: int) -> Schedule:
        from reproduction.papers.choquettechoo2024.training import Schedule

        return Schedule(batch_size, self.epochs, self.cooldown, self.final_rate, self.clip_norm)


def theory(parameters: Parameters) -> xr.Dataset:
    """Prefix errors of all mechanisms, and the matrix of the one that takes long to find."""
    setting = parameters.participation
    found = {name: prefix_errors(name, setting) for name in MECHANISMS}
    matrices = found["multi_epoch"].matrices
    assert matrices is not None
    return error_table([setting], list(MECHANISMS), [list(found.values())]).assign(
        multi_epoch_decoder=variable(
            ("step", "source"), matrices.decoder.astype(np.float32), "decoder of ME"
        ),
        multi_epoch_sensitivity=variable((), matrices.sensitivity, "sensitivity of its encoder"),
    )


def simulate(
    parameters: Parameters, trials: Trials, theory: xr.Dataset, data: xr.Dataset
) -> xr.Dataset:
    """Test accuracy of every mechanism and budget; rates come from a run that is not reported."""
    import xarray as xr

    from reproduction.experiment.progress import track

    runs = Runs(parameters, theory, data)
    shape = (len(FEATURE_MAPS), len(TRAINED), len(parameters.epsilons))
    accuracy = np.empty((len(trials), *shape))
    noiseless = np.empty((len(trials), len(FEATURE_MAPS)))
    rates, noiseless_rate = np.empty(shape), np.empty(len(FEATURE_MAPS))
    for row, name in enumerate(FEATURE_MAPS):
        rates[row], noiseless_rate[row] = runs.choose_rates(name, trials.generator(TUNING_TRIAL))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for row, name in enumerate(FEATURE_MAPS):
            accuracy[at, row], noiseless[at, row] = runs.accuracies(
                name, trial.rng, rates=rates[row], noiseless_rate=noiseless_rate[row]
            )
    return xr.Dataset(
        {
            "accuracy": variable(
                ("trial", *DIMS), accuracy, "share of right test labels", release="diagnostic"
            ),
            "noiseless_accuracy": variable(
                ("trial", "feature_map"),
                noiseless,
                "share of right test labels without noise",
                release="diagnostic",
            ),
            "rate": variable(
                DIMS, rates, "learning rate over 1 less the momentum", release="diagnostic"
            ),
            "rate_factor": variable(
                DIMS,
                rates * runs.noise_levels(),
                "learning rate times the prefix error of the mean gradients",
                release="diagnostic",
            ),
            "noiseless_rate": variable(
                "feature_map", noiseless_rate, "learning rate without noise", release="diagnostic"
            ),
        },
        coords={
            "noise_multiplier": variable(
                "epsilon", runs.multipliers(), "noise multiplier of the whole run"
            ),
            "feature_map": variable("feature_map", list(FEATURE_MAPS), "features"),
            "mechanism": variable("mechanism", list(TRAINED), "mechanism"),
            "epsilon": variable("epsilon", list(parameters.epsilons), "privacy budget epsilon"),
        },
        attrs={"images": IMAGES[parameters.dataset]},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over the trials, and the lead of nu-DP-FTRL over each mechanism, by trial."""
    import xarray as xr

    runs = np.moveaxis(simulation.accuracy.values, 0, -1)
    lead = runs[:, [TRAINED.index("nu_dp_ftrl")]] - runs
    return xr.Dataset(
        {
            **mean_and_error(
                "accuracy", runs, DIMS, "accuracy on the test images", release="diagnostic"
            ),
            **mean_and_error(
                "lead", lead, DIMS, "accuracy of nu-DP-FTRL less this one's", release="diagnostic"
            ),
            **mean_and_error(
                "noiseless_accuracy",
                simulation.noiseless_accuracy.values.T,
                ("feature_map",),
                "accuracy without noise",
                release="diagnostic",
            ),
            **{
                name: simulation[name].variable
                for name in ("rate", "rate_factor", "noiseless_rate")
            },
        },
        coords={
            name: simulation[name].variable
            for name in ("feature_map", "mechanism", "epsilon", "noise_multiplier", "trial")
        },
    )
