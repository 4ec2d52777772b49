r"""Gaussian mechanism on sums, private in machine arithmetic and not only in real arithmetic.

A guarantee for real numbers does not survive floating point. The last bits of a sum depend on every
record: a noisy sum takes values for one data set that are impossible for its neighbour (Mironov,
2012). Here sums and noise are whole numbers; the bound on a record is K = 2²⁰ units.

Proof. (1) A record is one row or all rows of a person, weighted or not. It enters a sum as whole
numbers k, computed with any rounding from that record, declarations and earlier releases alone. A
record of zeros enters as 0. Rows and labels are first rounded to multiples of powers of two;
`exact_factor` rounds released maps W and iterates θ. The products Wᵀx and xᵀθ are therefore exact
in double precision, for any order of summation and any split into blocks, threads or processors.
(2) The code compares a record's integer :math:`\sum_j k_j^2` with K², and sets k = 0 if that sum is
larger (`truncated`). A number is clipped to 0, ..., K. A record's computed part of a sum of vectors
therefore has norm at most K. Its part :math:`M = \sum k k^\top` of a sum of matrices is
semi-definite; its trace, and hence its Frobenius norm, is at most K².
(3) The sum S is exact: partial sums are in double precision below 2⁵³, in 64-bit integers below
2⁶², and otherwise in integers of any size. No bit of S depends on how records are read.
(4) Under add-remove and zero-out, neighbours differ in the part of one record; under replace-one,
in two. The squared sensitivity Δ² is a whole number: K², or 4K² (replace-one), for vectors; K⁴ or
2K⁴ for semi-definite matrices, since :math:`\langle M, M'\rangle \ge 0`; 1 or 2 for counts; K² for
numbers. A person's derivative :math:`M - \lfloor d\,(d^\top M)\rfloor`, :math:`\|d\| \le 1`, is
rounded by a unit in each entry of a row: Δ² is (K² + (√p + 1) K)², or 4 times this (replace-one).
(5) The release is [S + s ξ] = S + [s ξ], with exact normal deviates ξ and [·] for rounding. It is a
function of S + s ξ, the Gaussian mechanism on an exact sum, which is (Δ/s)-Gaussian DP. s is the
least whole number with :math:`\Delta^2 \le 2\rho s^2`, decided in rational arithmetic. In a
symmetric matrix, entries above the diagonal count twice in the norm. The scale of their noise is
the least whole t with 2t² ≥ s².
(6) Everything after the release is post-processing, including products with units, rounding of W
and θ, and saturation at the ends of 64 bits. The budgets of adaptive releases add up.

The noise comes from the operating system's secure bits; there is no seed to set. The proof does not
cover running time: the sampler and the sum take slightly longer for some values than for others.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain, count
from math import ceil, isqrt, log2
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from privreg.checks import FloatArray, require_number

IntArray = NDArray[Any]
UNITS = 1 << 20
LARGEST_STD = 1 << 53
# A process's first calls for few normals take Python less time than the loop takes to compile.
FEW, FIRST_CALLS, _calls = 256, 32, count()
WORD, HALF = 64, np.uint64(1 << 63)
# Outcomes of a trial of which 64 digits are known.
FALSE, TRUE, UNDECIDED = 0, 1, 2


def power_of_two(size: float) -> float:
    """Least power of two that is at least the argument."""
    return 2.0 ** ceil(log2(size))


def exact_factor(released: FloatArray) -> FloatArray:
    """Released numbers, rounded so that their products with rows are exact in any order.

    Entries of rows are at most 2²⁰ units, where a unit is a power of two. In each column of the
    rounded numbers, the absolute values add up to at most 2³² units.
    """
    unit = power_of_two(float(np.abs(released).sum(axis=0).max()) or 1.0) * 2.0**-31
    return np.asarray(np.rint(released / unit) * unit)


@np.errstate(over="ignore")
def truncated(
    rows: FloatArray, factors: FloatArray, bound: float, starts: IntArray | None = None
) -> FloatArray:
    r"""Rows times their factors, shape (n, p), in units of bound / 2²⁰, truncated toward 0.

    Guarantee
    ---------
    A record's entries are whole numbers with a sum of squares of at most 2⁴⁰, for any rows and
    factors. A record with a larger sum, or with a number that is not finite, is set to 0. Records
    of norm at most `bound`, factors included, are kept. A record is a row, or the rows from one of
    `starts` to the next; its entries depend on its rows and factors alone.
    """
    ends = np.arange(len(rows) + 1) if starts is None else np.append(starts, len(rows))
    whole = np.empty(rows.shape)
    _truncate(_read_only(rows), factors * (UNITS / bound), ends, whole)
    return whole


@np.errstate(over="ignore")
def truncated_sum(rows: FloatArray, factors: FloatArray, bound: float) -> FloatArray:
    """Sum (p,) of `truncated` rows, where each row is a record; exact for up to 2³³ rows."""
    total, entries = np.zeros((2, rows.shape[1]))
    _add_truncated(_read_only(rows), factors * (UNITS / bound), entries, total)
    return total


def whole_numbers(values: FloatArray, bound: float) -> FloatArray:
    """Values clipped to [0, bound] and rounded to whole numbers of units bound / 2²⁰."""
    return np.clip(np.rint(np.nan_to_num(values * (UNITS / bound))), 0, UNITS)


# Sums of whole numbers may be reassociated: they are the same in any order.
@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def _truncate(rows: FloatArray, factors: FloatArray, ends: IntArray, whole: FloatArray) -> None:
    for record in range(len(ends) - 1):
        square = 0.0
        for i in range(ends[record], ends[record + 1]):
            for j in range(rows.shape[1]):
                entry = np.trunc(rows[i, j] * factors[i])
                whole[i, j] = entry
                square += entry * entry
        # Sums of squares up to 2⁵³ are exact, and larger ones stay larger. False of NaN.
        if not square <= UNITS * UNITS:
            whole[ends[record] : ends[record + 1]] = 0.0


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def _add_truncated(
    rows: FloatArray, factors: FloatArray, entries: FloatArray, total: FloatArray
) -> None:
    p = rows.shape[1]
    for i in range(len(rows)):
        square = 0.0
        for j in range(p):
            entries[j] = np.trunc(rows[i, j] * factors[i])
            square += entries[j] * entries[j]
        if square <= UNITS * UNITS:
            for j in range(p):
                total[j] += entries[j]


def squared_lengths(rows: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Squared length of each row, summed in column order and independent of the other rows."""
    squares = np.empty(len(rows)) if out is None else out
    _square(_read_only(rows), squares)
    return squares


def _read_only(rows: FloatArray) -> FloatArray:
    """Rows as a read-only array, the one kind for which loops are compiled."""
    given = np.ascontiguousarray(rows).view()
    given.flags.writeable = False
    return given


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _square(rows: FloatArray, squares: FloatArray) -> None:
    for i in range(len(rows)):
        square = 0.0
        for j in range(rows.shape[1]):
            square += rows[i, j] * rows[i, j]
        squares[i] = square


def integer_noise_std(*, square_sensitivity: int, rho: float | Fraction) -> int:
    r"""Least whole noise scale s with :math:`\Delta^2 / 2s^2 \le \rho`, decided exactly from Δ²."""
    budget = rho if isinstance(rho, Fraction) else Fraction(require_number("rho", rho, above=0))
    ratio = Fraction(square_sensitivity) / (2 * budget)
    least = -(-ratio.numerator // ratio.denominator)
    return isqrt(least - 1) + 1


def rounded_normals(shape: int | tuple[int, ...], *, std: int) -> NDArray[np.int64]:
    r"""Normal deviates of whole standard deviation s, rounded to whole numbers, from secure bits.

    .. math:: Z = \mathrm{round}(s\,\xi), \qquad \xi = \pm(k + x) \sim N(0, 1)

    The law of Z is exact, for s from 0 to 2⁵³. Comparisons of uniform digits alone give k and
    x in [0, 1). A deviate takes about 17 words of 64 bits from the operating system. More digits
    are drawn if 64 do not decide a comparison (equal digits) or the rounding (s x near a half).

    Source
    ------
    Karney (2016), Sampling exactly from the normal distribution, algorithm N.
    """
    size = int(np.prod(shape))
    if std > LARGEST_STD or (size <= FEW and next(_calls) < FIRST_CALLS):
        endless, kind = iter(_secure_word, None), object if std > LARGEST_STD else np.int64
        slow = [_draw_slowly(endless, std) for _ in range(size)]
        return np.array(slow, dtype=kind).reshape(shape)
    drawn = np.empty(shape, dtype=np.int64)
    flat, words, done = drawn.reshape(-1), np.zeros(0, dtype=np.uint64), 0
    while done < flat.size:
        fresh = secrets.token_bytes(8 * (18 * (flat.size - done) + 50))
        words = np.append(words, np.frombuffer(fresh, dtype=np.uint64))
        count, used, undecided = _draw(words, std, flat[done:], np.zeros(1, dtype=np.int64))
        words, done = words[used:], done + count
        if undecided:
            rest = iter(words.tolist())
            flat[done] = _draw_slowly(chain(rest, iter(_secure_word, None)), std)
            words, done = np.array([*rest], dtype=np.uint64), done + 1
    return drawn


def _secure_word() -> int:
    return secrets.randbits(WORD)


class _Undecided(Exception):
    """Raised if more digits are needed."""


def _draw_slowly(words: Iterator[int], std: int, width: int = WORD) -> int:
    """One draw like `_draw`'s from the same words, with as many digits as needed."""
    known: list[int] = []
    for longer in count(1):
        try:
            return _attempt(_taken(known, words, width, longer).__next__, width * longer, std)
        except _Undecided:
            known[:] = [number << width | next(words) for number in known]
    raise AssertionError


def _taken(known: list[int], words: Iterator[int], width: int, longer: int) -> Iterator[int]:
    """Known numbers, then new ones of `longer` words each, which become known."""
    for k in count():
        if k == len(known):
            known.append(sum(next(words) << width * j for j in range(longer)))
        yield known[k]


def _attempt(take: Callable[[], int], bits: int, std: int) -> int:
    """One draw from uniform numbers with a given number of known digits."""

    def below(one: int, other: int) -> bool:
        if one == other:
            raise _Undecided
        return one < other

    def half() -> bool:
        u = take()
        if u >> (bits - 1):
            return True
        while True:
            v = take()
            if not below(v, u):
                return False
            u = take()
            if not below(u, v):
                return True

    def kept(k: int, x: int) -> bool:
        y, even = x, True
        while below(z := take(), y):
            # Digits of 2k + x - r(2k + 2).
            ahead = (2 * k << bits) + x - take() * (2 * k + 2)
            if 0 <= ahead < 2 * k + 2:
                raise _Undecided
            if ahead < 0:
                break
            y, even = z, not even
        return even

    while True:
        k = 0
        while half():
            k += 1
        if not all(half() for _ in range(k * (k - 1))):
            continue
        x = take()
        if not all(kept(k, x) for _ in range(k + 1)):
            continue
        sign = 1 - 2 * (take() >> (bits - 1))
        whole, rest = divmod(std * x + (1 << bits - 1), 1 << bits)
        if rest + std > 1 << bits:
            raise _Undecided
        return sign * (std * k + whole)


@nb.njit(cache=True, nogil=True)
def _draw(
    words: NDArray[np.uint64], std: int, drawn: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[int, int, bool]:
    """Draw until the words end or a draw is undecided: draws, words, true if undecided."""
    for i in range(drawn.size):
        start = at[0]
        decided, value = _one(words, at, np.uint64(std))
        if at[0] > words.size:
            return i, start, False
        if not decided:
            return i, start, True
        drawn[i] = value
    return drawn.size, at[0], False


@nb.njit(cache=True, nogil=True)
def _one(words: NDArray[np.uint64], at: NDArray[np.int64], std: np.uint64) -> tuple[bool, int]:
    """One draw, and whether 64 digits decide it."""
    while True:
        k = 0
        trial = _half(words, at)
        while trial == TRUE:
            k += 1
            trial = _half(words, at)
        if trial == FALSE:
            trial = TRUE
            for _ in range(k * (k - 1)):
                if trial == TRUE:
                    trial = _half(words, at)
            if trial == FALSE:
                continue
        x = _take(words, at)
        for _ in range(k + 1):
            if trial == TRUE:
                trial = _kept(k, x, words, at)
        if trial == FALSE:
            continue
        sign = 1 if _take(words, at) < HALF else -1
        high, low = _product(std, x)
        if trial != TRUE or (low < HALF and low + std > HALF):
            return False, 0
        size = np.int64(std) * k + np.int64(high) + (1 if low >= HALF else 0)
        return True, sign * size  # type: ignore[return-value]


@nb.njit(cache=True, nogil=True)
def _take(words: NDArray[np.uint64], at: NDArray[np.int64]) -> np.uint64:
    """Next word; zero past the end, where two compared zeros end the draw."""
    at[0] += 1
    return words[at[0] - 1] if at[0] <= words.size else np.uint64(0)


@nb.njit(cache=True, nogil=True)
def _half(words: NDArray[np.uint64], at: NDArray[np.int64]) -> int:
    """True with probability exp(-1/2)."""
    u = _take(words, at)
    if u >= HALF:
        return TRUE
    while True:
        v = _take(words, at)
        if v >= u:
            return FALSE if v > u else UNDECIDED
        u = _take(words, at)
        if u >= v:
            return TRUE if u > v else UNDECIDED


@nb.njit(cache=True, nogil=True)
def _kept(k: int, x: np.uint64, words: NDArray[np.uint64], at: NDArray[np.int64]) -> int:
    """True with probability exp(-x(2k + x)/(2k + 2))."""
    y, even, both = x, True, np.uint64(2 * k + 2)
    while True:
        z = _take(words, at)
        if z == y:
            return UNDECIDED
        if z > y:
            return TRUE if even else FALSE
        high, low = _product(both, _take(words, at))
        # Digits of 2k + x - r(2k + 2), as in `_attempt`: what they hold beyond 64 bits, and below.
        ahead = 2 * k - np.int64(high) - (1 if low > x else 0)
        if ahead == 0 and x - low < both:
            return UNDECIDED
        if ahead < 0:
            return TRUE if even else FALSE
        y, even = z, not even


@nb.njit(cache=True, nogil=True)
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """High and low words of a product."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    middle = (a >> half) * (b & mask) + ((a & mask) * (b & mask) >> half)
    low = (a & mask) * (b >> half) + (middle & mask)
    return (a >> half) * (b >> half) + (middle >> half) + (low >> half), a * b
