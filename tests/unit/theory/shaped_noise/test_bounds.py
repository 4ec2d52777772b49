"""Bounds: their exponents, their parts by hand, and what they are when nothing is private."""

import numpy as np
import pytest

from privreg.theory.shaped_noise import bounds
from privreg.theory.shaped_noise.bounds import (
    ExponentialDecay,
    PowerLawDecay,
    designed_bound,
    fitted_exponent,
    general_bound,
    identity_bound,
    minimise_over_step_size,
)

# Up to whole numbers that doubles hold; terms of lower order, 1 / ln N among them, are still seen.
SIZES = np.geomspace(1e11, 2.0**53, 7)


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
    sizes, decay = SIZES, PowerLawDecay(r)
    assert exponent(identity_bound, decay, sizes, noise=0.0) == pytest.approx(
        bounds.nonprivate_exponent(r), abs=0.02
    )
    assert exponent(identity_bound, decay, sizes) == pytest.approx(
        bounds.identity_exponent(r), abs=0.02
    )
    assert exponent(designed_bound, decay, sizes) == pytest.approx(
        bounds.designed_exponent(r), abs=0.02
    )


def test_exponential_decay_nears_its_exponents():
    found = [
        exponent(identity_bound, ExponentialDecay(), SIZES, noise=0.0),
        exponent(identity_bound, ExponentialDecay(), SIZES),
        exponent(designed_bound, ExponentialDecay(), SIZES),
    ]
    np.testing.assert_allclose(found, [1, 1 / 2, 2 / 3], atol=0.1)


@pytest.mark.parametrize("r", [2.0, 4.0])
def test_the_threshold_of_epsilon_recovers_the_rate_without_privacy(r):
    sizes, decay = SIZES, PowerLawDecay(r)
    for bound, threshold in (
        (identity_bound, bounds.identity_threshold),
        (designed_bound, bounds.designed_threshold),
    ):
        found = exponent(bound, decay, sizes, power=threshold(r))
        assert found == pytest.approx(bounds.nonprivate_exponent(r), abs=0.02)
        # Half the power is not enough.
        assert exponent(bound, decay, sizes, power=threshold(r) / 2) < found - 0.05


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
