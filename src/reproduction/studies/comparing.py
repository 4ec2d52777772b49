"""Every compared estimator on every compared table, and what their errors say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.experiment.datasets import MISSING, Release, variable
from reproduction.experiment.summaries import jackknife, mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials
    from reproduction.studies.compared_tables import ComparedTable

FloatArray = NDArray[np.float64]
OURS, LEAST_SQUARES = "PrivateLinearRegression", "least squares"
DIMS = ("table", "budget", "estimator")
UNKNOWN = "the population's coefficients are not known"


def simulate(
    tables: Sequence[ComparedTable],
    rhos: Sequence[float],
    level: float,
    trials: Trials,
    *,
    release: Release | None = None,
) -> xr.Dataset:
    """Held-out errors of all methods; lengths and coverage of those that have intervals."""
    import xarray as xr

    from privreg.privacy.budget import Budget
    from reproduction.studies.compared_methods import METHODS, Prepared, held_out_error

    shape = (len(trials), len(tables), len(rhos))
    error = np.zeros((*shape, len(METHODS)))
    ratio, infinite, covered = np.zeros(shape), np.zeros(shape), np.full(shape, np.nan)
    for at, trial in enumerate(trials):
        for t, table in enumerate(tables):
            prepared = Prepared(table.draw(trial.rng), table.declared)
            for b, rho in enumerate(rhos):
                fits = {
                    name: method(prepared, Budget.zcdp(rho), trial.rng, level)
                    for name, method in METHODS.items()
                }
                for m, fit in enumerate(fits.values()):
                    found = held_out_error(fit.coefficients, prepared.drawn, table.declared)
                    error[at, t, b, m] = found
                widths, plain = fits[OURS].half_widths, fits[LEAST_SQUARES].half_widths
                assert widths is not None
                assert plain is not None
                known = np.isfinite(plain)
                infinite[at, t, b] = np.mean(~np.isfinite(widths[known]))
                ratio[at, t, b] = np.median(widths[known] / plain[known])
                if table.coefficients is not None:
                    off = np.abs(fits[OURS].coefficients - table.coefficients)[:-1]
                    covered[at, t, b] = np.mean(off <= widths)
    dims = ("trial", "table", "budget")
    return xr.Dataset(
        {
            "error": variable(
                (*dims, "estimator"),
                error,
                "squared error on held-out rows over the variance of their labels",
                release=release,
            ),
            "length_ratio": variable(
                dims,
                ratio,
                "median over slopes of an interval's length over that of least squares'",
                release=release,
            ),
            "infinite": variable(
                dims, infinite, "share of the slopes' intervals that are infinite", release=release
            ),
            "covered": variable(
                dims, covered, "share of the slopes covered", missing=UNKNOWN, release=release
            ),
        },
        coords=_coordinates(tables, rhos, list(METHODS)),
    )


def summarise(simulation: xr.Dataset, *, release: Release | None = None) -> xr.Dataset:
    """Means with errors, and the error of `PrivateLinearRegression` over each private peer's."""
    import xarray as xr

    found = simulation.transpose(*DIMS, "trial")
    variables: dict[str, tuple[Any, ...]] = {}
    meaning = "the squared error on held-out rows over the variance of their labels"
    variables |= mean_and_error("error", found.error.values, DIMS, meaning, release=release)
    for name, what in (
        ("infinite", "the share of the slopes' intervals that are infinite"),
        ("covered", "the share of the slopes covered"),
    ):
        variables |= mean_and_error(name, found[name].values, DIMS[:2], what, release=release)
    for name in ("covered", "covered_standard_error"):
        dims, values, attributes = variables[name]
        if name.endswith("error"):
            values = np.where(np.isnan(values), np.inf, values)
        variables[name] = (dims, values, attributes | {MISSING: UNKNOWN})
    variables["length_ratio"] = variable(
        DIMS[:2],
        np.median(found.length_ratio.values, axis=-1),
        "median over trials and slopes of an interval's length over that of least squares'",
        release=release,
    )
    peers = [name for name in found.estimator.values if name not in (OURS, LEAST_SQUARES)]
    ours = found.error.sel(estimator=OURS).values
    theirs = np.stack([found.error.sel(estimator=peer).values for peer in peers])
    ratios, errors = jackknife(
        lambda kept: ours[..., kept].mean(axis=-1) / theirs[..., kept].mean(axis=-1), ours.shape[-1]
    )
    dims = ("peer", *DIMS[:2])
    variables["error_over_peer"] = variable(
        dims,
        ratios,
        "mean error of PrivateLinearRegression over that of the peer",
        standard_error="error_over_peer_standard_error",
        release=release,
    )
    variables["error_over_peer_standard_error"] = variable(
        dims,
        errors,
        "standard error of the mean error over that of the peer",
        release=release,
    )
    coords: dict[str, Any] = {name: simulation[name].variable for name in (*DIMS, "rho")}
    coords["peer"] = variable("peer", peers, "private estimator that is compared with")
    return xr.Dataset(variables, coords=coords)


def _coordinates(
    tables: Sequence[ComparedTable], rhos: Sequence[float], methods: list[str]
) -> dict[str, Any]:
    return {
        "table": variable("table", [table.name for table in tables], "table"),
        "budget": variable("budget", [f"rho = {rho:g}" for rho in rhos], "budget"),
        "rho": variable("budget", np.array(rhos), "zCDP budget of replace-one neighbours"),
        "estimator": variable("estimator", methods, "estimator"),
    }
