"""Privacy amplification by iteration: equation (4.1) against its definition, and what it hides."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.privacy.iteration import one_pass_zcdp_root


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_it_is_the_largest_step_over_the_noise_that_follows(rng, scale):
    steps, noise = rng.random((3, 4, 6)) * scale, rng.random((3, 4, 6)) * scale
    found = one_pass_zcdp_root(steps, noise)
    assert found.shape == (3, 4)
    for index in np.ndindex(3, 4):
        after = [np.sqrt(np.sum(noise[index][k:] ** 2)) for k in range(6)]
        assert found[index] == pytest.approx(np.max(steps[index] / after), rel=1e-12)


@pytest.mark.parametrize(
    ("steps", "noise", "root"),
    [
        # A step hides behind its own noise and what follows it alone.
        ([1.0, 0.0], [3.0, 4.0], 1 / 5),
        ([0.0, 1.0], [3.0, 4.0], 1 / 4),
        ([0.5], [2.0], 0.25),
        # No noise hides no step, and no step needs no noise.
        ([0.5, 0.5], [1.0, 0.0], np.inf),
        ([0.5, 0.0], [1.0, 0.0], 0.5),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.1, 0.0], [0.0, 0.0], np.inf),
        # Four noises of 1e308 are worth one of 2e308, which is no number; their quotient is one.
        ([1e10, 0.0, 0.0, 0.0], [1e308] * 4, 5e-299),
    ],
)
def test_what_hides_a_step(steps, noise, root):
    assert one_pass_zcdp_root(steps, noise) == pytest.approx(root, rel=1e-12, abs=0)


def test_noise_of_very_different_settings():
    pair = one_pass_zcdp_root([[1e10, 0.0], [1.0, 0.0]], [[1e-310, 0.0], [3.0, 4.0]])
    assert pair[1] == pytest.approx(0.2, rel=1e-15)
