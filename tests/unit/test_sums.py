"""The order of summation of compiled kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError
from numpy.typing import NDArray

from privreg.kernels import LANES, inner_product


@njit
def compiled(first, second):  # type: ignore[no-untyped-def]
    return inner_product(first, second)


def by_definition(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    lanes = [0.0] * LANES
    for i, (left, right) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        lanes[i % LANES] += left * right
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [low + high for low, high in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 1003])
def test_the_order_is_the_documented_one(rng: np.random.Generator, length: int) -> None:
    for first, second in rng.standard_normal((5, 2, length)):
        value = compiled(first, second)
        assert value == inner_product(first, second) == by_definition(first, second)
        bound = (length / LANES + 5) * np.finfo(float).eps * float(np.abs(first) @ np.abs(second))
        assert abs(value - math.fsum(first * second)) <= bound


def test_nothing_beyond_the_end_is_read(rng: np.random.Generator) -> None:
    padded = rng.standard_normal(64)
    padded[21:] = np.nan
    for begin in range(8):
        row = padded[begin:21]
        assert compiled(row, row) == by_definition(row, row)


def test_strided_and_single_precision_rows_are_refused(rng: np.random.Generator) -> None:
    row = rng.standard_normal(40)
    for wrong in (row[::2], row[:20].astype(np.float32)):
        with pytest.raises(TypingError):
            compiled(wrong, row[:20])
