"""The diffusion of DP-GD, as printed and corrected, against the deterministic equivalent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    AspectRatio,
    ClipConstant,
    Dimension,
    Positive,
    PositiveDeviation,
    Power,
    Rising,
    Some,
    StatedBudget,
    StepSize,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Remark 4.3, equations (4.14) and (C.1)"


class Parameters(Strict):
    """Paths of both forms in the setting of Figure 1."""

    dimension: Dimension = Field(description="Dimension d.")
    aspect_ratio: AspectRatio = Field(description="gamma = d / n.")
    budget: StatedBudget = Field(description="Budget of the private output.")
    clip_constant: ClipConstant = Field(description="Clipping constant c.")
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )
    initial_rate: StepSize = Field(description="Initial learning rate.")
    exponent: Power = Field(description="Exponent alpha of the schedule.")
    spectra: Some[Literal["isotropic", "uniform"]] = Field(
        description="Identity, or diagonal with eigenvalues uniform on [0, 2]."
    )
    times: Rising[Positive] = Field(description="Times at which the risk is compared.")

    @property
    def derived_steps(self) -> float:
        """Steps of a path."""
        return self.dimension / self.aspect_ratio

    def eigenvalues(self, spectrum: str) -> np.ndarray:
        from privreg import spectra

        if spectrum == "isotropic":
            return np.ones(self.dimension)
        return spectra.uniform_midpoints(self.dimension)


def theory(parameters: Parameters) -> xr.Dataset:
    """The deterministic equivalent at the same times."""
    import xarray as xr

    from privreg import spectra
    from privreg.schedules import Polynomial
    from privreg.theory.one_pass_dpgd import deterministic_equivalent

    risk = [
        deterministic_equivalent.solve(
            spectra.explicit(parameters.eigenvalues(name)),
            Polynomial(parameters.initial_rate, parameters.exponent),
            aspect_ratio=parameters.aspect_ratio,
            zcdp_root=parameters.budget.root,
            clip_constant=parameters.clip_constant,
            label_noise_std=parameters.label_noise_std,
            times=parameters.times,
        ).risk
        for name in parameters.spectra
    ]
    return xr.Dataset(
        {
            "risk": variable(
                ("spectrum", "time"), risk, "excess risk of the deterministic equivalent"
            )
        },
        coords=_coordinates(parameters),
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """One path of each form and spectrum a trial, as many steps as DP-GD takes."""
    import xarray as xr

    from privreg.models import LinearModel
    from privreg.schedules import Polynomial
    from privreg.theory.one_pass_dpgd import homogenised_sde
    from reproduction.experiment.progress import track

    shape = (
        len(homogenised_sde.DRIFTS),
        len(parameters.spectra),
        len(parameters.times),
        len(trials),
    )
    risk = np.empty(shape)
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for (f, form), (s, name) in (
            (outer, inner)
            for outer in enumerate(homogenised_sde.DRIFTS)
            for inner in enumerate(parameters.spectra)
        ):
            risk[f, s, :, at] = homogenised_sde.risk_path(
                LinearModel.even_target(
                    parameters.eigenvalues(name), label_noise_std=parameters.label_noise_std
                ),
                Polynomial(parameters.initial_rate, parameters.exponent),
                trial.rng,
                sample_size=round(parameters.dimension / parameters.aspect_ratio),
                zcdp_root=parameters.budget.root,
                clip_constant=parameters.clip_constant,
                times=parameters.times,
                form=form,
            )
    return xr.Dataset(
        {
            "risk": variable(
                ("form", "spectrum", "time", "trial"), risk, "excess risk along the diffusion"
            )
        },
        coords=_coordinates(parameters)
        | {"form": variable("form", list(homogenised_sde.DRIFTS), "form of the drift")},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Mean over paths, and its distance to the deterministic equivalent."""
    import xarray as xr

    dims = ("form", "spectrum", "time")
    risk = simulation.risk.values
    return xr.Dataset(
        {
            **mean_and_error("risk", risk, dims, "the excess risk along the diffusion"),
            **mean_and_error(
                "distance",
                risk - theory.risk.values[..., None],
                dims,
                "the distance of the risk to the deterministic equivalent",
            ),
        },
        coords={name: simulation[name].variable for name in (*dims, "trial")},
    )


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "spectrum": variable("spectrum", parameters.spectra, "covariance spectrum"),
        "time": variable("time", parameters.times, "time t"),
    }
