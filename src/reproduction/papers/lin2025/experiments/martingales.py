"""Decay of the proofs' martingales, and of the distance to the diffusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from privreg.theory.noisy_sgd.diffusion import RidgeRegression
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trials, means, per, stage
from reproduction.engine.summaries import loglog_slope, trials_last
from reproduction.engine.trials import normals, side_by_side
from reproduction.papers.lin2025.experiments.scaling import DIMENSION, Parameters

PLACE = "Theorems 3.1, 4.1 and A.3, Lemmas A.2, A.4, B.1 and B.2"
# Each is the largest absolute value along a path; martingales are those of q(v) = |v|^2 / 2.
QUANTITIES = {
    "risks": "distance between the risks of noisy SGD and of an independent diffusion",
    "risks_without_noise": "distance between these risks without private noise",
    "concentration": "distance of the diffusion's risk to its mean",
    "regularised": "distance of the diffusion's regularised risk to its mean",
    "risk": "risk of the diffusion",
    "linear": "linear martingale of the records, without private noise",
    "quadratic": "quadratic martingale of the records, without private noise",
    "predictable": "predictable error, without private noise",
    "diffusion": "martingale of the diffusion, without private noise",
    "private_linear": "linear martingale of the private noise",
    "private_diffusion": "martingale of the diffusion with private noise",
    "expansion": "sum of the absolute values of the two martingales of Appendix B",
}
Generators = Sequence[np.random.Generator]
AXES = {
    "quantity": Axis(
        "what is followed. "
        + "; ".join(f"{name}: {meaning}" for name, meaning in QUANTITIES.items()),
        list(QUANTITIES),
    ),
    "dimension": DIMENSION,
}


@per("dimension", largest=Quantity("largest absolute value along the path", "quantity"))
def run(parameters: Parameters, trials: Trials, dimension: int) -> Iterator[list[float]]:
    """Noisy SGD and the nonlinear diffusion side by side, without and with private noise."""
    problem, steps = parameters.problem(dimension), parameters.steps(dimension)
    law, times = parameters.law(problem), np.arange(1, steps + 1) / dimension
    mean_risk, mean_regularised = law.risk(times), law.regularised_risk(times)
    for generators in side_by_side(trials):
        sgd_risk, sgd = _noisy_sgd(problem, parameters, steps, generators)
        diffusion_risk, regularised, diffusion = _diffusion(problem, parameters, steps, generators)
        without_noise, with_noise = np.abs(sgd_risk - diffusion_risk).max(axis=0)
        largest = {
            "risks_without_noise": without_noise,
            "risks": with_noise,
            "concentration": np.abs(diffusion_risk[:, 1] - mean_risk[:, None]).max(axis=0),
            "regularised": np.abs(regularised - mean_regularised[:, None]).max(axis=0),
            "risk": diffusion_risk[:, 1].max(axis=0),
            **sgd,
            **diffusion,
        }
        yield from np.stack([largest[name] for name in QUANTITIES], axis=-1).tolist()


@per("quantity", slope=Estimate("log-log slope of the mean in d"))
def slope(parameters: Parameters, simulation: Dataset) -> tuple:
    largest = simulation.largest.transpose("quantity", "dimension", "trial")
    return loglog_slope(parameters.dimensions, trials_last(largest))


simulate = stage(AXES, run)
summarise = stage(AXES, means(run), slope)


def _noisy_sgd(
    problem: RidgeRegression, parameters: Parameters, steps: int, generators: Generators
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Risks without and with private noise, (steps, 2, trials), and the terms of Lemma A.1.

    Features are Gaussian, so that the conditional means are closed: E[D] = Sigma v / d and
    d^2 E|D|^2 = (v' Sigma v + zeta^2) tr Sigma + 2 v' Sigma^2 v with D = a (a' v - xi) / d.
    """
    dimension, rate, trials = problem.eigenvalues.size, parameters.rate, len(generators)
    eigenvalues, root = problem.eigenvalues, np.sqrt(problem.eigenvalues)
    label_variance, trace = problem.label_noise_std**2, problem.eigenvalues.sum()
    noise_std = parameters.gradient_noise_std / dimension
    error = np.tile(problem.initial - problem.target, (2, trials, 1))
    risk = np.empty((steps, 2, trials))
    linear, quadratic, predictable, private = np.empty((4, steps, trials))
    energy = np.vecdot(error**2, eigenvalues) + label_variance
    for k, drawn in enumerate(normals(generators, steps, 2 * dimension + 1)):
        features = root * drawn[:, :dimension]
        label_noise = parameters.scaled_label_noise_std * drawn[:, dimension]
        noise = noise_std * drawn[:, dimension + 1 :]
        pull = error + problem.target
        pull *= problem.ridge / dimension
        sample = ((np.vecdot(error, features) - label_noise) / dimension)[..., None] * features
        mean_sample = eigenvalues / dimension * error[0]
        square = np.vecdot(sample[0], sample[0])
        excess = 2.0 * np.vecdot(mean_sample, mean_sample)
        mean_square = energy[0] * trace / dimension**2 + excess
        off = sample[0] - mean_sample
        linear[k] = rate**2 * np.vecdot(pull[0], off) - rate * np.vecdot(error[0], off)
        quadratic[k] = 0.5 * rate**2 * (square - mean_square)
        drift = pull[0] + mean_sample
        predictable[k] = 0.5 * rate**2 * (np.vecdot(drift, drift) + excess)
        taken = np.add(pull, sample, out=pull)
        private[k] = rate**2 * np.vecdot(taken[1], noise) - rate * np.vecdot(error[1], noise)
        taken[1] += noise
        taken *= rate
        error -= taken
        energy = np.vecdot(error**2, eigenvalues) + label_variance
        risk[k] = 0.5 * energy
    return risk, {
        "linear": _largest(linear),
        "quadratic": _largest(quadratic),
        "predictable": _largest(predictable),
        "private_linear": _largest(private),
    }


def _diffusion(
    problem: RidgeRegression, parameters: Parameters, steps: int, generators: Generators
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Risks and martingales of (1) without and with private noise; its regularised risk with it.

    The risk is constant in each step of 1/d; drift and variance are then exact.
    """
    dimension, rate, trials = problem.eigenvalues.size, parameters.rate, len(generators)
    eigenvalues, target = problem.eigenvalues, problem.target
    decay = np.exp(-rate * problem.curvatures / dimension)
    width = rate * (1.0 - decay**2) / (2.0 * problem.curvatures * dimension)
    spread, private = 2.0 * width * eigenvalues, width * parameters.gradient_noise_std**2
    state = np.tile(problem.initial, (2, trials, 1))
    flow, variance = problem.initial, np.zeros((trials, dimension))
    risk, martingale = np.empty((2, steps, 2, trials))
    expansion, regularised = np.empty((2, steps, trials))
    away = state - target
    level = 0.5 * (np.vecdot(away**2, eigenvalues) + problem.label_noise_std**2)
    for k, drawn in enumerate(normals(generators, steps, dimension)):
        scale = spread * level[..., None]
        scale[1] += private
        variance *= decay**2
        variance += scale[1]
        kick = np.sqrt(scale, out=scale)
        kick *= drawn
        martingale[k] = np.vecdot(away, kick)
        state -= problem.minimiser
        state *= decay
        state += problem.minimiser
        state += kick
        flow = problem.minimiser + decay * (flow - problem.minimiser)
        displacement = state[1] - flow
        first = np.vecdot(displacement, eigenvalues * (flow - target))
        square = np.vecdot(displacement**2, eigenvalues)
        second = 0.5 * (square - np.vecdot(variance, eigenvalues))
        expansion[k] = np.abs(first) + np.abs(second)
        away = state - target
        level = 0.5 * (np.vecdot(away**2, eigenvalues) + problem.label_noise_std**2)
        risk[k] = level
        regularised[k] = level[1] + 0.5 * problem.ridge * np.vecdot(state[1], state[1])
    return (
        risk,
        regularised,
        {
            "diffusion": _largest(martingale[:, 0]),
            "private_diffusion": _largest(martingale[:, 1]),
            "expansion": expansion.max(axis=0),
        },
    )


def _largest(increments: np.ndarray) -> np.ndarray:
    """Largest absolute partial sum over steps, of shape (trials,)."""
    return np.abs(np.cumsum(increments, axis=0)).max(axis=0)
