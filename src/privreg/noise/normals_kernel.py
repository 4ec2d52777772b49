"""The compiled loop behind `normals`."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def fill(rng, numbers):  # type: ignore[no-untyped-def]
    """Standard normals into a vector of float64, those that NumPy would draw."""
    for i in range(len(numbers)):
        numbers[i] = rng.standard_normal()
