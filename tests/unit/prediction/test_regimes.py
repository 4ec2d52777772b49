"""The thresholds of the regimes are the numbers that their derivations give."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from privreg.algorithms.huber_scales import residual_scale, scale_edges
from privreg.algorithms.warm_up import EXCURSION
from privreg.methods import full_batch_dpgd, one_pass_dpgd, private_regression
from privreg.prediction.huber import TALLEST_BIN
from privreg.prediction.problem import Problem
from privreg.prediction.regimes import MOST_RATIO, MOST_RATIO_WHOLE, too_few_rows


def test_a_full_step_is_stable_along_the_largest_curvature_of_a_sample(rng):
    """(1 + √κ)² of Marchenko and Pastur, seen in a sample, is below 2 at the largest ratio."""
    edge = (1 + np.sqrt(MOST_RATIO)) ** 2
    assert edge < 2 < (1 + np.sqrt(0.172)) ** 2
    assert (1 + np.sqrt(MOST_RATIO_WHOLE)) ** 2 == pytest.approx(1.77, abs=0.01)
    n, p = 2000, int(MOST_RATIO * 2000)
    rows = rng.standard_normal((n, p))
    largest = np.linalg.eigvalsh(rows.T @ rows / n)[-1]
    # Johnstone (2001): Tracy and Widom's law of mean -1.21 and deviation 1.27 on this scale.
    scale = (n**0.5 + p**0.5) * (n**-0.5 + p**-0.5) ** (1 / 3) / n
    assert largest == pytest.approx(edge - 1.21 * scale, abs=4 * 1.27 * scale)


def test_too_few_rows_are_told_from_enough():
    many, few = (Problem(n, np.ones(15), signal=1.0, label_noise_std=1.0) for n in (100, 99))
    assert too_few_rows(many, 1.0) is not None
    enough = Problem(137, np.ones(15), signal=1.0, label_noise_std=1.0)
    assert too_few_rows(enough, 1.0) is None
    assert too_few_rows(enough, 0.99).startswith("too few rows: 137 for 15 features")
    assert too_few_rows(few, 1.0) is not None


def test_noise_near_the_edge_of_stability_is_six_times_as_uncertain_as_curvature():
    reach, step = full_batch_dpgd.MOST_REACH, 1e-6

    def variance(r):
        return 1 / (r * (2 - r))

    change = variance(reach * (1 + step)) / variance(reach) - 1
    assert change / step == pytest.approx(6.0, rel=1e-4)


def test_heavily_clipped_curvature_falls_as_that_of_signs():
    width, step = ndtri((1 + full_batch_dpgd.LEAST_UNCLIPPED) / 2), 1e-6

    def share(scale):
        return 2 * ndtr(width / scale) - 1

    elasticity = (share(1 + step) / share(1.0) - 1) / step
    assert elasticity == pytest.approx(-0.97, abs=0.005)


def test_a_step_that_is_ten_percent_from_its_exponential_is_the_longest():
    # η E x⁴ / λ = 3ηλ for a Gaussian coordinate.
    step = one_pass_dpgd.LONGEST_STEP / 3
    decay = 2 * step - 3 * step**2
    assert -np.log(1 - decay) / decay == pytest.approx(1.10, abs=0.005)


def test_noise_of_a_scale_alone_takes_few_steps_back(rng):
    n, edges = 10_000, scale_edges(4.0)
    share = np.diff(2 * ndtr(edges) - 1, prepend=0.0, append=1.0)

    def taken_back(relative, draws=4000):
        std = relative * TALLEST_BIN * n
        counts = n * share + std * rng.standard_normal((draws, share.size))
        found = np.array([residual_scale(each, edges, sample_size=n) for each in counts])
        exact = residual_scale(n * share, edges, sample_size=n)
        return np.std(found) / exact, np.mean(found > EXCURSION * exact)

    spread, often = taken_back(private_regression.MOST_SCALE_NOISE)
    assert spread == pytest.approx(0.09, abs=0.01)
    # 0.005 with a standard error of 0.001.
    assert often == pytest.approx(0.005, abs=0.004)
    assert taken_back(2 * private_regression.MOST_SCALE_NOISE)[1] == pytest.approx(0.11, abs=0.02)


def test_the_lowest_eigenvalue_of_a_noisy_gram_matrix_stays_positive(rng):
    variance, p = private_regression.MOST_WHITENING_NOISE, 400
    noise = np.triu(rng.standard_normal((p, p)) * np.sqrt(variance / p))
    noise += np.triu(noise, 1).T
    lowest = np.linalg.eigvalsh(np.eye(p) + noise)[0]
    assert 1 - 2 * np.sqrt(variance) == pytest.approx(0.11, abs=0.005)
    # Tracy and Widom's law about the edge.
    scale = np.sqrt(variance) * p ** (-2 / 3)
    assert lowest == pytest.approx(1 - 2 * np.sqrt(variance) + 1.21 * scale, abs=4 * 1.27 * scale)


def test_what_warm_up_leaves_is_what_steps_and_matrix_bear():
    grown = np.sqrt(private_regression.MOST_EXCURSION) * (1 + private_regression.MOST_SCALE_NOISE)
    assert grown == pytest.approx(EXCURSION, rel=0.01)
    shares = 2 * ndtr(np.sqrt([1.0, private_regression.MOST_ARRIVAL])) - 1
    assert shares == pytest.approx([0.68, 0.82], abs=0.005)
    assert shares[1] / shares[0] == pytest.approx(1.2, abs=0.01)
