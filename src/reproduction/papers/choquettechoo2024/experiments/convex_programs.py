"""Bound on the risk of strongly convex problems over the condition number, by conic programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, Positive, SizeAxis, Some, StepSize

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Theorems 3.1 and E.1, Figure 3"
ALGORITHMS = ("dp_sgd", "dp_ftrl", "optimised")
MULTIPLIERS = ("sound", "printed")


class Parameters(Strict):
    """Smooth and strongly convex functions with L = G = d = rho = 1 and no sampling noise."""

    condition_numbers: SizeAxis = Field(description="kappa = L / mu.")
    step_sizes: Some[Annotated[StepSize, Field(lt=2)]] = Field(
        description="eta in units of 1/L, less than 2; the paper states none."
    )
    lags: Count = Field(description="Longest lag T_max of the multiplier; not stated.")
    damping_factors: Some[Positive] = Field(
        description="nu of nu-DP-FTRL over eta mu; the first is the one drawn."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """The bounds for each multiplier, and what a quadratic in the class makes of them."""
    import xarray as xr

    from privreg.theory.correlated_noise.convex_bound import SectorProgram, quadratic_envelope
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise
    from reproduction.experiment.progress import track

    kappa = parameters.condition_numbers.values()
    eta = np.asarray(parameters.step_sizes)
    factors = np.asarray(parameters.damping_factors)
    bound = np.zeros((len(MULTIPLIERS), len(eta), len(kappa), len(ALGORITHMS)))
    envelope = np.zeros_like(bound)
    tuned = np.zeros((len(eta), len(kappa), len(factors)))
    cases = [(i, j, k) for i in range(2) for j in range(len(eta)) for k in range(len(kappa))]
    for which, row, column in track(cases, total=len(cases), label="programs"):
        step, mu = float(eta[row]), 1 / float(kappa[column])
        program = SectorProgram(
            strong_convexity=mu,
            step_size=step,
            lags=parameters.lags,
            multiplier=MULTIPLIERS[which],
        )
        grid = program.frequencies
        powers = [
            StationaryNoise.damped_square_root(min(1.0, factor * step * mu)).power(grid)
            for factor in factors
        ]
        found = [program.bound(np.ones_like(grid)), program.bound(powers[0])]
        found.append(program.optimise(powers[0], tolerance=1e-4, most_rounds=6))
        least = quadratic_envelope(grid, strong_convexity=mu, smoothness=1.0, step_size=step)
        for place, result in enumerate(found):
            bound[which, row, column, place] = result.excess_risk
            sensitivity = result.weights @ (1 / result.power) / (2 * np.pi)
            variance = result.weights @ (result.power * least) / (2 * np.pi)
            envelope[which, row, column, place] = sensitivity * variance
        if which == 0:
            tuned[row, column, 0] = found[1].excess_risk
            for place, power in enumerate(powers[1:], start=1):
                tuned[row, column, place] = program.bound(power).excess_risk
    dims = ("multiplier", "step_size", "condition_number", "algorithm")
    ratio = bound[..., 0] / bound[..., 1]
    slope = np.diff(np.log(bound[:, :, [0, -1]]), axis=2)[:, :, 0] / np.log(kappa[-1] / kappa[0])
    return xr.Dataset(
        {
            "bound": variable(dims, bound, "bound on the excess risk, equation (10)"),
            "gap": variable(
                dims[:3], bound[..., 0] - bound[..., 1], "bound of DP-SGD less that of nu-DP-FTRL"
            ),
            "ratio": variable(dims[:3], ratio, "bound of DP-SGD over that of nu-DP-FTRL"),
            "growth": variable(
                ("multiplier", "step_size", "algorithm"),
                slope,
                "log-log slope of the bound over the condition number, between the ends",
            ),
            "over_envelope": variable(
                dims, bound / envelope, "bound over what quadratics alone force"
            ),
            "quadratic_envelope": variable(
                dims, envelope, "the least that any valid response gives for this correlation"
            ),
            "damped_bound": variable(
                ("step_size", "condition_number", "damping_factor"),
                tuned,
                "bound of nu-DP-FTRL, sound multipliers",
            ),
        },
        coords={
            "multiplier": variable("multiplier", list(MULTIPLIERS), "sign of the multiplier"),
            "step_size": variable("step_size", eta, "step size eta, in units of 1/L"),
            "condition_number": variable("condition_number", kappa, "condition number L/mu"),
            "algorithm": variable("algorithm", list(ALGORITHMS), "algorithm"),
            "damping_factor": variable("damping_factor", factors, "nu / (eta mu)"),
        },
    )
