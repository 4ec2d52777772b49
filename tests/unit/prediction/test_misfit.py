"""Where a clip moves what is estimated."""

import numpy as np
import pytest
from scipy import integrate

from privreg.papers.privreg.private_runs import excess_risk, run
from privreg.prediction.methods import FullBatch
from privreg.prediction.misfit import NARROW, clipped_location, squared_shift
from privreg.prediction.predict import predict_risk
from privreg.prediction.problem import Problem
from privreg.prediction.rows import rows_of
from privreg.privacy.budget import Budget


def problem(**changes):
    return Problem(10_000, [0.5, 1.0, 1.5], signal=1.0, label_noise_std=0.7, **changes)


@pytest.mark.parametrize("width", [0.05, 0.7, 1.0, 2.5])
def test_the_clipped_exponential_is_that_of_a_quadrature(width):
    def density(noise):
        return np.exp(-(noise + 1))

    ends = [max(-width, -1.0), width]
    mean = integrate.quad(
        lambda noise: np.clip(noise, -width, width) * density(noise), -1, 50, points=ends
    )[0]
    inside = integrate.quad(density, *ends)[0]
    assert clipped_location(np.array(width)) == pytest.approx((mean, inside), rel=1e-9)


def test_the_narrowest_clip_moves_by_the_stated_misfit():
    mean, inside = clipped_location(np.array(1e-5))
    assert mean / inside == pytest.approx(NARROW, rel=1e-4)
    stated = problem(misfit=0.3)
    rows = rows_of(stated)
    shift = squared_shift(stated, rows, np.full((1, len(rows.weights)), 1e-5))
    explained = float(rows.total(rows.eigenvalues * shift)[0])
    assert explained == pytest.approx((0.3 * 0.7) ** 2, rel=1e-4)


def test_a_wide_clip_is_not_moved_and_a_narrow_one_is():
    narrow, wide = FullBatch(30, 0.6, 0.5), FullBatch(30, 0.6, 20.0)
    plain, stated = problem(), problem(misfit=0.2)
    budget = Budget.zcdp(1.0)
    cost = [
        predict_risk(stated, method, budget).excess_risk
        - predict_risk(plain, method, budget).excess_risk
        for method in (narrow, wide)
    ]
    assert cost[0] > 0.4 * (0.2 * 0.7) ** 2 / 2
    assert abs(cost[1]) < 1e-6


@pytest.mark.parametrize("clip_norm", [0.6, 2.0, 4.0])
def test_skewness_that_follows_a_feature_moves_a_fit_as_predicted(clip_norm):
    """With the sign of one of eight features, of which √(2/π) is linear in it."""
    linear = np.sqrt(2 / np.pi)
    stated = Problem(
        20_000, np.ones(8), signal=1.0, label_noise_std=0.7, misfit=float(-NARROW * linear)
    )
    budget, method = Budget.zcdp(1.0), FullBatch(15, 1.0, clip_norm)
    found = []
    for seed in range(6):
        rng = np.random.Generator(np.random.SFC64(seed))
        rows = rng.standard_normal((20_000, 8))
        noise = np.sign(rows[:, 0]) * (rng.standard_exponential(20_000) - 1)
        labels = rows @ stated.signal + 0.7 * noise
        found.append(float(excess_risk(stated, run(stated, method, budget, rows, labels, rng))[0]))
    # One Newton step of the location (0.36 for the median's 0.31), squared, is right to a third.
    ratio = predict_risk(stated, method, budget).excess_risk / np.mean(found)
    assert 1 / 1.5 < ratio < 1.5
