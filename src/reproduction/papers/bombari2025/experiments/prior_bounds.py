"""The prior, the tracing attack and the Bayes risk behind the minimax lower bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipConstant,
    Count,
    Dimension,
    PositiveDeviation,
    Power,
    SampleSize,
    Share,
    Some,
    StatedBudget,
    StepSize,
    more_than,
)
from reproduction.experiment.summaries import jackknife

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Theorem 3, Lemmas D.6, D.7 and D.8"
# Targets move by this much for the derivative; the estimator is smooth but for few clipped samples.
STEP = 1e-5


class Parameters(Strict):
    """DP-GD under the tracing prior, and ridge regression under its own Gaussian prior."""

    dimension: Dimension = Field(description="Dimension d.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Samples n, more than d.")
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )
    budget: StatedBudget = Field(description="Budget of the private output.")
    clip_constant: ClipConstant = Field(description="Clipping constant c of DP-GD.")
    initial_rate: StepSize = Field(description="Initial learning rate of DP-GD.")
    exponent: Power = Field(description="Exponent alpha of its schedule.")
    replicates: Annotated[Count, Field(ge=2)] = Field(description="Targets and data sets a trial.")
    smallest: Some[Share] = Field(
        description="Smallest eigenvalue of each uniform spectrum; 1 is isotropic."
    )

    _more_rows_than_columns = more_than("sample_size", "dimension")

    def eigenvalues(self, smallest: float) -> np.ndarray:
        from privreg import spectra

        if smallest == 1:
            return np.ones(self.dimension)
        return spectra.uniform_midpoints(self.dimension, smallest, 2 - smallest)


def theory(parameters: Parameters) -> xr.Dataset:
    """Identities of the prior, and what the privacy factor does between 0 and 1."""
    import xarray as xr

    from privreg.theory.one_pass_dpgd import minimax_risk

    nodes, weights = np.polynomial.legendre.leggauss(40)
    edge = parameters.dimension**-0.5
    place, weight = edge * nodes, edge * weights
    density = minimax_risk.prior_density(place, dimension=parameters.dimension)
    score = minimax_risk.prior_score(place, dimension=parameters.dimension)
    rho = np.linspace(1e-3, 1, 1000)

    def scalar(value: float, meaning: str) -> tuple:
        return variable((), value, meaning)

    return xr.Dataset(
        {
            "prior_mass": scalar(np.sum(weight * density), "mass of the prior"),
            "prior_drift": scalar(
                np.sum(weight * density * -place * score), "prior mean of minus z times the score"
            ),
            "prior_drift_printed": scalar(
                -np.sum(weight * density * -place * score),
                "minus the prior mean of minus z times the score, as printed",
            ),
            "prior_information": scalar(
                np.sum(weight * density * score**2) / parameters.dimension,
                "prior mean of the squared score over the dimension",
            ),
            "largest_privacy_factor": scalar(
                np.max(np.expm1(rho**2) / rho**2), "largest (exp(rho^2) - 1) / rho^2 up to rho = 1"
            ),
        }
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Each trial's means over replicates of the terms of both chains."""
    import xarray as xr

    from reproduction.experiment.progress import track

    names = ("attack", "divergence", "fresh_attack", "fresh_square", "risk", "squared_error")
    attack = np.empty((len(names), len(trials)))
    bayes = np.empty((2, len(parameters.smallest), len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        attack[:, at] = np.mean(
            [_traced(parameters, trial.rng) for _ in range(parameters.replicates)], axis=0
        )
        for s, smallest in enumerate(parameters.smallest):
            eigenvalues = parameters.eigenvalues(smallest)
            bayes[:, s, at] = np.mean(
                [_ridge(parameters, eigenvalues, trial.rng) for _ in range(parameters.replicates)],
                axis=0,
            )
    meanings = {
        "attack": "sum of the tracing attacks on the samples used",
        "divergence": "noise variance times the divergence of the estimator in the target",
        "fresh_attack": "tracing attack on a sample that was not used",
        "fresh_square": "its square",
        "risk": "excess risk of the estimator",
        "squared_error": "squared error of the estimator",
    }
    return xr.Dataset(
        {
            name: variable("trial", row, f"mean over replicates of the {meanings[name]}")
            for name, row in zip(names, attack, strict=True)
        }
        | {
            "bayes_risk": variable(
                ("smallest", "trial"), bayes[0], "mean excess risk of the Bayes estimator"
            ),
            "bayes_trace": variable(
                ("smallest", "trial"),
                bayes[1],
                "mean of the noise variance over n times tr((X'X/n + lambda I)^-1 Sigma)",
            ),
        },
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Ratios that the chains fix or bound, errors by the jackknife over trials."""
    import xarray as xr

    floor = parameters.label_noise_std**2 * parameters.dimension
    ceiling = parameters.sample_size * np.sqrt(np.expm1(parameters.budget.root**2))
    noise = parameters.label_noise_std**2
    largest = np.array([parameters.eigenvalues(s).max() for s in parameters.smallest])
    bound = noise * parameters.dimension / (4 * largest * parameters.sample_size)
    found_by_trial = {str(name): simulation[name].values for name in simulation.data_vars}

    found = {
        "tracing_ratio": (
            lambda m: m["attack"] / m["divergence"],
            "tracing attacks over what Stein's identity makes of them",
        ),
        "tracing_over_lower": (
            lambda m: m["attack"] / (floor * (1 - np.sqrt(10 * m["squared_error"]))),
            "tracing attacks over their lower bound",
        ),
        "tracing_over_upper": (
            lambda m: m["attack"] / (ceiling * np.sqrt(2 * noise * m["risk"])),
            "tracing attacks over their upper bound under privacy",
        ),
        "fresh_attack": (
            lambda m: m["fresh_attack"] / np.sqrt(m["fresh_square"]),
            "mean of an attack on an unused sample over its root mean square",
        ),
        "fresh_square_ratio": (
            lambda m: m["fresh_square"] / (2 * noise * m["risk"]),
            "mean square of an attack on an unused sample over 2 zeta^2 times the risk",
        ),
        "bayes_over_trace": (
            lambda m: m["bayes_risk"] / m["bayes_trace"],
            "Bayes risk over the trace expression of equation (D.157)",
        ),
        "bayes_over_printed_bound": (
            lambda m: m["bayes_risk"] / bound,
            "Bayes risk over the lower bound as printed",
        ),
        "bayes_over_bound": (
            lambda m: 2 * m["bayes_risk"] / bound,
            "Bayes risk over the lower bound with the 1/2 of the excess risk",
        ),
    }
    variables: dict[str, tuple] = {}
    for name, (ratio, meaning) in found.items():
        dims = ("smallest",) if name.startswith("bayes") else ()
        value, error = jackknife(
            partial(_ratio_of_means, ratio, found_by_trial), simulation.sizes["trial"]
        )
        linked = f"{name}_standard_error"
        variables[name] = variable(dims, value, meaning, standard_error=linked)
        variables[linked] = variable(dims, error, f"standard error of the {meaning}")
    return xr.Dataset(
        variables, coords=_coordinates(parameters) | {"trial": simulation.trial.variable}
    )


def _traced(parameters: Parameters, rng: np.random.Generator) -> tuple[float, ...]:
    from privreg.algorithms import one_pass_dpgd
    from privreg.schedules import Polynomial
    from privreg.theory.one_pass_dpgd import minimax_risk

    shape = parameters.sample_size, parameters.dimension
    mechanism = one_pass_dpgd.Mechanism.from_schedule(
        Polynomial(parameters.initial_rate, parameters.exponent),
        sample_size=parameters.sample_size,
        dimension=parameters.dimension,
        budget=parameters.budget,
        clip_constant=parameters.clip_constant,
    )
    target = minimax_risk.sample_prior(rng, dimension=parameters.dimension)
    features = rng.standard_normal(shape)
    noise = parameters.label_noise_std * rng.standard_normal(parameters.sample_size)
    direction = rng.choice([-1.0, 1.0], parameters.dimension)
    seed = int(rng.integers(2**63))

    def estimate(truth: np.ndarray) -> np.ndarray:
        # The same private noise for all targets, else no derivative.
        private = np.random.Generator(np.random.SFC64(seed))
        return one_pass_dpgd.fit(mechanism, features, features @ truth + noise, private)[0]

    error = estimate(target) - target
    change = estimate(target + STEP * direction) - estimate(target - STEP * direction)
    fresh = (
        parameters.label_noise_std
        * rng.standard_normal(parameters.sample_size)
        * (rng.standard_normal(shape) @ error)
    )
    squared = float(error @ error)
    return (
        float(noise @ features @ error),
        float(parameters.label_noise_std**2 * direction @ change / (2 * STEP)),
        float(fresh.mean()),
        float(np.mean(fresh**2)),
        squared / 2,
        squared,
    )


def _ridge(
    parameters: Parameters, eigenvalues: np.ndarray, rng: np.random.Generator
) -> tuple[float, float]:
    """The prior's posterior mean is ridge regression with twice the largest eigenvalue."""
    sample_size, variance = parameters.sample_size, parameters.label_noise_std**2
    penalty = 2 * eigenvalues.max()
    target = np.sqrt(variance / (penalty * sample_size)) * rng.standard_normal(parameters.dimension)
    features = rng.standard_normal((sample_size, parameters.dimension)) * np.sqrt(eigenvalues)
    labels = features @ target + parameters.label_noise_std * rng.standard_normal(sample_size)
    inverse = np.linalg.inv(features.T @ features / sample_size + penalty * np.eye(len(target)))
    error = inverse @ (features.T @ labels) / sample_size - target
    return (
        float(error**2 @ eigenvalues / 2),
        float(variance / sample_size * np.diag(inverse) @ eigenvalues),
    )


def _ratio_of_means(
    ratio: Callable[[dict[str, np.ndarray]], np.ndarray],
    found: dict[str, np.ndarray],
    kept: np.ndarray,
) -> np.ndarray:
    return ratio({name: values[..., kept].mean(axis=-1) for name, values in found.items()})


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "smallest": variable("smallest", parameters.smallest, "smallest eigenvalue"),
    }
