"""Private intervals for a population's coefficients: coverage, and length relative to oracles."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, DataArray, Dataset, Mean, Trial, means, per, stage

PLACE = "Intervals for the population parameter"
LEAST, MOST = 0.93, 0.97
FeatureLaw = Literal["normal", "correlated", "uniform", "Student t5", "one-hot"]
ErrorLaw = Literal["normal", "heteroskedastic", "Student t3", "skewed"]


class Case(Strict):
    """Sizes and the budget of a fit."""

    sample_size: q.Plural[q.SampleSize] = Field(description="Rows.")
    dimension: q.Dimension = Field(description="Features, beside an intercept.")
    rho: q.Rho = Field(description="zCDP budget, of replace-one neighbours.")

    def __str__(self) -> str:
        return f"n = {self.sample_size}, p = {self.dimension}, rho = {self.rho:g}"

    _more_rows_than_columns = q.more_than("sample_size", "dimension")


class Parameters(Strict):
    """Every law of the features is combined with every law of the errors at every size."""

    cases: q.Some[Case] = Field(description="Sizes and budgets.")
    feature_laws: q.Some[FeatureLaw] = Field(description="Laws of the features.")
    error_laws: q.Some[ErrorLaw] = Field(description="Laws of the errors.")
    level: q.Probability = Field(description="Nominal coverage.")
    oracle_rows: Annotated[q.SampleSize, Field(ge=1000)] = Field(
        description="Rows that stand for the population."
    )

    def problem(self, case: str, error_law: str, feature_law: str) -> dict[str, Any]:
        """Inputs of a fit and of the oracle."""
        from reproduction.studies.private_tables import Population

        sizes = next(each for each in self.cases if str(each) == case)
        return {
            "population": Population(feature_law, error_law, sizes.dimension),
            "sample_size": sizes.sample_size,
            "rho": sizes.rho,
            "level": self.level,
        }


AXES = {
    "case": Axis("sizes and budget", lambda parameters: [*map(str, parameters.cases)]),
    "error_law": Axis("law of the errors", "error_laws"),
    "feature_law": Axis("law of the features", "feature_laws"),
}


@per(
    *AXES,
    oracle_length="mean length of the oracle's intervals",
    least_squares_length="mean length of non-private least squares' intervals",
)
def lengths(parameters: Parameters, **cell: str) -> dict[str, float]:
    """Mean lengths of the intervals of the oracle and of non-private least squares."""
    from reproduction.studies.private_tables import oracle_lengths

    places = [
        axis.labels({"parameters": parameters}).index(cell[name]) for name, axis in AXES.items()
    ]
    oracle, plain = oracle_lengths(
        **parameters.problem(**cell),
        rows=parameters.oracle_rows,
        rng=np.random.Generator(np.random.SFC64(places)),
    )
    return {"oracle_length": oracle, "least_squares_length": plain}


@per(
    *AXES,
    covered="share of the slopes covered",
    length="mean length of the finite intervals",
    infinite="share of infinite intervals",
)
def fit(parameters: Parameters, trial: Trial, **cell: str) -> dict[str, Any]:
    """Coverage and length of a fit's intervals for the population's slopes."""
    from reproduction.studies.private_tables import fitted_intervals

    problem = parameters.problem(**cell)
    intervals = fitted_intervals(**problem, rng=trial.rng)
    length = intervals.length[:-1]
    finite = np.isfinite(length)
    return {
        "covered": np.mean(intervals.covers(problem["population"].coefficients)[:-1]),
        "length": np.mean(length[finite]) if np.any(finite) else 0.0,
        "infinite": np.mean(~finite),
    }


@per(
    *AXES,
    length_ratio=Mean("length of intervals divided by the oracle's"),
    least_squares_ratio=Mean("length of intervals divided by that of non-private least squares"),
)
def ratios(simulation: Dataset, theory: Dataset) -> dict[str, DataArray]:
    return {
        "length_ratio": simulation.length / theory.oracle_length,
        "least_squares_ratio": simulation.length / theory.least_squares_length,
    }


@per(settings_covered=f"settings whose coverage is within [{LEAST}, {MOST}]")
def settings_covered(earlier: Dataset) -> int:
    covered = earlier.covered.values
    return int(np.sum((covered >= LEAST) & (covered <= MOST)))


theory = stage(AXES, lengths)
simulate = stage(AXES, fit)
summarise = stage(AXES, means(fit, "covered", "infinite"), ratios, settings_covered)
