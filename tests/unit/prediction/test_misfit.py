"""Where a clip moves what is estimated."""

import numpy as np
import pytest
from scipy.special import ndtri

from privreg.algorithms.samples import ArraySamples
from privreg.methods.clipping import squared_scales, squared_shift
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.problem import LABEL_NOISE_LAWS, Problem, rows_of
from privreg.privacy.budget import Budget
from reproduction.studies.private_runs import excess_risk


def problem(**changes):
    return Problem(10_000, [0.5, 1.0, 1.5], signal=1.0, label_noise_std=0.7, **changes)


@pytest.mark.parametrize("law", LABEL_NOISE_LAWS)
@pytest.mark.parametrize("width", [0.2, 1.7])
def test_the_part_explained_is_that_of_a_list_of_residuals(law, width):
    """The rest of the score about its multiple of the residual, from a normal law's quantiles."""
    squares, weights = squared_scales(law)
    normal = ndtri((np.arange(10**5) + 0.5) / 10**5)
    residuals = 0.7 * np.sqrt(squares)[:, None] * normal
    score = np.clip(residuals, -width, width)

    def mean(values):
        return float(weights @ values.mean(axis=1))

    rest = score - mean(score * residuals) / mean(residuals**2) * residuals
    expected = 0.3**2 * mean(rest**2) / mean(np.abs(residuals) <= width) ** 2
    stated = problem(misfit=0.3, label_noise_law=law)
    rows = rows_of(stated)
    shift = 0.3**2 * squared_shift(stated, rows, np.full((1, len(rows.weights)), width))
    assert float(rows.total(rows.eigenvalues * shift)[0]) == pytest.approx(expected, rel=5e-3)


def test_shortened_rows_move_what_is_estimated_even_without_a_clip():
    """With a score ℓ r the rest is the spread of ℓ."""
    stated = problem(misfit=0.3)
    rows = rows_of(stated)
    leverage = np.linspace(0.5, 1.0, len(rows.weights))
    wide = np.full((1, len(rows.weights)), 100.0)
    shift = 0.3**2 * squared_shift(stated, rows, wide, leverage=leverage)
    expected = (0.3 * 0.7) ** 2 * leverage.var() / leverage.mean() ** 2
    assert float(rows.total(rows.eigenvalues * shift)[0]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("clip_norm", [0.6, 4.0])
def test_skewness_that_follows_a_feature_moves_a_fit_as_predicted(clip_norm):
    """With the sign of one of eight features; κ is measured at the clip."""
    rng = np.random.Generator(np.random.SFC64(99))
    budget, method, truth = Budget.zcdp(1.0), FullBatchDPGD(15, 1.0, clip_norm), np.full(8, 8**-0.5)

    def draw(n):
        rows = rng.standard_normal((n, 8))
        noise = 0.7 * np.sign(rows[:, 0]) * (rng.standard_exponential(n) - 1)
        return rows, noise

    rows, noise = draw(200_000)
    width = clip_norm / np.linalg.norm(rows, axis=1)
    score = np.clip(noise, -width, width)
    rest = score - (score @ noise) / (noise @ noise) * noise
    misfit = float(np.linalg.norm(rows.T @ rest / len(rest)) / rest.std())
    stated = Problem(
        20_000,
        np.ones(8),
        signal=1.0,
        label_noise_std=0.7,
        label_noise_law="student_t5",
        misfit=misfit,
    )
    found = []
    for _ in range(6):
        rows, noise = draw(20_000)
        fitted = method.simulate(ArraySamples(rows, rows @ truth + noise), budget, rng)
        found.append(float(excess_risk(stated, fitted)[0]))
    # One Newton step, and a law of the same kurtosis for the exponential one.
    ratio = method.predict(stated, budget).excess_risk / np.mean(found)
    assert 0.5 < ratio < 2.0
