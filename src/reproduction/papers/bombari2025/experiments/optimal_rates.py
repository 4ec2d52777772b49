"""Optimised risks of isotropic DP-GD as the aspect ratio goes to zero, against the stated rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    AspectRatio,
    ClipConstant,
    PositiveDeviation,
    Power,
    Some,
    StatedBudget,
)

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.one_pass_dpgd.rate_search import Best

PLACE = "Propositions 5.1 and 5.2, Theorems 2 and 3, equations (5.12), (5.17), (5.19) and (D.78)"
HARMONIC, GROWING = "harmonic", "alpha=lnln(1/gamma)"


class Penalty(Strict):
    """A problem over which the clipping constant is swept."""

    aspect_ratio: AspectRatio = Field(description="gamma = d / n.")
    budget: StatedBudget = Field(description="Budget of the private output.")
    exponent: Power = Field(description="Exponent alpha of the schedule.")


class Parameters(Strict):
    """Optimised risks over aspect ratios, and sweeps of the clipping constant."""

    aspect_ratios: Annotated[Some[AspectRatio], Field(min_length=4)] = Field(
        description="gamma = d / n, decreasing."
    )
    budgets: Some[StatedBudget] = Field(description="Budgets that stay fixed.")
    privacy_power: Annotated[Power, Field(gt=0.5, lt=1)] = Field(
        description="Power b of rho = gamma^b, more than 1/2: private noise dominates."
    )
    exponents: Annotated[Some[Power], Field(min_length=2)] = Field(
        description="Exponents alpha of the schedules."
    )
    clip_constant: ClipConstant = Field(description="Clipping constant c.")
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )
    log_power_aspect_ratios: tuple[AspectRatio, AspectRatio] = Field(
        description="Two values of gamma, tiny and decreasing, between which powers of "
        "ln(1/gamma) are measured.",
    )
    penalties: Some[Penalty] = Field(description="Sweeps of the clipping constant.")
    penalty_clip_constants: Annotated[Some[ClipConstant], Field(min_length=4)] = Field(
        description="Clipping constants swept."
    )

    @model_validator(mode="after")
    def _compared(self) -> Self:
        missing = {0.0, 0.5} - set(self.exponents)
        if missing:
            raise ValueError(
                f"exponents must hold 0 and 0.5, which are compared, got {self.exponents}"
            )
        return self

    @property
    def schedules(self) -> list[str]:
        return [f"alpha={exponent:g}" for exponent in self.exponents] + [GROWING, HARMONIC]

    @property
    def privacy_labels(self) -> list[str]:
        return [f"rho={value:g}" for value in (budget.root for budget in self.budgets)] + [
            f"rho=gamma^{self.privacy_power:g}"
        ]

    def root(self, index: int, gamma: float) -> float:
        if index < len(self.budgets):
            return self.budgets[index].root
        return float(gamma**self.privacy_power)


def theory(parameters: Parameters) -> xr.Dataset:
    """Optimise every schedule at every aspect ratio, and compare."""
    import xarray as xr

    return xr.Dataset(
        _sweep(parameters) | _powers(parameters) | _penalty(parameters),
        coords={
            "zcdp_root": variable(
                "zcdp_root", parameters.privacy_labels, "privacy rho of the output"
            ),
            "schedule": variable("schedule", parameters.schedules, "schedule of the rate"),
            "aspect_ratio": variable(
                "aspect_ratio", parameters.aspect_ratios, "aspect ratio gamma = d / n"
            ),
            "problem": variable(
                "problem",
                [f"rho={p.budget.root:g}, gamma={p.aspect_ratio:g}" for p in parameters.penalties],
                "problem of a sweep",
            ),
            "clip_constant": variable(
                "clip_constant", parameters.penalty_clip_constants, "clipping constant c"
            ),
        },
    )


def _best(
    parameters: Parameters,
    schedule: str | float,
    *,
    gamma: float,
    zcdp_root: float,
    clip_constant: float | None = None,
) -> Best:
    from privreg import spectra
    from privreg.theory.one_pass_dpgd import rate_search

    problem = {
        "aspect_ratio": gamma,
        "zcdp_root": zcdp_root,
        "clip_constant": parameters.clip_constant if clip_constant is None else clip_constant,
        "label_noise_std": parameters.label_noise_std,
    }
    if schedule == HARMONIC:
        return rate_search.harmonic(spectra.isotropic(), **problem)
    exponent = np.log(np.log(1 / gamma)) if schedule == GROWING else float(schedule)
    return rate_search.polynomial(spectra.isotropic(), exponent=exponent, **problem)


def _sweep(parameters: Parameters) -> dict[str, tuple]:
    from privreg.theory.one_pass_dpgd import minimax_risk

    gammas = np.asarray(parameters.aspect_ratios)
    schedules: list[str | float] = [*parameters.exponents, GROWING, HARMONIC]
    shape = (len(parameters.privacy_labels), len(schedules), len(gammas))
    risk, rate, product = np.empty(shape), np.empty(shape), np.empty(shape)
    floor = np.empty((shape[0], shape[2]))
    for p, s, g in np.ndindex(shape):
        gamma = float(gammas[g])
        rho = parameters.root(p, gamma)
        best = _best(parameters, schedules[s], gamma=gamma, zcdp_root=rho)
        risk[p, s, g] = best.final_risk
        product[p, s, g] = parameters.clip_constant * np.asarray(best.schedule.amplitude).item()
        growth = _growth(schedules[s], gamma)
        rate[p, s, g] = gamma * growth + (gamma * growth / rho) ** 2
        # The two lower bounds hold for the same class, so their larger one does.
        floor[p, g] = max(
            float(
                minimax_risk.private_bound(
                    aspect_ratio=gamma, zcdp_root=rho, label_noise_std=parameters.label_noise_std
                )
            ),
            float(
                minimax_risk.statistical_bound(
                    aspect_ratio=gamma, label_noise_std=parameters.label_noise_std
                )
            ),
        )
    over = risk / rate
    small = gammas <= 1e-3 * (1 + 1e-9)
    late = over[..., small]
    polynomial = risk[:, : len(parameters.exponents)].min(axis=1)
    loglog = np.log(np.log(1 / gammas[small]))
    half, constant = parameters.exponents.index(0.5), parameters.exponents.index(0.0)
    advantage = np.log(risk[:, half] / risk[:, constant])[:, small]
    products = product[0, : len(parameters.exponents)][:, small]
    logs = np.log(1 / gammas[small])
    grid = ("zcdp_root", "schedule", "aspect_ratio")
    return {
        "risk": variable(grid, risk, "least excess risk over the schedule's parameters"),
        "risk_over_rate": variable(grid, over, "least excess risk over the stated rate"),
        "product": variable(
            grid, product, "clipping constant times the best amplitude of the schedule"
        ),
        "rate_spread": variable(
            grid[:2],
            late.max(axis=-1) / late.min(axis=-1),
            "largest over least ratio of the risk to the stated rate, for gamma up to 1e-3",
        ),
        "rate_trend": variable(
            grid[:2],
            np.log(late[..., -1] / late[..., -2]),
            "log ratio of the risk over the stated rate between the two smallest gammas",
        ),
        "advantage_slope": variable(
            "zcdp_root",
            np.polyfit(loglog, advantage.T, 1)[0],
            "slope in ln ln(1/gamma) of the log ratio of the risks at alpha = 1/2 and 0",
        ),
        "product_linearity": variable(
            "polynomial",
            [np.corrcoef(logs, row)[0, 1] for row in products],
            "correlation of the best product of constant and rate with ln(1/gamma), first privacy",
        ),
        "product_slope": variable(
            "polynomial",
            np.polyfit(logs, products.T, 1)[0],
            "slope in ln(1/gamma) of the best product of constant and rate, first privacy",
        ),
        "polynomial": variable(
            "polynomial", parameters.exponents, "exponent alpha of a polynomial schedule"
        ),
        "harmonic_excess": variable(
            ("zcdp_root", "aspect_ratio"),
            np.log(risk[:, -1] / polynomial),
            "log ratio of the harmonic schedule's risk to the best polynomial schedule's",
        ),
        "harmonic_over_floor": variable(
            ("zcdp_root", "aspect_ratio"),
            risk[:, -1] / floor,
            "risk of the harmonic schedule over the lower bound for every private estimator",
        ),
    }


def _growth(schedule: str | float, gamma: float) -> float:
    """What the square root of the private, and the sampling, part of a rate has beyond gamma."""
    if schedule == HARMONIC:
        return 1.0
    log = np.log(1 / gamma)
    if schedule == GROWING:
        return float(np.log(log))
    exponent = float(schedule)
    return float(max(exponent, 1.0) * log ** (1 / (1 + exponent)))


def _powers(parameters: Parameters) -> dict[str, tuple]:
    """For the first fixed privacy, and where private noise dominates."""
    first, second = parameters.log_power_aspect_ratios
    found = np.empty((2, len(parameters.exponents)))
    for at, index in enumerate((0, len(parameters.budgets))):
        for a, exponent in enumerate(parameters.exponents):
            logs = []
            for gamma in (first, second):
                rho = parameters.root(index, gamma)
                risk = _best(parameters, exponent, gamma=gamma, zcdp_root=rho).final_risk
                logs.append(np.log(risk / (gamma + (gamma / rho) ** 2)))
            found[at, a] = (logs[1] - logs[0]) / np.log(np.log(second) / np.log(first))
    labels = [parameters.privacy_labels[0], parameters.privacy_labels[-1]]
    return {
        "log_power": variable(
            ("regime", "polynomial"),
            found,
            "power of ln(1/gamma) in the least risk over gamma + gamma^2 / rho^2",
        ),
        "regime": variable("regime", labels, "privacy rho of the output"),
    }


def _penalty(parameters: Parameters) -> dict[str, tuple]:
    clip_constants = np.asarray(parameters.penalty_clip_constants)
    risk = np.array(
        [
            [
                _best(
                    parameters,
                    p.exponent,
                    gamma=p.aspect_ratio,
                    zcdp_root=p.budget.root,
                    clip_constant=float(c),
                ).final_risk
                for c in clip_constants
            ]
            for p in parameters.penalties
        ]
    )
    small, large = clip_constants <= 0.1 * (1 + 1e-9), clip_constants >= 1
    return {
        "penalty_risk": variable(
            ("problem", "clip_constant"),
            risk,
            "least excess risk over the rate at a clipping constant",
        ),
        "small_clip_spread": variable(
            "problem",
            risk[:, small].max(axis=1) / risk[:, small].min(axis=1),
            "largest over least risk among clipping constants up to 0.1",
        ),
        "large_clip_slope": variable(
            "problem",
            np.polyfit(np.log(clip_constants[large]), np.log(risk[:, large]).T, 1)[0],
            "log-log slope of the risk in the clipping constant from 1",
        ),
    }
