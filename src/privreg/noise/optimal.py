r"""Mechanisms (Toeplitz and dense) with the least error for a workload, and the best damping.

Let c and c⁻¹ be the first columns of the encoder C and the decoder C⁻¹, and a_j the weight of
workload A_j. For records that take part once, the squared error at a noise multiplier of 1 is

.. math:: E(c) = \lVert c \rVert_2^2 \; \sum_j a_j \sum_t m_t \big( (A_j c^{-1})_t \big)^2

with m_t = (T - t)/T for the mean over T steps and m_t = 1 for the last step. The error of the last
step is also the largest, since a Toeplitz workload's error never falls with time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import dctn, idctn, irfft, next_fast_len, rfft
from scipy.linalg import blas, eigvalsh, lapack
from scipy.ndimage import zoom
from scipy.optimize import minimize, minimize_scalar

from privreg.checks import (
    MOST,
    FloatArray,
    require_array,
    require_choice,
    require_count,
    require_each,
    require_number,
    warn_beyond,
)
from privreg.noise.sensitivity import multi_participation_sensitivity
from privreg.noise.streams import correlate_noise
from privreg.noise.toeplitz import (
    damped_square_root,
    damped_square_root_encoder,
    dense_matrix,
    forward_substitution,
    inverse_coefficients,
)

MOST_ITERATIONS = 1000
CRITERIA = ("mean", "largest", "last")


class ToeplitzOptimum(NamedTuple):
    """Best Toeplitz mechanism found.

    Attributes
    ----------
    encoder, decoder : ndarray, shape (steps,)
        Toeplitz coefficients; the first is 1.
    error : float
        Root mean square error at a noise multiplier of 1: sensitivity times √V. V is a variance,
        the mean over steps or that of the last step, in the weighted sum over workloads.
    """

    encoder: FloatArray
    decoder: FloatArray
    error: float


def toeplitz_optimum(
    steps: int,
    *,
    criterion: str = "mean",
    workload: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    bands: int | None = None,
    tolerance: float = 1e-10,
) -> ToeplitzOptimum:
    """Find the Toeplitz mechanism of least error for records that take part once, by L-BFGS.

    Parameters
    ----------
    steps : int
        Number T of steps.
    criterion : {"mean", "largest", "last"}
        Error to minimise; "largest" and "last" are equal for Toeplitz workloads.
    workload : array_like, shape (steps,) or (workloads, steps), optional
        Toeplitz coefficients of A, or of several A_j, at most 1e12 in size; prefix sums by default.
        For regression with eigenvalues λ_j: ``(1 - step_size * λ_j)**t`` at lag t, weights λ_j.
    weights : array_like, shape (workloads,), optional
        Weights a_j, from 0 to 1e12; 1 by default. Some A_j with a_j > 0 must have a nonzero entry.
    bands : int, optional
        Number of encoder coefficients that may differ from 0; all by default. For k participations
        at least `bands` steps apart, the sensitivity is √k times that of one participation.
    tolerance : float
        Relative change of the squared error at which the search ends, from 0 to 1.

    Notes
    -----
    One evaluation of the error takes O(workloads × steps log steps). A search over the encoder's
    coefficients is well conditioned: near the optimum, the curvature of the error is the identity
    plus a diagonal matrix of the weights that the criterion gives to the steps.

    Examples
    --------
    >>> round(toeplitz_optimum(100, criterion="last").error, 4)
    2.5314

    Source
    ------
    choquettechoo2024, equation (3) and Table 3 (FFT); gradient derived.
    """
    tolerance = require_number("tolerance", tolerance, least=0, most=1)
    kernels, scales = _workloads(steps, workload, weights)
    problem = _Problem(kernels, scales, _criterion_weights(steps, criterion))
    bands = steps if bands is None else require_count("bands", bands, most=steps)
    start = best_damping(steps, criterion=criterion, workload=kernels, weights=scales)
    encoder = damped_square_root_encoder(steps, damping=start)
    encoder[bands:] = 0.0
    if bands > 1:
        found = minimize(
            problem.value_and_gradient,
            encoder[1:bands],
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MOST_ITERATIONS, "maxcor": 20, "ftol": tolerance, "gtol": 0.0},
        )
        encoder[1:bands] = found.x
        if found.nit >= MOST_ITERATIONS:
            slope = float(abs(found.jac @ found.x) / found.fun)
            warn_beyond("optimum", error=slope, tolerance=tolerance)
    decoder = inverse_coefficients(encoder)
    error = np.linalg.norm(encoder) * np.sqrt(problem.variance(decoder))
    return ToeplitzOptimum(encoder, decoder, float(error))


def best_damping(
    steps: int,
    *,
    criterion: str = "mean",
    workload: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    participations: int = 1,
    separation: int = 1,
) -> float:
    r"""Damping ν at which `toeplitz.damped_square_root` has the least error, by a search over ν.

    For prefix sums and records that take part once, ν is about 0.75/steps for the mean error, and 0
    for the largest error. A record takes part in `participations` steps, at least `separation`
    apart; the other arguments are as in `toeplitz_optimum`.

    Source
    ------
    choquettechoo2024, section 4: ν tuned by the squared error (3).
    """
    kernels, scales = _workloads(steps, workload, weights)
    problem = _Problem(kernels, scales, _criterion_weights(steps, criterion))

    def error(damping: float) -> float:
        encoder = damped_square_root_encoder(steps, damping=damping)
        sensitivity = multi_participation_sensitivity(
            encoder, participations=participations, separation=separation
        )
        decoder = damped_square_root(steps, damping=damping)
        return sensitivity * float(np.sqrt(problem.variance(decoder)))

    grid = np.geomspace(1e-3 / steps, 1.0, 25)
    coarse = grid[np.argmin([error(damping) for damping in grid])]
    step = grid[1] / grid[0]
    found = minimize_scalar(
        lambda logarithm: error(float(np.exp(logarithm))),
        bounds=(np.log(coarse / step), min(np.log(coarse * step), 0.0)),
        method="bounded",
        options={"xatol": 1e-4},
    )
    return min([0.0, float(np.exp(found.x)), 1.0], key=error)


class _Problem:
    """Error and gradient for given workloads, weights and criterion, by FFTs of one length."""

    def __init__(self, kernels: FloatArray, scales: FloatArray, moments: FloatArray) -> None:
        self.steps = kernels.shape[1]
        self.size = next_fast_len(2 * self.steps, real=True)
        self.spectra = rfft(kernels, self.size, axis=1)
        self.scales = scales[:, None]
        self.moments = moments

    def variance(self, decoder: FloatArray) -> float:
        """Value of the criterion for unit noise."""
        noise = self._rows(self.spectra * rfft(decoder, self.size))
        return float(np.sum(self.scales * self.moments * noise**2))

    def value_and_gradient(self, tail: FloatArray) -> tuple[float, FloatArray]:
        """Log squared error as a function of c_1, c_2, ..., with c_0 = 1, and its gradient."""
        encoder = np.zeros(self.steps)
        encoder[0], encoder[1 : 1 + tail.size] = 1.0, tail
        decoder = rfft(forward_substitution(encoder), self.size)
        noise = self._rows(self.spectra * decoder)
        variance = float(np.sum(self.scales * self.moments * noise**2))
        square = float(encoder @ encoder)
        # A change δc changes each A_j c^{-1} by -(A_j c^{-1} c^{-1}) δc, a convolution.
        effect = np.conj(rfft(self._rows(rfft(noise, self.size, axis=1) * decoder), self.size))
        weighted = rfft(self.scales * self.moments * noise, self.size, axis=1)
        slope = irfft(np.sum(effect * weighted, axis=0), self.size)[: self.steps]
        gradient = 2 * encoder / square - 2 * slope / variance
        return float(np.log(square * variance)), gradient[1 : 1 + tail.size]

    def _rows(self, spectra: FloatArray) -> FloatArray:
        return np.asarray(irfft(spectra, self.size, axis=1))[:, : self.steps]


def _criterion_weights(steps: int, criterion: str) -> FloatArray:
    if require_choice("criterion", criterion, CRITERIA) == "mean":
        return (steps - np.arange(steps)) / steps
    return np.ones(steps)


def _workloads(
    steps: int, workload: ArrayLike | None, weights: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Workloads, shape (workloads, steps), and their weights."""
    kernels = np.ones((1, require_count("steps", steps)))
    if workload is not None:
        given = np.atleast_2d(workload)
        kernels = require_array("workload", given, shape=(None, steps), least=-MOST, most=MOST)
    scales = np.ones(len(kernels))
    if weights is not None:
        scales = require_array("weights", weights, shape=(len(kernels),), least=0, most=MOST)
    if not np.any(scales * np.any(kernels, axis=1)):
        raise ValueError("workload must have a nonzero row with a positive weight, got none")
    return kernels, scales


_MEMORY = 6
_REFRESHED = (5, 15, 30)
_MOST_ITERATIONS = 300
_START_TOLERANCE = 1e-3
_LEAST_PERIOD = 8
# Rows that are mirrored at once.
_BLOCK = 128


class DenseOptimum(NamedTuple):
    """Best mechanism found, and its distance from the optimum.

    Attributes
    ----------
    encoder, decoder : ndarray, shape (steps, steps)
        Lower-triangular C and its inverse. C has sensitivity 1 for the given epochs.
    error : float
        Root mean square error over steps at a noise multiplier of 1.
    gap : float
        `error` divided by a lower bound on the error of every mechanism, minus 1; at least 0 up to
        rounding. The bound comes from the dual problem.
    """

    encoder: FloatArray
    decoder: FloatArray
    error: float
    gap: float


def dense_optimum(
    steps: int, *, epochs: int = 1, workload: ArrayLike | None = None, tolerance: float = 1e-4
) -> DenseOptimum:
    r"""Find the mechanism of least mean error, for one or several epochs in a fixed order.

    Limited-memory BFGS searches over X = CᵀC for encoders C. It starts from the Toeplitz optimum
    with as many bands as an epoch has steps, plus what a search with fewer steps adds to its own
    start. It is preconditioned in the cosine basis, where X is nearly diagonal with entries x_i. If
    -v is the mean of the gradient's diagonal, the curvature at (i, j) is nearly
    :math:`v\,(1/x_i + 1/x_j)`.

    Parameters
    ----------
    steps, epochs : int
        Number T of steps, a multiple of k; and number k of a record's participations, T/k apart.
    workload : array_like, shape (steps,), optional
        Toeplitz coefficients, the first not 0, at most 1e12 in size; prefix sums by default.
    tolerance : float
        The search ends when five iterations lower the squared error by less than this share.

    Notes
    -----
    The search needs some tens of iterations, each O(steps³), and memory for about 20 matrices.

    Examples
    --------
    >>> bool(dense_optimum(64).gap < 1e-4)
    True

    Source
    ------
    Denisov et al. (2022) and Choquette-Choo et al. (2023) for the problem; choquettechoo2024,
    Table 3 (ME). The start, the preconditioner and the bound are derived here.
    """
    require_each(require_count, steps=steps, epochs=epochs)
    if steps % epochs:
        raise ValueError(f"epochs must divide steps = {steps}, got {epochs}")
    tolerance = require_number("tolerance", tolerance, above=0)
    kernel = np.ones(steps)
    if workload is not None:
        kernel = require_array("workload", workload, shape=(steps,), least=-MOST, most=MOST)
    problem = _DenseProblem(kernel, epochs)
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
        error=float(np.sqrt(value / steps)),
        gap=float(np.sqrt(value / bound) - 1),
    )


class _DenseProblem:
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
        """Project a matrix on the directions in which X stays feasible with equality."""
        diagonal = matrix.diagonal().reshape(self.epochs, self.period)
        diagonal = (diagonal - diagonal.mean(axis=0)).ravel()
        for first in range(self.period):
            matrix[first :: self.period, first :: self.period] = 0.0
        np.fill_diagonal(matrix, diagonal)
        return matrix

    def lower_bound(self, curvature: FloatArray) -> float:
        r"""Dual bound :math:`\big(\operatorname{tr}\sqrt{A \Lambda A^\top}\big)^2 / \sum_P v_P`.

        Λ holds the blocks of H = X⁻¹AᵀAX⁻¹ between steps of one record, scaled so that each
        diagonal entry is the mean v_P of its block's diagonal.
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


def _start(problem: _DenseProblem) -> tuple[FloatArray, FloatArray | None]:
    """A banded start, plus a correction from the optimum for fewer steps; and its inverse.

    The correction is that optimum minus its banded start. The inverse is None if not definite.
    """
    gram = _banded(problem.kernel, problem.epochs)
    factor = next((prime for prime in (2, 3, 5) if problem.period % prime == 0), 0)
    if not factor or problem.period < _LEAST_PERIOD:
        return gram, _inverse(gram)
    coarse = _DenseProblem(problem.kernel[::factor], problem.epochs)
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
    """Gram matrix of the banded Toeplitz optimum, with columns scaled to equal norm."""
    steps = kernel.size
    encoder = dense_matrix(
        toeplitz_optimum(steps, workload=kernel, bands=steps // epochs, tolerance=1e-6).encoder
    )
    gram = encoder.T @ encoder
    scale = 1 / np.sqrt(epochs * gram.diagonal())
    return gram * scale[:, None] * scale


def _minimise(
    problem: _DenseProblem, start: tuple[FloatArray, FloatArray | None], tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Best X and its inverse, by L-BFGS with backtracking, in the cosine basis."""
    gram, inverse = start
    # Two matrices less at the peak of memory, as soon as the search has passed by them.
    del start
    if inverse is None:
        raise ValueError("workload must give a well-conditioned problem, got ill conditioning")
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
    """Search direction: the two-loop recursion of L-BFGS around the preconditioner."""
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
    """Transform to the orthonormal cosine basis or back; overwrites its argument."""
    return np.asarray((idctn if inverse else dctn)(matrix, norm="ortho", overwrite_x=True))


def _preconditioner(gram: FloatArray, gradient: FloatArray) -> FloatArray:
    """Inverse curvature in the cosine basis, with X approximated by its diagonal there."""
    spectrum = np.maximum(dctn(gram, norm="ortho").diagonal(), 1e-12)
    level = -float(gradient.diagonal().mean())
    return spectrum[:, None] * spectrum / (spectrum[:, None] + spectrum) / level


def _inverse(gram: FloatArray) -> FloatArray | None:
    """Inverse of a matrix, or None if it is not positive definite."""
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
