"""Predicted against simulated errors, a method at a time, at sizes that take seconds."""

from functools import partial

import numpy as np
import pytest

from privreg.algorithms import one_pass_dpgd
from privreg.algorithms.adassp import Bounds, adassp_zcdp
from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.samples import ArraySamples
from privreg.noise.toeplitz import damped_square_root
from privreg.prediction.methods import AdaSSP, CorrelatedNoise, FullBatch, OnePass
from privreg.prediction.predict import predict_risk
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic

ACCURACY = 0.10


def draw(problem, rng):
    n, p = problem.sample_size, problem.dimension
    if problem.feature_law == "one_hot":
        rows = np.eye(p)[rng.choice(p, size=n, p=problem.eigenvalues)]
    elif problem.feature_law == "student_t5":
        rows = np.sqrt(0.6 * problem.eigenvalues) * rng.standard_t(5, (n, p))
    else:
        rows = np.sqrt(problem.eigenvalues) * rng.standard_normal((n, p))
    return rows, rows @ problem.signal + problem.label_noise_std * rng.standard_normal(n)


def run(problem, method, budget, rows, labels, rng):
    """Coefficients of one run."""
    n, p = rows.shape
    samples = ArraySamples(rows, labels)
    match method:
        case FullBatch(steps, step_size, clip_norm):
            noise = full_batch_noise_std(
                clip_norm=clip_norm, rho=budget.rho, sample_size=n, gradients=steps
            )
            return full_batch_dpgd(
                samples,
                clip_norm=clip_norm,
                step_size=step_size,
                gradient_noise_std=noise,
                steps=steps,
                rng=rng,
                times=[steps],
                screening=False,
            ).iterates[0, 0]
        case OnePass(schedule, clip_constant):
            mechanism = one_pass_dpgd.Mechanism.from_schedule(
                schedule, sample_size=n, dimension=p, budget=budget, clip_constant=clip_constant
            )
            return one_pass_dpgd.fit(mechanism, rows, labels, rng)[0]
        case CorrelatedNoise(batch_size, step_size, clip_norm, damping):
            steps = -(-n // batch_size)
            mechanism = FTRLMechanism.for_budget(
                damped_square_root(steps, damping=damping),
                clip_norm=clip_norm,
                budget=budget,
                sample_size=n,
                batch_size=batch_size,
            )
            return dp_ftrl(samples, mechanism=mechanism, step_size=step_size, rng=rng).iterates[-1]
        case AdaSSP():
            bounds = Bounds(problem.feature_norm, problem.label_bound)
            return adassp_zcdp(samples, bounds=bounds, budget=budget, rng=rng)
    released = huber_descent(
        samples,
        feature_norm=problem.feature_norm,
        label_bound=problem.label_bound,
        budget=budget,
        settings=method,
        rng=rng,
    )
    return released.value.parameters


gaussian = partial(Problem, signal=1.0, label_noise_std=0.7)
heavy = partial(gaussian, feature_law="student_t5")
one_hot = partial(Problem, signal=5.0, label_noise_std=0.7, feature_law="one_hot")
WIDE = np.geomspace(0.1, 1, 20) * 20 / np.geomspace(0.1, 1, 20).sum()
CASES = {
    "full batch": (gaussian(3000, WIDE), FullBatch(15, 0.5, 2.5), 0.02, 40),
    "full batch, few rows": (heavy(1000, np.ones(60)), FullBatch(10, 0.9, 8.0), 2.0, 30),
    "full batch, one-hot": (one_hot(2000, np.full(25, 1 / 25)), FullBatch(8, 30.0, 0.7), 0.05, 60),
    "one pass": (heavy(2000, WIDE), OnePass(Harmonic(1.6, 0.1), 0.6), 0.05, 60),
    "one pass, one-hot": (
        one_hot(4000, np.full(25, 1 / 25)),
        OnePass(Harmonic(40.0, 0.1), 0.12),
        0.05,
        60,
    ),
    "correlated noise": (gaussian(3000, WIDE), CorrelatedNoise(60, 0.1, 3.0, 0.05), 0.1, 60),
    "sufficient statistics": (heavy(2000, WIDE), AdaSSP(), 0.05, 60),
    "private Huber": (
        gaussian(3000, WIDE),
        HuberSettings(clip_width=0.8, gram_share=0.2, moment_share=0.0),
        0.3,
        60,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_prediction_is_within_ten_percent_of_simulations(name):
    problem, method, rho, runs = CASES[name]
    budget = Budget.zcdp(rho)
    found = predict_risk(problem, method, budget)
    assert found.holds, found.reason
    errors = []
    for number in range(runs):
        rng = np.random.Generator(np.random.SFC64([20250516, number]))
        rows, labels = draw(problem, rng)
        errors.append(run(problem, method, budget, rows, labels, rng) - problem.signal)
    squares = np.array(errors) ** 2
    for predicted, simulated in (
        (found.excess_risk, squares @ problem.eigenvalues / 2),
        (found.parameter_error, squares.sum(axis=1)),
    ):
        error = simulated.std(ddof=1) / np.sqrt(runs)
        within = ACCURACY * predicted + 3 * error
        assert simulated.mean() == pytest.approx(predicted, abs=within)
        # Such a test refuses predictions that are half or twice as large.
        assert within < 0.33 * predicted
    # A standard deviation from so few runs is good to a quarter.
    spread = (squares @ problem.eigenvalues / 2).std(ddof=1)
    assert 0.6 < spread / found.excess_risk_std < 1.6
