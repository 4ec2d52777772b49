"""Comparison of private estimators on tables that need no download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import jackknife, trials_last

if TYPE_CHECKING:
    from reproduction.studies.compared_methods import Fit
    from reproduction.studies.compared_tables import ComparedTable

FloatArray = NDArray[np.float64]
PLACE = "Peers"
OURS, LEAST_SQUARES = "PrivateLinearRegression", "least squares"
PEERS = ("AdaSSP", "noisy moments")
LENGTH = "an interval's length divided by that of least squares"


class Compared(Strict):
    """Budgets, and the level of the intervals."""

    rhos: q.Rising[q.Rho] = Field(description="zCDP budgets, of replace-one neighbours.")
    level: q.Probability = Field(description="Nominal coverage.")


class Parameters(Compared):
    """Tables that are drawn or split anew in each trial."""

    tables: q.Some[Literal["normal", "correlated", "flats", "diabetes"]] = Field(
        description="Tables; diabetes has sizes of its own."
    )
    training_rows: Annotated[q.SampleSize, Field(ge=500)] = Field(
        description="Rows that a fit uses."
    )
    held_out_rows: Annotated[q.SampleSize, Field(ge=100)] = Field(description="Rows for the error.")


def tables(parameters: Parameters) -> dict[str, ComparedTable]:
    from reproduction.studies.compared_tables import Synthetic, diabetes

    sizes = parameters.training_rows, parameters.held_out_rows
    return {
        name: diabetes() if name == "diabetes" else Synthetic(name, *sizes)
        for name in parameters.tables
    }


@per(
    "table",
    "budget",
    error=Quantity("squared error on held-out rows over the variance of their labels", "estimator"),
    length_ratio=f"median over slopes of {LENGTH}",
    infinite="share of the slopes' intervals that are infinite",
    covered=Quantity(
        "share of the slopes covered", missing="the population's coefficients are not known"
    ),
)
def run(
    parameters: Compared, tables: dict[str, ComparedTable], trial: Trial, table: str
) -> list[dict[str, Any]]:
    """Held-out errors of all methods; lengths and coverage of methods with intervals."""
    from privreg.privacy.budget import Budget
    from reproduction.studies.compared_methods import METHODS, Prepared, held_out_error

    about = tables[table]
    prepared = Prepared(about.draw(trial.rng), about.declared)
    found = []
    for rho in parameters.rhos:
        fits = {
            name: fit(prepared, Budget.zcdp(rho), trial.rng, parameters.level)
            for name, fit in METHODS.items()
        }
        errors = [held_out_error(fit.coefficients, prepared) for fit in fits.values()]
        of_intervals = _intervals(fits[OURS], fits[LEAST_SQUARES], about.coefficients)
        found.append({"error": errors, **of_intervals})
    return found


@per("table", "budget", length_ratio=f"median over trials and slopes of {LENGTH}")
def length_ratio(simulation: Dataset) -> FloatArray:
    return np.median(trials_last(simulation.length_ratio), axis=-1)


@per(
    error_over_peer=Estimate(
        "mean error of PrivateLinearRegression divided by the peer's", "peer table budget"
    )
)
def error_over_peer(simulation: Dataset) -> tuple[FloatArray, FloatArray]:
    """Error relative to a peer's, with paired errors."""
    ours = trials_last(simulation.error.sel(estimator=OURS))
    theirs = trials_last(simulation.error.sel(estimator=[*PEERS]).transpose("estimator", ...))
    return jackknife(
        lambda kept: ours[..., kept].mean(axis=-1) / theirs[..., kept].mean(axis=-1), ours.shape[-1]
    )


AXES = {
    "budget": Axis("budget", lambda parameters: [f"rho = {rho:g}" for rho in parameters.rhos]),
    "rho": Axis("zCDP budget of replace-one neighbours", "rhos", along="budget"),
    "estimator": Axis("estimator", (OURS, *PEERS, LEAST_SQUARES)),
    "peer": Axis("private estimator that is compared with", PEERS),
    "table": Axis("table", "tables"),
}
SUMMARY = (means(run, "error", "infinite", "covered"), length_ratio, error_over_peer)
simulate = stage(AXES, run, shared={"tables": tables})
summarise = stage(AXES, *SUMMARY)


def _intervals(ours: Fit, plain: Fit, truth: FloatArray | None) -> dict[str, float]:
    """Lengths relative to those of least squares, and coverage if the truth is known."""
    assert ours.half_widths is not None
    assert plain.half_widths is not None
    known = np.isfinite(plain.half_widths)
    widths = ours.half_widths[known]
    covered = np.nan
    if truth is not None:
        off = np.abs(ours.coefficients - truth)[:-1]
        covered = float(np.mean(off <= ours.half_widths))
    return {
        "length_ratio": float(np.median(widths / plain.half_widths[known])),
        "infinite": float(np.mean(~np.isfinite(widths))),
        "covered": covered,
    }
