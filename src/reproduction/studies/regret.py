"""What a plan is judged by: the best setting of a grid, chosen on simulations of the truth."""

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
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.private_regression import PrivateRegression
from privreg.methods.runs import Declared
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic, Polynomial
from reproduction.studies.private_runs import excess_risk

FloatArray = NDArray[np.float64]
Draw = Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]
LARGEST = 1e6
# Settings that are kept for a round, and its runs of each: what is far behind is dropped early.
ROUNDS = ((106, 3), (20, 8), (5, 24))


@dataclass(frozen=True, eq=False)
class Case:
    """A problem to plan for.

    Attributes
    ----------
    name : str
    truth : Problem
        What holds; for a table, the moments of all of its rows.
    budget : Budget
    stated : tuple of Problem
        What the plan is told.
    draw : callable
        From a generator to features and labels of `truth.sample_size` rows.
    """

    name: str
    truth: Problem
    budget: Budget
    stated: tuple[Problem, ...]
    draw: Draw


def risks(case: Case, methods: Sequence[Any], rng: np.random.Generator) -> FloatArray:
    """Excess risk of a run of each method on the same rows, with noise of the same seed.

    Parameters
    ----------
    case : Case
    methods : sequence
        Settings, or None for predicting the mean.
    rng : Generator
    """
    samples = ArraySamples(*case.draw(rng))
    seed = int(rng.integers(2**63))
    found = np.empty(len(methods))
    for at, method in enumerate(methods):
        noise = np.random.Generator(np.random.SFC64(seed))
        found[at] = _risk(case, method, samples, noise)
    return found


def best_of_grid(case: Case, rng: np.random.Generator) -> Any:
    """The setting of `grid` of least mean error, in rounds of ever fewer settings and more runs.

    Parameters
    ----------
    case : Case
    rng : Generator
        Of rows and noise that nothing else is judged by.
    """
    methods = grid(case.truth, case.budget)
    total, runs = np.zeros(len(methods)), 0
    for kept, repeats in ROUNDS:
        order = np.argsort(total)[:kept]
        methods, total = [methods[at] for at in order], total[order]
        for _ in range(repeats):
            total = total + risks(case, methods, rng)
        runs += repeats
    return methods[int(np.argmin(total))]


def grid(problem: Problem, budget: Budget) -> list[Any]:
    """A hundred and six settings, in units of the truth.

    Parameters
    ----------
    problem : Problem
    budget : Budget
    """
    n, p, noise = problem.sample_size, problem.dimension, problem.label_noise_std
    largest, mean = float(problem.eigenvalues.max()), float(problem.eigenvalues.mean())
    unit = noise * float(np.sqrt(problem.eigenvalues.sum()))
    natural = max(1.0, 1 / budget.root) * p / n
    first = PrivateRegression(moment_share=0.0)
    return [
        *(
            FullBatchDPGD(steps, size / largest, clip * unit)
            for steps, size, clip in product((4, 10, 25), (0.4, 0.8, 1.4), (0.5, 1.0, 2.0, 4.0))
        ),
        *(
            OnePassDPGD(Harmonic(rate / mean, offset * natural), clip * noise * np.sqrt(mean))
            for rate, offset, clip in product(
                (1.0, 1.6, 2.5, 5.0), (0.5, 2.0, 8.0), (0.4, 0.8, 1.6)
            )
        ),
        *(
            OnePassDPGD(Polynomial(rate / mean, 0.5), clip * noise * np.sqrt(mean))
            for rate, clip in product((2.0, 4.0, 8.0), (0.4, 0.8, 1.6))
        ),
        *(
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
        ),
        *(
            CorrelatedNoise(max(1, n // steps), size / largest, 1.2 * unit, damping)
            for steps, size, damping in product((20, 60), (0.1, 0.3), (1.0, 0.05))
        ),
        AdaSSP(),
    ]


def _risk(case: Case, method: Any, samples: ArraySamples, noise: np.random.Generator) -> float:
    truth = case.truth
    if method is None:
        return truth.null_risk
    try:
        declared = Declared.of(truth)
        fitted = method.simulate(samples, case.budget, noise, declared=declared)[0]
    except ValueError:
        # Iterates that leave double precision.
        return LARGEST
    with np.errstate(over="ignore"):
        return min(float(excess_risk(truth, fitted)), LARGEST)
