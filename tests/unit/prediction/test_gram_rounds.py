"""The rounds of the private Gram matrix on expectations, and how often they fail."""

import numpy as np
import pytest

from privreg.algorithms.huber_descent import HuberSettings, huber_descent
from privreg.algorithms.samples import ArraySamples
from privreg.methods.huber import FARTHEST, Whitening
from privreg.methods.problem import Problem, rows_of
from privreg.privacy.budget import Budget

N, P = 3000, 3
VALUES = np.array([0.2, 0.8, 2.0])
PROBLEM = Problem(N, VALUES, signal=1.0, label_noise_std=1.0)


def rounds(settings, rho, *, problem=PROBLEM):
    rows = rows_of(problem)
    shrink = np.minimum(1, problem.feature_norm / rows.norms)
    return Whitening(problem, rows, settings, Budget.zcdp(rho), shrink)


def step_lengths(settings, rho, runs):
    """Tr WᵀΣW / p of runs, as the algorithm leaves it."""
    found = []
    for seed in range(runs):
        rng = np.random.Generator(np.random.SFC64([7, seed]))
        rows = rng.standard_normal((N, P)) * np.sqrt(VALUES)
        whitening = huber_descent(
            ArraySamples(rows, rows @ PROBLEM.signal + rng.standard_normal(N)),
            feature_norm=PROBLEM.feature_norm,
            label_bound=PROBLEM.label_bound,
            budget=Budget.zcdp(rho),
            settings=settings,
            rng=rng,
        ).value.whitening
        found.append(np.trace(whitening.T @ np.diag(VALUES) @ whitening) / P)
    return np.array(found)


def test_with_budget_to_spare_nothing_goes_astray_and_steps_are_of_length_one():
    found = rounds(HuberSettings(gram_rounds=3), 10.0)
    assert found.overshooting == 0
    # Rows beyond the last round's cap are shortened: a little too long, never too short.
    assert 1 <= found.squares @ VALUES / P < 1.2
    assert found.variance < 1e-3


@pytest.mark.parametrize(("rho", "shares"), [(0.003, (0.01, 0.05)), (0.0006, (0.01, 0.05))])
def test_runs_go_astray_as_often_as_foreseen(rho, shares):
    """Within a factor of 3, or both rare: a tail is foreseen by its order of magnitude."""
    settings = HuberSettings(
        gram_rounds=2, norm_share=shares[0], gram_share=shares[1], moment_share=0.0
    )
    lengths = step_lengths(settings, rho, 250)
    seen = np.mean((lengths > FARTHEST) | (lengths < 1 / FARTHEST))
    foreseen = rounds(settings, rho).overshooting
    assert foreseen < 3 * seen + 0.02
    assert foreseen > seen / 3 - 0.02


def test_the_mean_of_the_last_matrix_has_its_noise_counted():
    """In one round at 1 coordinate all noise is that of the mean: √2 c² / (n √(2ρ)) over λ."""
    problem = Problem(N, [1.0], signal=1.0, label_noise_std=1.0)
    settings = HuberSettings(gram_rounds=1)
    found = rounds(settings, 1.0, problem=problem)
    # A cap at the longest tenth: 1 to 2 times the declared bound of √2.
    least = np.sqrt(2) / (N * np.sqrt(2 * settings.gram_share))
    assert least**2 < found.variance < 2 * (2 * 2 * least) ** 2
