"""The four readings of the ambiguous design of lin2025, and their risk."""

from __future__ import annotations

from math import erfc, exp, pi, sqrt

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.diffusion import stationary_risk
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, per, stage
from reproduction.papers.lin2025.setting import NOISE, READINGS, Design, Reading

PLACE = "Section 5, Simulation Setup"


class Parameters(Strict):
    """Section 5: the four readings side by side."""

    design: Design
    gradient_noise_stds: q.Some[q.PositiveDeviation] = Field(description="Gradient noise sigma.")
    dimensions: q.Some[q.Dimension] = Field([100, 1000, 10000], description="Dimensions d.")

    def read(self, reading: Reading, **changes: int) -> Design:
        """The design in one of its readings."""
        return self.design.model_copy(update={"reading": reading, **changes})


AXES = {
    "reading": Axis("reading of the design", list(READINGS)),
    "gradient_noise_std": NOISE,
    "dimension": Axis("dimension d", "dimensions"),
}


@per(
    "reading",
    "gradient_noise_std",
    early_risk="mean population risk after a third of the steps",
    final_risk="mean population risk after the last step",
    stationary_risk="limit of the population risk",
    final_spread="standard deviation of one run's risk after the last step, divided by its mean",
)
def final(parameters: Parameters, reading: Reading, gradient_noise_std: float) -> dict:
    """Predicted risk, averaged over ground truths and starts."""
    design = parameters.read(reading)
    problem = design.mean_problem()
    law = design.law(problem, gradient_noise_std)
    risk, variance = law.risk(design.horizon), law.variance(design.horizon)
    bias = (law.mean(design.horizon) - problem.target) ** 2
    squares = problem.eigenvalues**2 * variance
    spread = np.sqrt(problem.multiplicities @ (squares * (0.5 * variance + bias)))
    stationary = stationary_risk(
        problem, rate=design.dimension * design.step_size, gradient_noise_std=gradient_noise_std
    )
    found = {"final_risk": risk, "stationary_risk": stationary, "final_spread": spread / risk}
    return found | {"early_risk": law.risk(design.horizon / 3)}


@per(
    "reading",
    initial_risk="mean population risk of the start",
    zero_risk="mean population risk of the zero vector, which needs no data",
    condition="largest eigenvalue of the second moment divided by the other ones",
    signal_to_noise="standard deviation of the label's signal divided by its noise's",
    unscaled_descent="final / initial risk if the step were the scaled rate, largest noise",
)
def start(parameters: Parameters, reading: Reading) -> dict:
    """The problem and the distance covered by one step at the scaled rate."""
    design = parameters.read(reading)
    problem = design.mean_problem()
    initial = problem.risk(problem.initial)
    variance = problem.multiplicities @ (problem.eigenvalues * problem.target**2)
    slow = design.law(problem, parameters.gradient_noise_stds[-1], rate=design.step_size)
    return {
        "initial_risk": initial,
        "zero_risk": problem.risk(np.zeros_like(problem.target)),
        "condition": problem.eigenvalues[0] / problem.eigenvalues[-1],
        "signal_to_noise": np.sqrt(variance) / design.label_noise_std,
        "unscaled_descent": slow.risk(design.horizon) / initial,
    }


@per(
    "reading",
    "dimension",
    second_moment_norm="spectral norm of the features' second moment",
    target_norm="root mean square norm of the ground truth",
)
def norms(parameters: Parameters, reading: Reading, dimension: int) -> dict:
    """Norms that the assumptions bound."""
    mean, std = parameters.read(reading, dimension=dimension).coordinate
    return {
        "second_moment_norm": std**2 + dimension * mean**2,
        "target_norm": np.sqrt(dimension * (std**2 + mean**2)),
    }


@per("dimension", label_noise_norm="sub-Gaussian norm of the clipped label noise")
def label_noise_norm(parameters: Parameters) -> np.ndarray:
    design = parameters.design
    norm = design.scaled_label_noise_std * _sub_gaussian_norm(design.label_noise_clip)
    return norm / np.sqrt(parameters.dimensions)


@per(label_variance_factor="variance of the clipped label noise divided by the nominal one")
def label_variance_factor(parameters: Parameters) -> float:
    from privreg.algorithms.noisy_sgd import clipped_normal_variance

    return clipped_normal_variance(parameters.design.label_noise_clip)


theory = stage(AXES, blocks_of=globals())


def _sub_gaussian_norm(clip: float) -> float:
    """Least t with E exp(w^2 / t^2) <= 2 for a standard normal w that is set to +-clip beyond."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    def excess(t: float) -> float:
        inside = quad(lambda w: exp(w**2 / t**2 - w**2 / 2), 0.0, clip)[0] * sqrt(2 / pi)
        return inside + exp(clip**2 / t**2) * erfc(clip / sqrt(2)) - 2.0

    return float(brentq(excess, 0.5, 3.0, xtol=1e-12))
