"""Exponents of the three terms of the risk, and their best balance against Theorem 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Name, Strict
from reproduction.experiment.quantities import Count, Power, Some

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Figures 10-13, Theorem 4, Lemma E.5, Corollary 6.1"
Powers = Sequence[float] | np.ndarray
TERMS = ("signal", "sampling", "private")


class Panel(Strict):
    """One of Figures 10-13."""

    name: Name = Field(description="The figure.")
    signal_decay: Annotated[Power, Field(gt=1)] = Field(description="kappa_1 = 2 - phi - psi.")
    schedule_power: Power = Field(description="alpha.")
    privacy_power: Annotated[Power, Field(lt=1)] = Field(description="b of rho = gamma^b.")


class Parameters(Strict):
    """Figures 10-13, and points at which the theorem is compared with a search."""

    panels: Some[Panel] = Field(description="The figures, all of which have phi = 0.")
    points: Annotated[Count, Field(ge=10)] = Field(description="Points of a curve.")
    draws: Annotated[Count, Field(ge=100)] = Field(
        description="Points (phi, psi, alpha, b) of the comparison."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Curves, their best points, and the theorem's statements on many powers at once."""
    import xarray as xr

    from privreg.theory.one_pass_dpgd.scaling_laws import optimal_exponent, term_exponents

    rates = np.linspace(-1.0, 0.0, parameters.points)
    curves, best, found = [], [], []
    for panel in parameters.panels:
        powers = (0.0, 2 - panel.signal_decay, panel.schedule_power, panel.privacy_power)
        curves.append(term_exponents(rates, **_named(powers)))
        predicted = optimal_exponent(*powers)
        best.append((predicted.learning_rate, predicted.risk, predicted.privacy_is_free))
        found.append(_search(powers))
    best_rate, best_risk, free = (
        np.array(column, dtype=float) for column in zip(*best, strict=True)
    )
    return xr.Dataset(
        {
            "term_exponent": variable(
                ("panel", "term", "learning_rate"), curves, "exponent of a term of the risk"
            ),
            "best_learning_rate": variable(
                "panel", best_rate, "exponent of the best learning rate in Theorem 4"
            ),
            "best_risk": variable("panel", best_risk, "exponent of the risk in Theorem 4"),
            "searched_learning_rate": variable(
                "panel", [a for a, _ in found], "exponent of the best learning rate by search"
            ),
            "searched_risk": variable(
                "panel", [h for _, h in found], "exponent of the risk by search"
            ),
            "privacy_is_free": variable(
                "panel", free, "1 where privacy does not change the exponent of the risk"
            ),
            **_statements(parameters.draws),
        },
        coords={
            "panel": variable("panel", [p.name for p in parameters.panels], "figure"),
            "term": variable("term", list(TERMS), "term of the risk"),
            "learning_rate": variable(
                "learning_rate", rates, "exponent a of clipping constant times initial rate"
            ),
            "case": variable("case", [1, 2, 3, 4], "bullet of Theorem 4"),
            "schedule_limited": variable("schedule_limited", [1, 0], "1 where phi (alpha + 1) < 2"),
        },
    )


def _statements(draws: int) -> dict[str, tuple]:
    from privreg.theory.one_pass_dpgd import scaling_laws

    points = _points(draws)
    found = [scaling_laws.optimal_exponent(*point) for point in points]
    searched = np.array([_search(point) for point in points])
    risk = np.array([one.risk for one in found])
    rate = np.array([one.learning_rate for one in found])
    case = np.array([one.case for one in found])
    error = np.maximum(np.abs(searched[:, 1] - risk), np.abs(searched[:, 0] - rate))
    critical = np.array([scaling_laws.critical_privacy_power(*point[:3]) for point in points])
    limited = case <= 2
    schedules = np.concatenate([[0.0, 0.5], np.geomspace(1.0, 1e3, 60)])
    increments = [
        np.diff([scaling_laws.optimal_exponent(p, q, a, b).risk for a in schedules]).min()
        for p, q, _, b in points[: draws // 10]
    ]
    flat = 1e8
    limit_error = [
        abs(
            scaling_laws.optimal_exponent(p, q, flat, b).risk
            - scaling_laws.limiting_exponent(p, q, b)
        )
        for p, q, _, b in points
    ]
    threshold_error = [
        abs(scaling_laws.critical_privacy_power(p, q, flat) - (0.5 - p / (2 * (2 - p - q))))
        for p, q, _, _ in points
        if p > 0
    ]
    thresholds = [0.5 - p / (2 * (2 - p - q)) for p, q, _, _ in points if p > 0]

    def scalar(value: float, meaning: str) -> tuple:
        return variable((), value, meaning)

    return {
        "search_error": variable(
            "case",
            [error[case == c].max() for c in (1, 2, 3, 4)],
            "largest difference of the theorem's exponents to a search over the learning rate",
        ),
        "sampled": variable(
            "case", [float((case == c).sum()) for c in (1, 2, 3, 4)], "points compared"
        ),
        "least_critical_power": variable(
            "schedule_limited",
            [critical[limited].min(), critical[~limited].min()],
            "least critical privacy power among the points",
        ),
        "largest_critical_power": variable(
            "schedule_limited",
            [critical[limited].max(), critical[~limited].max()],
            "largest critical privacy power among the points",
        ),
        "least_learning_rate": scalar(
            rate.min(), "least exponent of the best learning rate among the points"
        ),
        "largest_learning_rate": scalar(
            rate.max(), "largest exponent of the best learning rate among the points"
        ),
        "least_increment": scalar(
            min(increments), "least increment of the exponent of the risk along schedule powers"
        ),
        "limit_error": scalar(
            max(limit_error), "distance of the exponent at a very large power to its limit"
        ),
        "threshold_error": scalar(
            max(threshold_error), "distance of the critical power at a very large one to its limit"
        ),
        "least_threshold": scalar(min(thresholds), "least limit of the critical privacy power"),
        "largest_threshold": scalar(max(thresholds), "largest limit of the critical privacy power"),
        "logarithm_error": scalar(
            _logarithm_error(), "distance of the printed logarithm to that of the third exponent"
        ),
    }


def _logarithm_error() -> float:
    """Equation (6.6) at phi (alpha + 1) = 2 against the smallest of the exponents of (E.55)."""
    from privreg.theory.one_pass_dpgd.scaling_laws import optimal_exponent, term_exponents

    worst = 0.0
    for schedule_power in (2.0, 3.0, 5.0, 9.0):
        for ratio in (1e-4, 1e-8, 1e-16):
            powers = (2 / (schedule_power + 1), 0.0, schedule_power, 0.6)
            found = optimal_exponent(*powers)
            printed = found.risk + np.log(found.learning_rate * np.log(ratio)) / np.log(ratio)
            terms = term_exponents(found.learning_rate, **_named(powers), aspect_ratio=ratio)
            worst = max(worst, abs(printed - terms.min()))
    return worst


def _points(draws: int) -> np.ndarray:
    """Low-discrepancy points of the theorem's domain, a fifth of them on phi (alpha + 1) = 2."""
    steps = 1 / np.array([1.2207440846, 1.4902161201, 1.8191725134, 2.2207440846])
    unit = (0.5 + np.outer(np.arange(1, draws + 1), steps)) % 1.0
    schedule = 1 + 19 * unit[:, 0] ** 3
    schedule[0::5], schedule[1::5] = 0.0, 0.5
    spectrum = 1 - 4 * unit[:, 1] ** 2
    # Values that divide exactly keep the product at 2 without rounding.
    schedule[2::5] = np.array([3.0, 7.0, 15.0])[np.arange(len(schedule[2::5])) % 3]
    spectrum[2::5] = 2 / (schedule[2::5] + 1)
    signal = 1 - spectrum - 6 * unit[:, 2] ** 2
    privacy = 1 - 1.5 * unit[:, 3]
    return np.stack([spectrum, signal - 1e-9, schedule, privacy], axis=1)


def _search(powers: Powers) -> tuple[float, float]:
    """Best learning rate and its exponent: the concave minimum of the terms on repeated grids."""
    from privreg.theory.one_pass_dpgd.scaling_laws import term_exponents

    low, high = -1.0, 0.0
    for _ in range(12):
        grid = np.linspace(low, high, 41)
        values = term_exponents(grid, **_named(powers)).min(axis=0)
        best = int(np.argmax(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    return float(grid[best]), float(values[best])


def _named(powers: Powers) -> dict[str, float]:
    names = ("spectrum_power", "signal_power", "schedule_power", "privacy_power")
    return dict(zip(names, map(float, powers), strict=True))
