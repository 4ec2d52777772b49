"""The general bound where its theorem says nothing."""

import numpy as np

from privreg.theory.shaped_noise.bounds import general_bound


def test_general_bound_is_infinite_where_the_theorem_is_silent():
    found = general_bound(
        [1.0, 1.0],
        target=[1.0, 0.0],
        covariance=[1.0, 1.0],
        sample_size=10,
        step_size=0.5,
        noise_multiplier=0.0,
        clip_norm=1.0,
        label_noise_std=1.0,
    )
    assert found.total == np.inf
