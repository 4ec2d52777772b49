"""Sensitivities of mechanisms given by their decoders, against rational arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.dp_ftrl import FTRLMechanism
from privreg.noise import toeplitz

from . import exact

CANCELLING = np.array([1.0, -1e8, 1e16, -1e24, 1e32])
# Those that the encoder's error may hide, and the sum's and the root's own.
FEW_ULP = 20 * exact.ULP


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dense", [False, True])
def test_no_mechanism_has_less_than_its_exact_sensitivity(dense, seed):
    rng = np.random.default_rng(seed)
    decoder = exact.decoders(rng, dense=dense)
    steps = len(decoder)
    epochs = int(rng.choice([k for k in range(1, steps + 1) if steps % k == 0]))
    try:
        found = FTRLMechanism(decoder, 0.0, 1.0, steps // epochs, epochs).sensitivity
    except ValueError as refused:
        assert "double precision holds" in str(refused)  # noqa: PT017
        return
    encoder = exact.inverse(decoder)
    matrix = encoder if dense else exact.dense(encoder)
    visits = [range(first, steps, steps // epochs) for first in range(steps // epochs)]
    square = exact.largest_square(matrix, [tuple(each) for each in visits])
    assert exact.shortfall(found, square) <= FEW_ULP
    if epochs == 1:
        # And not much more: the inflation is no larger than the error that is bounded.
        assert exact.shortfall(found, square) >= -0.5


def test_a_decoder_that_cancels_is_refused():
    """Forward substitution finds 1e8, 0, 0, 0 where the inverse of these doubles has 8.7e15."""
    encoder = exact.inverse(CANCELLING)
    assert float(sum(encoder**2)) ** 0.5 == pytest.approx(8.7e15, rel=0.01)
    with pytest.raises(ValueError, match="decoder must have an inverse that double precision"):
        FTRLMechanism(CANCELLING, 0.0, 1.0, 5)
    with pytest.raises(ValueError, match="coefficients must have an inverse that double"):
        toeplitz.inverse_coefficients(CANCELLING)
