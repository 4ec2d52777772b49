"""Excess risk against the budget for every combination of correlation and shape, step size tuned.

The step size is the best of a grid on the mean over trials, and the clip norm knows H and ‖w*‖_H:
both are oracles, the same for all arms, and not private.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.quantities import (
    Count,
    Epsilon,
    Probability,
    Rising,
    Some,
    StepSizeAxis,
)
from reproduction.experiment.summaries import jackknife, mean_and_error
from reproduction.papers.anon2024.setting import CORRELATIONS, Problem, correlation_named, decoder

if TYPE_CHECKING:
    import xarray as xr

    from privreg.noise.covariance import PublicCovariance
    from privreg.privacy.budget import Budget
    from reproduction.experiment.trials import Trials

PLACE = "Algorithm 1, Corollaries 4.3 and 4.5; the paper runs no experiment"


class Arm(NamedTuple):
    """A correlation over steps and a shape; `public_ratio` public rows for each private one."""

    correlation: str
    shape: str
    public_ratio: int = 0

    @property
    def name(self) -> str:
        ratio = f" x{self.public_ratio}" if self.public_ratio else ""
        return f"{self.correlation}, {self.shape}{ratio}"


DIAGONAL = [Arm(correlation, s) for correlation in CORRELATIONS for s in ("identity", "population")]
COMPARISONS = {
    "tree: population over identity": ("tree, population", "tree, identity"),
    "tree: public over identity": ("tree, public x1", "tree, identity"),
    "independent: population over identity": (
        "independent, population",
        "independent, identity",
    ),
    "independent: public over identity": ("independent, public x1", "independent, identity"),
    "square root: population over identity": (
        "square root, population",
        "square root, identity",
    ),
    "square root: public over identity": ("square root, public x1", "square root, identity"),
    "identity: square root over tree": ("square root, identity", "tree, identity"),
    "population: square root over tree": ("square root, population", "tree, population"),
}


class Parameters(Problem):
    """Budgets for replace-one neighbours, accounted from the noise that is added."""

    epsilons: Annotated[Rising[Epsilon], Field(min_length=2)] = Field(
        description="epsilon, increasing."
    )
    delta: Probability = Field(description="delta.")
    step_sizes: StepSizeAxis = Field(description="Step sizes to choose from.")
    public_ratios: Some[Count] = Field(description="Public over private rows; 1 must be one.")

    @model_validator(mode="after")
    def _compares_with_as_many_rows(self) -> Self:
        if 1 not in self.public_ratios:
            raise ValueError(f"public_ratios must hold 1, got {self.public_ratios}")
        return self

    @property
    def arms(self) -> list[Arm]:
        return DIAGONAL + [
            Arm(correlation, "public", ratio)
            for correlation in CORRELATIONS
            for ratio in self.public_ratios
        ]

    def multiplier(self, correlation: str, epsilon: float) -> float:
        return _multiplier(correlation, epsilon, self.delta, self.sample_size - 1)


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact risks without clipping, tuned, and Theorem 4.2's bound with all constants 1."""
    import xarray as xr

    from privreg.theory.shaped_noise.bounds import general_bound
    from privreg.theory.shaped_noise.second_moments import private_risk, sgd_risk

    eigenvalues, target = parameters.eigenvalues, parameters.target
    size, zeta = parameters.sample_size, parameters.label_noise_std
    steps = parameters.step_sizes.values()
    plain = np.array(
        [
            sgd_risk(
                eigenvalues, target=target, label_noise_std=zeta, step_size=eta, sample_size=size
            ).total
            for eta in steps
        ]
    )
    risk = np.zeros((len(DIAGONAL), len(parameters.epsilons), len(steps)))
    bound = np.zeros((2, len(parameters.epsilons), len(steps)))
    for i, arm in enumerate(DIAGONAL):
        multipliers = [parameters.multiplier(arm.correlation, e) for e in parameters.epsilons]
        for k, eta in enumerate(steps):
            shape = parameters.shape(arm.shape, eta)
            clip_norm = parameters.clip_norm(shape)
            unit = private_risk(
                eigenvalues, covariance=shape, noise_std=1.0, step_size=eta, sample_size=size,
                decoder=decoder(arm.correlation, size),
            )  # fmt: skip
            for j, multiplier in enumerate(multipliers):
                risk[i, j, k] = plain[k] + (multiplier * clip_norm) ** 2 * unit
                if arm.correlation == "tree":
                    bound[i, j, k] = general_bound(
                        eigenvalues, target=target, covariance=shape, sample_size=size,
                        step_size=eta, noise_multiplier=multiplier, clip_norm=clip_norm,
                        label_noise_std=zeta,
                    ).total  # fmt: skip
    dims = ("diagonal_arm", "epsilon", "step_size")
    return xr.Dataset(
        {
            "nonprivate": variable("step_size", plain, "exact risk without privacy or clipping"),
            "risk": variable(dims, risk, "exact risk without clipping"),
            "tuned": variable(dims[:-1], risk.min(axis=-1), "least exact risk over step sizes"),
            "bound": variable(
                ("noise_shape", "epsilon", "step_size"),
                bound,
                "Theorem 4.2 for the tree, constants 1",
            ),
        },
        coords={
            "diagonal_arm": variable("diagonal_arm", [arm.name for arm in DIAGONAL], "arm"),
            "noise_shape": variable("noise_shape", ["identity", "population"], "noise covariance"),
            "epsilon": variable("epsilon", parameters.epsilons, "epsilon"),
            "step_size": variable("step_size", steps, "step size"),
        },
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Excess risks of all arms, budgets and step sizes, which share a trial's rows and noise."""
    import xarray as xr

    from privreg.algorithms.shaped_settings import run_settings
    from reproduction.experiment.progress import track

    model, steps = parameters.model, parameters.step_sizes.values()
    grid = (len(parameters.epsilons), len(steps))
    risk = np.empty((len(parameters.arms), *grid, len(trials)))
    clipped = np.empty_like(risk)
    nonprivate = np.empty((len(steps), len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label="tuned risk")):
        features, labels = model.sample(parameters.sample_size, trial.rng)
        averages, _ = run_settings(
            features,
            labels,
            inverse_norms=np.ones((len(steps), len(features))),
            noise=np.zeros((len(features) - 1, parameters.dimension)),
            noise_scale=np.zeros((len(steps), parameters.dimension)),
            step_size=steps,
            clip_norm=np.full(len(steps), np.inf),
        )
        nonprivate[:, at] = parameters.excess_risk(averages)
        seed = int(trial.rng.integers(2**63))
        public = {
            ratio: _public(parameters, ratio, trial.rng) for ratio in parameters.public_ratios
        }
        for i, arm in enumerate(parameters.arms):
            averages, share = run_settings(
                features, labels, **_noise(parameters, arm, features, seed, public)
            )
            risk[i, :, :, at] = parameters.excess_risk(averages).reshape(grid)
            clipped[i, :, :, at] = share.non_private.reshape(grid)
    dims = ("arm", "epsilon", "step_size", "trial")
    return xr.Dataset(
        {
            "risk": variable(dims, risk, "excess risk of the average iterate"),
            "clipped": variable(dims, clipped, "share of clipped gradients"),
            "nonprivate": variable(
                ("step_size", "trial"), nonprivate, "excess risk without privacy or clipping"
            ),
        },
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Means, tuned risks, and ratios of tuned risks with errors that keep the pairing."""
    import xarray as xr

    risk = simulation.risk.values
    dims = ("arm", "epsilon", "step_size")
    variables = mean_and_error("risk", risk, dims, "the excess risk")
    variables |= mean_and_error(
        "nonprivate", simulation.nonprivate.values, ["step_size"], "the excess risk without privacy"
    )
    variables["clipped"] = variable(
        dims, simulation.clipped.values.mean(axis=-1), "mean share of clipped gradients"
    )
    count = risk.shape[-1]

    def tuned(places: np.ndarray) -> np.ndarray:
        return risk[..., places].mean(axis=-1).min(axis=-1)

    def plain(places: np.ndarray) -> np.ndarray:
        return np.asarray(simulation.nonprivate.values[:, places].mean(axis=-1).min())

    names = [arm.name for arm in parameters.arms]
    pairs = np.array([[names.index(name) for name in pair] for pair in COMPARISONS.values()])

    def ratios(places: np.ndarray) -> np.ndarray:
        best = tuned(places)
        return best[pairs[:, 0]] / best[pairs[:, 1]]

    for name, statistic, names_of_dims, description in (
        ("tuned", tuned, dims[:2], "least mean excess risk over step sizes"),
        ("tuned_nonprivate", plain, (), "least mean excess risk without privacy"),
        ("ratio", ratios, ("comparison", "epsilon"), "ratio of tuned excess risks, paired trials"),
    ):
        value, error = jackknife(statistic, count)
        spread = f"{name}_standard_error"
        variables[name] = variable(names_of_dims, value, description, standard_error=spread)
        variables[spread] = variable(names_of_dims, error, "its jackknife standard error")
    best = risk.mean(axis=-1).argmin(axis=-1)
    variables["best_step_size"] = variable(
        dims[:2], parameters.step_sizes.values()[best], "step size of the least mean excess risk"
    )
    variables["clipped_at_best"] = variable(
        dims[:2],
        np.take_along_axis(variables["clipped"][1], best[..., None], axis=-1)[..., 0],
        "mean share of clipped gradients there",
    )
    mean = variables["risk"][1]
    bounded = [names.index("tree, identity"), names.index("tree, population")]
    variables["largest_ratio_to_bound"] = variable(
        (),
        np.max(mean[bounded] / theory.bound.values),
        "largest mean risk over that bound",
    )
    coordinates = _coordinates(parameters) | {
        "comparison": variable("comparison", list(COMPARISONS), "comparison"),
        "trial": simulation.trial.variable,
    }
    return xr.Dataset(variables, coords=coordinates, attrs={"decay": parameters.decay})


@cache
def _multiplier(correlation: str, epsilon: float, delta: float, steps: int) -> float:
    from privreg.algorithms.shaped_accounting import shaped_noise_multiplier

    return shaped_noise_multiplier(
        _budget(epsilon, delta), correlation=correlation_named(correlation), steps=steps
    )


# The conversion searches for its rho: once a budget is enough.
@cache
def _budget(epsilon: float, delta: float) -> Budget:
    from privreg.privacy.budget import Budget

    return Budget.approximate(epsilon, delta)


class _Public(NamedTuple):
    """Public features, normals for their noise, and their covariance."""

    covariance: PublicCovariance
    normals_seed: int


def _public(parameters: Parameters, ratio: int, rng: np.random.Generator) -> _Public:
    from privreg.noise.covariance import PublicCovariance

    rows = ratio * parameters.sample_size
    features, _ = parameters.model.sample(rows, rng)
    return _Public(PublicCovariance(features, ridge=rows), int(rng.integers(2**63)))


def _noise(
    parameters: Parameters, arm: Arm, features: np.ndarray, seed: int, public: dict[int, _Public]
) -> dict[str, Any]:
    """Arguments of `run_settings` for an arm: budgets outside, step sizes inside."""
    steps, size, dimension = (
        parameters.step_sizes.values(),
        parameters.sample_size,
        parameters.dimension,
    )
    correlation = correlation_named(arm.correlation)

    def increments(length: int, key: int) -> np.ndarray:
        rng = np.random.Generator(np.random.SFC64(key))
        return correlation.stream(length, steps=size - 1, rng=rng).draw(size - 1)

    shapes = np.array([parameters.shape(arm.shape, eta) for eta in steps])
    clip_norms = np.array([parameters.clip_norm(shape) for shape in shapes])
    multipliers = np.array([parameters.multiplier(arm.correlation, e) for e in parameters.epsilons])
    strength = np.outer(multipliers, clip_norms).ravel()
    found = {
        "step_size": np.tile(steps, len(multipliers)),
        "clip_norm": np.tile(clip_norms, len(multipliers)),
        "noise": increments(dimension, seed),
    }
    if arm.shape != "public":
        norms = np.sqrt(features**2 @ (1 / shapes).T).T
        roots = np.tile(np.sqrt(shapes), (len(multipliers), 1))
        return found | {
            "inverse_norms": np.tile(norms, (len(multipliers), 1)),
            "noise_scale": strength[:, None] * roots,
        }
    covariance, key = public[arm.public_ratio]
    rows = len(covariance.features)
    ridges = rows / (size * steps)
    norms = covariance.inverse_norms_by_ridge(features, ridges=ridges)
    isotropic = strength * np.tile(np.sqrt(ridges / rows), len(multipliers))
    return found | {
        "inverse_norms": np.tile(norms, (len(multipliers), 1)),
        "noise_scale": np.repeat(isotropic[:, None], dimension, axis=1),
        "shared_noise": increments(rows, key) @ covariance.features / np.sqrt(rows),
        "shared_scale": strength,
    }


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "arm": variable("arm", [arm.name for arm in parameters.arms], "correlation and shape"),
        "epsilon": variable("epsilon", parameters.epsilons, "epsilon"),
        "step_size": variable("step_size", parameters.step_sizes.values(), "step size"),
    }
