r"""The Toeplitz mechanism with the least error for a workload, and the best damping.

With encoder C, decoder B = C⁻¹ and workloads A_j of weight a_j the error at a noise multiplier of 1
is, for one participation,

.. math:: E(c) = \lVert c \rVert_2^2 \; \sum_j a_j \sum_t m_t \big( (A_j c^{-1})_t \big)^2

with m_t = (T - t)/T for the mean over steps and m_t = 1 for the last one, which is also the
largest, since a Toeplitz workload's error never falls with time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import minimize, minimize_scalar

from privreg.accuracy import warn_beyond
from privreg.noise.inverse import forward_substitution
from privreg.noise.sensitivity import multi_participation_sensitivity
from privreg.noise.toeplitz import (
    damped_square_root,
    damped_square_root_encoder,
    inverse_coefficients,
)
from privreg.units import from_units, rows_in_units
from privreg.validation import (
    FloatArray,
    require_array,
    require_choice,
    require_count,
    require_number,
    require_real,
)

MOST_ITERATIONS = 1000
CRITERIA = ("mean", "largest", "last")


class ToeplitzOptimum(NamedTuple):
    """The best Toeplitz mechanism that was found.

    Attributes
    ----------
    encoder, decoder : ndarray, shape (steps,)
        Coefficients, the first of each being 1.
    error : float
        Root mean square error at a noise multiplier of 1: sensitivity times the root of the
        criterion's weighted sum of variances.
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
    """Least error over all Toeplitz mechanisms for one participation, by L-BFGS.

    Parameters
    ----------
    steps : int
        Number T of steps.
    criterion : {"mean", "largest", "last"}
        Which error; the last two are one for Toeplitz workloads.
    workload : array_like, shape (steps,) or (workloads, steps), optional
        Toeplitz coefficients of A, or of several A_j, at least -1e50 and at most 1e50; prefix sums
        by default. Linear regression with eigenvalues λ_j has the coefficients ``(1 - step_size *
        λ_j)**t`` with weights λ_j.
    weights : array_like, shape (workloads,), optional
        Weights a_j, at least 0 and at most 1e50, with one above 0; 1 by default.
    bands : int, optional
        Number of encoder coefficients that may differ from 0; all by default. Where k
        participations are at least `bands` steps apart, the sensitivity is √k times that of one,
        and the optimum is also the best non-negative, non-increasing encoder of any width.
    tolerance : float
        Relative change of the error's square at which the search ends, at least 0 and at most 1.

    Notes
    -----
    One evaluation takes O(workloads × steps log steps). The search runs over the encoder's
    coefficients, in which the problem is well conditioned: near the optimum its curvature is
    the identity plus the criterion's weights m_t.

    Examples
    --------
    >>> round(toeplitz_optimum(100, criterion="last").error, 4)
    2.5314

    Source
    ------
    choquettechoo2024, equation (3) and Table 3 (FFT); gradient derived.
    """
    require_count("steps", steps)
    tolerance = require_number("tolerance", tolerance, least=0, most=1)
    moments = _criterion_weights(steps, criterion)
    kernels, scales, unit = _workloads(steps, workload, weights)
    if not np.any(scales * np.any(kernels, axis=1)):
        raise ValueError("workload must not be all 0 where it has a weight, got 0")
    problem = _Problem(kernels, scales, moments)
    bands = steps if bands is None else require_count("bands", bands)
    if bands > steps:
        raise ValueError(f"bands must be at most steps, {steps}, got {bands}")
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
    return ToeplitzOptimum(encoder, decoder, float(from_units(error, unit)))


def best_damping(
    steps: int,
    *,
    criterion: str = "mean",
    workload: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    participations: int = 1,
    separation: int = 1,
) -> float:
    r"""Damping ν with the least error of `toeplitz.damped_square_root`, one number searched for.

    Parameters
    ----------
    steps, criterion, workload, weights
        As in `toeplitz_optimum`.
    participations, separation : int
        Steps that a record takes part in and their least distance.

    Returns
    -------
    float
        In [0, 1]; about 0.75/steps for the mean error of prefix sums and one participation, 0 for
        their largest.

    Source
    ------
    choquettechoo2024, section 4: ν tuned by the squared error (3).
    """
    require_count("steps", steps)
    kernels, scales, _ = _workloads(steps, workload, weights)
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
    """Error and gradient for given workloads, weights and criterion, through one FFT length."""

    def __init__(self, kernels: FloatArray, scales: FloatArray, moments: FloatArray) -> None:
        self.steps = kernels.shape[1]
        self.size = next_fast_len(2 * self.steps, real=True)
        self.spectra = rfft(kernels, self.size, axis=1)
        self.scales = scales[:, None]
        self.moments = moments

    def variance(self, decoder: FloatArray) -> float:
        """The criterion for unit noise."""
        noise = self._rows(self.spectra * rfft(decoder, self.size))
        return float(np.sum(self.scales * self.moments * noise**2))

    def value_and_gradient(self, tail: FloatArray) -> tuple[float, FloatArray]:
        """Logarithm of the error's square in c_1, c_2, ..., with c_0 = 1."""
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
) -> tuple[FloatArray, FloatArray, int]:
    """Workloads and weights whose variances are numbers, and the unit of the errors' roots."""
    given: ArrayLike = np.ones(steps)
    if workload is not None:
        given = require_real("workload", workload, least=-1e50, most=1e50)
    kernels = require_array("workload", np.atleast_2d(given), shape=(None, steps))
    scales = np.ones(len(kernels))
    if workload is None and weights is None:
        return kernels, scales, 0
    if weights is not None:
        scales = require_array("weights", weights, shape=(len(kernels),), least=0, most=1e50)
        if not np.any(scales > 0):
            raise ValueError("weights must have one above 0, got none")
    kernels, exponents = rows_in_units(kernels)
    weighed = np.where(np.any(kernels, axis=1), scales, 0.0)
    sizes = np.where(weighed > 0, np.frexp(weighed)[1] + 2 * exponents, -(2**20))
    unit = int(sizes.max()) // 2 if np.any(weighed) else 0
    # Ordinary ones keep their bits.
    unit = 0 if not np.any(exponents) and abs(unit) < 100 else unit
    return kernels, np.ldexp(scales, 2 * (exponents - unit)), unit
