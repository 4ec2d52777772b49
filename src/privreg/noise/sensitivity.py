r"""Sensitivity of the encoded gradients C g to a record that moves a gradient by at most 1.

The standard deviation of the noise w added to C g must be this sensitivity times the noise
multiplier σ. A record takes part once, or at most `participations` times in steps that are at least
`separation` apart. No function here returns less than the true sensitivity of its arguments, up to
rounding: a sum of n products loses some ulp, at most n 2⁻⁵³ of the sum. An encoder computed from a
decoder has a further error. `noise.toeplitz` bounds it; `dp_ftrl.FTRLMechanism` adds the bound.
Under replace-one neighbours a gradient moves by up to 2, so all sensitivities double.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ellipkm1

from privreg.checks import FloatArray, require_array, require_count, require_each
from privreg.noise.toeplitz import checked_damping, dense_matrix, require_coefficients

# A sum of squares takes so many at a time, and the parts pairwise, to limit rounding.
_BLOCK = 1024
# Squares of numbers that are not much larger may have lost digits, which would hide a record.
_SMALLEST = 1e-100


def single_participation_sensitivity(encoder: ArrayLike) -> float:
    r"""Sensitivity of an encoder if a record takes part in one step.

    .. math:: \gamma_T = \max_{t < T} \lVert C_{:,t} \rVert_2

    The encoder C is given as Toeplitz coefficients, shape (T,), or a matrix with a column per step.

    Guarantee
    ---------
    If gradients g have norm at most 1, and adding, removing or zeroing out a record changes one
    gradient, then C g + σγ_T z with z standard normal is 1/(2σ²)-zCDP. So is everything computed
    from this release, such as all iterates together. Gradients may be chosen adaptively.

    Examples
    --------
    >>> single_participation_sensitivity([1.0, 1.0, 1.0, 1.0])
    2.0

    Source
    ------
    choquettechoo2024, Theorem 1.1 and equation (24).
    """
    matrix = require_coefficients("encoder", encoder)
    if matrix.ndim == 1:
        return _norm(matrix)
    squares = np.sum(np.square(matrix.T, order="C"), axis=1)
    return max(float(np.sqrt(np.max(squares))), _SMALLEST)


def damped_square_root_limit(damping: float) -> float:
    r"""Limit of the sensitivity of `toeplitz.damped_square_root` over infinitely many steps.

    .. math:: \gamma_\infty^2 = \tfrac2\pi K(1-\nu)

    with the complete elliptic integral K of modulus 1-ν, for ν in [0, 1]. The limit is infinite at
    ν = 0. Source: choquettechoo2024, appendix B, after a Landen transform of its formula.
    """
    damping = checked_damping(damping)
    # The parameter is m = (1-ν)², and 1 - m keeps its digits at small ν only in this form.
    return float(np.sqrt(2 / np.pi * ellipkm1(damping * (2 - damping))))


def damped_anti_pgd_limit(damping: float) -> float:
    r"""Limit of the sensitivity of `toeplitz.damped_anti_pgd`, :math:`1/\sqrt{\nu(2-\nu)}`.

    Source: choquettechoo2024, Table 2. The limit is infinite at ν = 0.
    """
    damping = checked_damping(damping)
    # The roots apart: one over the product may be infinite where its root is not.
    return float(1 / (np.sqrt(damping) * np.sqrt(2 - damping))) if damping else np.inf


def multi_participation_sensitivity(
    encoder: ArrayLike, *, participations: int, separation: int
) -> float:
    r"""Sensitivity of a Toeplitz encoder if a record takes part several times.

    .. math:: \gamma = \Big\lVert \sum_{i<k} C_{:, ib} \Big\rVert_2

    A record takes part in at most k = `participations` steps, at least b = `separation` apart. γ
    is exact if the coefficients, shape (steps,), are non-negative and non-increasing. Other
    encoders are refused; use `multi_participation_bound` for them.

    Guarantee
    ---------
    The guarantee of `single_participation_sensitivity` holds for records that take part as stated.

    Examples
    --------
    >>> multi_participation_sensitivity([1.0, 0.0, 0.0, 0.0], participations=2, separation=2) ** 2
    2.0000000000000004

    Source
    ------
    Kalinin and Lampert (2024), Theorem 2, used by choquettechoo2024 for Figure 4.
    """
    column = require_array("encoder", encoder, shape=(None,))
    if column[-1] < 0 or np.any(column[1:] > column[:-1]):
        raise ValueError(
            "encoder must be non-negative and non-increasing, got another one: use "
            "multi_participation_bound"
        )
    return _spaced_column_sum(column, *_participation(participations, separation))


def multi_participation_bound(encoder: ArrayLike, *, participations: int, separation: int) -> float:
    r"""Upper bound on the sensitivity of any encoder if a record takes part several times.

    For Toeplitz coefficients c, the bound is the sensitivity of their non-increasing majorant
    :math:`\bar c_t = \max_{s \ge t} |c_s|`. The bound equals `multi_participation_sensitivity` for
    non-negative, non-increasing coefficients. For a matrix C of
    sensitivity γ, the bound is the root of the right-hand side of

    .. math:: \gamma^2 \le
        \max_P \sum_{i \in P} \max_{Q \ni i} \sum_{j \in Q} |C_{:,i}^\top C_{:,j}|

    over sets P and Q of at most k = `participations` steps, at least b = `separation` apart.

    Guarantee
    ---------
    The guarantee of `multi_participation_sensitivity` holds, since the bound is never too small.
    """
    matrix = require_coefficients("encoder", encoder)
    k, b = _participation(participations, separation)
    if matrix.ndim == 1:
        majorant = np.maximum.accumulate(np.abs(matrix)[::-1])[::-1]
        return _spaced_column_sum(majorant, k, b)
    gram = np.abs(matrix.T @ matrix)
    rows = [_best_spaced_sum(row, k, b, through=index) for index, row in enumerate(gram)]
    return max(float(np.sqrt(_best_spaced_sum(np.array(rows), k, b))), _SMALLEST)


def fixed_order_sensitivity(encoder: ArrayLike, *, participations: int, separation: int) -> float:
    r"""Sensitivity of an encoder if every epoch visits the records in the same order.

    .. math:: \gamma^2 = \max_{i < b} \sum_{j, l < k} |C_{:,i+jb}^\top C_{:,i+lb}|

    γ is exact if the columns' inner products are non-negative; otherwise it is an upper bound.

    A record takes part in k steps i, i + b, i + 2b, ...: `participations` is k, the number of
    epochs, and `separation` is b, the number of steps per epoch. The encoder C is as for
    `single_participation_sensitivity`.

    Guarantee
    ---------
    The guarantee of `single_participation_sensitivity` holds for records that take part as stated.

    Source
    ------
    Choquette-Choo et al. (2023), Multi-Epoch Matrix Factorization, used by choquettechoo2024.
    """
    k, b = _participation(participations, separation)
    if k == 1:
        return single_participation_sensitivity(encoder)
    matrix = require_coefficients("encoder", encoder)
    if matrix.ndim == 1:
        matrix = dense_matrix(matrix)
    largest = 0.0
    for first in range(min(b, matrix.shape[1])):
        columns = matrix[:, first::b]
        largest = max(largest, _largest_window(np.abs(columns.T @ columns), k))
    return max(float(np.sqrt(largest)), _SMALLEST)


def _norm(column: FloatArray) -> float:
    squares = column @ column if column.size <= _BLOCK else np.sum(column**2)
    return max(float(np.sqrt(squares)), _SMALLEST)


def _participation(k: int, b: int) -> tuple[int, ...]:
    return require_each(require_count, participations=k, separation=b)


def _spaced_column_sum(column: FloatArray, k: int, b: int) -> float:
    """Norm of the sum of k columns b steps apart."""
    total = np.zeros_like(column)
    for shift in range(0, min(k * b, column.size), b):
        total[shift:] += column[: column.size - shift]
    return _norm(total)


def _best_spaced_sum(values: FloatArray, k: int, b: int, *, through: int | None = None) -> float:
    """Largest sum of at most k entries at least b apart; `through`, if given, is one of them."""
    # More participations than steps are no more than one a step.
    k = min(k, values.size)
    if through is None:
        return float(_best_prefix_sums(values, k, b)[-1, -1])
    left = _best_prefix_sums(values[: max(through - b + 1, 0)], k - 1, b)[:, -1]
    right = _best_prefix_sums(values[through + b :][::-1], k - 1, b)[:, -1]
    return float(values[through] + np.max(left + right[::-1]))


def _best_prefix_sums(values: FloatArray, count: int, separation: int) -> FloatArray:
    """Row m, column t: largest sum of at most m of the first t entries, `separation` apart."""
    best = np.zeros((count + 1, values.size + 1))
    for m in range(1, count + 1):
        earlier = best[m - 1, np.maximum(np.arange(values.size) - separation + 1, 0)]
        best[m, 1:] = np.maximum(np.maximum.accumulate(earlier + values), 0.0)
    return best


def _largest_window(gram: FloatArray, size: int) -> float:
    """Largest sum over a block of `size` consecutive rows and columns, by additions alone."""
    size = min(size, gram.shape[0])
    if size == gram.shape[0]:
        return float(np.sum(gram))
    rows = _window_sums(gram, size)
    # Row i of these holds the sums of rows i, ..., i + size - 1.
    return float(np.max(_window_sums(rows.T, size).diagonal()))


def _window_sums(values: FloatArray, size: int) -> FloatArray:
    """Sums of `size` consecutive rows: the end of one block plus the beginning of the next."""
    count, width = values.shape
    blocks = np.zeros((-(-count // size), size, width))
    blocks.reshape(-1, width)[:count] = values
    beginnings = blocks.cumsum(axis=1).reshape(-1, width)
    ends = blocks[:, ::-1].cumsum(axis=1)[:, ::-1].reshape(-1, width)
    starts = np.arange(count - size + 1)
    split = (starts % size > 0)[:, None]
    return np.asarray(beginnings[starts + size - 1] + np.where(split, ends[starts], 0.0))
