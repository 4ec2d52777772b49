"""Predicted against simulated errors over sizes, dimensions, laws, methods, spectra and budgets."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import Count, Dimension, Rising, SampleSize

if TYPE_CHECKING:
    from typing import Any

    import xarray as xr

    from privreg.experiment.trials import Trials
    from privreg.prediction.problem import Problem
    from privreg.prediction.result import Prediction
    from privreg.privacy.budget import Budget

PLACE = "The accuracy of predictions"
LABEL_NOISE_STD = 0.7
# Privacy's part of a coefficient's variance over the sample's, for least squares without clipping.
PRICES = (0.5, 2.0, 8.0, 30.0)
# By sample size: each method meets every law.
ROTATIONS = (
    ("huber", "full_batch", "one_pass_harmonic", "adassp"),
    ("full_batch", "huber", "correlated_noise", "one_pass_root"),
    ("one_pass_harmonic", "adassp", "huber", "full_batch"),
    ("adassp", "one_pass_linear", "full_batch", "one_pass_harmonic"),
)
# Where the method of the rotation is not to be relied on.
INSTEAD = ("one_pass_harmonic", "full_batch", "one_pass_constant", "huber", "adassp")


class Parameters(Strict):
    """Every sample size meets every dimension and every law of the features."""

    sample_sizes: Rising[SampleSize] = Field(description="Numbers of rows.")
    dimensions: Rising[Dimension] = Field(description="Numbers of features.")
    coefficients: Count = Field(
        description="Coefficients that a trial estimates in each setting, over its runs."
    )


class Setting(NamedTuple):
    """A problem, a budget, and a method with the settings of least predicted error."""

    problem: Problem
    budget: Budget
    name: str
    method: Any
    prediction: Prediction


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Mean excess risk of a trial's runs in each setting, beside what was predicted."""
    import xarray as xr

    from privreg.papers.privreg.private_runs import draw, excess_risk, run

    settings = _settings(tuple(parameters.sample_sizes), tuple(parameters.dimensions))
    risk = np.zeros((len(settings), len(trials)))
    spread = np.zeros_like(risk)
    for at, trial in enumerate(trials):
        for index, (problem, budget, _, method, _) in enumerate(settings):
            wanted = ceil(parameters.coefficients / problem.dimension)
            # Where rows are many and privacy decides, a few sets of them serve many runs.
            runs = min(wanted, 10 if problem.sample_size > 50_000 else 1)
            found = []
            for _ in range(ceil(wanted / runs)):
                rows, labels = draw(problem, trial.rng)
                fitted = run(problem, method, budget, rows, labels, trial.rng, runs=runs)
                found.append(excess_risk(problem, fitted))
            risk[index, at] = np.mean(found)
            spread[index, at] = np.mean(np.square(found))
    return xr.Dataset(
        {
            "excess_risk": variable(("setting", "trial"), risk, "excess risk, mean of a trial"),
            "squared_excess_risk": variable(
                ("setting", "trial"), spread, "squared excess risk, mean of a trial"
            ),
            "predicted_risk": variable(
                "setting",
                [each.prediction.excess_risk for each in settings],
                "predicted excess risk",
            ),
            "predicted_risk_spread": variable(
                "setting",
                [each.prediction.excess_risk_std for each in settings],
                "predicted standard deviation of the excess risk over runs",
            ),
            "holds": variable(
                "setting",
                [int(each.prediction.holds and not each.prediction.warnings) for each in settings],
                "1 where the theory holds without a warning",
            ),
        },
        coords=_coordinates(settings),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Ratios of predicted to simulated errors, and how many are within a tenth."""
    import xarray as xr

    simulated = simulation.excess_risk.values
    mean = simulated.mean(axis=1)
    error = simulated.std(axis=1, ddof=1) / np.sqrt(simulated.shape[1])
    ratio = simulation.predicted_risk.values / mean
    holds = simulation.holds.values == 1
    deviation = np.sqrt(
        np.maximum(simulation.squared_excess_risk.values.mean(axis=1) - mean**2, 0.0)
    )
    return xr.Dataset(
        {
            "simulated_risk": variable("setting", mean, "simulated mean excess risk"),
            "predicted_risk": simulation.predicted_risk.variable,
            "ratio": variable(
                "setting",
                ratio,
                "predicted over simulated mean excess risk",
                standard_error="ratio_standard_error",
            ),
            "ratio_standard_error": variable(
                "setting", ratio * error / mean, "standard error of the ratio"
            ),
            "spread_ratio": variable(
                "setting",
                simulation.predicted_risk_spread.values / np.maximum(deviation, 1e-300),
                "predicted over simulated standard deviation over runs",
            ),
            "within_a_tenth": variable(
                (),
                float(np.mean(np.abs(ratio[holds] - 1) <= 0.1)),
                "share of the settings where the theory holds with a ratio from 0.9 to 1.1",
            ),
            "relied_on": variable((), float(np.mean(holds)), "share of settings with a prediction"),
        },
        coords={"setting": simulation.setting.variable, "trial": simulation.trial.variable},
    )


@lru_cache(maxsize=2)
def _settings(sample_sizes: tuple[int, ...], dimensions: tuple[int, ...]) -> tuple[Setting, ...]:
    from privreg.planning.search import search
    from privreg.prediction.predict import predict_risk
    from privreg.prediction.problem import FEATURE_LAWS, Problem
    from privreg.privacy.budget import Budget

    found = []
    for (a, n), (b, p), (c, law) in product(
        enumerate(sample_sizes), enumerate(dimensions), enumerate(FEATURE_LAWS)
    ):
        values = np.ones(p) if (a + b + c) % 2 == 0 else np.geomspace(0.1, 1.0, p)
        signal = 1.0
        if law == "one_hot":
            values = np.sqrt(values)
            values, signal = values / values.sum(), np.sqrt(p)
        else:
            values *= p / values.sum()
        problem = Problem(
            n, values, signal=signal, label_noise_std=LABEL_NOISE_STD, feature_law=law
        )
        price = PRICES[(a + 2 * b + c) % 4]
        if n >= 10**6:
            price = max(price, 8.0)
        budget = Budget.zcdp(2 * p / (n * price))
        for name in (ROTATIONS[a % 4][(b + c) % 4], *INSTEAD):
            method: Any = search(
                name, problem, budget, objective=lambda each: each.excess_risk, intervals=True
            )
            prediction = predict_risk(problem, method, budget)
            if prediction.holds and not prediction.warnings and prediction.beats_the_mean:
                break
        found.append(Setting(problem, budget, name, method, prediction))
    return tuple(found)


def _coordinates(settings: tuple[Setting, ...]) -> dict[str, tuple]:
    names = [
        f"{each.problem.feature_law}, n = {each.problem.sample_size}, "
        f"p = {each.problem.dimension}, {each.name}"
        for each in settings
    ]
    return {"setting": variable("setting", names, "law, sizes and method")}
