"""Exponents of the three terms of the risk, and their best balance against Theorem 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from privreg.theory.one_pass_dpgd import rates as scaling
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Name, Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage

PLACE = "Figures 10-13, Theorem 4, Lemma E.5, Corollary 6.1"
POWERS = ("spectrum_power", "signal_power", "schedule_power", "privacy_power")
CASES = (1, 2, 3, 4)
FLAT = 1e8  # a schedule's power that stands for infinity


class Panel(Strict):
    """One of Figures 10-13."""

    name: Name = Field(description="The figure.")
    signal_decay: Annotated[q.Real, Field(gt=1, le=100)] = Field(
        description="kappa_1 = 2 - phi - psi."
    )
    schedule_power: q.Power = Field(description="alpha.")
    privacy_power: Annotated[q.Power, Field(lt=1)] = Field(description="b of rho = gamma^b.")

    @property
    def powers(self) -> tuple[float, ...]:
        return 0.0, 2 - self.signal_decay, self.schedule_power, self.privacy_power


class Parameters(Strict):
    """Figures 10-13, and points at which the theorem is compared with a search."""

    panels: q.Some[Panel] = Field(description="The figures, all of which have phi = 0.")
    points: q.Count = Field(description="Points of a curve.")
    draws: q.Count = Field(description="Points (phi, psi, alpha, b) of the comparison.")

    @property
    def rates(self) -> np.ndarray:
        return np.linspace(-1.0, 0.0, self.points)


AXES = {
    "panel": Axis("figure", lambda parameters: [panel.name for panel in parameters.panels]),
    "term": Axis("term of the risk", ("signal", "sampling", "private")),
    "learning_rate": Axis("exponent a of clipping constant times initial rate", "rates"),
    "case": Axis("bullet of Theorem 4", CASES),
    "signal_power": Axis("psi", (-1.0, 0.0)),
    "schedule_limited": Axis("1 where phi (alpha + 1) < 2", (1, 0)),
}


@per(
    "panel",
    term_exponent=Quantity("exponent of a term of the risk", "term learning_rate"),
    best_learning_rate="exponent of the best learning rate in Theorem 4",
    best_risk="exponent of the risk in Theorem 4",
    searched_learning_rate="exponent of the best learning rate by search",
    searched_risk="exponent of the risk by search",
    privacy_is_free="1 where the best exponent by search is that without the private term",
)
def figure(parameters: Parameters, panel: str) -> dict:
    """Curves and their best points."""
    (powers,) = (each.powers for each in parameters.panels if each.name == panel)
    predicted, (rate, risk) = scaling.optimal_exponent(*powers), _search(powers)
    return {
        "term_exponent": scaling.term_exponents(parameters.rates, **_named(powers)),
        "best_learning_rate": predicted.learning_rate,
        "best_risk": predicted.risk,
        "searched_learning_rate": rate,
        "searched_risk": risk,
        "privacy_is_free": float(np.isclose(risk, _search(powers, terms=2)[1], atol=1e-9)),
    }


@per(
    "case",
    search_error="largest difference of the theorem's exponents to a search over the learning rate",
)
def by_case(parameters: Parameters) -> list[float]:
    """The theorem's bullets against a search."""
    errors: dict[int, list[float]] = {case: [] for case in CASES}
    for point, found in _stated(parameters.draws):
        apart = np.subtract(_search(point), (found.learning_rate, found.risk))
        errors[found.case].append(np.abs(apart).max())
    return [max(each) for each in errors.values()]


@per(
    "schedule_limited",
    least_critical_power="least critical privacy power among the points",
    largest_critical_power="largest critical privacy power among the points",
)
def critical(parameters: Parameters, schedule_limited: int) -> dict:
    powers = [
        scaling.critical_privacy_power(*point[:3])
        for point, found in _stated(parameters.draws)
        if (found.case <= 2) == schedule_limited
    ]
    return {"least_critical_power": min(powers), "largest_critical_power": max(powers)}


@per(
    least_learning_rate="least exponent of the best learning rate among the points",
    largest_learning_rate="largest exponent of the best learning rate among the points",
    least_increment="least increment of the exponent of the risk along schedule powers",
    limit_error="largest distance of the exponent at a very large alpha to its limit",
    threshold_error="largest distance of the critical power at a very large alpha to its limit",
    limit_at_half="exponent of the risk for long schedules, phi = -1 and b = 1/2",
)
def over_points(parameters: Parameters) -> dict:
    """Learning rates of Theorem 4, and Corollary 6.1, as the power of the schedule grows."""
    optimal, points = scaling.optimal_exponent, _points(parameters.draws)
    rates = [found.learning_rate for _, found in _stated(parameters.draws)]
    schedules = np.concatenate([[0.0, 0.5], np.geomspace(1.0, 1e3, 60)])
    limits = {(phi, psi): 0.5 - phi / (2 * (2 - phi - psi)) for phi, psi, _, _ in points if phi > 0}
    return {
        "limit_at_half": scaling.limiting_exponent(-1.0, 0.0, 0.5),
        "least_learning_rate": min(rates),
        "largest_learning_rate": max(rates),
        "least_increment": min(
            np.diff([optimal(phi, psi, power, b).risk for power in schedules]).min()
            for phi, psi, _, b in points[: parameters.draws // 10]
        ),
        "limit_error": max(
            abs(optimal(phi, psi, FLAT, b).risk - scaling.limiting_exponent(phi, psi, b))
            for phi, psi, _, b in points
        ),
        "threshold_error": max(
            abs(scaling.critical_privacy_power(*powers, FLAT) - limit)
            for powers, limit in limits.items()
        ),
    }


@per("signal_power", threshold_near_one="critical privacy power at phi = 0.999, long schedules")
def threshold_near_one(signal_power: float) -> float:
    return float(scaling.critical_privacy_power(0.999, signal_power, FLAT))


theory = stage(AXES, blocks_of=globals())


def _stated(draws: int) -> list[tuple[np.ndarray, scaling.OptimalExponent]]:
    """Points, and the theorem's value at each."""
    return [(point, scaling.optimal_exponent(*point)) for point in _points(draws)]


def _points(draws: int) -> np.ndarray:
    """Low-discrepancy points of the theorem's domain, a fifth of them on phi (alpha + 1) = 2."""
    # Powers of the root of x^5 = x + 1.
    steps = 1.1673039782614187 ** -np.arange(1.0, 5.0)
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


def _search(powers: Sequence[float] | np.ndarray, terms: int = 3) -> tuple[float, float]:
    """Best learning rate and its exponent: the concave minimum of the terms on repeated grids.

    The last of the three terms is the private one.
    """
    low, high = -1.0, 0.0
    for _ in range(12):
        grid = np.linspace(low, high, 41)
        values = scaling.term_exponents(grid, **_named(powers))[:terms].min(axis=0)
        best = int(np.argmax(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    return float(grid[best]), float(values[best])


def _named(powers: Sequence[float] | np.ndarray) -> dict[str, float]:
    return dict(zip(POWERS, map(float, powers), strict=True))
