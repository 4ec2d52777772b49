r"""What a mechanism's noise does to prefix sums, or to any workload: mean, largest, last error.

With decoder B, workload A and noise of standard deviation γ (the sensitivity, for a noise
multiplier of 1) the error of step t is normal in each coordinate with variance
:math:`\gamma^2 \lVert (AB)_{t,:} \rVert_2^2`.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from privreg.noise.toeplitz import dense_matrix, require_coefficients
from privreg.units import ORDINARY, from_units, in_units
from privreg.validation import FloatArray, require_array, require_number


class Errors(NamedTuple):
    """Root mean square errors per coordinate, at a noise multiplier of 1.

    `mean` is the root of the mean over steps of the squared error, `largest` that of a step.
    """

    mean: float
    largest: float
    last: float


def step_variances(decoder: ArrayLike, *, workload: ArrayLike | None = None) -> FloatArray:
    r"""Variance of the workload's noise after each step, for unit noise, shape (steps,).

    .. math:: V_t = \lVert (A B)_{t,:} \rVert_2^2

    Parameters
    ----------
    decoder : array_like, shape (steps,) or (steps, rows)
        Toeplitz coefficients of B, or B itself; at least -1e50 and at most 1e50.
    workload : array_like, shape (steps,), optional
        Toeplitz coefficients of A, at least -1e50 and at most 1e50; prefix sums by default.

    Examples
    --------
    >>> step_variances([1.0, -1.0, 0.0])
    array([1., 1., 1.])
    """
    matrix = require_coefficients("decoder", decoder)
    steps = matrix.shape[0]
    kernel = None
    if workload is not None:
        kernel = require_array("workload", workload, shape=(steps,), least=-1e50, most=1e50)
    if matrix.ndim == 1:
        sums = np.cumsum(matrix) if kernel is None else np.convolve(kernel, matrix)[:steps]
        return np.cumsum(sums**2)
    if kernel is None:
        return np.array([sums @ sums for sums in accumulate(matrix)])
    return np.sum((dense_matrix(kernel) @ matrix) ** 2, axis=1)


def workload_errors(
    decoder: ArrayLike, *, sensitivity: float, workload: ArrayLike | None = None
) -> Errors:
    """Mean, largest and last error of a mechanism at a noise multiplier of 1.

    Parameters
    ----------
    decoder, workload
        As for `step_variances`.
    sensitivity : float
        Of the encoder under the participation in question (`privreg.noise.sensitivity`), at least 0
        and at most 1e50.

    Examples
    --------
    >>> workload_errors([1.0, 0.0, 0.0, 0.0], sensitivity=1.0).last
    2.0

    Source
    ------
    choquettechoo2024, equation (3): steps times the square of `mean` is its objective.
    """
    scale = require_number("sensitivity", sensitivity, least=0, most=1e50)
    variances, unit = step_variances(decoder, workload=workload), 0
    if variances.item(variances.argmin()) < ORDINARY[0]:
        # Squares may have rounded to 0.
        decoder, unit = in_units(decoder)
        if workload is not None:
            workload, more = in_units(workload)
            unit += more
        variances = step_variances(decoder, workload=workload)
    sizes = (variances.mean(), variances.item(variances.argmax()), variances[-1])
    return Errors(*(scale * float(from_units(np.sqrt(size), unit)) for size in sizes))
