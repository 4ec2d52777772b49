"""Full-batch private gradient descent whose guarantee holds for the arithmetic of the machine."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.clipped_gradient import LARGEST_PARAMETER
from privreg.algorithms.samples import Samples, as_samples
from privreg.noise import discrete
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import shared_sample_size
from privreg.privacy.release import Release
from privreg.validation import require_array, require_count, require_instance, require_number

FloatArray = NDArray[np.float64]
IntArray = NDArray[Any]


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
    r"""The algorithm of `full_batch_dpgd` with sums of integers and discrete Gaussian noise.

    .. math::
        \theta_t = \theta_{t-1} - \frac{\eta g}n\Big(\sum_{i=1}^n \Big[\tfrac1g
        \mathrm{CLIP}_\gamma\big(-\mathbf x_i(y_i - \mathbf x_i^\top\theta_{t-1})\big)\Big]
        + z_t\Big), \qquad z_t \sim N_{\mathbb Z}(0, s^2)^p

    where [·] rounds to whole numbers and g = γ / 2²⁰.

    Parameters
    ----------
    samples : Samples
        Data; each row's values must not depend on other rows.
    clip_norm : float
        Clipping bound γ on a row's gradient norm, at least 1e-50 and at most 1e50.
    step_size : float
        Step size η, more than 0 and at most 1e50.
    steps : int
        Number of steps T, at least 1.
    budget : Budget
        What all iterates together may cost, and the neighbouring relation.
    sample_size : float, optional
        n, what the sums are divided by, at least 1 and at most 1e15: a number of rows that is
        public or was released before (`private_count`). By default the number of rows, which
        replace-one and zero-out neighbours share; add-remove ones do not, and must be given it.
    start : array_like, shape (p,), optional
        θ_0, independent of the data; 0 by default.

    Returns
    -------
    Release
        Of the iterates θ_1..θ_T, shape (T, p).

    Raises
    ------
    ValueError
        If an argument is out of range, or the iterates overflow because the step size is too large.
    ImportError
        If OpenDP is not installed.

    Guarantee
    ---------
    The iterates together are ρ-zCDP under the budget's relation, in the arithmetic of the machine:
    each of the T noisy integer sums costs at most ρ/T by the proof in `privreg.noise.discrete`, and
    θ_t is computed from them and n alone: the same noisy sums give the same iterates, bit for bit,
    whatever number of rows the table has. A row's gradient is computed from that row and the
    released iterate, in an order of summation that no other row changes.

    Source
    ------
    brown2024, Algorithm 1; Canonne, Kamath and Steinke (2020) for the noise.
    """
    clip_norm = require_number("clip_norm", clip_norm, least=1e-50, most=1e50)
    step_size = require_number("step_size", step_size, above=0, most=1e50)
    steps = require_count("steps", steps)
    require_instance("budget", budget, Budget)
    samples = as_samples(samples)
    p = samples.dimension
    n = shared_sample_size(sample_size, records=samples.sample_size, neighbours=budget.neighbours)
    theta = np.zeros(p) if start is None else require_array("start", start, shape=(p,)).copy()
    lattice = discrete.grid(clip_norm, dimension=p)
    square = discrete.square_sum_sensitivity(lattice.reach, neighbours=budget.neighbours)
    # T gradients as one integer vector: its squared sensitivity is the sum of theirs.
    std = discrete.integer_noise_std(square_sensitivity=steps * square, rho=budget.rho)
    iterates = np.empty((steps, p))
    for step in range(steps):
        total: IntArray = np.zeros(p, dtype=object)
        for features, labels, _ in samples.chunks():
            part = np.zeros(p, dtype=np.int64)
            _add_clipped_gradients(features, labels, theta, *lattice, part)
            total = total + part
        noisy = discrete.add_integer_noise(discrete.limited(total), std=std)
        with np.errstate(over="ignore", invalid="ignore"):
            theta = theta + (step_size * lattice.unit / n) * noisy
        if not np.max(np.abs(theta)) <= LARGEST_PARAMETER:
            raise ValueError(
                f"step_size must be small enough for descent to be stable, got {step_size}: "
                f"the iterates overflow at step {step + 1}"
            )
        iterates[step] = theta
    return Release(iterates, budget, discrete.ASSUMPTIONS)


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
        length = discrete.unit_vector(features[i], direction)
        if length == 0.0:
            continue
        # One row at a time and in this order: a matrix product may round a row's residual in a way
        # that depends on how many rows there are.
        residual = labels[i]
        for j in range(p):
            residual -= features[i, j] * theta[j]
        if residual < 0.0:
            direction *= -1.0
        discrete.round_vector(direction, length * abs(residual), unit, resolution, reach, rounded)
        total += rounded
