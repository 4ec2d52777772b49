"""Problems to plan for, and for each the best setting of a grid, chosen by simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.samples import ArraySamples
from privreg.methods.adassp import AdaSSP
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.huber import PrivateHuber
from privreg.methods.method import Declared
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.problem import FEATURE_LAWS, Problem
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic, Polynomial
from reproduction.studies.private_runs import draw, excess_risk, problem_of

FloatArray = NDArray[np.float64]
LARGEST = 1e6
# (settings, runs of each) by round, so that poor settings are dropped early.
ROUNDS = ((106, 3), (20, 8), (5, 24))
PROBLEM_SEED = 1000
# Bounds that are declared for standardised tables, in standard deviations.
FEATURE_BOUND, LABEL_BOUND = 4.0, 5.0
# What is stated of a table: the features explain this share of the labels' variance, evenly over
# coefficients or over variance; noise is well-behaved, or heavy-tailed and explained in part.
STATED = ((0.4, "coefficients", "gaussian", 0.0), (0.9, "variance", "student_t3", 0.3))


@dataclass(frozen=True, eq=False)
class Case:
    """Problem to plan for: the truth, what is stated to the plan, and a source of rows."""

    name: str
    truth: Problem
    budget: Budget
    stated: tuple[Problem, ...]
    draw: Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]


def synthetic_case(number: int, largest_sample: int) -> Case:
    """One of a fixed list of problems; the plan knows the truth."""
    rng = np.random.Generator(np.random.SFC64(PROBLEM_SEED + number))
    n = round(float(np.exp(rng.uniform(np.log(1500), np.log(largest_sample)))))
    p = int(rng.choice([3, 5, 10, 20, 40]))
    law = FEATURE_LAWS[number % 4]
    price = 10 ** rng.uniform(-1, 1.3)
    noise, norm = float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([0.5, 1.0, 2.0]))
    spectrum = np.geomspace(float(rng.choice([1.0, 0.3, 0.05])), 1.0, p)
    problem = problem_of(n, spectrum, norm=norm, noise=noise, law=law)
    budget = Budget.zcdp(max(2 * p / (n * price), 2e-4))
    return Case(f"synthetic {number}", problem, budget, (problem,), lambda rng: draw(problem, rng))


def table_case(
    name: str, features: FloatArray, labels: FloatArray, *, sample_size: int, rho: float
) -> Case:
    """Standardised table as a population; a range of problems is stated to the plan.

    The sizes, bounds, the features' second moment and the labels' variance are public. The signal's
    direction and size, and the law of the noise, are not.
    """
    features = np.clip(_standardised(features), -FEATURE_BOUND, FEATURE_BOUND)
    features = features - features.mean(axis=0)
    labels = _standardised(labels)
    values, vectors = np.linalg.eigh(features.T @ features / len(features))
    rotated = features @ vectors
    coefficients = rotated.T @ labels / len(labels) / values
    p = len(values)
    bounds = {"feature_norm": 2 * np.sqrt(p), "label_bound": LABEL_BOUND}
    noise = float(np.std(labels - rotated @ coefficients))
    truth = Problem(sample_size, values, signal=coefficients, label_noise_std=noise, **bounds)
    stated = []
    for share, even, law, misfit in STATED:
        squares = share / p / values
        if even == "coefficients":
            squares = np.full(p, share / values.sum())
        told = {"label_noise_std": np.sqrt(1 - share), "label_noise_law": law, "misfit": misfit}
        stated.append(Problem(sample_size, values, signal=np.sqrt(squares), **told, **bounds))

    def rows(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        chosen = rng.integers(len(labels), size=sample_size)
        return rotated[chosen], labels[chosen]

    return Case(f"{name}, rho = {rho:g}", truth, Budget.zcdp(rho), tuple(stated), rows)


def leading_components(features: FloatArray, components: int) -> FloatArray:
    """The features, or the first `components` principal components if there are more features."""
    if features.shape[1] <= components:
        return features
    centred = features - features.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ vectors[:, : -components - 1 : -1])


def column_as_labels(
    features: FloatArray, labels: FloatArray, column: int
) -> tuple[FloatArray, FloatArray]:
    """A table in which a feature and the labels are exchanged."""
    changed = features.copy()
    changed[:, column] = labels
    return changed, features[:, column].copy()


def risks(case: Case, methods: Sequence[Any], rng: np.random.Generator) -> FloatArray:
    """Excess risk of a run of each method on the same rows, with noise of the same seed.

    A method of None predicts the mean.
    """
    samples = ArraySamples(*case.draw(rng))
    seed = int(rng.integers(2**63))
    return np.array(
        [
            _risk(case, method, samples, np.random.Generator(np.random.SFC64(seed)))
            for method in methods
        ]
    )


def best_of_grid(case: Case, rng: np.random.Generator) -> Any:
    """The setting of `grid` with least mean error; each round has fewer settings and more runs."""
    methods = grid(case.truth, case.budget)
    total = np.zeros(len(methods))
    for kept, repeats in ROUNDS:
        order = np.argsort(total)[:kept]
        methods, total = [methods[at] for at in order], total[order]
        for _ in range(repeats):
            total = total + risks(case, methods, rng)
    return methods[int(np.argmin(total))]


def grid(problem: Problem, budget: Budget) -> list[Any]:
    """A hundred and six settings, in units of the true problem."""
    n, p, noise = problem.sample_size, problem.dimension, problem.label_noise_std
    largest, mean = float(problem.eigenvalues.max()), float(problem.eigenvalues.mean())
    unit = noise * float(np.sqrt(problem.eigenvalues.sum()))
    natural = max(1.0, 1 / budget.root) * p / n
    first = PrivateHuber(moment_share=0.0)
    found: list[Any] = [
        FullBatchDPGD(steps, size / largest, clip * unit)
        for steps, size, clip in product((4, 10, 25), (0.4, 0.8, 1.4), (0.5, 1.0, 2.0, 4.0))
    ]
    found += [
        OnePassDPGD(Harmonic(rate / mean, offset * natural), clip * noise * np.sqrt(mean))
        for rate, offset, clip in product((1.0, 1.6, 2.5, 5.0), (0.5, 2.0, 8.0), (0.4, 0.8, 1.6))
    ]
    found += [
        OnePassDPGD(Polynomial(rate / mean, 0.5), clip * noise * np.sqrt(mean))
        for rate, clip in product((2.0, 4.0, 8.0), (0.4, 0.8, 1.6))
    ]
    found += [
        replace(
            first,
            clip_width=width,
            gram_share=gram,
            scale_share=scale,
            warm_up_steps=steps,
            warm_up_share=share,
        )
        for width, (gram, scale), (steps, share) in product(
            (0.5, 0.9, 1.4, 2.0), ((0.05, 0.03), (0.15, 0.1)), ((2, 0.1), (4, 0.15))
        )
    ]
    found += [
        CorrelatedNoise(max(1, n // steps), size / largest, 1.2 * unit, damping)
        for steps, size, damping in product((20, 60), (0.1, 0.3), (1.0, 0.05))
    ]
    return [*found, AdaSSP()]


def _risk(case: Case, method: Any, samples: ArraySamples, noise: np.random.Generator) -> float:
    truth = case.truth
    if method is None:
        return truth.null_risk
    try:
        declared = Declared.of(truth)
        fitted = method.simulate(samples, case.budget, noise, declared=declared)[0]
    except ValueError:
        # Runs may diverge beyond the range of double precision.
        return LARGEST
    with np.errstate(over="ignore"):
        return min(float(excess_risk(truth, fitted)), LARGEST)


def _standardised(values: FloatArray) -> FloatArray:
    centred = values - values.mean(axis=0)
    return np.asarray(centred / np.maximum(centred.std(axis=0), 1e-12))
