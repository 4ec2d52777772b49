"""The deterministic equivalent against an adaptive solver, closed forms and limits."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from privreg import spectra
from privreg.schedules import Harmonic, Polynomial
from privreg.theory.one_pass_dpgd import deterministic_equivalent
from privreg.theory.one_pass_dpgd.clipping import descent_factor, variance_factor

FIGURE_1 = {"aspect_ratio": 0.1, "zcdp_root": 1.0, "clip_constant": 1.0, "label_noise_std": 0.3}


def reference(
    spectrum, schedule, *, aspect_ratio, zcdp_root, clip_constant, label_noise_std, signal=0.5
):
    """The same equations through scipy, with the noise as a derivative instead of a difference."""
    weights, values = spectrum.weights, spectrum.eigenvalues
    amplitude = float(schedule.amplitude)

    def slope(t, state):
        risk = weights @ (values * state)
        rate = amplitude * float(schedule.shape(t))
        step = 1e-6
        later, earlier = min(t + step, 1.0), max(t - step, 0.0)
        squares = [(amplitude * float(schedule.shape(at))) ** 2 for at in (earlier, later)]
        noise = (squares[0] - squares[1]) / (later - earlier) / zcdp_root**2
        taken = min(rate, 2 / aspect_ratio)
        descent = descent_factor(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
        variance = variance_factor(
            risk, clip_constant=clip_constant, label_noise_std=label_noise_std
        )
        return (
            -2 * values * taken * descent * state
            + values * taken**2 * variance * (risk + label_noise_std**2 / 2) * aspect_ratio
            + 2 * clip_constant**2 * noise * aspect_ratio**2
        )

    start = np.broadcast_to(signal, values.shape).astype(float)
    found = solve_ivp(slope, (0, 1), start, method="LSODA", rtol=1e-9, atol=1e-12)
    risk = float(weights @ (values * found.y[:, -1]))
    last = amplitude * float(schedule.shape(1.0))
    return risk + 2 * (clip_constant * last * aspect_ratio / zcdp_root) ** 2


@pytest.mark.parametrize(
    ("spectrum", "exponent", "final"),
    [
        (spectra.isotropic(), 0.0, 0.192240),
        (spectra.uniform(), 0.0, 0.198599),
        (spectra.isotropic(), 0.5, 0.097209),
        (spectra.uniform(), 0.5, 0.091536),
    ],
)
def test_figure_1_ends(spectrum, exponent, final):
    found = deterministic_equivalent.solve(spectrum, Polynomial(3.0, exponent), **FIGURE_1)
    assert found.final_risk == pytest.approx(final, abs=2e-6)
    assert found.error < 1e-6


@pytest.mark.parametrize(
    "schedule", [Polynomial(4.0, 0.0), Polynomial(9.0, 1.0), Harmonic(2.0, 0.1)]
)
@pytest.mark.parametrize("clip_constant", [0.02, 0.7])
def test_agrees_with_an_adaptive_solver(schedule, clip_constant):
    spectrum = spectra.uniform(nodes=12)
    settings = {
        "aspect_ratio": 0.05,
        "zcdp_root": 0.8,
        "clip_constant": clip_constant,
        "label_noise_std": 0.2,
    }
    signal = 0.5 + spectrum.eigenvalues
    found = deterministic_equivalent.solve(spectrum, schedule, **settings, signal=signal)
    assert found.final_risk == pytest.approx(
        reference(spectrum, schedule, **settings, signal=signal), rel=2e-6
    )


def test_rates_above_the_cap_still_pay_for_their_noise():
    settings = {"aspect_ratio": 0.5, "zcdp_root": 1.0, "clip_constant": 0.1, "label_noise_std": 0.3}
    schedule = Polynomial(20.0, 1.0)
    found = deterministic_equivalent.solve(spectra.isotropic(), schedule, **settings)
    assert found.final_risk == pytest.approx(
        reference(spectra.isotropic(), schedule, **settings), rel=1e-5
    )


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
    many = spectra.explicit(spectra.power_law_quantiles(20_000, 0.25))
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"aspect_ratio": 0.0}, "aspect_ratio must.*0.0"),
        ({"zcdp_root": -1.0}, "zcdp_root must.*-1.0"),
        ({"clip_constant": np.inf}, "clip_constant must.*inf"),
        ({"label_noise_std": -0.1}, "label_noise_std must.*-0.1"),
        ({"times": [0.5, 0.2]}, "times"),
    ],
)
def test_values_out_of_range_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        deterministic_equivalent.solve(
            spectra.isotropic(), Polynomial(1.0, 0.0), **FIGURE_1 | change
        )
