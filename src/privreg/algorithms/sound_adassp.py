r"""AdaSSP whose guarantee holds for the arithmetic of the machine.

Rows and labels are rounded to integers first, so that all three statistics are exact: the integer
Gram matrix G = Σ k kᵀ, the integer moment Σ k l, and the smallest eigenvalue of G, of which the
algorithm needs a lower bound only and takes it in whole units h,

.. math:: j = \max\{i \ge -1 : G - i h I \succ 0 \text{ or } i = -1\},

decided by the signs of exact pivots. Replacing a row moves every eigenvalue by at most K², so j
moves by at most ⌈K²/h⌉: two numbers no further apart than a whole number m have floors, and numbers
below the next whole one, no further apart than m.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.adassp import RELEASES, Bounds, require_bounds
from privreg.algorithms.samples import Samples, as_samples
from privreg.noise import discrete
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release
from privreg.validation import require_instance, require_number

FloatArray = NDArray[np.float64]
IntArray = NDArray[Any]
RESOLUTION = 1 << 16
EIGENVALUE_UNITS = 1 << 10


def sound_adassp(
    samples: Samples, *, bounds: Bounds, budget: Budget, ridge_failure: float = 0.05
) -> Release[FloatArray]:
    r"""The algorithm of `adassp_zcdp` with integer statistics and discrete Gaussian noise.

    Parameters
    ----------
    samples : Samples
        The data.
    bounds : Bounds
        Bounds on a row's norm and on a label, chosen without looking at the data; longer rows are
        shortened and larger labels clipped.
    budget : Budget
        What the estimate may cost, a third of it to each statistic, and the neighbouring relation.
    ridge_failure : float
        Probability that the ridge is too small for a stable inverse, in (0, 1). It does not
        affect privacy.

    Returns
    -------
    Release
        Of the estimate, shape (p,).

    Raises
    ------
    ValueError
        If an argument is out of range.
    ImportError
        If OpenDP is not installed.

    Guarantee
    ---------
    ρ-zCDP under the budget's relation, in the arithmetic of the machine, if the bounds are a
    priori. With K the reach of rows and L that of labels the squared sensitivities, of integers,
    are ⌈K²/h⌉² for the eigenvalue, K⁴ (add-remove, zero-out) or 2K⁴ (replace-one) for the upper
    triangle of the Gram matrix, (KL)² or (2KL)² for the moment; the noise is that of
    `privreg.noise.discrete`. No number of rows appears in the estimate.
    Exact pivots cost about p³/3 products of long integers, 0.1 s at p = 50 and 4 s at p = 100.

    Source
    ------
    Wang (2018), Algorithm 2; Canonne, Kamath and Steinke (2020) for the noise.
    """
    bounds = require_bounds(bounds)
    samples = as_samples(samples)
    ridge_failure = require_number("ridge_failure", ridge_failure, above=0, below=1)
    require_instance("budget", budget, Budget)
    p = samples.dimension
    rows = discrete.grid(bounds.feature_norm, dimension=p, resolution=RESOLUTION)
    labels = discrete.grid(bounds.label, dimension=1, resolution=RESOLUTION)
    gram, moment = _integer_sums(samples, rows, labels)

    replace = budget.neighbours is Neighbours.REPLACE_ONE
    square = rows.reach**2
    unit = max(1, square // EIGENVALUE_UNITS)
    eigenvalue_std, gram_std, moment_std = (
        # Three equal parts as one vector: a third of ρ is no number in binary.
        discrete.integer_noise_std(square_sensitivity=RELEASES * sensitivity, rho=budget.rho)
        for sensitivity in (
            (-(-square // unit)) ** 2,
            (2 if replace else 1) * square**2,
            (4 if replace else 1) * square * labels.reach**2,
        )
    )
    upper = np.triu_indices(p)
    below = discrete.add_integer_noise(
        discrete.limited(np.array([_eigenvalue_units(gram, unit)], dtype=object)),
        std=eigenvalue_std,
    )
    noisy_gram = np.zeros((p, p))
    noisy_gram[upper] = discrete.add_integer_noise(discrete.limited(gram[upper]), std=gram_std)
    noisy_gram += np.triu(noisy_gram, 1).T
    noisy_moment = discrete.add_integer_noise(discrete.limited(moment), std=moment_std)

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
        (*discrete.ASSUMPTIONS, "the bounds were chosen without looking at the data"),
    )


def _integer_sums(
    samples: Samples, rows: discrete.Grid, labels: discrete.Grid
) -> tuple[IntArray, IntArray]:
    p = samples.dimension
    gram, moment = np.zeros((p, p), dtype=object), np.zeros(p, dtype=object)
    for features, targets, _ in samples.chunks():
        # Products of two integers below 2^17, summed over a chunk, stay below 2^53: a matrix
        # product of floats is exact in whatever order it sums.
        for first in range(0, targets.size, 1024):
            block = slice(first, first + 1024)
            whole = discrete.round_to_grid(
                features[block], norm=rows.unit * rows.resolution, resolution=rows.resolution
            ).astype(np.float64)
            with np.errstate(over="ignore"):
                units = targets[block] / labels.unit
            signed = np.clip(units, -labels.resolution, labels.resolution)
            gram = gram + (whole.T @ whole).astype(np.int64)
            moment = moment + (whole.T @ np.rint(signed)).astype(np.int64)
    return gram, moment


def _eigenvalue_units(gram: IntArray, unit: int) -> int:
    """The j of the module, the smallest eigenvalue in whole units."""
    # Floating point proposes, exact pivots decide.
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
    """Whether G - shift I is positive definite, by fraction-free elimination (Bareiss)."""
    matrix = gram.astype(object)
    matrix[np.diag_indices_from(matrix)] -= shift
    last = 1
    while len(matrix):
        pivot = matrix[0, 0]
        if pivot <= 0:
            return False
        rest = matrix[1:, 1:] * pivot - np.multiply.outer(matrix[1:, 0], matrix[0, 1:])
        matrix, last = rest // last, pivot
    return True
