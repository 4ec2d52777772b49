"""Rows of a stated law, and runs of every method that can be predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms import one_pass_dpgd
from privreg.algorithms.adassp import Bounds, adassp_zcdp, clipped_sums
from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.samples import ArraySamples
from privreg.noise.toeplitz import damped_square_root
from privreg.prediction.methods import AdaSSP, CorrelatedNoise, FullBatch, OnePass
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]


def draw(problem: Problem, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Features and labels of a problem."""
    n, p = problem.sample_size, problem.dimension
    if problem.feature_law == "one_hot":
        rows = np.zeros((n, p))
        shares = problem.eigenvalues / problem.eigenvalues.sum()
        rows[np.arange(n), rng.choice(p, size=n, p=shares)] = 1.0
    else:
        if problem.feature_law == "uniform":
            rows = rng.uniform(-np.sqrt(3), np.sqrt(3), (n, p))
        elif problem.feature_law == "student_t5":
            rows = rng.standard_t(5, (n, p))
            rows *= np.sqrt(0.6)
        else:
            rows = rng.standard_normal((n, p))
        rows *= np.sqrt(problem.eigenvalues)
    labels = rows @ problem.signal + problem.label_noise_std * rng.standard_normal(n)
    return rows, labels


def run(
    problem: Problem,
    method: Any,
    budget: Budget,
    samples: ArraySamples,
    rng: np.random.Generator,
    *,
    runs: int = 1,
) -> FloatArray:
    """Coefficients of several runs on the same rows, shape (runs, p)."""
    n, p = samples.sample_size, samples.dimension
    if isinstance(method, FullBatch):
        noise = full_batch_noise_std(
            clip_norm=method.clip_norm,
            rho=budget.rho,
            sample_size=n,
            gradients=method.steps,
            neighbours=budget.neighbours,
        )
        return full_batch_dpgd(
            samples,
            clip_norm=method.clip_norm,
            step_size=method.step_size,
            gradient_noise_std=noise,
            steps=method.steps,
            rng=rng,
            runs=runs,
            times=[method.steps],
            screening=False,
            sample_size=n,
        ).iterates[:, 0]
    if isinstance(method, AdaSSP):
        bounds = Bounds(problem.feature_norm, problem.label_bound)
        sums = clipped_sums(samples, bounds=bounds)
        found = [
            adassp_zcdp(
                sums, bounds=bounds, budget=budget, rng=rng, ridge_failure=method.ridge_failure
            )
            for _ in range(runs)
        ]
    elif isinstance(method, OnePass):
        mechanism = one_pass_dpgd.Mechanism.from_schedule(
            method.schedule,
            sample_size=n,
            dimension=p,
            budget=budget,
            clip_constant=method.clip_constant,
        )
        rows = samples.features, samples.labels
        found = [one_pass_dpgd.fit(mechanism, *rows, rng)[0] for _ in range(runs)]
    elif isinstance(method, CorrelatedNoise):
        correlated = FTRLMechanism.for_budget(
            damped_square_root(-(-n // method.batch_size), damping=method.damping),
            clip_norm=method.clip_norm,
            budget=budget,
            sample_size=n,
            batch_size=method.batch_size,
        )
        found = [
            dp_ftrl(samples, mechanism=correlated, step_size=method.step_size, rng=rng).iterates[-1]
            for _ in range(runs)
        ]
    else:
        found = [
            huber_descent(
                samples,
                feature_norm=problem.feature_norm,
                label_bound=problem.label_bound,
                budget=budget,
                settings=method,
                rng=rng,
                sample_size=n,
            ).value.parameters
            for _ in range(runs)
        ]
    return np.array(found)


def excess_risk(problem: Problem, coefficients: FloatArray) -> FloatArray:
    """Half the squared prediction error over the best one's, shape (runs,)."""
    return np.asarray((coefficients - problem.signal) ** 2 @ problem.eigenvalues / 2)
