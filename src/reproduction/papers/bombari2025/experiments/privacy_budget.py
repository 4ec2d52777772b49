"""The privacy budget of one-pass DP-GD, recomputed, and the Rényi divergence it must bound."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg import schedules
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, below, close, every, per, stage, stated

PLACE = "Proposition 4.1, equations (4.1)-(4.2)"
GRID_POINTS = 1601


class Parameters(Strict):
    """Schedules to account for, and neighbouring data sets in one dimension."""

    budget: q.StatedBudget = Field(description="Budget of the private output.")
    sample_size: q.SampleSize = Field(description="Samples of a run whose budget is recomputed.")
    exponents: q.Some[q.Power] = Field(description="Exponents alpha of the schedules.")
    orders: q.Some[q.RenyiOrder] = Field(description="Rényi orders, more than 1.")
    pairs: q.Count = Field(description="Random neighbouring pairs in one dimension.")
    steps: q.Plural[q.Steps] = Field(description="Samples of the data sets in one dimension.")

    @property
    def schedules(self) -> dict[str, schedules.Schedule]:
        powers = {
            f"polynomial {each:g}": schedules.Polynomial(1.0, each) for each in self.exponents
        }
        return {**powers, "harmonic": schedules.Harmonic(1.0, 0.05)}


AXES = {
    "schedule": Axis("learning-rate schedule", lambda parameters: list(parameters.schedules)),
    "order": Axis("Rényi order", "orders"),
}
SCHEDULES = ["polynomial schedules with alpha = 0 to 2 and a harmonic one", "n = 1000"]


@per(
    "schedule",
    budget_error=stated(
        "largest relative distance of a sample's recomputed budget to the promised one",
        id="budget-is-met-by-every-sample",
        kind="theorem",
        where="Proposition 4.1, equations (4.1)-(4.2)",
        statement="For non-increasing rates and the noise of (4.2), the quotient in (4.1) is rho "
        "for every sample with a positive rate.",
        ours=SCHEDULES,
        check=every(below(1e-10)),
    ),
    noise_over_least=stated(
        "sum of squared noise multipliers, divided by the least that the budget allows",
        id="noise-is-the-least",
        kind="prose",
        where="Section 4, text before equation (4.2)",
        statement="For given rho and non-increasing rates, (4.2) minimises the sum of squared "
        "noise multipliers.",
        requires=["budget-is-met-by-every-sample"],
        ours=SCHEDULES,
        check=every(close(1.0, absolute=1e-6)),
        note="A linear programme over non-increasing tail sums finds the least sum under (4.1).",
    ),
    constant_noise_error=stated(
        "largest relative distance of a noise multiplier before the last to eta(0) / (n^(3/2) rho)",
        id="half-power-is-constant-noise",
        kind="prose",
        where="Section 5.1, text after equation (5.1)",
        statement="With alpha = 1/2 the noise multiplier is constant, eta(0) / (n^(3/2) rho).",
        ours=["n = 1000", "all steps but the last"],
        select={"schedule": "polynomial 0.5"},
        check=below(1e-10),
        note="At the last step there is no noise, since the rate is 0 there. The text's eta_1 / "
        "(sqrt(n) rho) equals the multiplier up to a factor 1 + O(1/n).",
    ),
    last_step_share=stated(
        "share of the last step in the squared noise multipliers",
        id="output-perturbation-is-noise-at-the-end",
        where="Section 5.1, text after equation (5.1)",
        compares="At alpha = 0 the last step carries all of the squared noise.",
        select={"schedule": "polynomial 0"},
        check=close(1.0, absolute=1e-12),
    ),
)
def noise_of_a_run(parameters: Parameters, schedule: str) -> dict:
    from privreg.privacy.budget import one_pass_zcdp_root

    rho, samples = parameters.budget.root, parameters.sample_size
    steps = schedules.step_shape(parameters.schedules[schedule], samples)
    noise = schedules.noise_multipliers(steps, zcdp_root=rho)
    each = [
        one_pass_zcdp_root(np.where(np.arange(samples) == sample, steps, 0.0), noise)
        for sample in np.flatnonzero(steps > 0)
    ]
    stated_noise = 1 / (samples**1.5 * rho)
    return {
        "budget_error": np.max(np.abs(np.asarray(each) / rho - 1)),
        "noise_over_least": np.sum(noise**2) / _least_noise(steps, rho),
        "constant_noise_error": np.max(np.abs(noise[:-1] / stated_noise - 1)),
        "last_step_share": noise[-1] ** 2 / np.sum(noise**2),
    }


@per(
    "schedule",
    "order",
    worst_pair_ratio=stated(
        "divergence divided by its bound, opposite clipped gradients and zero features elsewhere",
        id="divergence-within-budget",
        kind="theorem",
        where="Proposition 4.1",
        statement="The Rényi divergence of the outputs on neighbouring data sets is at most its "
        "order times rho^2 / 2, with the rho of (4.1).",
        ours=[
            "one dimension",
            "the replaced sample has opposite clipped gradients, all others have zero features",
            "orders 1.25 to 8, rho = 1, four samples",
        ],
        check=every(below(1.000001)),
        wrong={"The divergence is at most 0.999 times this bound.": every(below(0.999))},
        note="Densities are computed by quadrature. This pair attains the bound, since steps with "
        "zero features do not contract.",
    ),
    random_pair_ratio=stated(
        "largest divergence divided by its bound, random neighbouring data sets",
        id="divergence-of-random-pairs",
        where="Proposition 4.1",
        compares="The divergence is below its bound on random neighbouring sets of four samples.",
        check=every(below(1.000001)),
        note="On these sets the divergence is at most 0.6 times its bound.",
    ),
)
def divergences(parameters: Parameters, schedule: str) -> dict:
    samples = parameters.steps
    first, largest = np.eye(1, samples)[0], np.zeros(len(parameters.orders))
    rng = np.random.Generator(np.random.SFC64(parameters.pairs))
    for pair in range(parameters.pairs):
        features, labels = rng.standard_normal(samples), 3 * rng.standard_normal(samples)
        other_features, other_labels = features.copy(), labels.copy()
        at = pair % (samples - 1)
        other_features[at], other_labels[at] = rng.standard_normal(), -3 * labels[at]
        pairs = (features, labels), (other_features, other_labels)
        largest = np.maximum(largest, _divergence_ratio(parameters, schedule, *pairs))
    worst = (first, 100.0 * first), (first, -100.0 * first)
    return {
        "worst_pair_ratio": _divergence_ratio(parameters, schedule, *worst),
        "random_pair_ratio": largest,
    }


theory = stage(AXES, blocks_of=globals())


def _least_noise(steps: np.ndarray, zcdp_root: float) -> float:
    """Least sum of squared multipliers under (4.1): a linear programme in its tail sums."""
    from scipy.optimize import linprog
    from scipy.sparse import eye

    demanded, samples = (steps / zcdp_root) ** 2, len(steps)
    scale = demanded.max()
    rises = eye(samples - 1, samples, k=1) - eye(samples - 1, samples)
    found = linprog(
        np.eye(1, samples)[0],
        A_ub=rises,
        b_ub=np.zeros(samples - 1),
        bounds=np.column_stack([demanded / scale, np.full(samples, np.inf)]),
        method="highs",
    )
    assert found.success, found.message
    return float(found.fun) * scale


def _divergence_ratio(
    parameters: Parameters,
    schedule: str,
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Divergence of runs on two data sets (features, labels) over its bound, shape (orders,)."""
    shape = schedules.step_shape(parameters.schedules[schedule], parameters.steps)
    steps = shape / shape[0]
    noise = schedules.noise_multipliers(steps, zcdp_root=parameters.budget.root)
    orders = np.asarray(parameters.orders)
    # The integrand of order a lies a shifts of the mean away, each shift at most rho deviations.
    deviation = 2 * np.sqrt(np.sum(noise**2))
    reach = np.sum(steps) + deviation * (orders.max() * parameters.budget.root + 9)
    grid = np.linspace(-reach, reach, GRID_POINTS)
    p, r = (_output_density(*each, steps, noise, grid) for each in (first, second))
    # Far tails underflow together; what they carry of the integral is far below rounding.
    held = (p > 0) & (r > 0)
    log_ratio, spacing = np.log(p[held]) - np.log(r[held]), grid[1] - grid[0]
    divergences = [
        np.log(np.sum(np.exp(order * log_ratio + np.log(r[held]))) * spacing) / (order - 1)
        for order in orders
    ]
    return np.array(divergences) / (orders * parameters.budget.root**2 / 2)


def _output_density(
    features: np.ndarray, labels: np.ndarray, steps: np.ndarray, noise: np.ndarray, grid: np.ndarray
) -> np.ndarray:
    """Density of the output in one dimension with clipping norm 1, by a quadrature at each step."""
    mass: np.ndarray | None = None
    place, spacing = 0.0, grid[1] - grid[0]
    for x, y, step, multiplier in zip(features, labels, steps, noise, strict=True):
        before = np.array([place]) if mass is None else grid
        gradient = np.clip(x * (x * before - y), -1, 1)
        rate = min(step, 2 / x**2) if x else 0.0
        moved = before - rate * gradient
        spread = 2 * multiplier
        if spread == 0:
            assert mass is None or np.all(moved == before)
            place = float(moved[0])
            continue
        kernel = np.exp(-(((grid[:, None] - moved[None, :]) / spread) ** 2) / 2)
        kernel /= np.sqrt(2 * np.pi) * spread
        mass = kernel[:, 0] if mass is None else kernel @ (mass * spacing)
    assert mass is not None
    return mass
