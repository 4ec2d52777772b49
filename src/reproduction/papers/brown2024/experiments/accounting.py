"""Privacy accounting of full-batch DP-GD: budget, sensitivity, conversion, several runs."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Quantity,
    Trial,
    below,
    close,
    every,
    identity,
    per,
    stage,
)
from reproduction.papers.brown2024.setting import RHO

PLACE = "Lemma 2.1, Definition A.1, Claims A.4-A.6, footnote 2"


class Parameters(Strict):
    """Budgets, and the random neighbours on which the sensitivity is tested."""

    budgets: q.Some[q.StatedBudget] = Field(description="Budgets.")
    delta: q.Delta = Field(description="delta of the conversion.")
    steps: q.Rising[q.Steps] = Field(description="Gradient steps T.")
    clip_norm: q.ClipNorm = Field(description="gamma.")
    sample_size: q.Plural[q.SampleSize] = Field(description="Sample size n.")
    dimension: q.Dimension = Field(description="Features p.")
    runs: q.Plural[q.Count] = Field(description="Runs m; the noise counts the gradients of all.")
    orders: q.Some[q.RenyiOrder] = Field(description="Rényi orders, more than 1.")
    pairs: q.Count = Field(description="Pairs of neighbours in each trial.")

    _more_rows_than_columns = q.more_than("sample_size", "dimension")

    @property
    def sensitivity(self) -> float:
        """Sensitivity of the mean clipped gradient, by Claim A.5."""
        return 2 * self.clip_norm / self.sample_size


AXES = {
    "rho": RHO,
    "steps": Axis("gradient steps T", "steps"),
    "order": Axis("Rényi order", "orders"),
}


@per("rho", epsilon="epsilon of the conversion")
def epsilon(parameters: Parameters, rho: float) -> np.ndarray:
    from privreg.privacy.budget import to_approximate

    return to_approximate(rho, delta=parameters.delta)


@identity(
    "rho",
    "steps",
    id="budget-of-all-iterates",
    kind="theorem",
    where="Lemma 2.1, Claim A.4",
    statement="Noise of variance 2 T gamma^2 / (rho n^2) or more makes Algorithm 1 rho-zCDP.",
    requires=["gaussian-mechanism", "sensitivity-of-the-mean-gradient"],
    ours=["rho = 0.015 and 0.05, T = 10, 100 and 1000, the least variance"],
    check=every(below(1e-12)),
    note="Algorithm 1 releases all iterates, so intervals that read only these cost nothing more. "
    "If one step of a thousand were not counted, the check would show 1e-3.",
)
def budget_error(parameters: Parameters, rho: float, steps: int) -> float:
    """Relative error of the composed budget."""
    return abs(_spent(parameters, rho, steps, gradients=steps) / rho - 1)


@identity(
    id="noise-counts-the-gradients-of-all-runs",
    where="Section 3.1, independent runs",
    compares="Ten independent runs whose noise counts the gradients of one run cost ten budgets.",
    check=close(10.0, absolute=1e-9),
    note="Hence the noise in Figures 5, 6, 10 and 11 counts the gradients of all runs.",
)
def separate_runs_cost(parameters: Parameters) -> float:
    """Budget of m runs with the noise for one run, divided by rho."""
    rho, steps = parameters.budgets[0].rho, parameters.steps[0]
    return _spent(parameters, rho, steps, gradients=parameters.runs * steps) / rho


@identity(
    "order",
    id="gaussian-mechanism",
    kind="theorem",
    where="Definition A.3, Claim A.5",
    statement="A Gaussian mechanism of sensitivity Delta and noise N(0, lambda^2 I) is Delta^2 / "
    "(2 lambda^2)-zCDP.",
    ours=["unit Gaussians three apart: Delta = 3, lambda = 1", "orders 1.25, 2, 4 and 8"],
    check=every(close(1.0, absolute=1e-8)),
    wrong={
        "Delta^2 / lambda^2, twice as much.": every(close(2.0, absolute=1e-8)),
        "Delta / lambda, without the squares.": every(close(2 / 3, absolute=1e-8)),
        "With alpha - 1 for alpha.": close([0.2, 0.5, 0.75, 0.875], absolute=1e-8),
    },
    note="The check is on the Rényi divergence of order alpha, a quadrature of its definition, "
    "divided by alpha Delta^2 / (2 lambda^2).",
)
def divergence_ratio(order: float) -> float:
    """Rényi divergence of unit normals three apart, by quadrature, divided by 9/2 of the order."""
    grid = np.linspace(-60, 60, 24001)
    log_first, log_second = -(grid**2) / 2, -((grid - 3) ** 2) / 2
    integrand = np.exp(order * log_first + (1 - order) * log_second) / np.sqrt(2 * np.pi)
    divergence = float(np.log(np.sum(integrand) * (grid[1] - grid[0])) / (order - 1))
    return divergence / (order * 4.5)


@per(
    random_ratio=Quantity("change of the mean clipped gradient divided by 2 gamma / n", "pair"),
    worst_ratio=Quantity("the same ratio for opposite clipped gradients", "pair"),
)
def changes(parameters: Parameters, trial: Trial) -> list[dict]:
    """Change of the mean clipped gradient by one replaced record, divided by the sensitivity."""
    return [_pair(parameters, trial.rng) for _ in range(parameters.pairs)]


@per(
    largest_random_ratio="largest change divided by 2 gamma / n, random neighbours",
    least_worst_ratio="least change divided by 2 gamma / n, opposite clipped gradients",
)
def extremes(simulation: Dataset) -> dict:
    return {
        "largest_random_ratio": simulation.random_ratio.values.max(),
        "least_worst_ratio": simulation.worst_ratio.values.min(),
    }


theory = stage(AXES, epsilon, budget_error, separate_runs_cost, divergence_ratio)
simulate = stage(AXES, changes)
summarise = stage(AXES, extremes)


def _spent(parameters: Parameters, rho: float, steps: int, *, gradients: int) -> float:
    """Budget of so many gradients, with the noise at which those of T steps cost rho."""
    from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
    from privreg.privacy.budget import gaussian_budget

    noise = full_batch_noise_std(
        clip_norm=parameters.clip_norm, rho=rho, sample_size=parameters.sample_size, gradients=steps
    )
    each = gaussian_budget(sensitivity=parameters.sensitivity, noise_std=noise)
    return float(np.sum(np.full(gradients, each)))


def _pair(parameters: Parameters, rng: np.random.Generator) -> dict[str, float]:
    from privreg.algorithms.samples import ArraySamples, clipped_gradient_sum

    p, n, clip_norm = parameters.dimension, parameters.sample_size, parameters.clip_norm
    x, y = rng.standard_normal((n, p)) * 3, rng.standard_normal(n) * 3
    theta, other_x = rng.standard_normal((2, p))
    moved_x, moved_y = x.copy(), y.copy()
    moved_x[0], moved_y[0] = other_x * 3, rng.standard_normal() * 10

    def change() -> float:
        tables = (ArraySamples(x, y).chunks(), ArraySamples(moved_x, moved_y).chunks())
        means = [
            clipped_gradient_sum(chunks, theta[:, None], clip_norm=[clip_norm])[0] / n
            for chunks in tables
        ]
        return float(np.linalg.norm(np.subtract(*means)[:, 0])) / parameters.sensitivity

    random = change()
    # The same features with residuals of opposite sign, both clipped.
    x[0] = moved_x[0] = other_x / np.linalg.norm(other_x) * 5
    y[0], moved_y[0] = x[0] @ theta + clip_norm, x[0] @ theta - clip_norm
    return {"random_ratio": random, "worst_ratio": change()}
