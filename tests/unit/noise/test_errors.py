"""Errors of workloads against matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privreg.noise import toeplitz
from privreg.noise.errors import step_variances, workload_errors

COLUMNS = st.integers(1, 30).flatmap(
    lambda size: st.tuples(*(arrays(float, size, elements=st.floats(-1, 1)),) * 2)
)


@given(columns=COLUMNS)
def test_variances_are_row_norms(columns):
    decoder, workload = columns
    product = toeplitz.dense_matrix(workload) @ toeplitz.dense_matrix(decoder)
    expected = np.sum(product**2, axis=1)
    np.testing.assert_allclose(step_variances(decoder, workload=workload), expected, atol=1e-12)
    dense = step_variances(toeplitz.dense_matrix(decoder), workload=workload)
    np.testing.assert_allclose(dense, expected, atol=1e-12)
    ones = np.ones_like(decoder)
    np.testing.assert_allclose(
        step_variances(decoder), step_variances(decoder, workload=ones), atol=1e-12
    )
    np.testing.assert_allclose(
        step_variances(toeplitz.dense_matrix(decoder)), step_variances(decoder), atol=1e-12
    )


def test_errors_of_independent_noise():
    found = workload_errors(toeplitz.identity(4), sensitivity=3.0)
    np.testing.assert_allclose(found, 3 * np.sqrt([2.5, 4, 4]), rtol=1e-15)


def test_largest_need_not_be_last():
    decoder = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    found = workload_errors(decoder, sensitivity=1.0)
    np.testing.assert_allclose(found, np.sqrt([7 / 3, 5, 1]), rtol=1e-15)


def test_restarts_add_up_their_last_errors():
    decoder = toeplitz.square_root(10)
    once = step_variances(decoder)
    found = step_variances(toeplitz.restarted(toeplitz.dense_matrix(decoder), copies=3))
    expected = (once + once[-1] * np.arange(3)[:, None]).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    "call",
    [
        lambda: step_variances(1.0),
        lambda: step_variances([1.0, np.inf]),
        lambda: step_variances([1.0, 0.0], workload=[1.0]),
        lambda: workload_errors([1.0], sensitivity=-1.0),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match="must"):
        call()
