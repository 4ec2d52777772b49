"""Critical values that count a bias: the noncentral χ² quantile, and both ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import ncx2

from privreg.theory.huber_descent import bias_aware_quantile


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999999])
def test_it_is_the_root_of_a_noncentral_quantile(level):
    """N(t, 1)² is noncentral χ² with one degree of freedom."""
    shift = np.array([0.01, 0.3, 1.0, 2.5, 6.0, 12.0])
    expected = np.sqrt(ncx2.ppf(level, 1, shift**2))
    np.testing.assert_allclose(bias_aware_quantile(shift, level=level), expected, rtol=1e-9)


@pytest.mark.parametrize("level", [1e-6, 0.3, 0.95, 1 - 1e-12, 1 - 2.0**-53])
def test_both_ends(level):
    found = bias_aware_quantile([0.0, 39.0, 41.0, 1e12], level=level)
    assert found[0] == pytest.approx(-ndtri((1 - level) / 2), rel=1e-9)
    np.testing.assert_allclose(
        found[1:], np.array([39.0, 41.0, 1e12]) - ndtri(1 - level), rtol=1e-12
    )


def test_it_grows_with_bias_and_level():
    shifts = np.linspace(0, 50, 400)
    values = [bias_aware_quantile(shifts, level=level) for level in (0.5, 0.9, 0.99)]
    assert np.all(np.diff(values, axis=1) > 0)
    assert np.all(np.diff(values, axis=0) > 0)
