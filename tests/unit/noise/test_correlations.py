"""Correlations in time: streams, sensitivities and the terms of an increment agree."""

import numpy as np
import pytest

from privreg.noise.correlations import (
    IndependentCorrelation,
    SquareRootCorrelation,
    TreeCorrelation,
)

CORRELATIONS = [TreeCorrelation(), IndependentCorrelation(), SquareRootCorrelation(0.1)]


def decoder(correlation, steps):
    """The map from white vectors to increments, one basis vector for each step."""

    class Basis:
        """Stands for a generator whose t-th vector is the t-th unit vector."""

        def __init__(self):
            self.next = 0

        def standard_normal(self, shape):
            rows = np.eye(steps)[self.next : self.next + shape[0]]
            self.next += shape[0]
            return rows.copy()

    stream = correlation.stream(steps, steps=steps, rng=np.random.default_rng(0))
    # It takes NumPy's generator alone.
    stream._rng = Basis()
    return np.array(list(stream))


@pytest.mark.parametrize("correlation", CORRELATIONS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("steps", [1, 6, 16])
def test_sensitivity_is_the_largest_column_of_the_inverse(correlation, steps):
    dense = decoder(correlation, steps)
    assert np.array_equal(np.diag(dense), np.ones(steps))
    norms = np.linalg.norm(np.linalg.inv(dense), axis=0)
    assert correlation.sensitivity(steps) == pytest.approx(norms.max(), rel=1e-12)


@pytest.mark.parametrize("correlation", CORRELATIONS[:2], ids=["tree", "independent"])
def test_increment_terms_are_the_rows_of_the_decoder(correlation):
    steps = 21
    dense, kept = decoder(correlation, steps), set()
    for step in range(1, steps + 1):
        row = np.zeros(steps)
        row[step - 1] = 1.0
        kept.add(step)
        taken_back, forgotten = correlation.increment_terms(step)
        assert set(taken_back) <= kept
        row[np.array(taken_back, dtype=int) - 1] = -1.0
        np.testing.assert_array_equal(row, dense[step - 1])
        kept -= set(forgotten)
        assert len(kept) <= steps.bit_length()
