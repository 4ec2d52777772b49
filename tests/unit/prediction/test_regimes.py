"""The thresholds of the regimes are the numbers that their derivations give."""

import numpy as np
import pytest
from scipy.special import ndtr

from privreg.algorithms.huber_scales import residual_scale, scale_edges
from privreg.algorithms.warm_up import EXCURSION
from privreg.methods import private_regression
from privreg.prediction.huber import TALLEST_BIN
from privreg.prediction.predicted_error import MOST_RATIO, MOST_RATIO_WHOLE


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
