"""Excess risk against the budget for every combination of correlation and shape, step size tuned.

The step size is the best of a grid on the mean over trials, and the clip norm knows H and ‖w*‖_H:
both are oracles, the same for all arms, and not private.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import jackknife, trials_last
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.setting import CORRELATIONS, SHAPES

PLACE = "Algorithm 1, Corollaries 4.3 and 4.5; the paper runs no experiment"
TREE_ARMS = [f"tree, {shape}" for shape in SHAPES]
COMPARISONS = {
    f"{correlation}: {words} over identity": (f"{correlation}, {arm}", f"{correlation}, identity")
    for correlation in CORRELATIONS
    for words, arm in (("population", "population"), ("public", "public x1"))
} | {
    f"{shape}: square root over tree": (f"square root, {shape}", f"tree, {shape}")
    for shape in SHAPES
}


class Arm(NamedTuple):
    """A correlation over steps and a shape; `public_ratio` public rows for each private one."""

    correlation: str
    shape: str
    public_ratio: int = 0

    @property
    def name(self) -> str:
        ratio = f" x{self.public_ratio}" if self.public_ratio else ""
        return f"{self.correlation}, {self.shape}{ratio}"


DIAGONAL = {arm.name: arm for c in CORRELATIONS for s in SHAPES for arm in [Arm(c, s)]}


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
    def arms(self) -> list[Arm]:
        public = [Arm(c, "public", ratio) for c in CORRELATIONS for ratio in self.public_ratios]
        return [*DIAGONAL.values(), *public]

    @property
    def arm_names(self) -> list[str]:
        return [arm.name for arm in self.arms]

    def multiplier(self, correlation: str, epsilon: float) -> float:
        steps = self.sample_size - 1
        return setting.noise_multiplier(correlation, epsilon, self.delta, steps)

    def multipliers(self, correlation: str) -> np.ndarray:
        return np.array([self.multiplier(correlation, epsilon) for epsilon in self.epsilons])


AXES = setting.AXES | {
    "arm": Axis("correlation and shape", "arm_names"),
    "diagonal_arm": Axis("arm", list(DIAGONAL)),
    "comparison": Axis("comparison", list(COMPARISONS)),
}
GRID = "arm epsilon step_size"


@per(
    nonprivate=Quantity("exact risk without privacy or clipping", "step_size"),
    risk=Quantity("exact risk without clipping", "diagonal_arm epsilon step_size"),
    tuned=Quantity("least exact risk over step sizes", "diagonal_arm epsilon"),
    designed_over_identity=Quantity("ratio of least exact risks of the tree", "epsilon"),
    bound=Quantity("Theorem 4.2 for the tree, constants 1", "noise_shape epsilon step_size"),
    exact_over_bound=Quantity(
        "exact risk of the tree over that bound", "noise_shape epsilon step_size"
    ),
)
def exact_risks(parameters: Parameters) -> dict:
    """Second moments: the risk of plain SGD, and what the noise adds to it; Theorem 4.2."""
    steps, budgets = parameters.step_sizes.values(), parameters.epsilons
    plain = [parameters.plain_risk(eta).total for eta in steps]
    risk = np.zeros((len(DIAGONAL), len(budgets), len(steps)))
    for i, arm in enumerate(DIAGONAL.values()):
        for k, eta in enumerate(steps):
            shape = parameters.shape(arm.shape, eta)
            unit = parameters.noise_risk(shape, eta, arm.correlation)
            noise = parameters.multipliers(arm.correlation) * parameters.clip_norm(shape)
            risk[i, :, k] = plain[k] + noise**2 * unit
    tuned = risk.min(axis=-1)
    tree = [list(DIAGONAL).index(arm) for arm in TREE_ARMS]
    bound = np.array(
        [
            [[_bound(parameters, shape, epsilon, eta) for eta in steps] for epsilon in budgets]
            for shape in SHAPES
        ]
    )
    return {
        "nonprivate": plain,
        "risk": risk,
        "tuned": tuned,
        "designed_over_identity": tuned[tree[1]] / tuned[tree[0]],
        "bound": bound,
        "exact_over_bound": risk[tree] / bound,
    }


@per(
    risk=Quantity("excess risk of the average iterate", GRID),
    clipped=Quantity("share of clipped gradients", GRID),
    nonprivate=Quantity("excess risk without privacy or clipping", "step_size"),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Excess risks of all arms, budgets and step sizes, which share a trial's rows and noise."""
    from privreg.algorithms.shaped_settings import run_settings

    features, labels = parameters.model.sample(parameters.sample_size, trial.rng)
    steps = parameters.step_sizes.values()
    nonprivate, _ = run_settings(
        features,
        labels,
        noise=np.zeros((len(features) - 1, parameters.dimension)),
        noise_scale=np.zeros((len(steps), parameters.dimension)),
        step_size=steps,
        **setting.unclipped(len(steps), len(features)),
    )
    seed = int(trial.rng.integers(2**63))
    noise = {c: parameters.increments(c, parameters.dimension, seed) for c in CORRELATIONS}
    shaped = {(name, 0): _diagonal(parameters, name, features) for name in SHAPES} | {
        ("public", ratio): _public(parameters, ratio, features, trial.rng)
        for ratio in parameters.public_ratios
    }
    found = [
        run_settings(
            features,
            labels,
            noise=noise[arm.correlation],
            **_settings(parameters, arm.correlation, shaped[arm.shape, arm.public_ratio]),
        )
        for arm in parameters.arms
    ]
    grid = (len(found), len(parameters.epsilons), len(steps))
    return {
        "risk": np.reshape([parameters.excess_risk(averages) for averages, _ in found], grid),
        "clipped": np.reshape([share.non_private for _, share in found], grid),
        "nonprivate": parameters.excess_risk(nonprivate),
    }


@per(
    "arm",
    "epsilon",
    tuned=Estimate("least mean excess risk over step sizes"),
    clipped=Quantity("mean share of clipped gradients", "step_size"),
)
def tuned(simulation: Dataset) -> dict:
    clipped = trials_last(simulation.clipped).mean(axis=-1)
    return {"tuned": setting.tuned_risk(trials_last(simulation.risk)), "clipped": clipped}


@per(tuned_nonprivate=Estimate("least mean excess risk without privacy"))
def tuned_nonprivate(simulation: Dataset) -> tuple:
    return setting.tuned_risk(trials_last(simulation.nonprivate))


@per("comparison", "epsilon", ratio=Estimate("ratio of tuned excess risks, paired trials"))
def ratios(parameters: Parameters, simulation: Dataset) -> tuple:
    risk, names = trials_last(simulation.risk), parameters.arm_names
    over, under = np.array(
        [[names.index(name) for name in pair] for pair in COMPARISONS.values()]
    ).T

    def ratio(kept: np.ndarray) -> np.ndarray:
        best = setting.least_over_step_sizes(risk, kept)
        return best[over] / best[under]

    return jackknife(ratio, risk.shape[-1])


@per(largest_ratio_to_bound="largest mean risk over that bound")
def against_bound(simulation: Dataset, theory: Dataset) -> float:
    mean = trials_last(simulation.risk.sel(arm=TREE_ARMS)).mean(axis=-1)
    return np.max(mean / theory.bound.values)


theory = stage(AXES, exact_risks)
simulate = stage(AXES, run)
summarise = stage(
    AXES,
    means(run, "risk", "nonprivate"),
    tuned,
    tuned_nonprivate,
    ratios,
    against_bound,
    attributes=lambda parameters: {"decay": parameters.decay},
)


def _bound(parameters: Parameters, name: str, epsilon: float, step_size: float) -> float:
    """Theorem 4.2 for the tree, constants 1."""
    from privreg.theory.shaped_noise.bounds import general_bound

    shape = parameters.shape(name, step_size)
    return float(
        general_bound(
            parameters.eigenvalues,
            target=parameters.target,
            covariance=shape,
            sample_size=parameters.sample_size,
            step_size=step_size,
            noise_multiplier=parameters.multiplier("tree", epsilon),
            clip_norm=parameters.clip_norm(shape),
            label_noise_std=parameters.label_noise_std,
        ).total
    )


class _Shaped(NamedTuple):
    """What a trial's arms of one shape share, whatever their correlation; a row for a step size.

    Public features, and the seed of the normals for their noise, where the shape has any.
    """

    clip_norms: np.ndarray
    inverse_norms: np.ndarray
    roots: np.ndarray
    public: np.ndarray | None = None
    normals_seed: int = 0


def _diagonal(parameters: Parameters, name: str, features: np.ndarray) -> _Shaped:
    shapes = np.array([parameters.shape(name, eta) for eta in parameters.step_sizes.values()])
    norms = np.sqrt(features**2 @ (1 / shapes).T).T
    return _Shaped(_clip_norms(parameters, name), norms, np.sqrt(shapes))


def _public(
    parameters: Parameters, ratio: int, features: np.ndarray, rng: np.random.Generator
) -> _Shaped:
    from privreg.noise.covariance import PublicCovariance

    rows = ratio * parameters.sample_size
    public, _ = parameters.model.sample(rows, rng)
    covariance = PublicCovariance(public, ridge=rows)
    ridges = rows / (parameters.sample_size * parameters.step_sizes.values())
    return _Shaped(
        _clip_norms(parameters, "public"),
        covariance.inverse_norms_by_ridge(features, ridges=ridges),
        np.repeat(np.sqrt(ridges / rows)[:, None], parameters.dimension, axis=1),
        covariance.features,
        int(rng.integers(2**63)),
    )


def _clip_norms(parameters: Parameters, name: str) -> np.ndarray:
    steps = parameters.step_sizes.values()
    return np.array([parameters.clip_norm(parameters.shape(name, eta)) for eta in steps])


def _settings(parameters: Parameters, correlation: str, shaped: _Shaped) -> dict[str, Any]:
    """Arguments of `run_settings` for an arm: budgets outside, step sizes inside."""
    multipliers = parameters.multipliers(correlation)
    strength, budgets = np.outer(multipliers, shaped.clip_norms).ravel(), len(multipliers)
    found = {
        "step_size": np.tile(parameters.step_sizes.values(), budgets),
        "clip_norm": np.tile(shaped.clip_norms, budgets),
        "inverse_norms": np.tile(shaped.inverse_norms, (budgets, 1)),
        "noise_scale": strength[:, None] * np.tile(shaped.roots, (budgets, 1)),
    }
    if shaped.public is None:
        return found
    rows = len(shaped.public)
    normals = parameters.increments(correlation, rows, shaped.normals_seed)
    return found | {
        "shared_noise": normals @ shaped.public / np.sqrt(rows),
        "shared_scale": strength,
    }
