"""Every compared estimator on every compared table, and what their errors say together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, means, per
from reproduction.engine.summaries import jackknife, trials_last

if TYPE_CHECKING:
    from reproduction.studies.compared_methods import Fit
    from reproduction.studies.compared_tables import ComparedTable

FloatArray = NDArray[np.float64]
OURS, LEAST_SQUARES = "PrivateLinearRegression", "least squares"
PEERS = ("AdaSSP", "noisy moments")
UNKNOWN = "the population's coefficients are not known"


class Compared(Strict):
    """Budgets, and the level of the intervals."""

    rhos: q.Rising[q.Rho] = Field(description="zCDP budgets, of replace-one neighbours.")
    level: q.Probability = Field(description="Nominal coverage.")


AXES = {
    "budget": Axis("budget", lambda parameters: [f"rho = {rho:g}" for rho in parameters.rhos]),
    "rho": Axis("zCDP budget of replace-one neighbours", "rhos", along="budget"),
    "estimator": Axis("estimator", (OURS, *PEERS, LEAST_SQUARES)),
    "peer": Axis("private estimator that is compared with", PEERS),
}


@per(
    "table",
    "budget",
    error=Quantity("squared error on held-out rows over the variance of their labels", "estimator"),
    length_ratio="median over slopes of an interval's length over that of least squares'",
    infinite="share of the slopes' intervals that are infinite",
    covered=Quantity("share of the slopes covered", missing=UNKNOWN),
)
def run(
    parameters: Compared, tables: dict[str, ComparedTable], trial: Trial, table: str
) -> list[dict[str, Any]]:
    """Held-out errors of all methods; lengths and coverage of those that have intervals."""
    from privreg.privacy.budget import Budget
    from reproduction.studies.compared_methods import METHODS, Prepared, held_out_error

    about = tables[table]
    prepared = Prepared(about.draw(trial.rng), about.declared)
    found = []
    for rho in parameters.rhos:
        fits = {
            name: METHODS[name](prepared, Budget.zcdp(rho), trial.rng, parameters.level)
            for name in (OURS, *PEERS, LEAST_SQUARES)
        }
        errors = [
            held_out_error(fit.coefficients, prepared.drawn, about.declared)
            for fit in fits.values()
        ]
        of_intervals = _intervals(fits[OURS], fits[LEAST_SQUARES], about.coefficients)
        found.append({"error": errors, **of_intervals})
    return found


@per("table", "budget", length_ratio=Quantity(
    "median over trials and slopes of an interval's length over that of least squares'"
))  # fmt: skip
def length_ratio(simulation: Dataset) -> FloatArray:
    return np.median(trials_last(simulation.length_ratio), axis=-1)


@per(
    error_over_peer=Estimate(
        "mean error of PrivateLinearRegression over that of the peer", "peer table budget"
    )
)
def error_over_peer(simulation: Dataset) -> tuple[FloatArray, FloatArray]:
    """With the errors of both in pairs."""
    error = simulation.error.transpose("estimator", "table", "budget", "trial")
    ours, theirs = (
        trials_last(error.sel(estimator=OURS)),
        trials_last(error.sel(estimator=[*PEERS])),
    )
    return jackknife(
        lambda kept: ours[..., kept].mean(axis=-1) / theirs[..., kept].mean(axis=-1), ours.shape[-1]
    )


SUMMARY = (means(run, "error", "infinite", "covered"), length_ratio, error_over_peer)


def _intervals(ours: Fit, plain: Fit, truth: FloatArray | None) -> dict[str, float]:
    """Lengths over those of least squares, and coverage where the truth is known."""
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
