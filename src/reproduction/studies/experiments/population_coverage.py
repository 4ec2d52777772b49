"""Private intervals for a population's coefficients: coverage, and length beside an oracle's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Dimension,
    Probability,
    Rho,
    SampleSize,
    Some,
    more_than,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Intervals for the population parameter"
COVERAGE, LENGTH = (0.93, 0.97), 1.2
FeatureLaw = Literal["normal", "correlated", "uniform", "Student t5", "one-hot"]
ErrorLaw = Literal["normal", "heteroskedastic", "Student t3", "skewed"]
DIMS = ("case", "error_law", "feature_law")


class Case(Strict):
    """Sizes and the budget of a fit."""

    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Rows.")
    dimension: Dimension = Field(description="Features, beside an intercept.")
    rho: Rho = Field(description="zCDP budget, of replace-one neighbours.")

    _more_rows_than_columns = more_than("sample_size", "dimension")


class Parameters(Strict):
    """Every law of the features with every law of the errors at every size."""

    cases: Some[Case] = Field(description="Sizes and budgets.")
    feature_laws: Some[FeatureLaw] = Field(description="Laws of the features.")
    error_laws: Some[ErrorLaw] = Field(description="Laws of the errors.")
    level: Probability = Field(description="Nominal coverage.")
    oracle_rows: Annotated[SampleSize, Field(ge=1000)] = Field(
        description="Rows that stand for the population."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Lengths that an oracle needs, which knows the population and spends nothing to learn it."""
    import xarray as xr

    from reproduction.studies.oracle import oracle_lengths
    from reproduction.studies.private_tables import Population

    shape = tuple(len(_coordinates(parameters)[dim][1]) for dim in DIMS)
    lengths, plain = np.zeros(shape), np.zeros(shape)
    for (c, case), (e, errors), (f, features) in _settings(parameters):
        rng = np.random.Generator(np.random.SFC64([c, e, f]))
        population = Population(features, errors, case.dimension)
        lengths[c, e, f], plain[c, e, f] = oracle_lengths(
            population,
            sample_size=case.sample_size,
            rho=case.rho,
            level=parameters.level,
            rows=parameters.oracle_rows,
            rng=rng,
        )
    return xr.Dataset(
        {
            "oracle_length": variable(DIMS, lengths, "mean length of the oracle's intervals"),
            "least_squares_length": variable(
                DIMS, plain, "mean length of non-private least squares' intervals"
            ),
        },
        coords=_coordinates(parameters),
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Share of slopes covered, mean length, squared error and infinite intervals of each fit."""
    import xarray as xr

    from reproduction.studies.oracle import fitted_intervals
    from reproduction.studies.private_tables import Population

    shape = (len(trials), *(len(_coordinates(parameters)[dim][1]) for dim in DIMS))
    found = {name: np.zeros(shape) for name in ("covered", "length", "infinite", "squared_error")}
    for at, trial in enumerate(trials):
        for (c, case), (e, errors), (f, features) in _settings(parameters):
            population = Population(features, errors, case.dimension)
            intervals = fitted_intervals(
                population,
                sample_size=case.sample_size,
                rho=case.rho,
                level=parameters.level,
                rng=trial.rng,
            )
            truth, slopes = population.coefficients, slice(case.dimension)
            length = intervals.length[slopes]
            finite = np.isfinite(length)
            found["covered"][at, c, e, f] = np.mean(intervals.covers(truth)[slopes])
            found["length"][at, c, e, f] = np.mean(length[finite]) if np.any(finite) else 0.0
            found["infinite"][at, c, e, f] = np.mean(~finite)
            errors_squared = (intervals.centre - truth)[slopes] ** 2
            found["squared_error"][at, c, e, f] = np.sum(errors_squared)
    dims = ("trial", *DIMS)
    names = {
        "covered": "share of the slopes covered",
        "length": "mean length of the finite intervals",
        "infinite": "share of infinite intervals",
        "squared_error": "squared distance of the slopes to the population's",
    }
    return xr.Dataset(
        {name: variable(dims, values, names[name]) for name, values in found.items()},
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Coverage and lengths of each setting, and in how many of them they are what is promised."""
    import xarray as xr

    found = simulation.transpose(*DIMS, "trial")
    ratios = {
        "length_ratio": (theory.oracle_length, "the length of intervals over the oracle's"),
        "least_squares_ratio": (
            theory.least_squares_length,
            "the length of intervals over that of non-private least squares'",
        ),
    }
    variables: dict[str, tuple] = {}
    for name, meaning in (
        ("covered", "the share of slopes covered"),
        ("infinite", "the share of intervals that are infinite"),
        ("squared_error", "the squared distance to the population's slopes"),
    ):
        variables |= mean_and_error(name, found[name].values, DIMS, meaning)
    for name, (unit, meaning) in ratios.items():
        values = found.length.values / unit.transpose(*DIMS).values[..., None]
        variables |= mean_and_error(name, values, DIMS, meaning)
    covered, ratio = (np.asarray(variables[name][1]) for name in ("covered", "length_ratio"))
    low, high = COVERAGE
    variables["settings_covered"] = variable(
        (),
        np.sum((covered >= low) & (covered <= high)),
        f"settings whose coverage is within [{low}, {high}]",
    )
    variables["settings_short"] = variable(
        (), np.sum(ratio <= LENGTH), f"settings whose length is at most {LENGTH} of the oracle's"
    )
    return xr.Dataset(variables, coords=_coordinates(parameters))


def _settings(
    parameters: Parameters,
) -> Iterator[tuple[tuple[int, Case], tuple[int, str], tuple[int, str]]]:
    return product(
        enumerate(parameters.cases),
        enumerate(parameters.error_laws),
        enumerate(parameters.feature_laws),
    )


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    sizes = [
        f"n = {case.sample_size}, p = {case.dimension}, rho = {case.rho:g}"
        for case in parameters.cases
    ]
    return {
        "case": variable("case", sizes, "sizes and budget"),
        "error_law": variable("error_law", parameters.error_laws, "law of the errors"),
        "feature_law": variable("feature_law", parameters.feature_laws, "law of the features"),
    }
