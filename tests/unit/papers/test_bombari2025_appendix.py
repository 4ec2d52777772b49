"""The recipes of the appendices' identities, the least noise and the best clipping constant."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.schedules import Polynomial, noise_multipliers, step_shape
from reproduction.papers.bombari2025.experiments import (
    appendix_identities,
    optimal_clipping,
    privacy_budget,
)

IDENTITIES = {
    "eigenvalues": [0.5, 1.5],
    "contour_points": 64,
    "exponents": [1.0, 2.0],
    "roots": [0.5],
    "failures": [1e-5],
    "descent": 4.0,
}


def test_identities_hold_where_they_should_and_fail_where_they_are_misprinted():
    found = appendix_identities.theory(appendix_identities.Parameters.model_validate(IDENTITIES))
    for name in ("contour_norm_ratio", "contour_risk_ratio", "second_order_over_corrected"):
        assert found[name].item() == pytest.approx(1.0, abs=1e-9)
    assert found.resolvent_drift_corrected.item() < 1e-9 < found.resolvent_drift_printed.item()
    assert found.second_order_over_printed.item() == pytest.approx(2.0, abs=1e-9)
    assert found.closed_form_error.item() < 1e-9
    assert found.integrating_factor_error.item() < 1e-9
    assert found.coefficient_over_printed.values[1] > 1 > found.coefficient_over_corrected.max()
    for name in ("noise_square", "simple_modes"):
        assert found[f"{name}_corrected"].item() == pytest.approx(1.0, abs=1e-9)
        assert abs(found[f"{name}_printed"].item() - 1.0) > 0.1
    # tr(Sigma^2) / tr(Sigma) of the eigenvalues 1/2 and 3/2.
    assert found.output_noise_printed.item() == pytest.approx(1.25)
    assert found.prior_mass_printed.item() < 1e-9 < 1 - 1e-9 < found.prior_mass_corrected.item()


def test_least_noise_is_what_the_first_sample_demands():
    steps = step_shape(Polynomial(1.0, 1.0), 50)
    least = privacy_budget._least_noise(steps, 0.5)
    assert least == pytest.approx((steps[0] / 0.5) ** 2, rel=1e-9)
    noise = noise_multipliers(steps, zcdp_root=0.5)
    assert np.sum(noise**2) == pytest.approx(least, rel=1e-9)


def test_a_large_constant_costs_where_private_noise_dominates():
    found = optimal_clipping.theory(
        optimal_clipping.Parameters.model_validate(
            {
                "aspect_ratios": [1e-3, 1e-4],
                "privacy_powers": [0.75],
                "clip_constants": [0.1, 1.0, 10.0],
                "label_noise_std": 0.3,
            }
        )
    )
    assert np.all(np.diff(found.risk.values, axis=2) > 0)
    np.testing.assert_array_equal(
        found.least_over_rate.values, found.risk_over_rate.min("clip_constant").values
    )
