"""Exact loss of noisy SGD between two data sets against the diffusion's; not a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import Index, PositiveDeviation, RenyiOrder, Some, Steps, at_most
from privreg.experiment.summaries import mean_and_error
from privreg.papers.lin2025.setting import Design

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials

PLACE = "Section 4.2: the laws conditioned on the data sets"


class Parameters(Strict):
    """Steps at which a record is replaced, and steps from there to the release."""

    design: Design
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    order: RenyiOrder = Field(description="Rényi order alpha.")
    positions: Some[Index] = Field(description="0-based steps of the replaced record.")
    lags: Some[Steps] = Field(description="Steps from it to the release, at least 1.")

    @property
    def last_release(self) -> int:
        return max(self.positions) + max(self.lags)

    _releases_have_records = at_most("last_release", "design.sample_size")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Both directions of the divergence, exact and by the diffusion at two elapsed times."""
    import xarray as xr

    from privreg.experiment.progress import track
    from privreg.theory.noisy_sgd.fixed_order_loss import fixed_order_divergence
    from privreg.theory.noisy_sgd.renyi_loss import Record, last_iterate_divergence

    design = parameters.design
    positions, lags = np.asarray(parameters.positions), np.asarray(parameters.lags)
    releases = np.unique(positions[:, None] + lags)
    shape = (positions.size, lags.size, len(trials))
    exact, surrogate, shorter = np.empty((3, *shape))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        instance = design.draw(trial.rng)
        rows, labels = instance.records.sample(design.sample_size, trial.rng)
        others, other_labels = instance.records.sample(positions.size, trial.rng)
        found = fixed_order_divergence(
            rows,
            labels,
            initial=instance.initial,
            positions=positions,
            replacement_features=others,
            replacement_labels=other_labels,
            release_steps=releases,
            step_sizes=np.full(design.sample_size, design.step_size),
            gradient_noise_std=parameters.gradient_noise_std,
            ridge=design.ridge,
            order=parameters.order,
        )
        law = design.law(instance.problem, parameters.gradient_noise_std)
        rows, others = instance.basis.coordinates(rows), instance.basis.coordinates(others)
        for p, position in enumerate(positions):
            given = Record(rows[position], float(labels[position]))
            other = Record(others[p], float(other_labels[p]))
            for g, lag in enumerate(lags):
                where = np.searchsorted(releases, position + lag)
                exact[p, g, at] = found[where, p].max()
                for table, elapsed in ((surrogate, lag), (shorter, lag - 1)):
                    table[p, g, at] = max(
                        last_iterate_divergence(
                            law,
                            *pair,
                            time=(position + elapsed) / design.dimension,
                            position=position / design.dimension,
                            order=parameters.order,
                        )
                        for pair in ((given, other), (other, given))
                    )
    dims = ("position", "lag", "trial")
    return xr.Dataset(
        {
            "exact": variable(dims, exact, "exact loss, data sets held fixed"),
            "surrogate": variable(dims, surrogate, "loss of the diffusion"),
            "shorter_surrogate": variable(
                dims, shorter, "loss of the diffusion, the differing step not counted twice"
            ),
        },
        coords={
            "position": variable("position", positions, "step of the replaced record"),
            "lag": variable("lag", lags, "steps from the replaced record to the release"),
        },
        attrs={"guarantee": "none: exact for these data sets, which bounds nothing over others"},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Ratios of the diffusion's loss to the exact one."""
    import xarray as xr

    dims = ("position", "lag")
    exact = simulation.exact.values
    variables: dict[str, tuple] = {}
    for name in ("exact", "surrogate", "shorter_surrogate"):
        array = simulation[name]
        description = f"{array.attrs['long_name']} (no guarantee)"
        variables |= mean_and_error(name, array.values, dims, description)
        if name != "exact":
            variables |= mean_and_error(
                f"{name}_ratio", array.values / exact, dims, f"{description} over the exact one"
            )
    return xr.Dataset(
        variables,
        coords={name: simulation[name].variable for name in ("position", "lag", "trial")},
        attrs={"order": parameters.order, "gradient_noise_std": parameters.gradient_noise_std},
    )
