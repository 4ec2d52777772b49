"""Optimised risks of isotropic DP-GD as the aspect ratio goes to zero, against the stated rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from privreg import spectra
from privreg.schedules import Polynomial
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, DataArray, Dataset, per, stage
from reproduction.papers.bombari2025 import equivalent, setting

if TYPE_CHECKING:
    from privreg.theory.one_pass_dpgd.rate_search import Best

PLACE = "Propositions 5.1 and 5.2, Theorems 2 and 3, equations (5.12), (5.17), (5.19) and (D.78)"
GROWING = "alpha=lnln(1/gamma)"
# alpha of (5.16), whose bounds are linear and quadratic in it.
EXPONENTS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)


class Penalty(Strict):
    """A problem over which the clipping constant is swept."""

    aspect_ratio: q.AspectRatio = Field(description="gamma = d / n.")
    budget: q.StatedBudget = Field(description="Budget of the private output.")
    exponent: q.Power = Field(description="Exponent alpha of the schedule.")

    def __str__(self) -> str:
        return f"rho={self.budget.root:g}, gamma={self.aspect_ratio:g}"


class Parameters(setting.Clipped):
    """Optimised risks over aspect ratios, and sweeps of the clipping constant."""

    aspect_ratios: q.Several[q.AspectRatio] = Field(description="gamma = d / n, decreasing.")
    budgets: q.Some[q.StatedBudget] = Field(description="Budgets that stay fixed.")
    privacy_power: q.Share = Field(
        description="Power b of rho = gamma^b, more than 1/2: private noise dominates."
    )
    exponents: q.Several[q.Power] = Field(description="Exponents alpha of the schedules.")
    log_power_aspect_ratios: tuple[setting.TinyRatio, setting.TinyRatio] = Field(
        description="Two values of gamma, tiny and decreasing, between which powers of "
        "ln(1/gamma) are measured."
    )
    penalties: q.Some[Penalty] = Field(description="Sweeps of the clipping constant.")
    penalty_clip_constants: q.Several[q.ClipConstant] = Field(
        description="Clipping constants swept."
    )

    @property
    def shapes(self) -> dict[str, float | str]:
        return setting.shapes(self.exponents, GROWING)

    @property
    def privacy_labels(self) -> list[str]:
        fixed = [f"rho={budget.root:g}" for budget in self.budgets]
        return [*fixed, f"rho=gamma^{self.privacy_power:g}"]

    @property
    def regimes(self) -> list[str]:
        return [self.privacy_labels[0], self.privacy_labels[-1]]

    def root(self, label: str, gamma: float) -> float:
        fixed = dict(zip(self.privacy_labels, self.budgets, strict=False))
        return fixed[label].root if label in fixed else gamma**self.privacy_power


AXES = {
    "zcdp_root": Axis("privacy rho of the output", "privacy_labels"),
    "schedule": setting.SCHEDULE,
    "aspect_ratio": setting.ASPECT_RATIO,
    "polynomial": Axis("exponent alpha of a polynomial schedule", "exponents"),
    "regime": Axis("privacy rho of the output", "regimes"),
    "problem": Axis("problem of a sweep", lambda parameters: [*map(str, parameters.penalties)]),
}


@per(
    "zcdp_root",
    "schedule",
    "aspect_ratio",
    risk="least excess risk over the schedule's parameters",
    risk_over_rate="least excess risk divided by the stated rate",
    product="clipping constant times the best amplitude of the schedule",
)
def tuned(parameters: Parameters, zcdp_root: str, schedule: str, aspect_ratio: float) -> dict:
    shape, rho = parameters.shapes[schedule], parameters.root(zcdp_root, aspect_ratio)
    best = _tuned(parameters, shape, aspect_ratio, rho)
    log = np.log(1 / aspect_ratio)
    grown = np.log(log) if shape == GROWING else setting.growth(shape, aspect_ratio)
    growth = aspect_ratio * grown
    return {
        "risk": best.final_risk,
        "risk_over_rate": best.final_risk / (growth + (growth / rho) ** 2),
        "product": parameters.clip_constant * np.asarray(best.schedule.amplitude).item(),
    }


@per(
    "zcdp_root",
    "schedule",
    rate_trend="log ratio between the two smallest gammas of the risk divided by the stated rate",
)
def rate_trend(earlier: Dataset, **cell: str) -> float:
    late = _late(earlier.risk_over_rate.sel(cell)).values
    return np.log(late[-1] / late[-2])


@per(
    "zcdp_root",
    advantage_slope="slope in ln ln(1/gamma) of the log ratio of the risks at alpha = 1/2 and 0",
)
def advantage_slope(earlier: Dataset, **cell: str) -> float:
    late = _late(earlier.risk.sel(cell))
    half, constant = (late.sel(schedule=name).values for name in ("alpha=0.5", "alpha=0"))
    loglog = np.log(np.log(1 / late.aspect_ratio.values))
    return np.polyfit(loglog, np.log(half / constant), 1)[0]


@per(
    "polynomial",
    share_of_matched="sampling term of (5.16) divided by that of (5.3)",
    product_bend="increment per ln(1/gamma) of the best product of constant and rate: last decade "
    "of gamma divided by first, at the first rho",
)
def product_bend(earlier: Dataset, polynomial: float) -> dict:
    late = _late(earlier.product.isel(zcdp_root=0).sel(schedule=f"alpha={polynomial:g}"))
    logs = np.log(1 / late.aspect_ratio.values)
    bend = (np.diff(late)[-1] / np.diff(logs)[-1]) / (np.diff(late)[0] / np.diff(logs)[0])
    return {"share_of_matched": polynomial / max(polynomial, 1), "product_bend": bend}


@per(
    "zcdp_root",
    "aspect_ratio",
    harmonic_excess="log ratio of the harmonic schedule's risk to the best polynomial schedule's",
    harmonic_over_floor="ratio of the harmonic schedule's risk to the private lower bound",
)
def harmonic(parameters: Parameters, earlier: Dataset, zcdp_root: str, aspect_ratio: float) -> dict:
    """The harmonic schedule against the polynomial ones, and against every estimator."""
    from privreg.theory.one_pass_dpgd import rates

    risk = earlier.risk.sel(zcdp_root=zcdp_root, aspect_ratio=aspect_ratio)
    polynomial = risk[: len(parameters.exponents)].values.min()
    own = risk.sel(schedule=setting.HARMONIC).item()
    noise = {"aspect_ratio": aspect_ratio, "label_noise_std": parameters.label_noise_std}
    private = rates.private_bound(zcdp_root=parameters.root(zcdp_root, aspect_ratio), **noise)
    # The two lower bounds hold for the same class, so their larger one does.
    bound = max(float(private), float(rates.statistical_bound(**noise)))
    return {"harmonic_excess": np.log(own / polynomial), "harmonic_over_floor": own / bound}


@per(
    "regime",
    "schedule",
    log_power="power of ln(1/gamma) in the least risk divided by gamma + gamma^2 / rho^2",
)
def log_power(parameters: Parameters, regime: str, schedule: str) -> float:
    """Power of the logarithm for the first fixed privacy, and where private noise dominates."""
    shape = parameters.shapes[schedule]
    return _log_power(parameters, regime, lambda *at: _tuned(parameters, shape, *at).final_risk)


@per(
    "regime",
    "polynomial",
    stated_log_power="power of ln(1/gamma) in the risk at (5.2) and (5.15), divided by gamma + "
    "gamma^2 / rho^2",
    faster_log_power="the same power with ln(1/gamma)^(3/2) in (5.2) and (5.15)",
)
def stated(parameters: Parameters, regime: str, polynomial: float) -> dict:
    """Slopes at the paper's hyper-parameters, where no logarithm of a logarithm is left."""

    def power(of_log: float) -> float:
        def risk(gamma: float, rho: float) -> float:
            return _stated_risk(parameters, polynomial, gamma, rho, of_log)

        return _log_power(parameters, regime, risk)

    return {"stated_log_power": power(1.0), "faster_log_power": power(1.5)}


@per(
    "regime",
    best_exponent_growth="increment of the best alpha divided by that of ln ln(1/gamma), from "
    "gamma = 1e-8 to the smallest",
    heuristic_log_power="power of ln(1/gamma) in (least of (5.8)) / (gamma + gamma^2 / rho^2)",
)
def of_regime(parameters: Parameters, regime: str) -> dict:
    product = np.linspace(1, 300, 300_000)

    def heuristic(gamma: float, rho: float) -> float:
        forgotten = (0.5 - gamma * product) * np.exp(-product)
        return float(np.min(forgotten + gamma * product + (product * gamma / rho) ** 2))

    def best(gamma: float) -> float:
        at = gamma, parameters.root(regime, gamma)
        return min(np.arange(0.5, 4.6, 0.25), key=lambda a: _tuned(parameters, a, *at).final_risk)

    ratios = np.array([1e-8, parameters.log_power_aspect_ratios[-1]])
    growth = np.diff([*map(best, ratios)]).item() / np.diff(np.log(np.log(1 / ratios))).item()
    power = _log_power(parameters, regime, heuristic)
    return {"best_exponent_growth": growth, "heuristic_log_power": power}


@per(
    "regime",
    power_of_exponent="largest power of alpha in the risk at (5.15) divided by the logarithm's "
    "power in (5.16), between neighbouring alpha from 1 to 50",
)
def power_of_exponent(parameters: Parameters, regime: str) -> float:
    """Power of the exponent at the smallest ratio, in the leading term."""
    gamma = parameters.log_power_aspect_ratios[-1]
    leading = 2 if regime == parameters.regimes[-1] else 1
    risks = [
        _stated_risk(parameters, exponent, gamma, parameters.root(regime, gamma))
        / np.log(1 / gamma) ** (leading / (1 + exponent))
        for exponent in EXPONENTS
    ]
    return (np.diff(np.log(risks)) / np.diff(np.log(EXPONENTS))).max()


@per(
    "polynomial",
    private_clip_slope="log-log slope of the least risk in clipping constants from 1 on, where "
    "private noise dominates",
)
def private_clip_slope(parameters: Parameters, polynomial: float) -> float:
    """Slope at the smallest ratio, where powers of logarithms are nearly constant."""
    gamma = parameters.log_power_aspect_ratios[-1]
    constants = np.array([c for c in parameters.penalty_clip_constants if c >= 1])
    rho = gamma**parameters.privacy_power
    risks = [_tuned(parameters, polynomial, gamma, rho, c).final_risk for c in constants]
    return np.polyfit(np.log(constants), np.log(risks), 1)[0]


@per(
    "problem",
    small_clip_spread="largest divided by least risk among clipping constants up to 0.1",
    large_clip_slope="log-log slope of the risk in clipping constants from 1 on",
)
def penalties(parameters: Parameters, problem: str) -> dict:
    (case,) = (each for each in parameters.penalties if str(each) == problem)
    at = case.exponent, case.aspect_ratio, case.budget.root
    constants = np.array(parameters.penalty_clip_constants)
    risk = np.array([_tuned(parameters, *at, constant).final_risk for constant in constants])
    small, large = risk[constants <= 0.1 * (1 + 1e-9)], constants >= 1
    slope = np.polyfit(np.log(constants[large]), np.log(risk[large]), 1)[0]
    return {"small_clip_spread": small.max() / small.min(), "large_clip_slope": slope}


theory = stage(AXES, blocks_of=globals())


def _late(array: DataArray) -> DataArray:
    """Values at gamma up to 1e-3."""
    return array.sel(aspect_ratio=array.aspect_ratio <= 1e-3 * (1 + 1e-9))


def _log_power(parameters: Parameters, regime: str, risk: Callable[[float, float], float]) -> float:
    """Power of ln(1/gamma) in risk / (gamma + gamma^2 / rho^2), between two tiny ratios."""
    logs = []
    for gamma in parameters.log_power_aspect_ratios:
        rho = parameters.root(regime, gamma)
        logs.append(np.log(risk(gamma, rho) / (gamma + (gamma / rho) ** 2)))
    first, second = np.log(parameters.log_power_aspect_ratios)
    return (logs[1] - logs[0]) / np.log(second / first)


def _stated_risk(
    parameters: Parameters, exponent: float, gamma: float, rho: float, of_log: float = 1.0
) -> float:
    """Risk at the rate of (5.2) and (5.15), or with another power of its logarithm."""
    product = setting.FACTOR * max(exponent, 1.0) * np.log(1 / gamma) ** of_log
    schedule = Polynomial(product / parameters.clip_constant, exponent)
    found = equivalent.solve(parameters, spectra.isotropic(), schedule, gamma, rho, times=[1.0])
    return found.final_risk.item()


def _tuned(parameters: Parameters, shape: float | str, gamma: float, *at: float) -> Best:
    if shape == GROWING:
        shape = float(np.log(np.log(1 / gamma)))
    return equivalent.tuned(parameters, spectra.isotropic(), shape, gamma, *at)
