"""Excess risk against the budget for every combination of correlation and shape, step size tuned.

The step size is the best of a grid on the mean over trials, and the clip norm knows H and ‖w*‖_H:
both are oracles, the same for all arms, and not private.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg.noise.covariance import PublicCovariance
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import jackknife, trials_last
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.setting import CORRELATIONS, SHAPES

PLACE = "Algorithm 1, Corollaries 4.3 and 4.5; the paper runs no experiment"
TREE_ARMS = [f"tree, {shape}" for shape in SHAPES]
DIAGONAL_ARMS = [f"{correlation}, {shape}" for correlation in CORRELATIONS for shape in SHAPES]
COMPARISONS = {
    f"{correlation}: {words} over identity": (f"{correlation}, {shape}", f"{correlation}, identity")
    for correlation in CORRELATIONS
    for words, shape in (("population", "population"), ("public", "public x1"))
} | {
    f"{shape}: square root over tree": (f"square root, {shape}", f"tree, {shape}")
    for shape in SHAPES
}


class Parameters(setting.Problem):
    """Budgets for replace-one neighbours, accounted from the noise that is added."""

    epsilons: q.Grid[q.Epsilon] = Field(description="epsilon, increasing.")
    delta: q.Delta = Field(description="delta.")
    step_sizes: q.StepSizeAxis = Field(description="Step sizes to choose from.")
    public_ratios: q.Some[q.Count] = Field(description="Public over private rows; 1 must be one.")

    _compares_with_as_many_rows = q.must(
        "public_ratios must hold 1, got {self.public_ratios}", lambda self: 1 in self.public_ratios
    )

    @property
    def arms(self) -> list[str]:
        """Correlation and shape; `public x2` has two public rows for each private one."""
        shapes = [f"public x{ratio}" for ratio in self.public_ratios]
        return DIAGONAL_ARMS + [f"{name}, {shape}" for name in CORRELATIONS for shape in shapes]

    def shapes(self, name: str) -> np.ndarray:
        """Diagonals of Σ for each step size."""
        return np.array([self.shape(name, eta) for eta in self.step_sizes.values()])

    def clip_norms(self, name: str) -> np.ndarray:
        return np.array([self.clip_norm(shape) for shape in self.shapes(name)])

    def multiplier(self, correlation: str, epsilon: float) -> float:
        steps = self.sample_size - 1
        return setting.noise_multiplier(correlation, epsilon, self.delta, steps)

    def noise_stds(self, correlation: str, name: str) -> np.ndarray:
        """tau psi for each budget and step size."""
        multipliers = [self.multiplier(correlation, epsilon) for epsilon in self.epsilons]
        return np.outer(multipliers, self.clip_norms(name))


AXES = setting.AXES | {
    "arm": Axis("correlation and shape", "arms"),
    "diagonal_arm": Axis("arm", DIAGONAL_ARMS),
    "comparison": Axis("comparison", list(COMPARISONS)),
}


@per(
    "diagonal_arm",
    risk=Quantity("exact risk without clipping", "epsilon step_size"),
    tuned=Quantity("least exact risk over step sizes", "epsilon"),
)
def exact_risks(parameters: Parameters, diagonal_arm: str) -> dict:
    """Exact risks from second moments: of plain SGD, and added by the noise."""
    correlation, name = diagonal_arm.split(", ")
    steps = parameters.step_sizes.values()
    plain = np.array([parameters.plain_risk(eta).total for eta in steps])
    unit = [
        parameters.noise_risk(shape, eta, correlation)
        for shape, eta in zip(parameters.shapes(name), steps, strict=True)
    ]
    risk = plain + parameters.noise_stds(correlation, name) ** 2 * np.array(unit)
    return {"risk": risk, "tuned": risk.min(axis=-1)}


@per("epsilon", designed_over_identity="ratio of least exact risks of the tree")
def designed_over_identity(earlier: Dataset) -> np.ndarray:
    identity, designed = earlier.tuned.sel(diagonal_arm=TREE_ARMS).values
    return designed / identity


@per(
    "noise_shape",
    "epsilon",
    "step_size",
    bound="Theorem 4.2 for the tree, constants 1",
    exact_over_bound="exact risk of the tree divided by that bound",
)
def theorem(
    parameters: Parameters, noise_shape: str, epsilon: float, step_size: float, earlier: Dataset
) -> dict[str, float]:
    from privreg.theory.shaped_noise import general_bound

    shape = parameters.shape(noise_shape, step_size)
    parts = general_bound(
        parameters.eigenvalues,
        target=parameters.target,
        covariance=shape,
        sample_size=parameters.sample_size,
        step_size=step_size,
        noise_multiplier=parameters.multiplier("tree", epsilon),
        clip_norm=parameters.clip_norm(shape),
        label_noise_std=parameters.label_noise_std,
    )
    bound = float(parts.total)
    exact = earlier.risk.sel(diagonal_arm=f"tree, {noise_shape}", epsilon=epsilon)
    return {"bound": bound, "exact_over_bound": exact.sel(step_size=step_size).item() / bound}


@per(
    risk=Quantity("excess risk of the average iterate", "arm epsilon step_size"),
    nonprivate=Quantity("excess risk without privacy or clipping", "step_size"),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Excess risks of all arms, budgets and step sizes, which share a trial's rows and noise."""
    from privreg.algorithms.shaped_dp_ftrl import run_settings

    features, labels = parameters.model.sample(parameters.sample_size, trial.rng)
    size, dimension = features.shape
    steps, budgets = parameters.step_sizes.values(), len(parameters.epsilons)
    nonprivate, _ = run_settings(
        features,
        labels,
        noise=np.zeros((size - 1, dimension)),
        noise_scale=np.zeros((len(steps), dimension)),
        step_size=steps,
        **setting.unclipped(len(steps), size),
    )
    seed = int(trial.rng.integers(2**63))
    noise = {name: parameters.increments(name, dimension, seed) for name in CORRELATIONS}
    # By shape: inverse norms and roots for each step size, and the shared noise by correlation.
    shaped = {
        f"public x{ratio}": _public(parameters, ratio, features, trial)
        for ratio in parameters.public_ratios
    }
    for name in SHAPES:
        shapes = parameters.shapes(name)
        shaped[name] = np.sqrt(features**2 @ (1 / shapes).T).T, np.sqrt(shapes), {}
    risk = []
    for arm in parameters.arms:
        correlation, name = arm.split(", ")
        norms, roots, shared = shaped[name]
        std = parameters.noise_stds(correlation, name).ravel()
        averages, _ = run_settings(
            features,
            labels,
            inverse_norms=np.tile(norms, (budgets, 1)),
            noise=noise[correlation],
            noise_scale=std[:, None] * np.tile(roots, (budgets, 1)),
            step_size=np.tile(steps, budgets),
            clip_norm=np.tile(parameters.clip_norms(name), budgets),
            shared_noise=shared.get(correlation),
            shared_scale=std if shared else None,
        )
        risk.append(parameters.excess_risk(averages).reshape(budgets, -1))
    return {"risk": risk, "nonprivate": parameters.excess_risk(nonprivate)}


@per(
    tuned=Estimate("least mean excess risk over step sizes", "arm epsilon"),
    tuned_nonprivate=Estimate("least mean excess risk without privacy"),
    ratio=Estimate("ratio of tuned excess risks, paired trials", "comparison epsilon"),
    largest_ratio_to_bound="largest mean risk divided by the bound of Theorem 4.2",
)
def summary(parameters: Parameters, simulation: Dataset, theory: Dataset) -> dict:
    risk = trials_last(simulation.risk)
    pairs = [[parameters.arms.index(arm) for arm in pair] for pair in COMPARISONS.values()]
    over, under = np.transpose(pairs)

    def ratio(kept: np.ndarray) -> np.ndarray:
        best = setting.least_over_step_sizes(risk, kept)
        return best[over] / best[under]

    of_tree = trials_last(simulation.risk.sel(arm=TREE_ARMS)).mean(axis=-1)
    return {
        "tuned": setting.tuned_risk(risk),
        "tuned_nonprivate": setting.tuned_risk(trials_last(simulation.nonprivate)),
        "ratio": jackknife(ratio, risk.shape[-1]),
        "largest_ratio_to_bound": np.max(of_tree / theory.bound.values),
    }


theory = stage(AXES, exact_risks, designed_over_identity, theorem)
simulate = stage(AXES, run)
summarise = stage(
    AXES, means(run, "risk"), summary, attributes=lambda parameters: {"decay": parameters.decay}
)


def _public(parameters: Parameters, ratio: int, features: np.ndarray, trial: Trial) -> tuple:
    rows = ratio * parameters.sample_size
    public, _ = parameters.model.sample(rows, trial.rng)
    covariance = PublicCovariance(public, ridge=rows)
    ridges = rows / (parameters.sample_size * parameters.step_sizes.values())
    norms = covariance.inverse_norms_by_ridge(features, ridges=ridges)
    roots = np.repeat(np.sqrt(ridges / rows)[:, None], parameters.dimension, axis=1)
    seed = int(trial.rng.integers(2**63))
    shared = {
        correlation: parameters.increments(correlation, rows, seed) @ public / np.sqrt(rows)
        for correlation in CORRELATIONS
    }
    return norms, roots, shared
