"""Privacy amplification by iteration: equation (4.1) against its definition, and what it hides."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.privacy.iteration import one_pass_zcdp_root


def by_definition(steps, noise):
    ratios = []
    for k, step in enumerate(steps):
        after = np.sqrt(sum(value**2 for value in noise[k:]))
        if step > 0:
            ratios.append(step / after if after > 0 else np.inf)
    return max(ratios, default=0.0)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e200])
def test_it_is_the_largest_step_over_the_noise_that_follows(rng, scale):
    steps, noise = rng.random((3, 4, 6)) * scale, rng.random((3, 4, 6)) * scale
    found = one_pass_zcdp_root(steps, noise)
    assert found.shape == (3, 4)
    for index in np.ndindex(3, 4):
        expected = by_definition(steps[index] / scale, noise[index] / scale)
        assert found[index] == pytest.approx(expected, rel=1e-12)


def test_a_step_hides_behind_its_own_noise_and_what_follows_it_alone():
    assert one_pass_zcdp_root([1.0, 0.0], [3.0, 4.0]) == pytest.approx(1 / 5)
    assert one_pass_zcdp_root([0.0, 1.0], [3.0, 4.0]) == pytest.approx(1 / 4)
    # A step of 1/2 under noise that is larger than 1 is a step all the same.
    assert one_pass_zcdp_root([0.5], [2.0]) == pytest.approx(0.25)


def test_no_noise_hides_no_step_and_no_step_needs_no_noise():
    assert one_pass_zcdp_root([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert one_pass_zcdp_root([0.5, 0.0], [1.0, 0.0]) == pytest.approx(0.5)
    assert one_pass_zcdp_root([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert one_pass_zcdp_root([0.1, 0.0], [0.0, 0.0]) == np.inf


@pytest.mark.parametrize(
    ("steps", "noise", "name"),
    [
        ([-0.1], [1.0], "step_sizes"),
        ([0.1], [-1.0], "noise_multipliers"),
        ([0.1, 0.1], [1.0, 1.0, 1.0], "step_sizes and noise_multipliers"),
        ([], [], "step_sizes"),
    ],
)
def test_errors_name_the_argument(steps, noise, name):
    with pytest.raises(ValueError, match=name):
        one_pass_zcdp_root(steps, noise)


def test_noise_whose_squares_sum_beyond_double_precision():
    # Four noises of 1e308 are worth one of 2e308, which is no number; their quotient is one.
    found = one_pass_zcdp_root([1e10, 0.0, 0.0, 0.0], [1e308] * 4)
    assert found == pytest.approx(5e-299, rel=1e-12, abs=0)
    pair = one_pass_zcdp_root([[1e10, 0.0], [1.0, 0.0]], [[1e-310, 0.0], [3.0, 4.0]])
    assert pair[1] == pytest.approx(0.2, rel=1e-15)
