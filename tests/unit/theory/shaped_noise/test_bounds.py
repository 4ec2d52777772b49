"""Bounds: their exponents, their parts by hand, and what they are when nothing is private."""

import numpy as np
import pytest

from privreg.theory.shaped_noise import rates
from privreg.theory.shaped_noise.bounds import (
    designed_bound,
    fitted_exponent,
    general_bound,
    identity_bound,
    minimise_over_step_size,
)
from privreg.theory.shaped_noise.decay import (
    ExponentialDecay,
    FiniteDecay,
    PowerLawDecay,
    effective_dimension,
)


def exponent(bound, decay, sizes, *, power=0.0, noise=1.0, **options):
    """Fitted exponent of the minimised bound at τ = noise · N^-power."""
    values = [
        minimise_over_step_size(
            lambda eta, n=n: (
                bound(
                    decay,
                    sample_size=n,
                    step_size=eta,
                    noise_multiplier=noise * n**-power,
                    **options,
                ).total
            ),
            sample_size=n,
        ).value
        for n in sizes
    ]
    return fitted_exponent(sizes, values)


@pytest.mark.parametrize("r", [1.5, 2.0, 3.0, 4.0, 5.0, 6.0])
def test_minimised_bounds_have_the_exponents_of_the_table(r):
    sizes, decay = np.geomspace(1e16, 1e24, 7), PowerLawDecay(r)
    assert exponent(identity_bound, decay, sizes, noise=0.0) == pytest.approx(
        rates.nonprivate_exponent(r), abs=0.005
    )
    assert exponent(identity_bound, decay, sizes) == pytest.approx(
        rates.identity_exponent(r), abs=0.005
    )
    assert exponent(designed_bound, decay, sizes) == pytest.approx(
        rates.designed_exponent(r), abs=0.005
    )


def test_exponential_decay_nears_its_exponents_at_enormous_sizes():
    sizes = np.geomspace(1e60, 1e90, 7)
    found = [
        exponent(identity_bound, ExponentialDecay(), sizes, noise=0.0),
        exponent(identity_bound, ExponentialDecay(), sizes),
        exponent(designed_bound, ExponentialDecay(), sizes),
    ]
    np.testing.assert_allclose(found, [1, 1 / 2, 2 / 3], atol=0.02)


@pytest.mark.parametrize("r", [2.0, 4.0])
def test_the_threshold_of_epsilon_recovers_the_rate_without_privacy(r):
    sizes, decay = np.geomspace(1e16, 1e24, 7), PowerLawDecay(r)
    for bound, threshold in (
        (identity_bound, rates.identity_threshold),
        (designed_bound, rates.designed_threshold),
    ):
        found = exponent(bound, decay, sizes, power=threshold(r))
        assert found == pytest.approx(rates.nonprivate_exponent(r), abs=0.01)
        # Half the power is not enough.
        assert exponent(bound, decay, sizes, power=threshold(r) / 2) < found - 0.05


def test_parts_by_hand():
    decay, size, eta = FiniteDecay([1.0, 0.5, 0.01]), 10.0, 0.4
    dimension = float(effective_dimension(decay, 4.0))
    assert dimension == pytest.approx(2.04)
    common = {
        "sample_size": size,
        "step_size": eta,
        "noise_multiplier": 3.0,
        "target_norm": 2.0,
        "label_noise_std": 0.5,
        "residual_scale": 1.5,
    }
    identity = identity_bound(decay, **common)
    designed = designed_bound(decay, **common)
    np.testing.assert_allclose(identity[:2], [1.0, (0.025 + 4 / 40) * dimension])
    np.testing.assert_allclose(designed[:2], identity[:2])
    assert identity.private == pytest.approx(20.25 * 0.4 * dimension)
    assert designed.private == pytest.approx(
        20.25 * (0.16 * 1.2501 * dimension + dimension**3 / 10)
    )


def test_general_bound_is_the_least_over_cutoffs_of_its_formula():
    lam = np.array([1.0, 0.5, 0.2, 0.01])
    target, shape = np.array([1.0, -0.5, 0.3, 0.2]), lam + 0.1
    size, eta, tau, psi, zeta = 50, 0.2, 0.3, 1.7, 0.6
    horizon, sums = size * eta, []
    for k in range(1, 5):
        head = np.arange(4) < k
        q = np.where(head, 1.0, horizon * lam)
        r = np.where(head, 1 / lam, horizon**2 * lam)
        g = eta * np.sum(lam * shape) * q + (psi**2 + psi**4 + 1) * shape
        spread = k / size + size * eta**2 * np.sum(lam[~head] ** 2)
        bias = np.sum(target[head] ** 2 / lam[head]) / horizon**2
        bias += np.sum(lam[~head] * target[~head] ** 2)
        bias += np.sum(q * target**2) / (horizon * (1 - eta * lam.sum())) * spread
        variance = zeta**2 * (1 + eta * np.sum(q * lam)) * spread
        private = tau**2 * (eta * np.sum(q * g) * spread + np.sum(r * g) / size)
        sums.append((bias, variance, private))
    found = general_bound(
        lam,
        target=target,
        covariance=shape,
        sample_size=size,
        step_size=eta,
        noise_multiplier=tau,
        clip_norm=psi,
        label_noise_std=zeta,
    )
    np.testing.assert_allclose(found, min(sums, key=sum), rtol=1e-12)


def test_general_bound_is_infinite_where_the_theorem_is_silent():
    found = general_bound(
        [1.0, 1.0],
        target=[1.0, 0.0],
        covariance=[1.0, 1.0],
        sample_size=10,
        step_size=0.5,
        noise_multiplier=0.0,
        clip_norm=1.0,
        label_noise_std=1.0,
    )
    assert found.total == np.inf


def test_the_minimum_is_found_between_grid_points():
    best = minimise_over_step_size(lambda eta: (np.log(eta) + 3.21) ** 2, sample_size=1e8)
    assert np.log(best.step_size) == pytest.approx(-3.21, abs=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: identity_bound(
                PowerLawDecay(2.0), sample_size=0.5, step_size=0.1, noise_multiplier=1.0
            ),
            "sample_size must be",
        ),
        (lambda: fitted_exponent([1.0, 1.0], [1.0, 2.0]), "at least two sizes"),
        (lambda: fitted_exponent([1.0, 2.0], [1.0, 0.0]), "values must be"),
        (
            lambda: general_bound(
                [0.5, 1.0],
                target=[1.0, 1.0],
                covariance=[1.0, 1.0],
                sample_size=10,
                step_size=0.1,
                noise_multiplier=1.0,
                clip_norm=1.0,
                label_noise_std=1.0,
            ),
            "eigenvalues must be non-increasing",
        ),
    ],
)
def test_values_out_of_range_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
