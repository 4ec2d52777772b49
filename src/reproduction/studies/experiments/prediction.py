"""Predicted against simulated errors over sizes, dimensions, laws, methods, spectra and budgets."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, Dimension, Rising, SampleSize, Some

if TYPE_CHECKING:
    from typing import Any

    import xarray as xr

    from privreg.prediction.problem import Problem
    from privreg.privacy.budget import Budget
    from reproduction.experiment.trials import Trials

PLACE = "The accuracy of predictions"
LABEL_NOISE_STD = 0.7
LAWS = 4
# From so many rows on a trial estimates this share of the coefficients.
SHARES = ((500_000, 1 / 3), (50_000, 1 / 2), (0, 1))
MOST_RUNS = 10
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


class Size(Strict):
    """A number of rows, and the numbers of features that it meets."""

    sample_size: SampleSize = Field(description="Number of rows.")
    dimensions: Rising[Dimension] = Field(description="Numbers of features.")


class Parameters(Strict):
    """Every sample size meets its dimensions and every law of the features."""

    sizes: Some[Size] = Field(description="Numbers of rows and of features.")
    coefficients: Count = Field(
        description="Coefficients a trial estimates in a setting: half of it from 50,000 rows on, "
        "a third from 500,000."
    )


class Place(NamedTuple):
    """Positions of a setting in the lists of sample sizes, dimensions and laws."""

    size: int
    width: int
    law: int


def theory(parameters: Parameters) -> xr.Dataset:
    """What each setting's method is, with the settings of least predicted error, and that error."""
    import xarray as xr

    from privreg.planning.search import search
    from reproduction.studies.written_methods import to_text

    places, names, settings = _places(parameters), [], []
    risk, spread, holds = (np.empty(len(places)) for _ in range(3))
    for at, place in enumerate(places):
        problem, budget = _problem(parameters, place)
        first = ROTATIONS[place.size % 4][(place.width + place.law) % 4]
        for name in (first, *INSTEAD):
            method: Any = search(
                name, problem, budget, objective=lambda each: each.excess_risk, intervals=True
            )
            found = method.predict(problem, budget)
            if found.holds and not found.warnings and found.beats_the_mean:
                break
        names.append(
            f"{problem.feature_law}, n = {problem.sample_size}, p = {problem.dimension}, {name}"
        )
        settings.append(to_text(method))
        risk[at], spread[at] = found.excess_risk, found.excess_risk_std
        holds[at] = found.holds and not found.warnings
    return xr.Dataset(
        {
            "settings": variable("setting", settings, "settings of the method"),
            "predicted_risk": variable("setting", risk, "predicted excess risk"),
            "predicted_risk_spread": variable(
                "setting", spread, "predicted standard deviation of the excess risk over runs"
            ),
            "holds": variable(
                "setting", holds.astype(int), "1 where the theory holds without a warning"
            ),
        },
        coords={"setting": variable("setting", names, "law, sizes and method")},
    )


def simulate(parameters: Parameters, trials: Trials, theory: xr.Dataset) -> xr.Dataset:
    """Mean excess risk of a trial's runs in each setting."""
    import xarray as xr

    from privreg.algorithms.samples import ArraySamples
    from privreg.methods.runs import Declared
    from reproduction.studies.private_runs import draw, excess_risk
    from reproduction.studies.written_methods import from_text

    places = _places(parameters)
    methods = [from_text(str(text)) for text in theory.settings.values]
    risk = np.zeros((len(places), len(trials)))
    spread = np.zeros_like(risk)
    for at, trial in enumerate(trials):
        for index, (place, method) in enumerate(zip(places, methods, strict=True)):
            problem, budget = _problem(parameters, place)
            share = next(share for rows, share in SHARES if problem.sample_size >= rows)
            wanted = ceil(parameters.coefficients * share / problem.dimension)
            # Where rows are many and privacy decides, fewer sets of them serve more runs.
            runs = min(wanted, MOST_RUNS, ceil(2 * _price(place))) if share < 1 else 1
            found = []
            for _ in range(ceil(wanted / runs)):
                samples = ArraySamples(*draw(problem, trial.rng))
                fitted = method.simulate(
                    samples, budget, trial.rng, declared=Declared.of(problem), runs=runs
                )
                found.append(excess_risk(problem, fitted))
            risk[index, at] = np.mean(found)
            spread[index, at] = np.mean(np.square(found))
    return xr.Dataset(
        {
            "excess_risk": variable(("setting", "trial"), risk, "excess risk, mean of a trial"),
            "squared_excess_risk": variable(
                ("setting", "trial"), spread, "squared excess risk, mean of a trial"
            ),
        },
        coords={"setting": theory.setting.variable},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Ratios of predicted to simulated errors, and how many are within a tenth."""
    import xarray as xr

    simulated = simulation.excess_risk.values
    mean = simulated.mean(axis=1)
    error = simulated.std(axis=1, ddof=1) / np.sqrt(simulated.shape[1])
    ratio = theory.predicted_risk.values / mean
    holds = theory.holds.values == 1
    deviation = np.sqrt(
        np.maximum(simulation.squared_excess_risk.values.mean(axis=1) - mean**2, 0.0)
    )
    return xr.Dataset(
        {
            "simulated_risk": variable("setting", mean, "simulated mean excess risk"),
            "predicted_risk": theory.predicted_risk.variable,
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
                theory.predicted_risk_spread.values / np.maximum(deviation, 1e-300),
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


def _places(parameters: Parameters) -> list[Place]:
    return [
        Place(size, width, law)
        for size, each in enumerate(parameters.sizes)
        for width in range(len(each.dimensions))
        for law in range(LAWS)
    ]


def _price(place: Place) -> float:
    return PRICES[(place.size + 2 * place.width + place.law) % 4]


def _problem(parameters: Parameters, place: Place) -> tuple[Problem, Budget]:
    from privreg.prediction.problem import FEATURE_LAWS, Problem
    from privreg.privacy.budget import Budget

    size = parameters.sizes[place.size]
    n, p = size.sample_size, size.dimensions[place.width]
    law, signal = FEATURE_LAWS[place.law], 1.0
    values = np.ones(p) if sum(place) % 2 == 0 else np.geomspace(0.1, 1.0, p)
    if law == "one_hot":
        values = np.sqrt(values)
        values, signal = values / values.sum(), np.sqrt(p)
    else:
        values *= p / values.sum()
    problem = Problem(n, values, signal=signal, label_noise_std=LABEL_NOISE_STD, feature_law=law)
    return problem, Budget.zcdp(2 * p / (n * _price(place)))
