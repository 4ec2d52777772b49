"""Spectra: quadrature against many modes and closed forms."""

import numpy as np
import pytest
from scipy.special import gamma, gammainc, gammaln

from privreg import spectra


@pytest.mark.parametrize(
    "spectrum",
    [
        spectra.isotropic(),
        spectra.uniform(),
        spectra.explicit(spectra.uniform_midpoints(30)),
        *(spectra.power_law(exponent) for exponent in (-1.0, 0.0, 0.25, 0.8)),
    ],
)
def test_mean_eigenvalue_is_one(spectrum):
    assert spectrum.mean() == pytest.approx(1, abs=1e-13)
    assert spectrum.mean(spectrum.eigenvalues) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("exponent", [0.0, 0.25, 0.8])
@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("decay", [0.1, 30.0, 1e4])
def test_power_law_transform(exponent, power, decay):
    # Closed form of the law's integral of lambda^power exp(-2 lambda decay).
    edge = spectra.power_law_edge(exponent)
    order = power + 1 - exponent
    exact = (
        (1 - exponent)
        * edge ** (exponent - 1)
        * gammainc(order, 2 * edge * decay)
        * gamma(order)
        / (2 * decay) ** order
    )
    spectrum = spectra.power_law(exponent)
    found = spectrum.mean(spectrum.eigenvalues**power * np.exp(-2 * spectrum.eigenvalues * decay))
    assert found == pytest.approx(exact, rel=1e-6)


def test_power_law_of_exponent_zero_is_uniform():
    law, flat = spectra.power_law(0.0), spectra.uniform()
    for decay in (0.5, 5.0):
        assert law.mean(np.exp(-law.eigenvalues * decay)) == pytest.approx(
            flat.mean(np.exp(-flat.eigenvalues * decay)), rel=1e-8
        )


def test_explicit_groups_equal_eigenvalues():
    spectrum = spectra.explicit([2.0, 1.0, 2.0, 0.0])
    assert spectrum.eigenvalues.tolist() == [0.0, 1.0, 2.0]
    assert spectrum.weights.tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: spectra.uniform(2.0, 1.0), "high must be more than 2"),
        (lambda: spectra.power_law(1.0), "exponent must be"),
        (lambda: spectra.Spectrum(np.ones(2), np.ones(2)), "sum 1"),
        (lambda: spectra.Spectrum(-np.ones(1), np.ones(1)), "eigenvalues must be"),
        (lambda: spectra.Spectrum(np.ones(2), np.ones(1)), "shape"),
    ],
)
def test_errors_name_the_argument(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("exponent", "signal_power"), [(0.25, 0.5), (0.0, -1.0), (0.8, 0.1)])
def test_power_law_signal(exponent, signal_power):
    spectrum, signal = spectra.power_law_with_signal(
        exponent, signal_power=signal_power, signal_scale=0.3
    )
    alone = spectra.power_law(exponent)
    np.testing.assert_array_equal(spectrum.eigenvalues, alone.eigenvalues)
    np.testing.assert_array_equal(spectrum.weights, alone.weights)
    np.testing.assert_array_equal(signal, 0.3 * alone.eigenvalues**-signal_power)
    # Initial risk, the mean of lambda D(0), in closed form.
    edge, order = spectra.power_law_edge(exponent), 2 - exponent - signal_power
    expected = 0.3 * (1 - exponent) * edge ** (1 - signal_power) / order
    assert spectrum.mean(spectrum.eigenvalues * signal) == pytest.approx(expected, rel=1e-6)


def test_power_law_signal_has_a_finite_norm_or_is_refused():
    with pytest.raises(ValueError, match="signal_power must be"):
        spectra.power_law_with_signal(0.25, signal_power=0.75)
    with pytest.raises(ValueError, match="signal_power"):
        spectra.power_law_with_signal(0.25, signal_power=np.nan)


@pytest.mark.parametrize("seed", range(12))
def test_power_law_integrates_what_it_promises_over_its_whole_domain(seed):
    rng = np.random.default_rng(seed)
    exponent = [-20.0, 0.95, -3.0][seed] if seed < 3 else 1 - 10.0 ** rng.uniform(-1.3, 1.3)
    spectrum, edge = spectra.power_law(exponent), spectra.power_law_edge(exponent)
    # What the docstring says of the panels given by default.
    powers = [(rng.uniform(0, 0.25), 1e-3), *((a, 1e-5) for a in rng.uniform(0.25, 2, 3))]
    for power, accuracy in powers:
        order = power + 1 - exponent
        for decay in 10.0 ** rng.uniform(-2, 4, 3):
            x = 2 * edge * decay
            log_front = np.log1p(-exponent) + power * np.log(edge) - order * np.log(x)
            exact = np.exp(log_front + gammaln(order)) * gammainc(order, x)
            values = spectrum.eigenvalues
            found = spectrum.mean(values**power * np.exp(-2 * values * decay))
            assert found == pytest.approx(exact, rel=accuracy)


@pytest.mark.parametrize("exponent", [0.96, -21.0])
def test_power_law_refuses_densities_that_its_rule_misses(exponent):
    with pytest.raises(ValueError, match="exponent must be"):
        spectra.power_law(exponent)
