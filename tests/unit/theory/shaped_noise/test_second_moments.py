"""Exact second moments: against dense recursions, small steps, and simulations."""

import numpy as np
import pytest

from privreg.noise.streams import tree_matrices
from privreg.noise.toeplitz import identity
from privreg.theory.shaped_noise import (
    independent_factor,
    privacy_error,
    private_risk,
    sgd_risk,
    tree_factor,
)

LAM = np.array([1.0, 0.5, 0.2])
SHAPE = np.array([0.3, 0.6, 0.9])


def test_a_long_tree_has_the_error_of_its_factor():
    values = 1 / np.arange(1, 21.0)
    settings = {"covariance": values, "noise_std": 1.0, "step_size": 1e-7}
    found = private_risk(values, sample_size=20_000, **settings)
    factor = tree_factor(1e-7 * values, sample_size=20_000)
    known = privacy_error(factor, eigenvalues=values, sample_size=20_000, **settings)
    # What comes back is of relative order N η² λ tr(H), 1e-9 here, times a few thousand.
    assert found == pytest.approx(known, rel=1e-4, abs=0)


def test_small_steps_leave_the_error_of_mean_gradients():
    eta, size = 1e-5, 300
    settings = {"covariance": SHAPE, "noise_std": 1.0, "step_size": eta, "sample_size": size}
    known = {"eigenvalues": LAM, **settings}
    for decoder, factor in ((None, tree_factor), (identity(size), independent_factor)):
        expected = privacy_error(factor(eta * LAM, sample_size=size), **known)
        # What comes back is of relative order N η² λ tr(H), 1e-8 here, times a few hundred.
        assert private_risk(LAM, decoder=decoder, **settings) == pytest.approx(expected, rel=1e-4)


def test_one_direction_in_closed_form():
    # d = 1, one step: w_1 = η x (x w* + ζ), averaged with w_0 = 0 over N = 2.
    eta, lam, target, zeta = 0.3, 0.7, 1.5, 0.4
    parts = sgd_risk([lam], target=[target], label_noise_std=zeta, step_size=eta, sample_size=2)
    mean, square = eta * lam * target, eta**2 * (3 * lam**2 * target**2)
    assert parts.bias == pytest.approx(0.5 * lam * (square / 4 - mean * target + target**2))
    assert parts.label_noise == pytest.approx(0.5 * lam * eta**2 * lam * zeta**2 / 4)


def test_risks_are_those_of_simulated_runs():
    rng = np.random.Generator(np.random.SFC64(7))
    runs, size, eta, std, zeta = 60_000, 12, 0.35, 0.8, 0.5
    target = np.array([1.0, -0.5, 0.7])
    decoder = tree_matrices(size - 1)[1]
    white = rng.standard_normal((decoder.shape[1], runs, 3)) * np.sqrt(SHAPE) * std
    plain, noisy = np.zeros((runs, 3)), np.zeros((runs, 3))
    sums = [np.zeros((runs, 3)), np.zeros((runs, 3))]
    for step in range(size - 1):
        x = rng.standard_normal((runs, 3)) * np.sqrt(LAM)
        y = x @ target + zeta * rng.standard_normal(runs)
        plain -= eta * x * (np.sum(x * plain, axis=1) - y)[:, None]
        noisy -= eta * (
            x * np.sum(x * noisy, axis=1)[:, None] + np.tensordot(decoder[step], white, 1)
        )
        sums[0] += plain
        sums[1] += noisy
    found = [0.5 * (sums[0] / size - target) ** 2 @ LAM, 0.5 * (sums[1] / size) ** 2 @ LAM]
    expected = [
        sgd_risk(LAM, target=target, label_noise_std=zeta, step_size=eta, sample_size=size).total,
        private_risk(LAM, covariance=SHAPE, noise_std=std, step_size=eta, sample_size=size),
    ]
    for risks, value in zip(found, expected, strict=True):
        error = risks.std() / np.sqrt(runs)
        assert abs(risks.mean() - value) < 4 * error
        # Noise of two thirds or three halves the size would be seen.
        assert abs(risks.mean() * 4 / 9 - value) > 10 * error
        assert abs(risks.mean() * 9 / 4 - value) > 10 * error


def test_an_unstable_step_is_infinite_not_a_warning():
    parts = sgd_risk([5.0], target=[1.0], label_noise_std=1.0, step_size=10.0, sample_size=400)
    assert parts.total == np.inf
    assert (
        private_risk([5.0], covariance=[1.0], noise_std=1.0, step_size=10.0, sample_size=400)
        == np.inf
    )


def test_no_noise_costs_nothing():
    assert private_risk(LAM, covariance=SHAPE, noise_std=0.0, step_size=0.1, sample_size=9) == 0.0
