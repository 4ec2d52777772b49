"""The variance of a clipped normal keeps its digits at every clip."""

import pytest

from privreg.algorithms.noisy_sgd import clipped_normal_variance


@pytest.mark.parametrize("clip", [1e-100, 1e-30, 1e-9, 1e-4])
def test_a_small_clip_leaves_two_points(clip):
    """All but 2 phi(0) c of the mass lies at ±c; the rest makes a third of its square."""
    lost = 2 * 0.3989422804014327 * clip
    assert clipped_normal_variance(clip) / clip**2 == pytest.approx(
        1 - 2 / 3 * lost, abs=lost**2 + 1e-15
    )


def test_both_forms_meet():
    below, above = clipped_normal_variance(1 - 1e-13), clipped_normal_variance(1.0)
    assert below == pytest.approx(above, rel=1e-12)
