"""The deterministic equivalent against an adaptive solver, closed forms and limits."""

import numpy as np
import pytest

from privreg import spectra
from privreg.schedules import Polynomial
from privreg.theory.one_pass_dpgd import deterministic_equivalent


def test_unclipped_noiseless_isotropic_closed_form():
    # dR/dt = -(2 eta - eta^2 gamma) R + eta^2 gamma zeta^2 / 2 is linear.
    eta, gamma, zeta = 1.7, 0.2, 0.4
    times = np.array([0.0, 0.01, 0.3, 1.0])
    found = deterministic_equivalent.solve(
        spectra.isotropic(),
        Polynomial(eta, 0.0),
        aspect_ratio=gamma,
        zcdp_root=np.inf,
        clip_constant=np.inf,
        label_noise_std=zeta,
        times=times,
    )
    decay = 2 * eta - eta**2 * gamma
    plateau = eta**2 * gamma * zeta**2 / 2 / decay
    np.testing.assert_allclose(
        found.risk, plateau + (0.5 - plateau) * np.exp(-decay * times), rtol=1e-7
    )
    assert found.final_risk == pytest.approx(found.risk[-1])


def test_quadrature_equals_many_modes():
    settings = {
        "aspect_ratio": 1e-3,
        "zcdp_root": 1.0,
        "clip_constant": 0.1,
        "label_noise_std": 0.3,
    }
    schedule = Polynomial(40.0, 1.0)
    law = spectra.power_law(0.25)
    quantiles = ((np.arange(20_000) + 0.5) / 20_000) ** (1 / 0.75)
    many = spectra.explicit(spectra.power_law_edge(0.25) * quantiles)
    found = [
        float(deterministic_equivalent.solve(spectrum, schedule, **settings, rtol=1e-6).final_risk)
        for spectrum in (law, many)
    ]
    assert found[0] == pytest.approx(found[1], rel=2e-6)


def test_settings_broadcast_and_do_not_mix():
    rates = np.geomspace(0.5, 50, 4)
    clip_constants = np.array([[0.1], [1.0]])
    both = deterministic_equivalent.solve(
        spectra.uniform(nodes=8),
        Polynomial(rates, 0.5),
        aspect_ratio=0.01,
        zcdp_root=0.5,
        clip_constant=clip_constants,
        label_noise_std=0.3,
    )
    assert both.final_risk.shape == (2, 4)
    one = deterministic_equivalent.solve(
        spectra.uniform(nodes=8),
        Polynomial(rates[2], 0.5),
        aspect_ratio=0.01,
        zcdp_root=0.5,
        clip_constant=1.0,
        label_noise_std=0.3,
    )
    assert both.final_risk[1, 2] == pytest.approx(float(one.final_risk), rel=1e-6)


def test_relaxation_is_the_exponential_and_its_mean_to_rounding():
    x = np.append(np.geomspace(1e-12, 1.0, 40), np.linspace(2, 200, 40))
    kept, mean = np.transpose([deterministic_equivalent.relaxation(each) for each in x])
    np.testing.assert_allclose(kept, np.exp(-x), atol=2e-15)
    np.testing.assert_allclose(mean, -np.expm1(-x) / x, rtol=2e-15)
