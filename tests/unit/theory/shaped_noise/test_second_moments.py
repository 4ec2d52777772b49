"""Exact second moments: against dense recursions, small steps, and simulations."""

import numpy as np
import pytest

from privreg.noise.toeplitz import identity
from privreg.theory.shaped_noise.privacy_error import independent_factor, privacy_error, tree_factor
from privreg.theory.shaped_noise.second_moments import private_risk, sgd_risk

LAM = np.array([1.0, 0.5, 0.2])
SHAPE = np.array([0.3, 0.6, 0.9])


def test_small_steps_leave_the_error_of_mean_gradients():
    eta, size = 1e-5, 300
    settings = {"covariance": SHAPE, "noise_std": 1.0, "step_size": eta, "sample_size": size}
    known = {"eigenvalues": LAM, **settings}
    for decoder, factor in ((None, tree_factor), (identity(size), independent_factor)):
        expected = privacy_error(factor(eta * LAM, sample_size=size), **known)
        # What comes back is of relative order N η² λ tr(H), 1e-8 here, times a few hundred.
        assert private_risk(LAM, decoder=decoder, **settings) == pytest.approx(expected, rel=1e-4)


def test_an_unstable_step_is_infinite_not_a_warning():
    parts = sgd_risk([5.0], target=[1.0], label_noise_std=1.0, step_size=10.0, sample_size=400)
    assert parts.total == np.inf
    assert (
        private_risk([5.0], covariance=[1.0], noise_std=1.0, step_size=10.0, sample_size=400)
        == np.inf
    )


def test_no_noise_costs_nothing():
    assert private_risk(LAM, covariance=SHAPE, noise_std=0.0, step_size=0.1, sample_size=9) == 0.0
