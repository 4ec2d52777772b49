"""How fast the martingales and errors in the proof of Theorem 5 fall with the sample size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.cells import Axis, Estimate, Quantity, means, per, stage, trials_last
from reproduction.experiment.summaries import loglog_slope
from reproduction.papers.bombari2025.setting import Clipped, eigenvalues

if TYPE_CHECKING:
    import xarray as xr

    from privreg.schedules import Polynomial
    from reproduction.experiment.trials import Trials

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


class Parameters(Clipped):
    """DP-GD and the diffusion at a fixed ratio, on eigenvalues that are uniform on [0, 2]."""

    dimensions: Annotated[q.Rising[q.Dimension], Field(min_length=2)] = Field(
        description="Dimensions d."
    )
    aspect_ratio: q.AspectRatio = Field(description="gamma = d / n.")
    budget: q.StatedBudget = Field(description="Budget of the private output.")
    initial_rate: q.StepSize = Field(description="Initial learning rate, above its cap 2 / gamma.")
    exponent: q.Power = Field(description="Exponent alpha of the schedule.")

    def sample_size(self, dimension: int) -> int:
        return round(dimension / self.aspect_ratio)

    @property
    def derived_steps(self) -> float:
        """Steps for each dimension."""
        return 1 / self.aspect_ratio

    def schedule(self) -> Polynomial:
        from privreg.schedules import Polynomial

        return Polynomial(self.initial_rate, self.exponent)


AXES = {
    "quantity": Axis(
        "what is followed. "
        + "; ".join(f"{name}: {meaning}" for name, meaning in QUANTITIES.items()),
        list(QUANTITIES),
    ),
    "dimension": Axis("dimension d", "dimensions"),
}


class _Problem(NamedTuple):
    """What a run needs, in the eigenbasis; rates are at k / n, k = 0..n."""

    parameters: Parameters
    eigenvalues: np.ndarray
    hessians: np.ndarray
    rates: np.ndarray
    capped: np.ndarray

    @classmethod
    def of(cls, parameters: Parameters, dimension: int) -> _Problem:
        from privreg.schedules import rate

        found = eigenvalues("uniform", dimension)
        points = 2 * found.max() * np.exp(1j * ANGLES)
        samples = parameters.sample_size(dimension)
        rates = rate(parameters.schedule(), np.arange(samples + 1) / samples)
        capped = np.minimum(rates, 2 / parameters.aspect_ratio)
        return cls(parameters, found, 1 / (found - points[:, None]), rates, capped)

    @property
    def samples(self) -> int:
        return len(self.rates) - 1

    def start(self) -> np.ndarray:
        """Minus the target, of norm 1."""
        return -np.full(len(self.eigenvalues), len(self.eigenvalues) ** -0.5)

    def factors(self, error: np.ndarray) -> tuple[float, float]:
        """Descent factor, and variance factor times the risk with label noise."""
        from privreg.theory.one_pass_dpgd.clipping import descent_of, variance_of

        noise = self.parameters.label_noise_std
        risk = self.eigenvalues @ error**2 / 2
        # `clip_ratio` without its checks, which would take a third of the simulation.
        ratio = self.parameters.clip_constant / np.sqrt(2 * risk + noise * noise)
        return float(descent_of(ratio)), float(variance_of(ratio)) * (risk + noise**2 / 2)


@per("dimension", largest=Quantity("largest value along the path", "quantity"))
def run(parameters: Parameters, trials: Trials, dimension: int) -> Iterator[list[float]]:
    """DP-GD and an independent path of the diffusion."""
    problem = _Problem.of(parameters, dimension)
    for trial in trials:
        forms, dpgd = _dpgd(problem, trial.rng)
        other_forms, diffusion = _diffusion(problem, trial.rng)
        apart = float(np.abs(forms - other_forms).max())
        largest = {"forms": apart, **dpgd, **diffusion}
        yield [largest[name] for name in QUANTITIES]


@per("quantity", slope=Estimate("log-log slope of the mean in the sample size"))
def slope(parameters: Parameters, simulation: xr.Dataset) -> tuple:
    largest = simulation.largest.transpose("quantity", "dimension", "trial")
    return loglog_slope(parameters.dimensions, trials_last(largest))


simulate = stage(AXES, run)
summarise = stage(AXES, means(run), slope)


def _dpgd(problem: _Problem, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, float]]:
    """Algorithm 1 up to the step before the last, whose noise is the output's.

    Resolvent forms after each step, shape (n - 1, points), and what is followed.
    """
    from privreg.schedules import noise_multipliers

    parameters, values, n = problem.parameters, problem.eigenvalues, problem.samples
    dimension, root = len(values), np.sqrt(values)
    norm = parameters.clip_constant * np.sqrt(dimension)
    sizes = problem.rates[1:] / n
    scales = 2 * norm * noise_multipliers(sizes, zcdp_root=parameters.budget.root)
    # A schedule ends at t = 1.
    printed = np.append(problem.capped, np.zeros(n))[
        np.minimum(np.round(np.arange(n + 1) / parameters.aspect_ratio).astype(int), 2 * n)
    ]
    traces = problem.hessians.sum(axis=1), problem.hessians @ values
    error = problem.start()
    forms, noise, step, as_printed = np.empty((4, n - 1, len(ANGLES)), complex)
    for k in range(1, n):
        features = root * rng.standard_normal(dimension)
        residual = features @ error - parameters.label_noise_std * rng.standard_normal()
        square = features @ features
        pull = features * residual * min(1.0, norm / (np.sqrt(square) * abs(residual)))
        taken, wanted = min(sizes[k - 1], 2 / square), problem.capped[k] / n
        kick = scales[k - 1] * rng.standard_normal(dimension)
        descent, level = problem.factors(error)
        moved = error - taken * pull
        noise[k - 1] = problem.hessians @ ((moved + kick) ** 2 - moved**2) / 2
        noise[k - 1] -= scales[k - 1] ** 2 / 2 * traces[0]
        drift = descent * (problem.hessians @ (values * error**2))
        spread = (taken**2 - wanted**2) / 2 * level * traces[1]
        step[k - 1] = (wanted - taken) * drift + spread
        as_printed[k - 1] = (printed[k] / n - taken) * drift + spread
        error = moved + kick
        forms[k - 1] = problem.hessians @ error**2 / 2
    return forms, {
        "noise": _largest(noise),
        "step": float(np.abs(step).sum(axis=0).max()),
        "step_as_printed": float(np.abs(as_printed).sum(axis=0).max()),
    }


def _diffusion(problem: _Problem, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, float]]:
    """The diffusion with the drift of (C.9), in steps of 1 / n; private noise is exact."""
    parameters, values, n = problem.parameters, problem.eigenvalues, problem.samples
    dimension = len(values)
    private = 2 * np.sqrt(dimension) * parameters.clip_constant / (n * parameters.budget.root)
    variances = private**2 * -np.diff(problem.rates**2)
    error = problem.start()
    forms, martingale = np.empty((2, n - 1, len(ANGLES)), complex)
    for k in range(n - 1):
        descent, level = problem.factors(error)
        spread = 2 * problem.capped[k] ** 2 * level * values / n**2 + variances[k]
        kick = np.sqrt(spread) * rng.standard_normal(dimension)
        martingale[k] = problem.hessians @ (error * kick)
        error = error - problem.capped[k] * descent * values * error / n + kick
        forms[k] = problem.hessians @ error**2 / 2
    return forms, {"diffusion": _largest(martingale)}


def _largest(increments: np.ndarray) -> float:
    return float(np.abs(np.cumsum(increments, axis=0)).max())
