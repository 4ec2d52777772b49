"""What bombari2025's assumptions ask for, on designs that keep them and on some that do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from reproduction.papers.bombari2025.experiments import assumptions

PARAMETERS = {
    "dimensions": [10, 50],
    "spectrum_powers": [-1.0, 0.0, 0.25],
    "exponents": [0.0, 0.25, 0.5, 1.0],
    "aspect_ratio": 0.5,
    "clip_constant": 3.0,
    "sample_size": 200,
}


def test_designs_keep_the_assumptions() -> None:
    found = assumptions.theory(assumptions.Parameters.model_validate(PARAMETERS))
    np.testing.assert_allclose(found.trace_ratio, 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.target_norm, 1.0, rtol=1e-12)
    assert found.largest_eigenvalue.max() <= 2
    np.testing.assert_allclose(found.mean_eigenvalue, 1.0, rtol=1e-9)
    assert found.moment_error.max() < 1e-5
    assert found.eigenvalue_std.sel(spectrum_power=0.0) == pytest.approx(1 / np.sqrt(3), rel=1e-9)


def test_exponents_between_zero_and_one_half_have_no_bounded_curvature() -> None:
    growth = [assumptions.curvature_growth(exponent) for exponent in (0.0, 0.5, 1.0, 3.0)]
    np.testing.assert_allclose(growth, 1.0, atol=1e-3)
    # The second derivative is (1 - t)^(2 alpha - 2), up to a factor.
    assert assumptions.curvature_growth(0.75) == pytest.approx(1e3**0.5, rel=0.03)
    assert assumptions.curvature_growth(0.25) == pytest.approx(1e3**1.5, rel=0.05)


@pytest.mark.parametrize(("ratio", "clip"), [(0.5, 3.0), (0.1, 1.0), (0.9, 0.5)])
def test_the_discretisation_error_has_the_factor_of_the_proof(ratio: float, clip: float) -> None:
    parameters = assumptions.Parameters.model_validate(
        PARAMETERS | {"aspect_ratio": ratio, "clip_constant": clip}
    )
    found = assumptions.discretisation(parameters)
    # n - 1 of n terms, each the same; half of the bound by Taylor's formula.
    assert found["discretisation_over_corrected"] == pytest.approx(0.5 * 199 / 200, rel=1e-9)
    assert found["discretisation_over_printed"] == pytest.approx(
        0.5 * 199 / 200 * ratio * clip**2, rel=1e-9
    )


def test_gradients_are_of_the_stated_order_and_not_of_the_printed_norm() -> None:
    """The median of a normal's size is 0.67, and it is within a tenth of 1 one time in ten."""
    found = assumptions.theory(assumptions.Parameters.model_validate(PARAMETERS))
    median = float(found.gradient_median.sel(dimension=10))
    assert 0.6 < median / np.sqrt(10 * (1 + 0.3**2)) < 0.75
    share = float(found.typical_share.sel(dimension=10))
    exact = 2 * (norm.cdf(1.1) - norm.cdf(0.9))
    assert abs(share - exact) < 4 * np.sqrt(exact / assumptions.GRADIENTS)
