r"""The matrix mechanism with the least mean error, over all lower-triangular encoders (ME).

With X = CᵀC and workload A the problem is convex,

.. math:: \min_X \; \operatorname{tr}(A^\top A X^{-1}) \quad \text{subject to} \quad
    \sum_{i \in P} X_{ii} \le 1, \quad X_{ij} = 0 \;\; (i \ne j \in P)

for each set P of the steps that one record takes part in when k epochs visit the records in one
order. That X vanishes between two steps of a record costs nothing: at the optimum
:math:`H = X^{-1} A^\top A X^{-1}` has one and the same diagonal entry v_P over P, so its entries in
P are at most v_P, which is what an optimum with :math:`\sum_{i,j \in P} |X_{ij}| \le 1` in place of
both constraints needs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import dctn, idctn
from scipy.linalg import blas, eigvalsh, lapack
from scipy.ndimage import zoom

from privreg.accuracy import warn_beyond
from privreg.noise.optimal import toeplitz_optimum
from privreg.noise.streams import correlate_noise
from privreg.noise.toeplitz import dense_matrix
from privreg.units import from_units, in_units
from privreg.validation import FloatArray, require_array, require_count, require_number

_MEMORY = 6
_REFRESHED = (5, 15, 30)
_MOST_ITERATIONS = 300
_START_TOLERANCE = 1e-3
_LEAST_PERIOD = 8
# Rows that are mirrored at once.
_BLOCK = 128


class DenseOptimum(NamedTuple):
    """The best mechanism that was found, and how far from the best possible it is.

    Attributes
    ----------
    encoder, decoder : ndarray, shape (steps, steps)
        Lower-triangular C and its inverse. The sensitivity of C is 1 under the epochs asked for.
    error : float
        Root mean square error over steps at a noise multiplier of 1.
    gap : float
        error / bound - 1 with a lower bound, from the dual problem, on the error of every
        mechanism; at least 0 up to rounding.
    """

    encoder: FloatArray
    decoder: FloatArray
    error: float
    gap: float


def dense_optimum(
    steps: int,
    *,
    epochs: int = 1,
    workload: ArrayLike | None = None,
    tolerance: float = 1e-4,
) -> DenseOptimum:
    r"""Least mean error over all mechanisms for one or several epochs in a fixed order.

    Limited-memory BFGS on X starts from the Toeplitz optimum with as many bands as an epoch has
    steps, corrected by the optimum over fewer steps. It is preconditioned in the cosine basis:
    there X is nearly diagonal with entries x and the curvature of the problem nearly
    :math:`v\,(1/x_i + 1/x_j)`.

    Parameters
    ----------
    steps : int
        Number T of steps, a multiple of `epochs`.
    epochs : int
        Number k of times that a record takes part, T/k steps apart.
    workload : array_like, shape (steps,), optional
        Toeplitz coefficients of A, the first not 0; prefix sums by default.
    tolerance : float
        The search ends when five iterations lower the error's square by less than this share.

    Notes
    -----
    O(steps³) an iteration, some tens of iterations, memory for about 20 matrices.

    Examples
    --------
    >>> bool(dense_optimum(64).gap < 1e-4)
    True

    Source
    ------
    Denisov et al. (2022) and Choquette-Choo et al. (2023) for the problem; the start, the
    preconditioner and the bound derived. choquettechoo2024, Table 3 (ME).
    """
    require_count("steps", steps)
    if steps % require_count("epochs", epochs):
        raise ValueError(f"epochs must divide steps, {steps}, got {epochs}")
    tolerance = require_number("tolerance", tolerance, above=0)
    kernel = np.ones(steps)
    if workload is not None:
        kernel = require_array("workload", workload, shape=(steps,))
    kernel, unit = in_units(kernel)
    problem = _Problem(kernel, epochs)
    gram, inverse = _minimise(problem, _start(problem), tolerance)
    value, gradient = problem.value_and_gradient(inverse)
    # X = CᵀC with C lower-triangular is a Cholesky factorisation read from the last step back.
    factor = np.linalg.cholesky(gram[::-1, ::-1]).T[::-1, ::-1]
    # Its transpose is upper-triangular by columns, as LAPACK has it.
    decoder = lapack.dtrtri(factor.T)[0].T
    bound = problem.lower_bound(-gradient)
    return DenseOptimum(
        np.ascontiguousarray(factor),
        decoder,
        error=float(from_units(np.sqrt(value / steps), unit)),
        gap=float(np.sqrt(value / bound) - 1),
    )


class _Problem:
    """Objective, gradient, feasible directions and dual bound for one workload."""

    def __init__(self, kernel: FloatArray, epochs: int) -> None:
        self.kernel = kernel
        self.epochs = epochs
        self.period = kernel.size // epochs
        self.sums = bool(np.all(kernel == 1.0))

    def apply(self, matrix: FloatArray) -> FloatArray:
        """The workload times a matrix."""
        if not self.sums:
            return correlate_noise(self.kernel, matrix)
        # Row by row, several times faster than `cumsum` along columns.
        sums = matrix.copy()
        for before, row in pairwise(sums):
            row += before
        return sums

    def value_and_gradient(self, inverse: FloatArray) -> tuple[float, FloatArray]:
        """tr(AᵀA X⁻¹) and its gradient -X⁻¹AᵀAX⁻¹, from the inverse of X."""
        half = self.apply(inverse)
        gradient = half.T @ half
        # The trace of A and the half, without an array for A.
        latest = np.ascontiguousarray(self.kernel[::-1])
        value = sum(latest[-row:] @ half[row - 1, :row] for row in range(1, len(half) + 1))
        return float(value), np.negative(gradient, out=gradient)

    def project(self, matrix: FloatArray) -> FloatArray:
        """Make of a matrix the nearest direction in which X stays feasible, with equality."""
        diagonal = matrix.diagonal().reshape(self.epochs, self.period)
        diagonal = (diagonal - diagonal.mean(axis=0)).ravel()
        for first in range(self.period):
            matrix[first :: self.period, first :: self.period] = 0.0
        np.fill_diagonal(matrix, diagonal)
        return matrix

    def lower_bound(self, curvature: FloatArray) -> float:
        r"""Dual bound :math:`\big(\operatorname{tr}\sqrt{A \Lambda A^\top}\big)^2 / \sum_P v_P`.

        Λ holds the blocks of H = X⁻¹AᵀAX⁻¹ between steps of one record, scaled to their mean v_P on
        the diagonal.
        """
        steps = self.kernel.size
        diagonal = curvature.diagonal()
        level = np.tile(diagonal.reshape(self.epochs, self.period).mean(axis=0), self.epochs)
        scale = np.sqrt(level / diagonal)
        multiplier = np.zeros((steps, steps))
        for first in range(self.period):
            block = np.ix_(*(np.arange(first, steps, self.period),) * 2)
            multiplier[block] = curvature[block]
        multiplier *= scale[:, None] * scale
        spectrum = eigvalsh(self.apply(self.apply(multiplier).T))
        total = np.sum(np.sqrt(np.maximum(spectrum, 0.0)))
        return float(total**2 / level[: self.period].sum())


def _start(problem: _Problem) -> tuple[FloatArray, FloatArray | None]:
    """A banded start plus what the optimum over fewer steps adds to its own, and its inverse.

    The inverse is None where the start is not positive definite.
    """
    gram = _banded(problem.kernel, problem.epochs)
    factor = next((prime for prime in (2, 3, 5) if problem.period % prime == 0), 0)
    if not factor or problem.period < _LEAST_PERIOD:
        return gram, _inverse(gram)
    coarse = _Problem(problem.kernel[::factor], problem.epochs)
    first = _start(coarse)
    if first[1] is None:
        return gram, _inverse(gram)
    optimum, _ = _minimise(coarse, first, _START_TOLERANCE)
    added = optimum - _banded(coarse.kernel, coarse.epochs)
    # Away from the diagonal entries depend on the share of the steps that has passed.
    change = problem.project(zoom(added, factor, order=1, mode="nearest", grid_mode=True))
    while (inverse := _inverse(gram + change)) is None:
        change /= 2
    return gram + change, inverse


def _banded(kernel: FloatArray, epochs: int) -> FloatArray:
    """Gram matrix of the banded Toeplitz optimum with its columns scaled to equal norm."""
    steps = kernel.size
    encoder = dense_matrix(
        toeplitz_optimum(steps, workload=kernel, bands=steps // epochs, tolerance=1e-6).encoder
    )
    gram = encoder.T @ encoder
    scale = 1 / np.sqrt(epochs * gram.diagonal())
    return gram * scale[:, None] * scale


def _minimise(
    problem: _Problem, start: tuple[FloatArray, FloatArray | None], tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """The best X and its inverse, by L-BFGS with backtracking.

    Slopes and pairs are kept in the cosine basis, where the preconditioner is diagonal and needs no
    projection: a direction is projected in the end.
    """
    gram, inverse = start
    # Two matrices less at the peak of memory, as soon as the search has passed by them.
    del start
    if inverse is None:
        raise ValueError("workload must give a well-conditioned problem, got one that is not")
    value, gradient = problem.value_and_gradient(inverse)
    kernel = _preconditioner(gram, gradient)
    slope = _cosines(problem.project(gradient))
    pairs: list[tuple[FloatArray, FloatArray, float]] = []
    values = [value]
    for iteration in range(_MOST_ITERATIONS):
        # A matrix less at the peak of memory.
        del gradient
        direction = problem.project(_cosines(_direction(kernel, slope, pairs), inverse=True))
        # The next pair takes the place of the oldest.
        pairs = pairs[1 - _MEMORY :]
        move = _cosines(direction.copy())
        descent = float(np.vdot(slope, move))
        step = 1.0
        while True:
            candidate = gram - step * direction
            found = _inverse(candidate)
            if found is not None:
                value, gradient = problem.value_and_gradient(found)
                if value <= values[-1] - 1e-4 * step * descent:
                    break
            step /= 2
            if step < 1e-6:
                warn_beyond("optimum", error=descent / values[-1], tolerance=tolerance)
                return gram, inverse
        del direction
        gram, inverse = candidate, found
        values.append(value)
        if iteration in _REFRESHED:
            kernel = _preconditioner(gram, gradient)
        move *= -step
        change = _cosines(problem.project(gradient))
        change -= slope
        slope += change
        curvature = float(np.vdot(move, change))
        if curvature > 0:
            pairs.append((move, change, 1 / curvature))
        if len(values) > 5 and values[-6] - values[-1] <= tolerance * values[-1]:
            break
    else:
        warn_beyond("optimum", error=(values[-6] - values[-1]) / values[-1], tolerance=tolerance)
    return gram, inverse


def _direction(
    kernel: FloatArray, slope: FloatArray, pairs: list[tuple[FloatArray, FloatArray, float]]
) -> FloatArray:
    """The two-loop recursion around the preconditioner."""
    direction = slope.copy()
    shares = []
    for move, change, inverse_curvature in reversed(pairs):
        share = inverse_curvature * float(np.vdot(move, direction))
        _add(direction, -share, change)
        shares.append(share)
    direction *= kernel
    if pairs:
        # The scale that the last step's curvature shows.
        _, change, inverse_curvature = pairs[-1]
        direction /= inverse_curvature * float(np.vdot(change, kernel * change))
    for (move, change, inverse_curvature), share in zip(pairs, reversed(shares), strict=True):
        _add(direction, share - inverse_curvature * float(np.vdot(change, direction)), move)
    return direction


def _add(total: FloatArray, factor: float, matrix: FloatArray) -> None:
    """Add a multiple in one pass over memory, without an array for the product."""
    blas.daxpy(matrix.ravel(), total.ravel(), a=factor)


def _cosines(matrix: FloatArray, *, inverse: bool = False) -> FloatArray:
    """To the orthonormal cosine basis, or back from it; overwrites what it is given."""
    return np.asarray((idctn if inverse else dctn)(matrix, norm="ortho", overwrite_x=True))


def _preconditioner(gram: FloatArray, gradient: FloatArray) -> FloatArray:
    """Inverse curvature in the cosine basis, where X is taken for diagonal."""
    spectrum = np.maximum(dctn(gram, norm="ortho").diagonal(), 1e-12)
    level = -float(gradient.diagonal().mean())
    return spectrum[:, None] * spectrum / (spectrum[:, None] + spectrum) / level


def _inverse(gram: FloatArray) -> FloatArray | None:
    """Inverse of a positive-definite matrix, or None where it is not one."""
    # Symmetric, so that its transpose is itself, with contiguous columns as LAPACK has them.
    factor, failed = lapack.dpotrf(gram.T, lower=1, clean=0)
    if failed:
        return None
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T
    for first in range(0, len(inverse), _BLOCK):
        block = slice(first, first + _BLOCK)
        corner = np.triu(inverse[block, block])
        inverse[block, block] = corner + np.triu(corner, 1).T
        inverse[first + _BLOCK :, block] = inverse[block, first + _BLOCK :].T
    return np.asarray(inverse)
