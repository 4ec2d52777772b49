"""Screened data sets: where the tube is, which rows are safe in it, and what they sum to."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.samples import ArraySamples, moments
from privreg.algorithms.screening import ScreenedSamples, screen
from privreg.privacy.budget import Budget
from privreg.privacy.release import Release

RUN = {"step_size": 0.3, "steps": 4, "lanes": 1}


def tube() -> ScreenedSamples:
    centres = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    samples = ArraySamples([[1.0, 0.0]], [0.0])
    return ScreenedSamples(samples, centres, 0.5, np.inf)


@pytest.mark.parametrize("step", [0, 1, 2, 50])
@pytest.mark.parametrize(("gap", "inside"), [(0.4, True), (0.5, True), (0.6, False)])
def test_the_tube_follows_its_centres_and_stays_at_the_last(step, gap, inside):
    centre = [0.0, 1.0, 3.0][min(step, 2)]
    for point in ([centre + gap, 0.0], [centre - gap, 0.0], [centre, gap]):
        assert tube().holds(np.array([point]).T, step=step) == inside
        # All lanes must be in it.
        pair = np.array([[centre, 0.0], point]).T
        assert tube().holds(pair, step=step) == inside


def test_sums_and_kept_rows_are_the_whole_data_set(rng):
    samples = ArraySamples(rng.standard_normal((400, 3)), rng.standard_normal(400))
    found = screen(samples, clip_norm=7.0, gradient_noise_std=0.01, start=np.zeros(3), **RUN)
    assert found is not None
    assert 0 < len(found.kept.labels) < 100
    for ours, whole in zip(found.moments(), moments(samples), strict=True):
        np.testing.assert_allclose(ours, whole, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="value must be private throughout"):
        Release(found, Budget.zcdp(1.0))


def test_without_a_clip_no_row_is_kept(rng):
    samples = ArraySamples(1e3 * rng.standard_normal((40, 3)), rng.standard_normal(40))
    run = RUN | {"step_size": 1e-9}
    found = screen(samples, clip_norm=np.inf, gradient_noise_std=0.01, start=np.zeros(3), **run)
    assert found is not None
    assert len(found.kept.labels) == 0


def test_a_row_at_the_bound_is_not_called_safe():
    """Opposite rows leave the centre at 0: their gradients are 1 long, up to rounding."""
    features = np.append([1.0, -1.0], np.full(20, 1e-3))[:, None]
    samples = ArraySamples(features, np.append([1.0, 1.0], np.zeros(20)))
    options = {"gradient_noise_std": 0.0, "start": np.zeros(1), **RUN}
    for clip_norm, kept in ((1.0 - 1e-6, 2), (1.0, 2), (1.0 + 1e-6, 0)):
        found = screen(samples, clip_norm=clip_norm, **options)
        assert found is not None
        assert len(found.kept.labels) == kept
