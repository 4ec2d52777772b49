"""Eigenvalue decays: closed forms against sums over lists."""

import numpy as np
import pytest

from privreg.theory.shaped_noise import ExponentialDecay, PowerLawDecay, effective_dimension

HORIZONS = np.array([0.5, 1.0, 7.3, 100.0, 1234.5])


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
