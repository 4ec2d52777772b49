"""Clipping factors against quadrature, their limits and their monotonicity."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from privreg.theory.one_pass_dpgd import deterministic_equivalent as solver
from privreg.theory.one_pass_dpgd.deterministic_equivalent import descent_factor, variance_factor

RATIOS = [1e-3, 0.049, 0.1, 0.9, 1.0, 2.5, 8.0]


@pytest.mark.parametrize("ratio", RATIOS)
def test_factors_are_the_moments_of_the_definition(ratio):
    risk, label_noise_std = 0.7, 0.4
    clip_constant = ratio * np.sqrt(2 * risk + label_noise_std**2)

    def moment(function):
        inside = quad(lambda r: function(r) * norm.pdf(r), 0, ratio, epsabs=1e-14)[0]
        outside = quad(lambda r: function(r) * norm.pdf(r), ratio, 40, epsabs=1e-14)[0]
        return 2 * (inside + outside)

    assert descent_factor(
        risk, clip_constant=clip_constant, label_noise_std=label_noise_std
    ) == pytest.approx(moment(lambda r: r * min(r, ratio)), rel=1e-10)
    assert variance_factor(
        risk, clip_constant=clip_constant, label_noise_std=label_noise_std
    ) == pytest.approx(moment(lambda r: min(r, ratio) ** 2), rel=1e-10)
    kernel = solver._coefficients(risk, 2.0, clip_constant, label_noise_std**2 / 2, 0.1)
    factors = moment(lambda r: r * min(r, ratio)), moment(lambda r: min(r, ratio) ** 2)
    assert kernel == pytest.approx(np.array(factors) * [2.0, 0.4 * 0.78], rel=1e-10)


def test_no_clipping_leaves_everything():
    assert descent_factor(1.0, clip_constant=np.inf, label_noise_std=0.3) == 1
    assert variance_factor(1.0, clip_constant=np.inf, label_noise_std=0.3) == 1


def test_small_constants_keep_their_digits():
    ratio = 1e-7
    assert variance_factor(
        0.0, clip_constant=ratio, label_noise_std=1.0
    ) / ratio**2 == pytest.approx(1 - np.sqrt(2 / np.pi) * ratio * 2 / 3, rel=1e-9)
    assert descent_factor(0.0, clip_constant=ratio, label_noise_std=1.0) / ratio == pytest.approx(
        np.sqrt(2 / np.pi), rel=1e-12
    )


def test_factors_broadcast_and_increase_with_the_constant():
    clip_constant = np.geomspace(1e-3, 5, 40)
    for factor in (descent_factor, variance_factor):
        values = factor(np.array([[0.1], [1.0]]), clip_constant=clip_constant, label_noise_std=0.3)
        assert values.shape == (2, 40)
        assert np.all(np.diff(values, axis=1) > 0)
        assert np.all((values > 0) & (values <= 1))
