"""Sensitivities: closed forms against quadrature, several participations against brute force."""

from __future__ import annotations

import math
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad

from privreg.noise import sensitivity, toeplitz

PARTICIPATION = {"participations": st.integers(1, 4), "separation": st.integers(1, 5)}


def patterns(steps: int, participations: int, separation: int):
    """Every set of at most k steps at least b apart."""
    for size in range(1, participations + 1):
        for chosen in combinations(range(steps), size):
            if all(later - earlier >= separation for earlier, later in pairwise(chosen)):
                yield chosen


def brute_force(matrix: np.ndarray, chosen_sets) -> float:
    """Largest norm over sets of steps and signs of the gradients' changes along one direction."""
    return max(
        math.hypot(*(matrix[:, list(chosen)] @ np.array([1, *signs])))
        for chosen in chosen_sets
        for signs in product((1, -1), repeat=len(chosen) - 1)
    )


@st.composite
def non_increasing(draw):
    drops = draw(arrays(float, draw(st.integers(1, 9)), elements=st.floats(0, 1)))
    return 0.1 + np.cumsum(drops[::-1])[::-1]


@given(column=non_increasing(), **PARTICIPATION)
def test_several_participations_equal_brute_force(column, participations, separation):
    exact = brute_force(
        toeplitz.dense_matrix(column), patterns(len(column), participations, separation)
    )
    found = sensitivity.multi_participation_sensitivity(
        column, participations=participations, separation=separation
    )
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    bound = sensitivity.multi_participation_bound(
        column, participations=participations, separation=separation
    )
    assert bound == found


@given(
    column=arrays(
        float, st.integers(1, 8), elements=st.floats(-1, 1, allow_subnormal=False)
    ).filter(lambda c: c.any()),
    **PARTICIPATION,
)
def test_bound_is_never_below_brute_force(column, participations, separation):
    matrix = toeplitz.dense_matrix(column)
    exact = brute_force(matrix, patterns(len(column), participations, separation))
    for encoder in (column, matrix):
        found = sensitivity.multi_participation_bound(
            encoder, participations=participations, separation=separation
        )
        assert found >= exact * (1 - 1e-12)


@given(
    matrix=arrays(
        float,
        st.tuples(st.integers(1, 4), st.integers(1, 8)),
        elements=st.floats(-1, 1, allow_subnormal=False),
    ),
    **PARTICIPATION,
)
def test_bounds_of_any_matrix(matrix, participations, separation):
    steps = matrix.shape[1]
    exact = brute_force(matrix, patterns(steps, participations, separation))
    found = sensitivity.multi_participation_bound(
        matrix, participations=participations, separation=separation
    )
    assert found >= exact * (1 - 1e-12)
    ordered = [tuple(range(first, steps, separation))[:participations] for first in range(steps)]
    fixed = {"participations": participations, "separation": separation}
    assert sensitivity.fixed_order_sensitivity(matrix, **fixed) >= brute_force(matrix, ordered) * (
        1 - 1e-12
    )
    np.testing.assert_allclose(
        sensitivity.fixed_order_sensitivity(np.abs(matrix), **fixed),
        brute_force(np.abs(matrix), ordered),
        rtol=1e-12,
    )


@given(column=non_increasing(), **PARTICIPATION)
def test_fixed_order_is_the_worst_for_non_increasing_encoders(column, participations, separation):
    fixed = {"participations": participations, "separation": separation}
    np.testing.assert_allclose(
        sensitivity.fixed_order_sensitivity(column, **fixed),
        sensitivity.multi_participation_sensitivity(column, **fixed),
        rtol=1e-12,
    )


def test_a_rising_encoder_would_be_underestimated_and_is_refused():
    rising = np.array([0.1, 0.1, 1.0, 0.1, 0.1, 1.0])
    fixed = {"participations": 2, "separation": 2}
    exact = brute_force(toeplitz.dense_matrix(rising), patterns(6, 2, 2))
    formula = np.linalg.norm(rising + np.r_[0, 0, rising[:-2]])
    assert formula < 0.98 * exact
    with pytest.raises(ValueError, match="non-increasing"):
        sensitivity.multi_participation_sensitivity(rising, **fixed)
    with pytest.raises(ValueError, match="non-negative"):
        sensitivity.multi_participation_sensitivity(-rising[:2], **fixed)


def test_bands_no_wider_than_the_separation_cost_a_root():
    encoder = toeplitz.inverse_coefficients(toeplitz.banded_square_root(60, bands=10))
    # Forward substitution leaves rounding where the coefficients are 0.
    encoder[10:] = 0.0
    found = sensitivity.multi_participation_sensitivity(encoder, participations=4, separation=10)
    single = sensitivity.single_participation_sensitivity(encoder)
    np.testing.assert_allclose(found, 2 * single, rtol=1e-12)


def test_single_participation_of_families():
    steps, damping = 50, 0.2
    encoder = toeplitz.damped_square_root_encoder(steps, damping=damping)
    np.testing.assert_allclose(
        sensitivity.single_participation_sensitivity(encoder),
        sensitivity.single_participation_sensitivity(toeplitz.dense_matrix(encoder)),
        rtol=1e-14,
    )
    ones = toeplitz.inverse_coefficients(toeplitz.anti_pgd(steps))
    assert sensitivity.single_participation_sensitivity(ones, 16) == 4.0
    geometric = toeplitz.inverse_coefficients(toeplitz.damped_anti_pgd(steps, damping=damping))
    expected = np.sqrt((1 - 0.8 ** (2 * steps)) / (damping * (2 - damping)))
    found = sensitivity.single_participation_sensitivity(geometric)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_undamped_sensitivity_grows_as_its_logarithm():
    steps = 100_000
    encoder = toeplitz.damped_square_root_encoder(steps, damping=0.0)
    expected = (np.log(steps) + np.euler_gamma + 4 * np.log(2)) / np.pi
    found = sensitivity.single_participation_sensitivity(encoder) ** 2
    np.testing.assert_allclose(found, expected, atol=1 / steps)


@pytest.mark.parametrize("damping", [1e-8, 1e-3, 0.1, 0.5, 0.99, 1.0])
def test_limit_is_closed_form_and_quadrature(damping):
    def power(frequency):
        return np.sqrt(damping**2 + 4 * (1 - damping) * np.sin(frequency / 2) ** 2)

    closed = sensitivity.damped_square_root_limit(damping)
    np.testing.assert_allclose(sensitivity.limiting_sensitivity(power), closed, rtol=1e-10)
    # A second quadrature, adaptive and in another variable, which needs no tiny damping.
    if damping >= 1e-3:
        integral, _ = quad(lambda w: 1 / power(w), 0, np.pi, points=[damping], epsabs=0, limit=500)
        np.testing.assert_allclose(np.sqrt(integral / np.pi), closed, rtol=1e-8)
    np.testing.assert_allclose(
        sensitivity.limiting_sensitivity(lambda w: power(w) ** 2),
        sensitivity.damped_anti_pgd_limit(damping),
        rtol=1e-10,
    )


def test_limit_is_what_finite_sensitivities_grow_to():
    damping = 0.01
    encoder = toeplitz.damped_square_root_encoder(4000, damping=damping)
    found = sensitivity.single_participation_sensitivity(encoder)
    np.testing.assert_allclose(found, sensitivity.damped_square_root_limit(damping), rtol=1e-13)


def test_undamped_limits_are_infinite():
    assert sensitivity.damped_square_root_limit(0.0) == np.inf
    assert sensitivity.damped_anti_pgd_limit(0.0) == np.inf
    assert sensitivity.limiting_sensitivity(lambda w: 2 * np.sin(w / 2)) == np.inf
    assert sensitivity.limiting_sensitivity(np.ones_like) == pytest.approx(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sensitivity.single_participation_sensitivity([1.0, 0.5], 3),
        lambda: sensitivity.single_participation_sensitivity(np.eye(3), 2),
        lambda: sensitivity.single_participation_sensitivity([1.0, np.nan]),
        lambda: sensitivity.single_participation_sensitivity(1.0),
        lambda: sensitivity.damped_square_root_limit(1.1),
        lambda: sensitivity.limiting_sensitivity(lambda w: -w),
        lambda: sensitivity.limiting_sensitivity(lambda w: 1.0),
        lambda: sensitivity.multi_participation_bound([1.0], participations=0, separation=1),
        lambda: sensitivity.multi_participation_bound([1.0], participations=1, separation=0),
        lambda: sensitivity.multi_participation_bound(
            np.ones((2, 2, 2)), participations=1, separation=1
        ),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match="must"):
        call()
