"""Stationary risk of Noisy-SGD and Noisy-FTRL by dimension, effective dimension and step size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Trial, means, per, stage
from reproduction.engine.summaries import loglog_slope, trials_last
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Theorem 2.2, Table 1 and Figure 2"


class Parameters(regression.Covariance):
    """One panel of Figure 2: the varied parameter and the fixed ones."""

    varied: Literal["dimension", "decay", "step_size"] = Field(description="What varies.")
    values: q.Several[q.Positive] = Field(description="Its values.")
    step_size: q.SmallStep = Field(description="eta, unless it is varied.")
    rho: q.Rho = Field(description="zCDP budget; the risk is proportional to 1/rho.")
    burn_in_memories: q.Positive = Field(description="Steps before averaging, times eta mu.")
    averaged_memories: q.Positive = Field(description="Steps averaged, in the same units.")
    least_averaged: q.Steps = Field(1, description="Averaged steps at least.")

    @property
    def settings(self) -> list[regression.Setting]:
        cases = [self.model_copy(update={self.varied: value}) for value in self.values]
        return [regression.Setting(case.eigenvalues, case.step_size) for case in cases]

    @property
    def dimensions(self) -> list[int]:
        return [setting.eigenvalues.size for setting in self.settings]

    @property
    def effective_dimensions(self) -> list[float]:
        from privreg.theory.correlated_noise.bounds import effective_dimension

        return [effective_dimension(setting.eigenvalues) for setting in self.settings]

    @property
    def step_sizes(self) -> list[float]:
        return [setting.step_size for setting in self.settings]

    @property
    def abscissa(self) -> Sequence[float]:
        """Values against which slopes are fitted."""
        along = {"dimension": "dimensions", "decay": "effective_dimensions"}
        return getattr(self, along.get(self.varied, "step_sizes"))


AXES = {
    "algorithm": regression.ALGORITHM,
    "dimension": Axis("dimension d", "dimensions", along="setting"),
    "effective_dimension": Axis(
        "effective dimension tr H / |H|", "effective_dimensions", along="setting"
    ),
    "step_size": Axis("step size eta", "step_sizes", along="setting"),
}
GRID = ("setting", "algorithm")


@per(
    *GRID,
    exact_risk="stationary excess risk",
    scaling="eta d / rho and eta^2 d_eff log^2(1/nu) / rho",
)
def laws(parameters: Parameters) -> dict:
    risks = [regression.exact_risks(setting, rho=parameters.rho) for setting in parameters.settings]
    scalings = np.array([_scalings(setting) for setting in parameters.settings])
    return {"exact_risk": risks, "scaling": scalings / parameters.rho}


@per(
    "algorithm",
    eighth_step_slope="log-log slope of the risk in what varies, at an eighth of each step size",
    small_step_slope="log-log slope of the risk in what varies, at a hundredth of each step size",
    scaling_slope="log-log slope of the scaling",
    plain_slope="log-log slope of eta d and of eta^2 d_eff, without the logarithm",
)
def exact_slopes(parameters: Parameters) -> dict:
    def divided(by: int) -> list[list[float]]:
        settings = [at._replace(step_size=at.step_size / by) for at in parameters.settings]
        return [regression.exact_risks(at, rho=parameters.rho) for at in settings]

    values = {
        "eighth_step_slope": divided(8),
        "small_step_slope": divided(100),
        "scaling_slope": laws(parameters)["scaling"],
        "plain_slope": [_scalings(at, logarithm=False) for at in parameters.settings],
    }
    return {name: regression.slope(parameters.abscissa, each) for name, each in values.items()}


@per(*GRID, risk="excess risk, mean over a run's end")
def run(parameters: Parameters, trial: Trial) -> list[list[float]]:
    """Long runs on fresh samples; the risk is averaged over time after a burn-in."""
    return [
        [_mean_risk(parameters, setting, name, trial.rng) for name in regression.ALGORITHMS]
        for setting in parameters.settings
    ]


@per(*GRID, deviation="distance from exact, standard errors")
def deviation(parameters: Parameters, simulation: Dataset) -> np.ndarray:
    runs = trials_last(simulation.risk.transpose(*GRID, "trial"))
    return regression.deviations(runs, laws(parameters)["exact_risk"])


@per("algorithm", slope=Estimate("log-log slope of the risk in what varies"))
def slopes(parameters: Parameters, simulation: Dataset) -> tuple:
    runs = simulation.risk.transpose("algorithm", "setting", "trial")
    return loglog_slope(parameters.abscissa, runs.values)


theory = stage(AXES, laws, exact_slopes)
simulate = stage(AXES, run)
summarise = stage(AXES, means(run), deviation, slopes)


def _mean_risk(
    parameters: Parameters, setting: regression.Setting, algorithm: str, rng: np.random.Generator
) -> float:
    from privreg.algorithms.dp_ftrl import simulate_ftrl

    memory = 1 / regression.damping(setting)
    burn_in = int(parameters.burn_in_memories * memory)
    steps = burn_in + max(int(parameters.averaged_memories * memory), parameters.least_averaged)
    family, count = regression.ALGORITHMS[algorithm], 1 if algorithm == "noisy_sgd" else steps
    decoder = regression.coefficients(family, count, regression.damping(setting))
    risks = simulate_ftrl(
        setting.eigenvalues,
        step_size=setting.step_size,
        decoder=decoder,
        gradient_noise_std=regression.source_std(setting, algorithm, rho=parameters.rho),
        steps=steps,
        rng=rng,
    )[burn_in:]
    # Terms are added one after the other, since a pairwise sum would round differently.
    return float(np.cumsum(risks)[-1] / risks.size)


def _scalings(setting: regression.Setting, *, logarithm: bool = True) -> tuple[float, float]:
    from privreg.theory.correlated_noise.bounds import effective_dimension

    eta, d = setting.step_size, setting.eigenvalues.size
    squared = float(np.log(1 / regression.damping(setting)) ** 2)
    ftrl = eta**2 * effective_dimension(setting.eigenvalues) * squared
    return eta * d, ftrl if logarithm else ftrl / squared
