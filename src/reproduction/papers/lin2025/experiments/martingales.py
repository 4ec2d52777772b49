"""How fast the martingales of the proofs fall, and with them the distance to the diffusion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from reproduction.experiment.cells import Axis, Estimate, Quantity, means, per, stage, trials_last
from reproduction.experiment.summaries import loglog_slope
from reproduction.papers.lin2025.experiments import scaling

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.noisy_sgd.diffusion import RidgeRegression
    from reproduction.experiment.trials import Trials

PLACE = "Theorems 3.1, 4.1 and A.3, Lemmas A.2, A.4, B.1 and B.2"
# Each is the largest absolute value along a path; martingales are those of q(v) = |v|^2 / 2.
QUANTITIES = {
    "risks": "distance of the risks of noisy SGD and of an independent diffusion",
    "risks_without_noise": "distance of these risks without private noise",
    "concentration": "distance of the diffusion's risk to its mean",
    "risk": "risk of the diffusion",
    "linear": "linear martingale of the records, without private noise",
    "quadratic": "quadratic martingale of the records, without private noise",
    "predictable": "predictable error, without private noise",
    "diffusion": "martingale of the diffusion, without private noise",
    "private_linear": "linear martingale of the private noise",
    "private_diffusion": "martingale of the diffusion with private noise",
    "expansion": "sum of the absolute values of the two martingales of Appendix B",
}


class Parameters(scaling.Parameters):
    """The problems of `scaling`."""


AXES = {
    "quantity": Axis(
        "what is followed. "
        + "; ".join(f"{name}: {meaning}" for name, meaning in QUANTITIES.items()),
        list(QUANTITIES),
    ),
    **scaling.AXES,
}


@per("dimension", largest=Quantity("largest absolute value along the path", "quantity"))
def run(parameters: Parameters, trials: Trials, dimension: int) -> Iterator[list[float]]:
    """Noisy SGD and the nonlinear diffusion side by side, without and with private noise."""
    problem, steps = parameters.problem(dimension), parameters.steps(dimension)
    mean_risk = parameters.law(problem).risk(np.arange(1, steps + 1) / dimension)
    for trial in trials:
        sgd_risk, sgd = _noisy_sgd(problem, parameters, steps, trial.rng)
        diffusion_risk, diffusion = _diffusion(problem, parameters, steps, trial.rng)
        without_noise, with_noise = np.abs(sgd_risk - diffusion_risk).max(axis=1)
        largest = {
            "risks_without_noise": without_noise,
            "risks": with_noise,
            "concentration": np.abs(diffusion_risk[1] - mean_risk).max(),
            "risk": diffusion_risk[1].max(),
            **sgd,
            **diffusion,
        }
        yield [largest[name] for name in QUANTITIES]


@per("quantity", slope=Estimate("log-log slope of the mean in d"))
def slope(parameters: Parameters, simulation: xr.Dataset) -> tuple:
    largest = simulation.largest.transpose("quantity", "dimension", "trial")
    return loglog_slope(parameters.dimensions, trials_last(largest))


simulate = stage(AXES, run)
summarise = stage(AXES, means(run), slope)


def _noisy_sgd(
    problem: RidgeRegression, parameters: Parameters, steps: int, rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, float]]:
    """Risks without and with private noise, shape (2, steps), and the terms of Lemma A.1.

    Features are Gaussian, so that the conditional means are closed: E[D] = Sigma v / d and
    d^2 E|D|^2 = (v' Sigma v + zeta^2) tr Sigma + 2 v' Sigma^2 v with D = a (a' v - xi) / d.
    """
    dimension, rate = problem.eigenvalues.size, parameters.rate
    eigenvalues, root = problem.eigenvalues, np.sqrt(problem.eigenvalues)
    label_variance, trace = problem.label_noise_std**2, problem.eigenvalues.sum()
    noise_stds = np.array([[0.0], [parameters.gradient_noise_std]]) / dimension
    error = np.tile(problem.initial - problem.target, (2, 1))
    risk = np.empty((2, steps))
    linear, quadratic, predictable, private = np.empty((4, steps))
    for k in range(steps):
        features = root * rng.standard_normal(dimension)
        label_noise = parameters.scaled_label_noise_std * rng.standard_normal()
        noise = noise_stds * rng.standard_normal(dimension)
        pull = problem.ridge / dimension * (error + problem.target)
        sample = (error @ features - label_noise)[:, None] * features / dimension
        mean_sample = eigenvalues * error / dimension
        energy = error**2 @ eigenvalues + label_variance
        square = sample[0] @ sample[0]
        spread = 2.0 * dimension**2 * (mean_sample[0] @ mean_sample[0])
        mean_square = (energy[0] * trace + spread) / dimension**2
        linear[k] = (rate**2 * pull[0] - rate * error[0]) @ (sample[0] - mean_sample[0])
        quadratic[k] = 0.5 * rate**2 * (square - mean_square)
        drift = pull[0] + mean_sample[0]
        excess = mean_square - trace * energy[0] / dimension**2
        predictable[k] = 0.5 * rate**2 * (drift @ drift + excess)
        private[k] = (rate**2 * (pull[1] + sample[1]) - rate * error[1]) @ noise[1]
        error = error - rate * (pull + sample + noise)
        risk[:, k] = 0.5 * (error**2 @ eigenvalues + label_variance)
    terms = {
        "linear": linear,
        "quadratic": quadratic,
        "predictable": predictable,
        "private_linear": private,
    }
    return risk, {name: _largest(term) for name, term in terms.items()}


def _diffusion(
    problem: RidgeRegression, parameters: Parameters, steps: int, rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, float]]:
    """Risks of equation (1) without and with private noise, and its martingales.

    Steps of 1/d with the risk held in each: drift and variance are then exact.
    """
    dimension, rate = problem.eigenvalues.size, parameters.rate
    eigenvalues, target = problem.eigenvalues, problem.target
    decay = np.exp(-rate * problem.curvatures / dimension)
    width = rate * (1.0 - decay**2) / (2.0 * problem.curvatures * dimension)
    noise_variances = np.array([[0.0], [parameters.gradient_noise_std**2]])
    state = np.tile(problem.initial, (2, 1))
    flow = problem.initial.copy()
    variance = np.zeros(dimension)
    risk = np.empty((2, steps))
    martingale, expansion = np.empty((2, steps)), np.empty(steps)
    level = problem.risk(state)
    for k in range(steps):
        scale = width * (2.0 * level[:, None] * eigenvalues + noise_variances)
        kick = np.sqrt(scale) * rng.standard_normal(dimension)
        martingale[:, k] = ((state - target) * kick).sum(axis=1)
        state = problem.minimiser + decay * (state - problem.minimiser) + kick
        flow = problem.minimiser + decay * (flow - problem.minimiser)
        variance = decay**2 * variance + scale[1]
        displacement = state[1] - flow
        first = (eigenvalues * (flow - target)) @ displacement
        second = 0.5 * eigenvalues @ (displacement**2 - variance)
        expansion[k] = abs(first) + abs(second)
        level = 0.5 * ((state - target) ** 2 @ eigenvalues + problem.label_noise_std**2)
        risk[:, k] = level
    return risk, {
        "diffusion": _largest(martingale[0]),
        "private_diffusion": _largest(martingale[1]),
        "expansion": float(expansion.max()),
    }


def _largest(increments: np.ndarray) -> float:
    return float(np.abs(np.cumsum(increments)).max())
