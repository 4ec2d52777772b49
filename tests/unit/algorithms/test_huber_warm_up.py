"""Warm-up steps of private Huber regression that carry noise are taken back."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.huber_scales import HIDDEN, residual_scale, scale_edges, scale_is_hidden
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.warm_up import EXCURSION, UNSEEN_SCALE
from privreg.privacy.budget import Budget

LABEL_BOUND = 6.0


def generator(seed):
    return np.random.Generator(np.random.SFC64(seed))


def fits(n, p, rho, seeds):
    for seed in range(seeds):
        rng = generator(seed)
        features = rng.standard_normal((n, p))
        labels = features @ np.full(p, p**-0.5) + rng.standard_normal(n)
        yield huber_descent(
            ArraySamples(features, labels),
            feature_norm=2 * np.sqrt(p),
            label_bound=LABEL_BOUND,
            budget=Budget.zcdp(rho),
            settings=HuberSettings(moment_share=0.0),
            rng=rng,
        ).value


def taken_back(fit):
    return [not np.any(matrix) for matrix in fit.step_matrices]


def test_where_noise_is_small_no_step_is_taken_back():
    for fit in fits(5000, 5, 0.1, seeds=6):
        assert not any(taken_back(fit))


def test_a_step_that_is_taken_back_leaves_no_trace_and_the_clip_does_not_run_away():
    """Without taking steps back the scale ends beyond its start in most of these fits."""
    seen, ratios = 0, []
    for fit in fits(1200, 30, 0.05, seeds=20):
        before = np.zeros(30)
        for back, iterate in zip(taken_back(fit), fit.iterates, strict=True):
            assert np.array_equal(before, iterate) == back
            seen += back
            before = iterate
        assert not any(taken_back(fit)[fit.settings.warm_up_steps :])
        assert fit.start_scale <= LABEL_BOUND
        ratios.append(fit.residual_scale / fit.start_scale)
    assert max(ratios) <= EXCURSION**fit.settings.warm_up_steps
    assert seen > 10
    assert np.median(ratios) <= 1.0


def test_a_hidden_scale_is_a_share_of_the_label_bound():
    for fit in fits(100, 5, 0.01, seeds=5):
        assert fit.start_scale == fit.residual_scale == UNSEEN_SCALE * LABEL_BOUND
        assert taken_back(fit) == [True] * 4 + [False] * 3


@pytest.mark.parametrize(("noise", "often"), [(0.6 * HIDDEN, False), (2 * HIDDEN, True)])
def test_scales_are_called_hidden_where_they_are_mistaken(noise, often):
    """A factor of 2 is a mistake; 4,000 records, a true scale in the middle of the grid."""
    rng, n, truth = generator(0), 4000, 0.3
    edges = scale_edges(1.0)
    counts = np.histogram(np.abs(truth * rng.standard_normal(n)), [0, *edges, np.inf])[0]
    found = np.array(
        [
            residual_scale(
                counts + noise * n * rng.standard_normal(counts.size), edges, sample_size=n
            )
            for _ in range(1000)
        ]
    )
    mistaken = np.mean(np.abs(np.log2(found / truth)) > 1)
    # A share of 0.02 or of 0.15 has a standard error of at most 0.011.
    assert mistaken > 0.15 if often else mistaken < 0.02
    assert scale_is_hidden(noise_std=noise * n, sample_size=n) == often
