"""Stationary risk of Noisy-SGD and Noisy-FTRL over dimension, effective dimension and step size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict, explain
from reproduction.experiment.quantities import (
    Dimension,
    Positive,
    Power,
    Rho,
    Some,
    Steps,
    StepSize,
)
from reproduction.experiment.summaries import loglog_slope, mean_and_error
from reproduction.papers.choquettechoo2024.regression import (
    ALGORITHMS,
    Setting,
    damping,
    exact_risk,
    power_law,
    source_std,
)

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Theorem 2.2, Table 1 and Figure 2"
ABSCISSAE = {
    "dimension": "dimension d",
    "effective_dimension": "effective dimension tr H / |H|",
    "step_size": "step size eta",
}


class Parameters(Strict):
    """One panel: what varies, and what stays."""

    varied: Literal["dimension", "decay", "step_size"] = Field(description="What varies.")
    values: Annotated[Some[Positive], Field(min_length=2)] = Field(description="Its values.")
    dimension: Dimension = Field(description="d where it does not vary.")
    decay: Power = Field(description="a of the eigenvalues k^-a where it does not vary.")
    step_size: StepSize = Field(description="eta where it does not vary.")
    rho: Rho = Field(description="zCDP budget; the risk is proportional to 1/rho.")
    burn_in_memories: Positive = Field(
        description="Steps before averaging, in units of 1/(eta times least eigenvalue)."
    )
    averaged_memories: Positive = Field(description="Steps averaged, in the same units.")
    least_averaged: Steps = Field(1, description="Averaged steps at least.")

    @model_validator(mode="after")
    def _values_are_of_what_varies(self) -> Self:
        kinds: dict[str, Any] = {"dimension": Dimension, "decay": Power, "step_size": StepSize}
        for value in self.values:
            whole = self.varied == "dimension" and value == int(value)
            try:
                TypeAdapter(kinds[self.varied]).validate_python(int(value) if whole else value)
            except ValidationError as error:
                raise ValueError(explain(error, f"values of {self.varied}")) from None
        return self

    @property
    def derived_steps(self) -> float:
        """Steps of all runs of a trial."""
        memories = np.array([1 / damping(setting) for setting in _settings(self)])
        averaged = np.maximum(self.averaged_memories * memories, self.least_averaged)
        return float(np.sum(self.burn_in_memories * memories + averaged))


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact risks, the scalings that the paper draws, and slopes over the grid."""
    import xarray as xr

    from privreg.theory.correlated_noise.linear_regression import stability_limit

    settings = _settings(parameters)
    risk = np.array(
        [[exact_risk(at, name, rho=parameters.rho) for name in ALGORITHMS] for at in settings]
    )
    scaling = np.array([_scalings(at) for at in settings]) / parameters.rho
    slopes = _slopes(parameters, risk)
    hundredth = np.array(
        [
            [
                exact_risk(at._replace(step_size=at.step_size / 100), name, rho=parameters.rho)
                for name in ALGORITHMS
            ]
            for at in settings
        ]
    )
    limits = [at.step_size / stability_limit(at.eigenvalues) for at in settings]
    return xr.Dataset(
        {
            "exact_risk": variable(("setting", "algorithm"), risk, "stationary excess risk"),
            "scaling": variable(
                ("setting", "algorithm"), scaling, "eta d / rho and eta^2 d_eff log^2(1/nu) / rho"
            ),
            "exact_slope": variable(
                "algorithm", slopes, f"log-log slope over {_abscissa(parameters)}"
            ),
            "small_step_slope": variable(
                "algorithm",
                _slopes(parameters, hundredth),
                f"log-log slope over {_abscissa(parameters)}, all step sizes a hundredth",
            ),
            "scaling_slope": variable(
                "algorithm", _slopes(parameters, scaling), "log-log slope of the scaling"
            ),
            "plain_slope": variable(
                "algorithm",
                _slopes(parameters, np.array([_plain(at) for at in settings])),
                "log-log slope of eta d and of eta^2 d_eff, without the logarithm",
            ),
            "stability_share": variable("setting", limits, "step size over the stability limit"),
        },
        coords=_coordinates(parameters, settings),
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Long runs on fresh samples; the risk is averaged over time after a burn-in."""
    import xarray as xr

    from privreg.algorithms.ftrl_simulation import simulate_ftrl
    from privreg.noise.toeplitz import damped_square_root, identity
    from reproduction.experiment.progress import track

    settings = _settings(parameters)
    risk = np.empty((len(trials), len(settings), len(ALGORITHMS)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for row, setting in enumerate(settings):
            memory = 1 / damping(setting)
            burn_in = int(parameters.burn_in_memories * memory)
            steps = burn_in + max(
                int(parameters.averaged_memories * memory), parameters.least_averaged
            )
            for column, name in enumerate(ALGORITHMS):
                decoder = identity(1)
                if name == "noisy_ftrl":
                    decoder = damped_square_root(steps, damping=damping(setting))
                found = simulate_ftrl(
                    setting.eigenvalues,
                    step_size=setting.step_size,
                    decoder=decoder,
                    gradient_noise_std=source_std(setting, name, rho=parameters.rho),
                    steps=steps,
                    burn_in=burn_in,
                    rng=trial.rng,
                )
                risk[at, row, column] = found.averages[0]
    return xr.Dataset(
        {
            "risk": variable(
                ("trial", "setting", "algorithm"), risk, "excess risk, mean over a run's end"
            )
        },
        coords=_coordinates(parameters, settings),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means and slopes over the trials, and their distance from the exact risk."""
    import xarray as xr

    runs = simulation.risk.values
    exact = np.array(
        [
            [exact_risk(at, name, rho=parameters.rho) for name in ALGORITHMS]
            for at in _settings(parameters)
        ]
    )
    dims = ("setting", "algorithm")
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    slope, slope_error = loglog_slope(
        simulation[_abscissa(parameters)].values, np.transpose(runs, (2, 1, 0))
    )
    return xr.Dataset(
        {
            **mean_and_error("risk", np.moveaxis(runs, 0, -1), dims, "excess risk"),
            "deviation": variable(
                dims, (runs.mean(axis=0) - exact) / error, "distance from exact, standard errors"
            ),
            "slope": variable(
                "algorithm",
                slope,
                f"log-log slope over {_abscissa(parameters)}",
                standard_error="slope_standard_error",
            ),
            "slope_standard_error": variable(
                "algorithm", slope_error, "standard error of the slope"
            ),
        },
        coords={
            name: simulation[name].variable
            for name in (
                "algorithm",
                "trial",
                *(axis for axis in ABSCISSAE if axis in simulation.coords),
            )
        },
    )


def _settings(parameters: Parameters) -> list[Setting]:
    fixed = parameters.model_dump(include={"dimension", "decay", "step_size"})
    cases = [{**fixed, parameters.varied: value} for value in parameters.values]
    return [
        Setting(power_law(int(case["dimension"]), case["decay"]), case["step_size"])
        for case in cases
    ]


def _abscissa(parameters: Parameters) -> str:
    return "effective_dimension" if parameters.varied == "decay" else parameters.varied


def _slopes(parameters: Parameters, values: np.ndarray) -> np.ndarray:
    settings = _settings(parameters)
    abscissa = _coordinates(parameters, settings)[_abscissa(parameters)][1]
    return np.polyfit(np.log(abscissa), np.log(values), 1)[0]


def _scalings(setting: Setting) -> tuple[float, float]:
    from privreg.theory.correlated_noise.bounds import effective_dimension

    eta, d = setting.step_size, setting.eigenvalues.size
    effective = effective_dimension(setting.eigenvalues)
    return eta * d, eta**2 * effective * np.log(1 / damping(setting)) ** 2


def _plain(setting: Setting) -> tuple[float, float]:
    sgd, ftrl = _scalings(setting)
    return sgd, ftrl / float(np.log(1 / damping(setting)) ** 2)


def _coordinates(parameters: Parameters, settings: list[Setting]) -> dict[str, tuple]:
    from privreg.theory.correlated_noise.bounds import effective_dimension

    values: dict[str, list[float]] = {
        "dimension": [at.eigenvalues.size for at in settings],
        "effective_dimension": [effective_dimension(at.eigenvalues) for at in settings],
        "step_size": [at.step_size for at in settings],
    }
    return {
        **{name: variable("setting", values[name], ABSCISSAE[name]) for name in values},
        "algorithm": variable("algorithm", list(ALGORITHMS), "algorithm"),
    }
