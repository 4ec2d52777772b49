"""Decay of the martingales and errors in the proof of Theorem 5 with the sample size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from privreg.schedules import noise_multipliers, rate
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trials, means, per, stage
from reproduction.engine.summaries import loglog_slope, trials_last
from reproduction.engine.trials import normals, side_by_side
from reproduction.papers.bombari2025.setting import OneRate, eigenvalues

PLACE = "Theorem 5, Lemmas C.2, C.3 and C.5"
# Each is the largest along a path, over resolvents at three points of the circle of (C.2).
QUANTITIES = {
    "forms": "distance of the resolvent forms of DP-GD and of an independent path of the diffusion",
    "noise": "martingale of the private noise, with the cross term of (C.6)",
    "diffusion": "martingale of the diffusion",
    "step": "sum of the absolute errors of the adaptive rate, with the rate at k / n",
    "step_as_printed": "sum of the absolute errors of the adaptive rate, with the rate at k / d",
}
ANGLES = np.array([0.0, np.pi / 2, np.pi])


class Parameters(OneRate):
    """DP-GD and the diffusion at a fixed ratio, on eigenvalues that are uniform on [0, 2]."""

    dimensions: q.Grid[q.Dimension] = Field(description="Dimensions d.")
    exponent: q.Power = Field(description="Exponent alpha of the schedule.")


AXES = {
    "quantity": Axis(
        "quantity that is followed. "
        + "; ".join(f"{name}: {meaning}" for name, meaning in QUANTITIES.items()),
        list(QUANTITIES),
    ),
    "dimension": Axis("dimension d", "dimensions"),
}


class _Problem(NamedTuple):
    """Inputs of a run in the eigenbasis; rates are at k / n, k = 0..n."""

    parameters: Parameters
    eigenvalues: np.ndarray
    hessians: np.ndarray
    rates: np.ndarray
    capped: np.ndarray

    @classmethod
    def of(cls, parameters: Parameters, dimension: int) -> _Problem:
        found = eigenvalues("uniform", dimension)
        points = 2 * found.max() * np.exp(1j * ANGLES)
        samples = parameters.sample_size(dimension)
        rates = rate(parameters.schedule(parameters.exponent), np.arange(samples + 1) / samples)
        capped = np.minimum(rates, 2 / parameters.aspect_ratio)
        return cls(parameters, found, 1 / (found - points[:, None]), rates, capped)

    def factors(self, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Descent factor, and variance factor times the risk with label noise, (trials,)."""
        from privreg.theory.one_pass_dpgd.deterministic_equivalent import descent_of, variance_of

        noise = self.parameters.label_noise_std
        risk = np.vecdot(error * error, self.eigenvalues) / 2
        # `clip_ratio` without its checks, which would take a third of the simulation.
        ratio = self.parameters.clip_constant / np.sqrt(2 * risk + noise * noise)
        return descent_of(ratio), variance_of(ratio) * (risk + noise**2 / 2)

    def forms(self, vectors: np.ndarray) -> np.ndarray:
        """Sums over the eigenbasis with the resolvents' weights, (trials, points)."""
        # A product for each trial, whose bits do not depend on the others'.
        parts = np.ascontiguousarray(self.hessians.real), np.ascontiguousarray(self.hessians.imag)
        real, imaginary = (part @ vectors[..., None] for part in parts)
        return (real + 1j * imaginary)[..., 0]


@per("dimension", largest=Quantity("largest value along the path", "quantity"))
def run(parameters: Parameters, trials: Trials, dimension: int) -> Iterator[list[float]]:
    """DP-GD and an independent path of the diffusion."""
    problem = _Problem.of(parameters, dimension)
    for generators in side_by_side(trials):
        forms, dpgd = _dpgd(problem, generators)
        other_forms, diffusion = _diffusion(problem, generators)
        apart = np.abs(forms - other_forms).max(axis=(0, 2))
        largest = {"forms": apart, **dpgd, **diffusion}
        yield from np.stack([largest[name] for name in QUANTITIES], axis=-1).tolist()


@per("quantity", slope=Estimate("log-log slope of the mean in the sample size"))
def slope(parameters: Parameters, simulation: Dataset) -> tuple:
    largest = simulation.largest.transpose("quantity", "dimension", "trial")
    return loglog_slope(parameters.dimensions, trials_last(largest))


simulate = stage(AXES, run)
summarise = stage(AXES, means(run), slope)


def _dpgd(
    problem: _Problem, generators: Sequence[np.random.Generator]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Algorithm 1 up to the step before the last, whose noise is the output's.

    Resolvent forms after each step, (n - 1, trials, points), and quantities followed, (trials,).
    """
    parameters, values, n = problem.parameters, problem.eigenvalues, len(problem.rates) - 1
    dimension, root = len(values), np.sqrt(values)
    norm = parameters.clip_constant * np.sqrt(dimension)
    sizes = problem.rates[1:] / n
    scales = 2 * norm * noise_multipliers(sizes, zcdp_root=parameters.budget.root)
    # A schedule ends at t = 1.
    later = np.round(np.arange(n + 1) / parameters.aspect_ratio).astype(int)
    printed = np.append(problem.capped, np.zeros(n))[np.minimum(later, 2 * n)]
    traces = problem.hessians.sum(axis=1), problem.hessians @ values
    error = -np.full((len(generators), dimension), dimension**-0.5)  # Minus the target.
    shape = (4, n - 1, len(generators), len(ANGLES))
    forms, noise, step, as_printed = np.empty(shape, complex)
    for k, drawn in enumerate(normals(generators, n - 1, 2 * dimension + 1), start=1):
        features = root * drawn[:, :dimension]
        residual = np.vecdot(features, error) - parameters.label_noise_std * drawn[:, dimension]
        square = np.vecdot(features, features)
        clip = np.minimum(1.0, norm / (np.sqrt(square) * np.abs(residual)))
        taken, wanted = np.minimum(sizes[k - 1], 2 / square), problem.capped[k] / n
        kick = scales[k - 1] * drawn[:, dimension + 1 :]
        descent, level = problem.factors(error)
        moved = error - (taken * residual * clip)[:, None] * features
        noise[k - 1] = problem.forms((2 * moved + kick) * kick) / 2
        noise[k - 1] -= scales[k - 1] ** 2 / 2 * traces[0]
        drift = descent[:, None] * problem.forms(values * error**2)
        spread = ((taken**2 - wanted**2) / 2 * level)[:, None] * traces[1]
        step[k - 1] = (wanted - taken)[:, None] * drift + spread
        as_printed[k - 1] = (printed[k] / n - taken)[:, None] * drift + spread
        error = moved + kick
        forms[k - 1] = problem.forms(error**2) / 2
    return forms, {
        "noise": _largest(noise),
        "step": np.abs(step).sum(axis=0).max(axis=-1),
        "step_as_printed": np.abs(as_printed).sum(axis=0).max(axis=-1),
    }


def _diffusion(
    problem: _Problem, generators: Sequence[np.random.Generator]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The diffusion with the drift of (C.9), in steps of 1 / n; private noise is exact."""
    parameters, values, n = problem.parameters, problem.eigenvalues, len(problem.rates) - 1
    dimension = len(values)
    private = 2 * np.sqrt(dimension) * parameters.clip_constant / (n * parameters.budget.root)
    variances = private**2 * -np.diff(problem.rates**2)
    error = -np.full((len(generators), dimension), dimension**-0.5)  # Minus the target.
    forms, martingale = np.empty((2, n - 1, len(generators), len(ANGLES)), complex)
    for k, drawn in enumerate(normals(generators, n - 1, dimension)):
        descent, level = problem.factors(error)
        spread = (2 * problem.capped[k] ** 2 / n**2 * level)[:, None] * values + variances[k]
        kick = np.sqrt(spread) * drawn
        martingale[k] = problem.forms(error * kick)
        decay = 1 - (problem.capped[k] / n * descent)[:, None] * values
        error = decay * error + kick
        forms[k] = problem.forms(error**2) / 2
    return forms, {"diffusion": _largest(martingale)}


def _largest(increments: np.ndarray) -> np.ndarray:
    """Largest absolute partial sum over steps and points, of shape (trials,)."""
    return np.abs(np.cumsum(increments, axis=0)).max(axis=(0, 2))
