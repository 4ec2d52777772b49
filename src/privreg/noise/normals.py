"""Many standard normals of NumPy's generator, the same numbers in a third of the time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

# Below this, handing a generator over costs more than the compiled loop saves.
FEWEST = 8000
# After as many, what NumPy has lost would have paid for loading the compiler, some 0.3 s.
WORTH_LOADING = 50_000_000
TESTED = {
    np.random.MT19937,
    np.random.PCG64,
    np.random.PCG64DXSM,
    np.random.Philox,
    np.random.SFC64,
}


class _Process:
    """Numbers that were drawn in large calls so far; a lost update only delays the kernel."""

    drawn = 0


def standard_normal(rng: np.random.Generator, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """`rng.standard_normal(shape)`, in a compiled loop where that is quicker.

    The numbers and the generator's state afterwards are the same, and so is its lock. A process
    that draws little loads no compiler. Another object, or a bit generator that NumPy does not
    bring, draws by itself.
    """
    size = shape if isinstance(shape, int) else math.prod(shape)
    if (
        size < FEWEST
        or type(rng) is not np.random.Generator
        or type(rng.bit_generator) not in TESTED
    ):
        return rng.standard_normal(shape)
    _Process.drawn += size
    if _Process.drawn < WORTH_LOADING:
        return rng.standard_normal(shape)
    numbers = np.empty(size)
    fill = _loop()
    with rng.bit_generator.lock:
        fill(rng, numbers)
    return numbers.reshape(shape)


@cache
def _loop() -> Callable[[np.random.Generator, NDArray[np.float64]], None]:
    # Takes longer to import than most processes draw.
    from numba import njit

    @njit(cache=True, nogil=True)
    def fill(rng, numbers):  # type: ignore[no-untyped-def]
        for i in range(len(numbers)):
            numbers[i] = rng.standard_normal()

    return fill
