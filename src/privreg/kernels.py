"""Compiled kernels: inner products, fused multiply-add, and NumPy's standard normals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache, reduce
from operator import add
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

LANES = 16
NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
# Numba's cache of a kernel does not notice an edit of this file: clear the cache after one.


def plain_sum(values: Iterable[float]) -> float:
    """Sum in order, rounding each addition; `sum` of Python 3.12 and later compensates errors."""
    return reduce(add, values, 0.0)


# To its callers it takes two arguments, to a type checker that of the compiler too.
for_compiled_callers: Any = intrinsic


def inner_product(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    r"""Inner product, in a fixed order, of two C-contiguous vectors of equal length (unchecked).

    .. math:: \sum_{l<16} s_l,\qquad s_l = \sum_{j:\,16j+l<n} a_{16j+l}b_{16j+l}

    Products are rounded before they are added. Each lane l is summed in the order of j. Then lanes
    are added in pairs, l and l + 8 first. Compiled and Python results are equal, bit for bit.
    """
    padded = np.append(first * second, np.zeros(-len(first) % LANES))
    sums = reduce(add, padded.reshape(-1, LANES), np.zeros(LANES))
    for half in (8, 4, 2, 1):
        sums = sums[:half] + sums[half:]
    return float(sums[0])


@for_compiled_callers
def _in_lanes(
    typing_context: Any, first: Any, second: Any
) -> tuple[Any, Callable[..., Any]] | None:
    if not (_is_row(first) and _is_row(second)):
        return None
    return types.float64(first, second), _lane_by_lane


# Inlined, it is as fast as the intrinsic itself.
overload(inner_product, inline="always")(
    lambda first, second: lambda first, second: _in_lanes(first, second)  # noqa: PLW0108
)


@for_compiled_callers
def multiply_add(
    typing_context: Any, first: Any, second: Any, added: Any
) -> tuple[Any, Callable[..., Any]] | None:
    """The number ab + c, rounded once; if c = -fl(ab), it is the rounding error of the product."""
    if {first, second, added} != {types.float64}:
        return None
    return types.float64(first, second, added), lambda _, builder, __, given: builder.fma(*given)


def _is_row(given: Any) -> bool:
    return isinstance(given, types.Array) and (given.dtype, given.ndim, given.layout) == (
        types.float64,
        1,
        "C",
    )


def _lane_by_lane(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    first, second = (
        context.make_array(kind)(context, builder, array)
        for kind, array in zip(signature.args, arguments, strict=True)
    )
    length = cgutils.unpack_tuple(builder, first.shape, 1)[0]
    rest = builder.and_(length, ir.Constant(length.type, LANES - 1))
    whole = builder.sub(length, rest)
    zeros = ir.Constant(NUMBERS, [0.0] * LANES)
    sums = cgutils.alloca_once_value(builder, zeros)

    def pointer(array: Any, index: Any) -> Any:
        return builder.bitcast(builder.gep(array.data, [index]), NUMBERS.as_pointer())

    def add(left: Any, right: Any) -> None:
        builder.store(builder.fadd(builder.load(sums), builder.fmul(left, right)), sums)

    begin, step = (ir.Constant(length.type, value) for value in (0, LANES))
    with cgutils.for_range_slice(builder, begin, whole, step) as (index, _):
        # Rows are aligned as single numbers are, not as vectors.
        add(*(builder.load(pointer(array, index), align=8) for array in (first, second)))
    with builder.if_then(cgutils.is_not_null(builder, rest)):
        mask = _first_lanes(builder, rest)
        load = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(NUMBERS, [NUMBERS.as_pointer(), ir.IntType(32), mask.type, NUMBERS]),
            f"llvm.masked.load.v{LANES}f64.p0",
        )
        align = ir.Constant(ir.IntType(32), 8)
        add(
            *(
                builder.call(load, [pointer(array, whole), align, mask, zeros])
                for array in (first, second)
            )
        )
    return _sum_in_halves(builder, builder.load(sums))


def _first_lanes(builder: Any, count: Any) -> Any:
    position = ir.Constant(ir.VectorType(count.type, LANES), list(range(LANES)))
    single = builder.insert_element(
        ir.Constant(position.type, ir.Undefined), count, ir.Constant(ir.IntType(32), 0)
    )
    return builder.icmp_signed("<", position, _lanes(builder, single, [0] * LANES))


def _sum_in_halves(builder: Any, sums: Any) -> Any:
    width = LANES
    while width > 1:
        width //= 2
        low, high = (
            _lanes(builder, sums, list(range(begin, begin + width))) for begin in (0, width)
        )
        sums = builder.fadd(low, high)
    return builder.extract_element(sums, ir.Constant(ir.IntType(32), 0))


def _lanes(builder: Any, vector: Any, chosen: list[int]) -> Any:
    positions = ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), positions)


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
    """Count of numbers drawn in large calls; updates lost between threads only delay the kernel."""

    drawn = 0


def standard_normal(rng: np.random.Generator, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Draw `rng.standard_normal(shape)`, in a compiled loop if this is faster.

    The numbers, the generator's later state and its locking are as in NumPy. A process that draws
    few numbers loads no compiler. Generators from outside NumPy use their own method.
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
