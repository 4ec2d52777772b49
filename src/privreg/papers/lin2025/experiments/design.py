"""The four readings of the ambiguous design of lin2025, and their risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import PositiveDeviation, Some
from privreg.papers.lin2025.setting import READINGS, Design, noise_coordinate

if TYPE_CHECKING:
    import xarray as xr


PLACE = "Section 5, Simulation Setup"


class Parameters(Strict):
    """Section 5: the four readings side by side."""

    design: Design
    gradient_noise_stds: Some[PositiveDeviation] = Field(description="Gradient noise sigma.")


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
    for r, reading in enumerate(readings):
        design = parameters.design.model_copy(update={"reading": reading})
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
            "label_variance_factor": variable(
                (),
                clipped_normal_variance(parameters.design.label_noise_clip),
                "variance of the clipped label noise over the nominal one",
            ),
        },
        coords={
            "reading": variable("reading", readings, "reading of the design"),
            "gradient_noise_std": noise_coordinate(parameters.gradient_noise_stds),
        },
    )
