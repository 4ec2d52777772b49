"""The privacy budget of one-pass DP-GD, recomputed, and the Rényi divergence it must bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Power,
    RenyiOrder,
    SampleSize,
    Some,
    StatedBudget,
    Steps,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Proposition 4.1, equations (4.1)-(4.2)"
GRID_POINTS = 1601


class Parameters(Strict):
    """Schedules to account for, and neighbouring data sets in one dimension."""

    budget: StatedBudget = Field(description="Budget of the private output.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(
        description="Samples of a run whose budget is recomputed."
    )
    exponents: Some[Power] = Field(description="Exponents alpha of the schedules.")
    orders: Some[RenyiOrder] = Field(description="Rényi orders, more than 1.")
    pairs: Count = Field(description="Random neighbouring pairs in one dimension.")
    steps: Annotated[Steps, Field(ge=2)] = Field(
        description="Samples of the data sets in one dimension."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Budget of each schedule, and the exact divergence of neighbouring runs over its bound."""
    import xarray as xr

    from privreg.privacy.iteration import one_pass_zcdp_root
    from privreg.schedules import Harmonic, Polynomial, Schedule, noise_multipliers, step_shape

    schedules: list[Schedule] = [Polynomial(1.0, exponent) for exponent in parameters.exponents]
    names = [f"polynomial {exponent:g}" for exponent in parameters.exponents]
    schedules.append(Harmonic(1.0, 0.05))
    names.append("harmonic")
    spread, excess, uneven, last = [], [], [], []
    for schedule in schedules:
        steps = step_shape(schedule, parameters.sample_size)
        noise = noise_multipliers(steps, zcdp_root=parameters.budget.root)
        used = steps > 0
        each = [
            one_pass_zcdp_root(np.where(np.arange(len(steps)) == k, steps, 0.0), noise)
            for k in np.flatnonzero(used)
        ]
        spread.append(np.max(np.abs(np.asarray(each) / parameters.budget.root - 1)))
        excess.append(np.sum(noise**2) / _least_noise(steps, parameters.budget.root))
        before = noise[:-1]
        uneven.append((before.max() - before.min()) / noise.max())
        last.append(noise[-1] ** 2 / np.sum(noise**2))
    ratios = np.array([_divergence_ratios(schedule, parameters) for schedule in schedules])
    return xr.Dataset(
        {
            "budget_error": variable(
                "schedule",
                spread,
                "largest relative distance of a sample's recomputed budget to the promised one",
            ),
            "noise_over_least": variable(
                "schedule",
                excess,
                "sum of squared noise multipliers over the least that the budget allows",
            ),
            "noise_unevenness": variable(
                "schedule",
                uneven,
                "largest minus least noise multiplier before the last step, over the largest",
            ),
            "last_step_share": variable(
                "schedule", last, "share of the last step in the squared noise multipliers"
            ),
            "random_pair_ratio": variable(
                ("schedule", "order"),
                ratios[:, 0],
                "largest divergence over its bound, random neighbouring data sets",
            ),
            "worst_pair_ratio": variable(
                ("schedule", "order"),
                ratios[:, 1],
                "divergence over its bound, opposite clipped gradients among zero features",
            ),
        },
        coords={
            "schedule": variable("schedule", names, "learning-rate schedule"),
            "order": variable("order", parameters.orders, "Rényi order"),
        },
    )


def _least_noise(steps: np.ndarray, zcdp_root: float) -> float:
    """Least sum of squared multipliers under (4.1): a linear programme in its falling tails."""
    from scipy.optimize import linprog
    from scipy.sparse import eye

    demanded = (steps / zcdp_root) ** 2
    scale = demanded.max()
    samples = len(steps)
    rises = eye(samples - 1, samples, k=1) - eye(samples - 1, samples)
    found = linprog(
        np.eye(1, samples)[0],
        A_ub=rises,
        b_ub=np.zeros(samples - 1),
        bounds=np.column_stack([demanded / scale, np.full(samples, np.inf)]),
        method="highs",
    )
    if not found.success:
        raise ValueError(f"the linear programme of the least noise failed: {found.message}")
    return float(found.fun) * scale


def _divergence_ratios(schedule, parameters: Parameters) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Shape (2, orders): largest over random pairs, and of the worst pair."""
    from privreg.schedules import noise_multipliers, step_shape

    shape = step_shape(schedule, parameters.steps)
    steps = shape / shape[0]
    noise = noise_multipliers(steps, zcdp_root=parameters.budget.root)
    rng = np.random.Generator(np.random.SFC64(parameters.pairs))
    orders = np.asarray(parameters.orders)
    bounds = orders * parameters.budget.root**2 / 2
    # The integrand of order a lies a shifts of the mean away, each shift at most rho deviations.
    deviation = 2 * np.sqrt(np.sum(noise**2))
    reach = np.sum(steps) + deviation * (orders.max() * parameters.budget.root + 9)
    random = np.zeros(len(orders))
    for pair in range(parameters.pairs):
        features = rng.standard_normal(parameters.steps)
        labels = 3 * rng.standard_normal(parameters.steps)
        other_features, other_labels = features.copy(), labels.copy()
        at = pair % (parameters.steps - 1)
        other_features[at], other_labels[at] = rng.standard_normal(), -3 * labels[at]
        found = _renyi(
            _output_density(features, labels, steps, noise, reach),
            _output_density(other_features, other_labels, steps, noise, reach),
            orders,
        )
        random = np.maximum(random, found / bounds)
    features, labels = np.zeros(parameters.steps), np.zeros(parameters.steps)
    features[0], labels[0] = 1.0, 100.0
    worst = _renyi(
        _output_density(features, labels, steps, noise, reach),
        _output_density(features, -labels, steps, noise, reach),
        orders,
    )
    return np.array([random, worst / bounds])


def _output_density(
    features: np.ndarray,
    labels: np.ndarray,
    steps: np.ndarray,
    noise: np.ndarray,
    reach: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Density of the output in one dimension with clipping norm 1, by a quadrature at each step."""
    grid = np.linspace(-reach, reach, GRID_POINTS)
    spacing = grid[1] - grid[0]
    mass: np.ndarray | None = None
    place = 0.0
    for x, y, step, multiplier in zip(features, labels, steps, noise, strict=True):
        before = np.array([place]) if mass is None else grid
        gradient = np.clip(x * (x * before - y), -1, 1)
        rate = min(step, 2 / x**2) if x else 0.0
        moved = before - rate * gradient
        spread = 2 * multiplier
        if spread == 0:
            if mass is not None and np.any(moved != before):
                raise ValueError("noise_multipliers: a step without noise after a step with noise")
            place = float(moved[0])
            continue
        kernel = np.exp(-(((grid[:, None] - moved[None, :]) / spread) ** 2) / 2)
        kernel /= np.sqrt(2 * np.pi) * spread
        mass = kernel[:, 0] if mass is None else kernel @ (mass * spacing)
    assert mass is not None
    return grid, mass


def _renyi(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], orders: np.ndarray
) -> np.ndarray:
    """Rényi divergence of two densities on one grid."""
    grid, p = first
    q = second[1]
    # Far tails underflow together; what they carry of the integral is far below rounding.
    held = (p > 0) & (q > 0)
    log_ratio = np.log(p[held]) - np.log(q[held])
    spacing = grid[1] - grid[0]
    values = [
        np.log(np.sum(np.exp(order * log_ratio + np.log(q[held]))) * spacing) / (order - 1)
        for order in orders
    ]
    return np.array(values)
