"""The prior, the tracing attack and the Bayes risk behind the minimax lower bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pydantic import Field

from privreg.schedules import Polynomial
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, per, stage
from reproduction.engine.summaries import jackknife, trials_last
from reproduction.papers.bombari2025.setting import Clipped, eigenvalues

PLACE = "Theorem 3, Lemmas D.6, D.7 and D.8"
# Targets move by this much for the derivative; the estimator is smooth but for few clipped samples.
STEP = 1e-5


class Parameters(Clipped):
    """DP-GD under the tracing prior, and ridge regression under its own Gaussian prior."""

    dimension: q.Dimension = Field(description="Dimension d.")
    sample_size: q.SampleSize = Field(description="Samples n, more than d.")
    budget: q.StatedBudget = Field(description="Budget of the private output.")
    initial_rate: q.StepSize = Field(description="Initial learning rate of DP-GD.")
    exponent: q.Power = Field(description="Exponent alpha of its schedule.")
    replicates: q.Plural[q.Count] = Field(description="Targets and data sets per trial.")
    smallest: q.Some[q.Share] = Field(
        description="Smallest eigenvalue of each uniform spectrum; 1 is isotropic."
    )

    def eigenvalues(self, smallest: float) -> np.ndarray:
        name = "isotropic" if smallest == 1 else "uniform"
        return eigenvalues(name, self.dimension, smallest)


AXES = {"smallest": Axis("smallest eigenvalue", "smallest")}
MEAN = "mean over replicates of the"
TRACING = {
    "attack": f"{MEAN} sum of the tracing attacks on the samples used",
    "divergence": f"{MEAN} noise variance times the divergence of the estimator in the target",
    "fresh_attack": f"{MEAN} tracing attack on a sample that was not used",
    "fresh_square": f"{MEAN} its square",
    "zero_attack": "attack of the output 0 on an unused sample, divided by its root mean square",
    "risk": f"{MEAN} excess risk of the estimator",
    "squared_error": f"{MEAN} squared error of the estimator",
}


@per(
    prior_drift="prior mean of minus z times the score",
    squared_norm="prior mean of the target's squared norm, the squared error of estimate 0",
    prior_information="prior mean of the squared score, divided by the dimension",
)
def prior(parameters: Parameters) -> dict:
    """Identities of the prior."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edge = parameters.dimension**-0.5
    place, weight = edge * nodes, edge * weights
    density = prior_density(place, parameters.dimension)
    score = prior_score(place, parameters.dimension)
    return {
        "prior_drift": np.sum(weight * density * -place * score),
        "squared_norm": parameters.dimension * np.sum(weight * density * place**2),
        "prior_information": np.sum(weight * density * score**2) / parameters.dimension,
    }


@per(
    **TRACING,
    bayes_risk=Quantity("mean excess risk of the Bayes estimator", "smallest"),
    bayes_trace=Quantity(
        "mean of (noise variance / n) times tr((X'X/n + lambda I)^-1 Sigma)", "smallest"
    ),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """A trial's means over replicates of the terms of both proofs."""
    replicates = range(parameters.replicates)
    traced = np.mean([_traced(parameters, trial.rng) for _ in replicates], axis=0)
    bayes = [
        np.mean([_ridge(parameters, values, trial.rng) for _ in replicates], axis=0)
        for values in map(parameters.eigenvalues, parameters.smallest)
    ]
    risk, trace = np.transpose(bayes)
    return dict(zip(TRACING, traced, strict=True)) | {"bayes_risk": risk, "bayes_trace": trace}


@per(
    tracing_ratio=Estimate("tracing attacks divided by their value by Stein's identity"),
    tracing_over_lower=Estimate("tracing attacks divided by their lower bound"),
    tracing_over_upper=Estimate("tracing attacks divided by their upper bound under privacy"),
    fresh_attack=Estimate("mean of an attack on an unused sample, divided by its root mean square"),
    zero_attack=Estimate("mean of an attack of the output 0, divided by its root mean square"),
    used_attack=Estimate(
        "mean attack on a used sample, divided by the root mean square of one on an unused sample"
    ),
    fresh_square_ratio=Estimate(
        "mean square of an attack on an unused sample, divided by 2 zeta^2 times the risk"
    ),
)
def tracing(parameters: Parameters, simulation: Dataset) -> dict:
    """Ratios that the lemmas of the tracing attack fix or bound."""
    noise = parameters.label_noise_std**2
    lower = noise * parameters.dimension
    upper = parameters.sample_size * np.sqrt(np.expm1(parameters.budget.root**2))

    return _jackknifed(
        simulation,
        lambda m: {
            "tracing_ratio": m["attack"] / m["divergence"],
            "tracing_over_lower": m["attack"] / (lower * (1 - np.sqrt(10 * m["squared_error"]))),
            "tracing_over_upper": m["attack"] / (upper * np.sqrt(2 * noise * m["risk"])),
            "fresh_attack": m["fresh_attack"] / np.sqrt(m["fresh_square"]),
            "zero_attack": m["zero_attack"],
            "used_attack": m["attack"] / parameters.sample_size / np.sqrt(m["fresh_square"]),
            "fresh_square_ratio": m["fresh_square"] / (2 * noise * m["risk"]),
        },
    )


@per(
    "smallest",
    bayes_over_trace=Estimate("Bayes risk divided by the trace expression of equation (D.157)"),
    bayes_over_printed_bound=Estimate("Bayes risk divided by the lower bound as printed"),
)
def bayes(parameters: Parameters, simulation: Dataset) -> dict:
    """Ratios that the lemma of the Gaussian prior fixes or bounds."""
    noise = parameters.label_noise_std**2
    largest = np.array([parameters.eigenvalues(each).max() for each in parameters.smallest])
    bound = noise * parameters.dimension / (4 * largest * parameters.sample_size)

    return _jackknifed(
        simulation,
        lambda m: {
            "bayes_over_trace": m["bayes_risk"] / m["bayes_trace"],
            "bayes_over_printed_bound": m["bayes_risk"] / bound,
        },
    )


theory = stage(AXES, prior)
simulate = stage(AXES, run)
summarise = stage(AXES, tracing, bayes)


def _jackknifed(
    simulation: Dataset, ratios: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
) -> dict[str, tuple]:
    """Ratios of means over trials, with standard errors."""
    values = {str(name): trials_last(array) for name, array in simulation.data_vars.items()}
    trials = simulation.sizes["trial"]

    def of(kept: np.ndarray) -> dict[str, np.ndarray]:
        return ratios({name: array[..., kept].mean(axis=-1) for name, array in values.items()})

    found = jackknife(lambda kept: np.array(list(of(kept).values())), trials)
    return dict(zip(of(np.arange(trials)), zip(*found, strict=True), strict=True))


def prior_density(coordinate: np.ndarray, dimension: int) -> np.ndarray:
    r"""Density of one of d independent coordinates of the target, equation (D.133), 0 outside.

    .. math:: \pi(z) = \frac{15 d^{5/2}}{16}\Big(\frac1d - z^2\Big)^2, \qquad |z| < d^{-1/2}
    """
    left = np.maximum(1 / dimension - coordinate**2, 0.0)
    return np.asarray(15 * dimension**2.5 / 16 * left**2)


def prior_score(coordinate: np.ndarray, dimension: int) -> np.ndarray:
    r"""Score of the prior, :math:`\pi'(z)/\pi(z) = -4z / (1/d - z^2)`, inside its support.

    Its identities are :math:`\mathbb E[-z\,\pi'/\pi] = 1`, which the paper prints with a second
    minus in front of equation (D.134), and :math:`\mathbb E[(\pi'/\pi)^2] = 10 d`.
    """
    edge = 1 / np.sqrt(dimension)
    # The product form is positive for every number inside.
    return np.asarray(-4 * coordinate / ((edge - coordinate) * (edge + coordinate)))


def sample_prior(rng: np.random.Generator, dimension: int) -> np.ndarray:
    """Target from the prior, shape (dimension,), of norm less than 1."""
    return np.asarray((2 * rng.beta(3, 3, dimension) - 1) / np.sqrt(dimension))


def _traced(parameters: Parameters, rng: np.random.Generator) -> tuple[float, ...]:
    """Terms of the tracing attack, in the order of `TRACING`."""
    from privreg.algorithms import one_pass_dpgd
    from reproduction.papers.bombari2025 import mechanisms

    shape = parameters.sample_size, parameters.dimension
    schedule = Polynomial(parameters.initial_rate, parameters.exponent)
    released = mechanisms.mechanism(parameters.budget, schedule, *shape, parameters.clip_constant)
    target = sample_prior(rng, parameters.dimension)
    features = rng.standard_normal(shape)
    noise = parameters.label_noise_std * rng.standard_normal(parameters.sample_size)
    direction = rng.choice([-1.0, 1.0], parameters.dimension)
    seed = int(rng.integers(2**63))

    def estimate(truth: np.ndarray) -> np.ndarray:
        # The same private noise for all targets, else no derivative.
        private = np.random.Generator(np.random.SFC64(seed))
        return one_pass_dpgd.fit(released, features, features @ truth + noise, private)[0]

    error = estimate(target) - target
    change = estimate(target + STEP * direction) - estimate(target - STEP * direction)
    other_noise = parameters.label_noise_std * rng.standard_normal(parameters.sample_size)
    unused = rng.standard_normal(shape)
    fresh, of_zero = other_noise * (unused @ error), other_noise * (unused @ -target)
    squared = float(error @ error)
    return (
        float(noise @ features @ error),
        float(parameters.label_noise_std**2 * direction @ change / (2 * STEP)),
        float(fresh.mean()),
        float(np.mean(fresh**2)),
        float(of_zero.mean() / np.sqrt(np.mean(of_zero**2))),
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
