"""Algorithms whose guarantee holds for the arithmetic of the machine."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.adassp import RELEASES, Bounds, require_bounds
from privreg.algorithms.samples import Samples, as_samples, initial_point
from privreg.checks import (
    FloatArray,
    require_count,
    require_instance,
    require_number,
    require_scales,
)
from privreg.noise import exact
from privreg.privacy.budget import Budget, Neighbours, shared_sample_size
from privreg.privacy.release import Release

IntArray = NDArray[Any]
RESOLUTION = 1 << 16
EIGENVALUE_UNITS = 1 << 10


def sound_adassp(
    samples: Samples, *, bounds: Bounds, budget: Budget, ridge_failure: float = 0.05
) -> Release[FloatArray]:
    r"""The algorithm of `adassp_zcdp` with integer statistics and rounded exact normal noise.

    Parameters
    ----------
    samples, bounds, ridge_failure
        As for `adassp`.
    budget : Budget
        What the estimate may cost, a third of it to each statistic, and the neighbouring relation.

    Returns
    -------
    Release
        Of the estimate, shape (p,).

    Guarantee
    ---------
    ρ-zCDP under the budget's relation, in the arithmetic of the machine, if the bounds are a
    priori. With K the reach of rows and L that of labels the squared sensitivities, of integers,
    are ⌈K²/h⌉² for the eigenvalue, K⁴ (add-remove, zero-out) or 2K⁴ (replace-one) for the upper
    triangle of the Gram matrix, (KL)² or (2KL)² for the moment; the noise is that of
    `privreg.noise.exact`. No number of rows appears in the estimate.

    Source
    ------
    Wang (2018), Algorithm 2; Karney (2016) for the noise.
    """
    bounds = require_bounds(bounds)
    samples = as_samples(samples)
    ridge_failure = require_number("ridge_failure", ridge_failure, above=0, below=1)
    require_instance("budget", budget, Budget)
    p = samples.dimension
    rows = exact.grid(bounds.feature_norm, dimension=p, resolution=RESOLUTION)
    labels = exact.grid(bounds.label, dimension=1, resolution=RESOLUTION)
    gram, moment = _integer_sums(samples, rows, labels)

    replace = budget.neighbours is Neighbours.REPLACE_ONE
    square = rows.reach**2
    unit = max(1, square // EIGENVALUE_UNITS)
    eigenvalue_std, gram_std, moment_std = (
        # Three equal parts as one vector: a third of ρ is no number in binary.
        exact.integer_noise_std(square_sensitivity=RELEASES * sensitivity, rho=budget.rho)
        for sensitivity in (
            (-(-square // unit)) ** 2,
            (2 if replace else 1) * square**2,
            (4 if replace else 1) * square * labels.reach**2,
        )
    )
    upper = np.triu_indices(p)
    below = exact.add_integer_noise(
        exact.limited(np.array([_eigenvalue_units(gram, unit)], dtype=object)),
        std=eigenvalue_std,
    )
    noisy_gram = np.zeros((p, p))
    noisy_gram[upper] = exact.add_integer_noise(exact.limited(gram[upper]), std=gram_std)
    noisy_gram += np.triu(noisy_gram, 1).T
    noisy_moment = exact.add_integer_noise(exact.limited(moment), std=moment_std)

    smallest = unit * (float(below[0]) - eigenvalue_std * sqrt(-2 * log(ridge_failure)))
    ridge = gram_std * sqrt(p * (log(2 * p**2) - log(ridge_failure))) - max(0.0, smallest)
    system = noisy_gram + max(0.0, ridge) * np.eye(p)
    try:
        estimate = np.linalg.solve(system, noisy_moment.astype(np.float64))
    except np.linalg.LinAlgError:
        raise ValueError(
            "budget must leave a matrix that can be solved, got noise that makes it singular"
        ) from None
    return Release(
        np.asarray(estimate * (labels.unit / rows.unit), dtype=np.float64),
        budget,
        (*exact.ASSUMPTIONS, "the bounds were chosen without looking at the data"),
    )


def _integer_sums(
    samples: Samples, rows: exact.Grid, labels: exact.Grid
) -> tuple[IntArray, IntArray]:
    p = samples.dimension
    gram, moment = np.zeros((p, p), dtype=object), np.zeros(p, dtype=object)
    for features, targets, _ in samples.chunks():
        # Products of two integers below 2^17, summed over a chunk, stay below 2^53: a matrix
        # product of floats is exact in whatever order it sums.
        for first in range(0, targets.size, 1024):
            block = slice(first, first + 1024)
            whole = exact.round_to_grid(
                features[block], norm=rows.unit * rows.resolution, resolution=rows.resolution
            ).astype(np.float64)
            with np.errstate(over="ignore"):
                units = targets[block] / labels.unit
            signed = np.clip(units, -labels.resolution, labels.resolution)
            gram = gram + (whole.T @ whole).astype(np.int64)
            moment = moment + (whole.T @ np.rint(signed)).astype(np.int64)
    return gram, moment


def _eigenvalue_units(gram: IntArray, unit: int) -> int:
    """Smallest eigenvalue in whole units u: the largest j with G - j u I positive definite."""
    # Floating point proposes, proofs decide.
    guess = max(0, int(np.linalg.eigvalsh(gram.astype(np.float64))[0] // unit))
    low, step = guess, 1
    while low >= 0 and not _is_positive_definite(gram, low * unit):
        low, step = max(-1, low - step), 2 * step
    high, step = max(low, guess) + 1, 1
    while _is_positive_definite(gram, high * unit):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if _is_positive_definite(gram, middle * unit):
            low = middle
        else:
            high = middle
    return low


def _is_positive_definite(gram: IntArray, shift: int) -> bool:
    """Whether G - shift I is positive definite, by a proof; G is semi-definite.

    It is if the Cholesky factor of less of it is found, whose backward error is at most about
    (p + 1) 2⁻⁵³ tr G (Rump 2006), and not if a whole vector says so. What they leave open, near an
    eigenvalue, fraction-free elimination decides (Bareiss).
    """
    numbers, matrix = gram.astype(np.float64), gram.astype(object)
    margin = 2.0**-50 * len(gram) * np.trace(numbers)
    try:
        np.linalg.cholesky(numbers - (shift + margin) * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        whole = np.rint(2.0**40 * np.linalg.eigh(numbers)[1][:, 0]).astype(np.int64).astype(object)
        if whole @ matrix @ whole <= shift * (whole @ whole):
            return False
    else:
        return True
    matrix[np.diag_indices_from(matrix)] -= shift
    last = 1
    while len(matrix):
        pivot = matrix[0, 0]
        if pivot <= 0:
            return False
        rest = matrix[1:, 1:] * pivot - np.multiply.outer(matrix[1:, 0], matrix[0, 1:])
        matrix, last = rest // last, pivot
    return True


def sound_full_batch_dpgd(
    samples: Samples,
    *,
    clip_norm: float,
    step_size: float,
    steps: int,
    budget: Budget,
    sample_size: float | None = None,
    start: ArrayLike | None = None,
) -> Release[FloatArray]:
    r"""The algorithm of `full_batch_dpgd` with sums of integers and rounded exact normal noise.

    .. math::
        \theta_t = \theta_{t-1} - \frac{\eta g}n\Big(\sum_{i=1}^n \Big[\tfrac1g
        \mathrm{CLIP}_\gamma\big(-\mathbf x_i(y_i - \mathbf x_i^\top\theta_{t-1})\big)\Big]
        + [s\,\xi_t]\Big), \qquad \xi_t \sim N(0, I_p)

    where [·] rounds to whole numbers and g = γ / 2²⁰.

    Parameters
    ----------
    samples : Samples
        Data; each row's values must not depend on other rows.
    clip_norm : float
        Clipping bound γ on a row's gradient norm, from 1e-12 to 1e12.
    budget : Budget
        What all iterates together may cost, and the neighbouring relation.
    step_size, steps, sample_size, start
        As for `full_batch_dpgd`; add-remove neighbours need `sample_size`.

    Returns
    -------
    Release
        Of the iterates θ_1..θ_T, shape (T, p).

    Guarantee
    ---------
    The iterates together are ρ-zCDP under the budget's relation, in the arithmetic of the machine:
    each of the T noisy integer sums costs at most ρ/T by the proof in `privreg.noise.exact`, and
    θ_t is computed from them and n alone: the same noisy sums give the same iterates, bit for bit,
    whatever number of rows the table has. A row's gradient is computed from that row and the
    released iterate, in an order of summation that no other row changes.

    Source
    ------
    brown2024, Algorithm 1; Karney (2016) for the noise.
    """
    clip_norm, step_size = require_scales(clip_norm=clip_norm, step_size=step_size)
    steps = require_count("steps", steps)
    require_instance("budget", budget, Budget)
    samples = as_samples(samples)
    p = samples.dimension
    n = shared_sample_size(sample_size, records=samples.sample_size, neighbours=budget.neighbours)
    theta = initial_point(start, p)
    lattice = exact.grid(clip_norm, dimension=p)
    square = exact.square_sum_sensitivity(lattice.reach, neighbours=budget.neighbours)
    # T gradients as one integer vector: its squared sensitivity is the sum of theirs.
    std = exact.integer_noise_std(square_sensitivity=steps * square, rho=budget.rho)
    iterates = np.empty((steps, p))
    for step in range(steps):
        total: IntArray = np.zeros(p, dtype=object)
        for features, labels, _ in samples.chunks():
            part = np.zeros(p, dtype=np.int64)
            _add_clipped_gradients(features, labels, theta, *lattice, part)
            total = total + part
        noisy = exact.add_integer_noise(exact.limited(total), std=std)
        theta = theta + (step_size * lattice.unit / n) * noisy
        iterates[step] = theta
    return Release(iterates, budget, exact.ASSUMPTIONS)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _add_clipped_gradients(
    features: FloatArray,
    labels: FloatArray,
    theta: FloatArray,
    unit: float,
    resolution: int,
    reach: int,
    total: NDArray[np.int64],
) -> None:
    rows, p = features.shape
    direction = np.empty(p)
    rounded = np.empty(p, dtype=np.int64)
    for i in range(rows):
        length = exact.unit_vector(features[i], direction)
        if length == 0.0:
            continue
        # One row at a time and in this order: a matrix product may round a row's residual in a way
        # that depends on how many rows there are.
        residual = labels[i]
        for j in range(p):
            residual -= features[i, j] * theta[j]
        if residual < 0.0:
            direction *= -1.0
        exact.round_vector(direction, length * abs(residual), unit, resolution, reach, rounded)
        total += rounded
