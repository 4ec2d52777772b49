"""Privacy accounting of full-batch DP-GD: budget, sensitivity, conversion, several runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipNorm,
    Count,
    Dimension,
    Probability,
    RenyiOrder,
    Rising,
    SampleSize,
    Some,
    StatedBudget,
    Steps,
    more_than,
)

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Lemma 2.1, Definition A.1, Claims A.4-A.6, footnote 2"


class Parameters(Strict):
    """Budgets, and the random neighbours on which the sensitivity is tried."""

    budgets: Some[StatedBudget] = Field(description="Budgets.")
    delta: Probability = Field(description="delta of the conversion.")
    steps: Rising[Steps] = Field(description="Gradient steps T.")
    clip_norm: ClipNorm = Field(description="gamma.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Sample size n.")
    dimension: Dimension = Field(description="Features p.")
    runs: Annotated[Count, Field(ge=2)] = Field(
        description="Runs m whose noise must count all gradients."
    )
    orders: Some[RenyiOrder] = Field(description="Rényi orders, more than 1.")
    pairs: Count = Field(description="Pairs of neighbours in each trial.")

    _more_rows_than_columns = more_than("sample_size", "dimension")

    @property
    def rhos(self) -> list[float]:
        return [budget.rho for budget in self.budgets]


def theory(parameters: Parameters) -> xr.Dataset:
    """Budget spent, its conversion, and the Gaussian mechanism's Rényi divergence by quadrature."""
    import xarray as xr

    from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
    from privreg.privacy.zcdp import compose, gaussian_budget, to_approximate

    rho, steps = np.asarray(parameters.rhos), np.asarray(parameters.steps)
    n, sensitivity = parameters.sample_size, 2 * parameters.clip_norm / parameters.sample_size
    noise = full_batch_noise_std(
        clip_norm=parameters.clip_norm, rho=rho[:, None], sample_size=n, gradients=steps
    )
    spent = np.array(
        [
            [
                compose(np.full(count, gaussian_budget(sensitivity=sensitivity, noise_std=std)))
                for count, std in zip(steps, row, strict=True)
            ]
            for row in noise
        ]
    )
    careless = full_batch_noise_std(
        clip_norm=parameters.clip_norm, rho=rho[0], sample_size=n, gradients=int(steps[0])
    )
    total = parameters.runs * int(steps[0])
    cost = compose(np.full(total, gaussian_budget(sensitivity=sensitivity, noise_std=careless)))
    divergence = [_divergence(order) / (order * 0.5) for order in parameters.orders]
    return xr.Dataset(
        {
            "epsilon": variable(
                "rho", to_approximate(rho, delta=parameters.delta), "epsilon of the conversion"
            ),
            "budget_error": variable(
                ("rho", "steps"),
                np.abs(spent / rho[:, None] - 1),
                "relative error of the composed budget",
            ),
            "separate_runs_cost": variable(
                (), cost / rho[0], "budget of m runs whose noise counts one run, over rho"
            ),
            "divergence_ratio": variable(
                "order",
                divergence,
                "Rényi divergence of unit normals one apart, by quadrature, over order / 2",
            ),
        },
        coords={
            "rho": variable("rho", rho, "zCDP budget"),
            "steps": variable("steps", steps, "gradient steps T"),
            "order": variable("order", parameters.orders, "Rényi order"),
        },
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """How far replacing one record moves the mean clipped gradient, over its sensitivity."""
    import xarray as xr

    random, worst = (np.empty((len(trials), parameters.pairs)) for _ in range(2))
    p, n, clip_norm = parameters.dimension, parameters.sample_size, parameters.clip_norm
    for at, trial in enumerate(trials):
        for pair in range(parameters.pairs):
            x, y = trial.rng.standard_normal((n, p)) * 3, trial.rng.standard_normal(n) * 3
            theta, other_x = trial.rng.standard_normal((2, p))
            other_y = trial.rng.standard_normal() * 10
            base = _mean_gradient(x, y, theta, clip_norm)
            moved_x, moved_y = x.copy(), y.copy()
            moved_x[0], moved_y[0] = other_x * 3, other_y
            random[at, pair] = np.linalg.norm(
                base - _mean_gradient(moved_x, moved_y, theta, clip_norm)
            )
            # The same features with residuals of opposite sign, both clipped.
            x[0] = moved_x[0] = other_x / np.linalg.norm(other_x) * 5
            y[0], moved_y[0] = x[0] @ theta + clip_norm, x[0] @ theta - clip_norm
            worst[at, pair] = np.linalg.norm(
                _mean_gradient(x, y, theta, clip_norm)
                - _mean_gradient(moved_x, moved_y, theta, clip_norm)
            )
    sensitivity = 2 * clip_norm / n
    dims = ("trial", "pair")
    return xr.Dataset(
        {
            "random_ratio": variable(
                dims, random / sensitivity, "change of the mean clipped gradient over 2 gamma / n"
            ),
            "worst_ratio": variable(
                dims, worst / sensitivity, "the same for opposite clipped gradients"
            ),
        }
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Largest change of random neighbours, least change of the worst ones."""
    import xarray as xr

    return xr.Dataset(
        {
            "largest_random_ratio": variable(
                (),
                simulation.random_ratio.values.max(),
                "largest change over 2 gamma / n, random neighbours",
            ),
            "least_worst_ratio": variable(
                (),
                simulation.worst_ratio.values.min(),
                "least change over 2 gamma / n, opposite clipped gradients",
            ),
        },
        coords={"trial": simulation.trial.variable},
    )


def _mean_gradient(x: np.ndarray, y: np.ndarray, theta: np.ndarray, clip_norm: float) -> np.ndarray:
    from privreg.algorithms.clipped_gradient import clipped_gradient_sum
    from privreg.algorithms.samples import ArraySamples

    total, _ = clipped_gradient_sum(
        ArraySamples(x, y).chunks(), theta[:, None], clip_norm=[clip_norm]
    )
    return np.asarray(-total[:, 0] / len(y))


def _divergence(order: float) -> float:
    """D_α(N(0, 1) ‖ N(1, 1)) from Definition A.3 by the trapezoid rule."""
    grid = np.linspace(-60, 60, 24001)
    log_first, log_second = -(grid**2) / 2, -((grid - 1) ** 2) / 2
    integrand = np.exp(order * log_first + (1 - order) * log_second) / np.sqrt(2 * np.pi)
    return float(np.log(np.sum(integrand) * (grid[1] - grid[0])) / (order - 1))
