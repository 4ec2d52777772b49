"""The privacy budget of one-pass DP-GD, recomputed, and the Rényi divergence it must bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, below, close, every, identity, stage

if TYPE_CHECKING:
    from privreg.schedules import Schedule

PLACE = "Proposition 4.1, equations (4.1)-(4.2)"
GRID_POINTS = 1601


class Parameters(Strict):
    """Schedules to account for, and neighbouring data sets in one dimension."""

    budget: q.StatedBudget = Field(description="Budget of the private output.")
    sample_size: q.Plural[q.SampleSize] = Field(
        description="Samples of a run whose budget is recomputed."
    )
    exponents: q.Some[q.Power] = Field(description="Exponents alpha of the schedules.")
    orders: q.Some[q.RenyiOrder] = Field(description="Rényi orders, more than 1.")
    pairs: q.Count = Field(description="Random neighbouring pairs in one dimension.")
    steps: q.Plural[q.Steps] = Field(description="Samples of the data sets in one dimension.")

    @property
    def schedules(self) -> dict[str, Schedule]:
        from privreg.schedules import Harmonic, Polynomial

        powers = {
            f"polynomial {exponent:g}": Polynomial(1.0, exponent) for exponent in self.exponents
        }
        return {**powers, "harmonic": Harmonic(1.0, 0.05)}

    def run(self, schedule: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps and noise multipliers of a run, shape (samples,) each."""
        from privreg.schedules import noise_multipliers, step_shape

        steps = step_shape(self.schedules[schedule], self.sample_size)
        return steps, noise_multipliers(steps, zcdp_root=self.budget.root)


AXES = {
    "schedule": Axis("learning-rate schedule", lambda parameters: list(parameters.schedules)),
    "order": Axis("Rényi order", "orders"),
}
SCHEDULES = ["polynomial schedules with alpha = 0 to 2 and a harmonic one", "n = 1000"]


@identity(
    "schedule",
    id="budget-is-met-by-every-sample",
    kind="theorem",
    where="Proposition 4.1, equations (4.1)-(4.2)",
    statement="With the noise of equation (4.2) the quotient of equation (4.1) is rho for every "
    "sample that is used.",
    ours=SCHEDULES,
    check=every(below(1e-10)),
)
def budget_error(parameters: Parameters, schedule: str) -> float:
    """Largest relative distance of a sample's recomputed budget to the promised one."""
    from privreg.privacy.zcdp import one_pass_zcdp_root

    steps, noise = parameters.run(schedule)
    each = [
        one_pass_zcdp_root(np.where(np.arange(len(steps)) == sample, steps, 0.0), noise)
        for sample in np.flatnonzero(steps > 0)
    ]
    return np.max(np.abs(np.asarray(each) / parameters.budget.root - 1))


@identity(
    "schedule",
    id="noise-is-the-least",
    kind="prose",
    where="Section 4, text before equation (4.2)",
    statement="The schedule of equation (4.2) minimises the sum of squared noise multipliers for "
    "an assigned rho.",
    requires=["budget-is-met-by-every-sample"],
    ours=SCHEDULES,
    check=every(close(1.0, absolute=1e-6)),
    note="Against a linear programme in the tails of the squared multipliers, with (4.1) for each "
    "sample as its constraints.",
)
def noise_over_least(parameters: Parameters, schedule: str) -> float:
    """Sum of squared noise multipliers over the least that the budget allows."""
    steps, noise = parameters.run(schedule)
    return np.sum(noise**2) / _least_noise(steps, parameters.budget.root)


@identity(
    "schedule",
    id="half-power-is-constant-noise",
    kind="prose",
    where="Section 5.1, text after equation (5.1)",
    statement="With alpha = 1/2 the noise multiplier is eta(0) / (n^(3/2) rho) at every step but "
    "the last.",
    select={"schedule": "polynomial 0.5"},
    check=below(1e-10),
    note="At the last step there is none, since the rate is 0 there; the text's eta_1 / (sqrt(n) "
    "rho) is its size up to a factor 1 + O(1/n).",
)
def constant_noise_error(parameters: Parameters, schedule: str) -> float:
    """Largest relative distance of a noise multiplier before the last to eta(0) / (n^(3/2) rho)."""
    noise = parameters.run(schedule)[1]
    stated = 1 / (parameters.sample_size**1.5 * parameters.budget.root)
    return np.max(np.abs(noise[:-1] / stated - 1))


@identity(
    "schedule",
    id="output-perturbation-is-noise-at-the-end",
    kind="prose",
    where="Section 5.1, text after equation (5.1)",
    statement="With alpha = 0 the private noise is added at the last step alone.",
    select={"schedule": "polynomial 0"},
    check=close(1.0, absolute=1e-12),
)
def last_step_share(parameters: Parameters, schedule: str) -> float:
    """Share of the last step in the squared noise multipliers."""
    noise = parameters.run(schedule)[1]
    return noise[-1] ** 2 / np.sum(noise**2)


@identity(
    "schedule",
    "order",
    id="divergence-within-budget",
    kind="theorem",
    where="Proposition 4.1",
    statement="The Rényi divergence between runs on neighbouring data is at most order times "
    "rho^2 / 2.",
    ours=["one dimension", "opposite clipped gradients among zero features", "orders 1.25 to 8"],
    check=every(below(1.000001)),
    wrong={"At most 0.999 times that.": every(below(0.999))},
    note="Exact densities by quadrature. Samples of zero features do not contract, so that this "
    "pair attains the bound.",
)
def worst_pair_ratio(parameters: Parameters, schedule: str) -> np.ndarray:
    """Divergence over its bound, opposite clipped gradients among zero features."""
    features, labels = np.zeros(parameters.steps), np.zeros(parameters.steps)
    features[0], labels[0] = 1.0, 100.0
    return _divergence_ratio(parameters, schedule, (features, labels), (features, -labels))


@identity(
    "schedule",
    "order",
    id="divergence-of-random-pairs",
    where="Proposition 4.1",
    compares="The divergence between runs on random neighbouring data sets of four samples with "
    "its bound.",
    check=every(below(1.000001)),
    note="At most 0.6 of the bound: other samples contract.",
)
def random_pair_ratio(parameters: Parameters, schedule: str) -> np.ndarray:
    """Largest divergence over its bound, random neighbouring data sets."""
    rng = np.random.Generator(np.random.SFC64(parameters.pairs))
    largest = np.zeros(len(parameters.orders))
    for pair in range(parameters.pairs):
        features = rng.standard_normal(parameters.steps)
        labels = 3 * rng.standard_normal(parameters.steps)
        other_features, other_labels = features.copy(), labels.copy()
        at = pair % (parameters.steps - 1)
        other_features[at], other_labels[at] = rng.standard_normal(), -3 * labels[at]
        pairs = (features, labels), (other_features, other_labels)
        largest = np.maximum(largest, _divergence_ratio(parameters, schedule, *pairs))
    return largest


theory = stage(AXES, blocks_of=globals())


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


def _divergence_ratio(
    parameters: Parameters,
    schedule: str,
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Over its bound, between runs on two data sets (features, labels), shape (orders,)."""
    from privreg.schedules import noise_multipliers, step_shape

    shape = step_shape(parameters.schedules[schedule], parameters.steps)
    steps = shape / shape[0]
    noise = noise_multipliers(steps, zcdp_root=parameters.budget.root)
    orders = np.asarray(parameters.orders)
    # The integrand of order a lies a shifts of the mean away, each shift at most rho deviations.
    deviation = 2 * np.sqrt(np.sum(noise**2))
    reach = np.sum(steps) + deviation * (orders.max() * parameters.budget.root + 9)
    grid = np.linspace(-reach, reach, GRID_POINTS)
    p, r = (_output_density(*samples, steps, noise, grid) for samples in (first, second))
    # Far tails underflow together; what they carry of the integral is far below rounding.
    held = (p > 0) & (r > 0)
    log_ratio, spacing = np.log(p[held]) - np.log(r[held]), grid[1] - grid[0]
    divergences = [
        np.log(np.sum(np.exp(order * log_ratio + np.log(r[held]))) * spacing) / (order - 1)
        for order in orders
    ]
    return np.array(divergences) / (orders * parameters.budget.root**2 / 2)


def _output_density(
    features: np.ndarray,
    labels: np.ndarray,
    steps: np.ndarray,
    noise: np.ndarray,
    grid: np.ndarray,
) -> np.ndarray:
    """Density of the output in one dimension with clipping norm 1, by a quadrature at each step."""
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
    return mass
