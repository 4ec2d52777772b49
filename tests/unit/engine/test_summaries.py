"""Summaries: slopes and errors against closed forms."""

import numpy as np
import pytest

from reproduction.engine.summaries import jackknife, loglog_slope, mean_and_error


def draws(*shape):
    return np.random.Generator(np.random.SFC64(0)).standard_normal(shape)


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = draws(2, 30)
    found, error = jackknife(lambda kept: values[:, kept].mean(axis=-1), 30)
    np.testing.assert_allclose(found, values.mean(axis=-1))
    np.testing.assert_allclose(error, values.std(axis=-1, ddof=1) / np.sqrt(30))


def test_the_jackknife_of_two_trials_is_infinite_and_of_an_infinite_statistic_zero():
    assert np.isinf(jackknife(lambda kept: kept.mean(), 2)[1])
    assert jackknife(lambda kept: np.inf, 5) == (np.inf, 0.0)


def test_a_power_law_has_its_slope():
    sizes = np.array([10.0, 100.0, 1000.0])
    samples = 3.0 * sizes[:, None] ** -0.5 * np.exp(0.01 * draws(3, 400))
    slope, error = loglog_slope(sizes, samples)
    assert slope == pytest.approx(-0.5, abs=4 * error)
    # Two ends at weight 1/2 and noise .01/20 each, over a log distance of ln 100.
    assert error == pytest.approx(0.01 / 20 * np.sqrt(2) / np.log(100), rel=0.1)


def test_one_trial_has_an_infinite_error():
    found = mean_and_error("loss", np.ones((3, 1)), ("point",), "the loss")
    assert np.all(np.isinf(found["loss_standard_error"][1]))


def test_an_infinite_mean_has_an_infinite_error_and_leaves_the_others():
    samples = np.array([[1.0, 3.0], [np.inf, 3.0], [np.inf, np.inf]])
    found = mean_and_error("loss", samples, ("point",), "the loss")
    np.testing.assert_array_equal(found["loss"][1], [2.0, np.inf, np.inf])
    np.testing.assert_array_equal(found["loss_standard_error"][1], [1.0, np.inf, np.inf])
