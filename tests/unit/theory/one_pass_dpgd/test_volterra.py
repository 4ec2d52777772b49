"""The Volterra form: its kernels against quadrature, its solution against the mode equations."""

import numpy as np
import pytest
from scipy.integrate import quad

from privreg import spectra
from privreg.schedules import Harmonic, Polynomial
from privreg.theory.one_pass_dpgd import deterministic_equivalent, volterra

SETTING = {"aspect_ratio": 0.01, "zcdp_root": 0.3, "clip_constant": 0.2, "label_noise_std": 0.3}
KERNELS = ("signal", "sampling", "private", "mass")


def grid(intervals):
    rising = np.geomspace(1e-4, 0.5, intervals)
    return np.concatenate([[0.0], rising, 1 - rising[-2::-1], [1.0]])


def extrapolated(kernels, schedule, times):
    finer = np.sort(np.concatenate([times, (times[1:] + times[:-1]) / 2]))
    coarse = volterra.solve(kernels, schedule, times, **SETTING)
    fine = volterra.solve(kernels, schedule, finer, **SETTING)[::2]
    return (4 * fine - coarse) / 3


@pytest.mark.parametrize(("phi", "psi"), [(0.25, 0.5), (0.0, 0.0), (0.8, 0.1), (-1.0, -3.0)])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("x", [0.0, 1e-5, 0.3, 20.0])
def test_kernels_are_the_integrals_that_define_them(phi, psi, name, x):
    edge = spectra.power_law_edge(phi)
    power, scale = {
        "signal": (1 - psi, 0.5),
        "sampling": (2.0, 1.0),
        "private": (1.0, 1.0),
        "mass": (0.0, 1.0),
    }[name]
    # The mass as coordinate removes the singularity of the density.
    expected = quad(
        lambda u: (
            scale
            * (edge * u ** (1 / (1 - phi))) ** power
            * np.exp(-2 * edge * u ** (1 / (1 - phi)) * x)
        ),
        0,
        1,
        epsabs=0,
        epsrel=1e-10,
    )[0]
    closed = getattr(volterra.power_law_kernels(phi, psi), name)(x)
    assert float(closed) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_a_spectrum_equal_the_closed_forms(name):
    spectrum = spectra.power_law(0.25)
    sums = volterra.spectrum_kernels(spectrum, 0.5 * spectrum.eigenvalues**-0.5)
    x = np.geomspace(1e-6, 1e4, 40)
    closed = getattr(volterra.power_law_kernels(0.25, 0.5), name)(x)
    # The spectrum's rule promises 1e-5.
    np.testing.assert_allclose(getattr(sums, name)(x), closed, rtol=1e-5)


def test_kernels_decay_with_the_powers_of_the_spectrum():
    kernels = volterra.power_law_kernels(0.25, 0.5)
    slopes = [
        np.log10(getattr(kernels, name)(1e3) / getattr(kernels, name)(1e2)) for name in KERNELS
    ]
    np.testing.assert_allclose(slopes, [-1.25, -2.75, -1.75, -0.75], atol=1e-10)


@pytest.mark.parametrize(
    "schedule", [Polynomial(40.0, 0.0), Polynomial(60.0, 0.5), Harmonic(8.0, 0.1)]
)
def test_agrees_with_the_mode_equations(schedule):
    times = grid(60)
    risk = extrapolated(volterra.power_law_kernels(0.25, 0.5), schedule, times)
    spectrum = spectra.power_law(0.25)
    modes = deterministic_equivalent.solve(
        spectrum, schedule, **SETTING, signal=0.5 * spectrum.eigenvalues**-0.5, times=times
    ).risk
    np.testing.assert_allclose(risk, modes, rtol=1e-3)
    # The test would notice a tenth more of the noises.
    louder = SETTING | {"aspect_ratio": 1.1 * SETTING["aspect_ratio"]}
    wrong = volterra.solve(volterra.power_law_kernels(0.25, 0.5), schedule, times, **louder)
    assert np.max(np.abs(wrong / modes - 1)) > 1e-2


def test_one_mode_without_noise_is_an_exponential():
    kernels = volterra.spectrum_kernels(spectra.isotropic())
    times = np.linspace(0, 1, 41)
    risk = volterra.solve(
        kernels,
        Polynomial(2.0, 0.0),
        times,
        aspect_ratio=1e-9,
        zcdp_root=np.inf,
        clip_constant=np.inf,
        label_noise_std=0.1,
    )
    np.testing.assert_allclose(risk, 0.5 * np.exp(-4 * times), rtol=1e-6)


def test_steps_are_no_larger_than_two_over_gamma():
    kernels, public = volterra.power_law_kernels(0.25), SETTING | {"zcdp_root": np.inf}
    risks = [volterra.solve(kernels, Polynomial(x, 0.0), grid(20), **public) for x in (200, 260)]
    np.testing.assert_array_equal(*risks)
