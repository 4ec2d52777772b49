"""Eigenvalue decays: closed forms against sums over lists."""

import numpy as np
import pytest

from privreg.theory.shaped_noise.decay import (
    ExponentialDecay,
    FiniteDecay,
    PowerLawDecay,
    effective_dimension,
)

HORIZONS = np.array([0.5, 1.0, 7.3, 100.0, 1234.5])


def listed(decay):
    """The head of an infinite decay as a list, with a bound on what it leaves out."""
    if isinstance(decay, ExponentialDecay):
        return np.exp(-np.arange(1.0, 700.0)), 1e-300
    count = 2_000_000
    tail = count ** (1 - decay.exponent) / (decay.exponent - 1)
    return np.arange(1.0, count + 1) ** -decay.exponent, tail


@pytest.mark.parametrize("decay", [PowerLawDecay(2.0), PowerLawDecay(3.5), ExponentialDecay()])
def test_closed_forms_are_sums(decay):
    values, left_out = listed(decay)
    finite = FiniteDecay(values)
    assert decay.trace == pytest.approx(finite.trace, abs=2 * left_out, rel=1e-12)
    assert decay.squared_trace == pytest.approx(finite.squared_trace, abs=left_out**2, rel=1e-12)
    np.testing.assert_array_equal(decay.cutoff(HORIZONS), finite.cutoff(HORIZONS))
    np.testing.assert_allclose(
        effective_dimension(decay, HORIZONS),
        [np.sum(np.minimum(1, a * values)) for a in HORIZONS],
        rtol=1e-10,
        atol=2 * left_out * HORIZONS.max(),
    )
    for a in HORIZONS:
        assert decay.shaped_trace(a) == pytest.approx(
            finite.shaped_trace(a), abs=2 * a * left_out, rel=1e-10
        )


def test_shaped_trace_of_inverse_squares_is_a_hyperbolic_cotangent():
    a = 4321.0
    root = np.pi * np.sqrt(a)
    assert PowerLawDecay(2.0).shaped_trace(a) == pytest.approx(
        (root / np.tanh(root) - 1) / 2, rel=1e-12
    )


@pytest.mark.parametrize("decay", [PowerLawDecay(1.5), PowerLawDecay(4.0), ExponentialDecay()])
def test_effective_dimension_lies_between_the_shaped_trace_and_its_double(decay):
    for a in HORIZONS:
        trace = decay.shaped_trace(a)
        assert trace <= effective_dimension(decay, a) <= 2 * trace


def test_cutoff_at_perfect_powers_counts_the_eigenvalue_on_the_threshold():
    for r in (2.0, 3.0):
        whole = np.arange(1.0, 200.0)
        np.testing.assert_array_equal(PowerLawDecay(r).cutoff(whole**r), whole)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PowerLawDecay(1.0), "exponent must be more than 1 .*, got 1.0"),
        (
            lambda: FiniteDecay([1.0, -1.0]),
            "eigenvalues must be at least 0 .*, got others in 1 of 2 rows",
        ),
        (lambda: PowerLawDecay(2.0).cutoff(np.nan), "horizon must be"),
        (lambda: FiniteDecay([1.0]).tail_sum(2), "cutoff must be .* at most 1, got 2.0"),
        (lambda: PowerLawDecay(1.2).shaped_trace(1e12), "horizon must be at most"),
        (lambda: effective_dimension(ExponentialDecay(), 0.0), "horizon must be"),
    ],
)
def test_values_out_of_range_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
