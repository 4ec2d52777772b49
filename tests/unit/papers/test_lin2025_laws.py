"""The dense laws of lin2025 by two routes, and what is read of the risks along the paths."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from reproduction.papers.lin2025.dense_laws import evolved_laws, small_case, stacked_law
from reproduction.papers.lin2025.experiments.risk_paths import noise_increments
from reproduction.papers.lin2025.setting import Design


def design() -> Design:
    return Design(
        dimension=8,
        sample_size=60,
        step_size=0.05,
        ridge=0.1,
        scaled_label_noise_std=0.1,
        label_noise_clip=3.0,
    )


def test_moment_equations_have_the_law_of_the_stacked_noises() -> None:
    """Differential equations of the moments against linear maps of independent noises."""
    law, pair = small_case(design(), 8, 1.5)
    position, time = 2.0, 7.0
    start = [stacked_law(law, record, [position], position) for record in pair]
    for record, (mean, covariance) in zip(
        pair, evolved_laws(law, start, position, time), strict=True
    ):
        later_mean, later_covariance = stacked_law(law, record, [time], position)
        np.testing.assert_allclose(mean, later_mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(covariance, later_covariance, rtol=1e-9, atol=1e-11)
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(covariance, 1.001 * later_covariance, rtol=1e-4)


def test_least_rise_has_the_standard_error_of_its_iteration() -> None:
    """Two noise scales whose rise is least, and noisier, at the last iteration."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((400, 3)) * np.array([0.0, 0.1, 0.5])
    lower = rng.standard_normal((400, 3))
    risk = np.stack([lower, lower + np.array([0.0, 2.0, 1.0]) + noise])
    law = np.stack([np.zeros((400, 3)), np.tile([0.0, 2.0, 1.0], (400, 1))])
    law[1, 7, 1] = 0.5
    dims = ("gradient_noise_std", "trial", "step")
    simulation = xr.Dataset(
        {"risk": ((*dims, "clip_norm"), risk[..., None]), "law_risk": (dims, law)}
    )
    found = noise_increments.function(simulation)
    least, error = found["least_noise_increment"]
    assert least[0] == pytest.approx(1.0, abs=0.1)
    assert error[0] == pytest.approx(0.5 / 20, rel=0.15)
    assert found["least_law_increment"][0] == 0.5
