"""The four readings of the ambiguous design of lin2025, and their risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import Dimension, PositiveDeviation, Some
from privreg.papers.lin2025.setting import READINGS, Design, noise_coordinate

if TYPE_CHECKING:
    import xarray as xr


PLACE = "Section 5, Simulation Setup"


class Parameters(Strict):
    """Section 5: the four readings side by side."""

    design: Design
    gradient_noise_stds: Some[PositiveDeviation] = Field(description="Gradient noise sigma.")
    dimensions: Some[Dimension] = Field(
        [100, 1000, 10000], description="Dimensions at which assumptions are seen."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """What the theory says of the risk in each reading, averaged over ground truths and starts."""
    import xarray as xr

    from privreg.algorithms.noisy_sgd import clipped_normal_variance
    from privreg.schedules import ConstantRate
    from privreg.theory.noisy_sgd.closed_forms import stationary_risk
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD

    readings = list(READINGS)
    rate = parameters.design.dimension * parameters.design.step_size
    shape = (len(readings), len(parameters.gradient_noise_stds))
    risk, stationary, spread = np.empty(shape), np.empty(shape), np.empty(shape)
    top, initial, signal, unscaled = np.empty((4, len(readings)))
    moment, target = np.empty((2, len(readings), len(parameters.dimensions)))
    for r, reading in enumerate(readings):
        design = parameters.design.model_copy(update={"reading": reading})
        for d, dimension in enumerate(parameters.dimensions):
            mean, std = design.model_copy(update={"dimension": dimension}).coordinate
            moment[r, d] = std**2 + dimension * mean**2
            target[r, d] = np.sqrt(dimension * (std**2 + mean**2))
        problem = design.mean_problem()
        weights = problem.multiplicities
        top[r] = problem.eigenvalues[0] / problem.eigenvalues[-1]
        initial[r] = problem.risk(problem.initial)
        variance = weights @ (problem.eigenvalues * problem.target**2)
        signal[r] = np.sqrt(variance) / design.label_noise_std
        slow = HomogenisedSGD(
            problem,
            ConstantRate(design.step_size),
            gradient_noise_std=parameters.gradient_noise_stds[-1],
            horizon=design.horizon,
        )
        unscaled[r] = slow.risk(design.horizon) / initial[r]
        for s, gradient_noise_std in enumerate(parameters.gradient_noise_stds):
            law = design.law(problem, gradient_noise_std)
            risk[r, s] = law.risk(design.horizon)
            stationary[r, s] = stationary_risk(
                problem, rate=rate, gradient_noise_std=gradient_noise_std
            )
            squares = problem.eigenvalues**2 * law.variance(design.horizon)
            bias = (law.mean(design.horizon) - problem.target) ** 2
            square = weights @ (squares * (0.5 * law.variance(design.horizon) + bias))
            spread[r, s] = np.sqrt(square) / risk[r, s]
    both = ("reading", "gradient_noise_std")
    return xr.Dataset(
        {
            "final_risk": variable(both, risk, "mean population risk after the last step"),
            "stationary_risk": variable(both, stationary, "limit of the population risk"),
            "final_spread": variable(
                both, spread, "standard deviation over mean of one run's risk after the last step"
            ),
            "initial_risk": variable("reading", initial, "mean population risk of the start"),
            "condition": variable(
                "reading", top, "largest eigenvalue of the second moment over the other ones"
            ),
            "signal_to_noise": variable(
                "reading", signal, "standard deviation of the label's signal over its noise"
            ),
            "unscaled_descent": variable(
                "reading",
                unscaled,
                "final over initial risk if the step were the scaled rate, largest noise",
            ),
            "second_moment_norm": variable(
                ("reading", "dimension"), moment, "spectral norm of the features' second moment"
            ),
            "target_norm": variable(
                ("reading", "dimension"), target, "root mean square norm of the ground truth"
            ),
            "label_noise_norm": variable(
                "dimension",
                parameters.design.scaled_label_noise_std
                * _sub_gaussian_norm(parameters.design.label_noise_clip)
                / np.sqrt(parameters.dimensions),
                "sub-Gaussian norm of the clipped label noise",
            ),
            "label_variance_factor": variable(
                (),
                clipped_normal_variance(parameters.design.label_noise_clip),
                "variance of the clipped label noise over the nominal one",
            ),
        },
        coords={
            "reading": variable("reading", readings, "reading of the design"),
            "gradient_noise_std": noise_coordinate(parameters.gradient_noise_stds),
            "dimension": variable("dimension", parameters.dimensions, "dimension d"),
        },
    )


def _sub_gaussian_norm(clip: float) -> float:
    """Least t with E exp(w^2 / t^2) <= 2 for a standard normal w that is set to +-clip beyond."""
    from math import erfc, exp, pi, sqrt

    from scipy.integrate import quad
    from scipy.optimize import brentq

    def excess(t: float) -> float:
        inside = quad(lambda w: exp(w**2 / t**2 - w**2 / 2), 0.0, clip)[0] * sqrt(2 / pi)
        return inside + exp(clip**2 / t**2) * erfc(clip / sqrt(2)) - 2.0

    return float(brentq(excess, 0.5, 3.0, xtol=1e-12))
