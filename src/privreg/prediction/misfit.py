r"""Where a clipped regression goes if the noise is skewed in a way that depends on the features.

Least squares needs the noise to have mean 0 given the features, or a mean that no feature explains.
A clipped regression needs that of its clipped value. Where skewness follows the features, the two
have different coefficients: with noise :math:`\xi = \sigma s(x)(E - 1)`, E exponential and
:math:`s(x) = \pm 1`, one Newton step from θ* moves the location at x by

.. math:: \sigma s(x)\,\delta(w), \qquad
    \delta(w) = \frac{\mathbb E\,\mathrm{clip}(E - 1, \pm w)}{\Pr(|E - 1| \le w)}
    = \begin{cases} 1 - \dfrac{w e}{2\sinh w} & w < 1\\[1ex]
      -\dfrac{e^{-(1 + w)}}{1 - e^{-(1 + w)}} & w \ge 1\end{cases}

and of this the features explain a part. `Problem.misfit` is its spread as w → 0; for other widths
it falls as δ does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows

FloatArray = NDArray[np.float64]
# δ as w → 0: a Newton step's, near the median's log 2 - 1.
NARROW = 1 - np.e / 2


def clipped_location(width: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Mean of a clipped centred exponential, and probability that it is not clipped.

    Parameters
    ----------
    width : ndarray, shape (...)
        w, at least 0, in standard deviations.
    """
    narrow = np.minimum(width, 1.0)
    beyond = np.exp(-(1 + width))
    inside = 2 / np.e * np.sinh(narrow)
    mean = np.where(width < 1, inside - narrow, -beyond)
    return mean, np.where(width < 1, inside, 1 - beyond)


def squared_shift(
    problem: Problem, rows: Rows, widths: FloatArray, *, covered: FloatArray | float = 1.0
) -> FloatArray:
    r"""Mean square, by group, of what clipping moves a coordinate by, shape (settings, groups).

    .. math:: \frac{\kappa^2\sigma^2}{p\lambda_j}\Big(\frac{\delta(w)}{\delta(0)}\Big)^2

    The direction is not known: every eigenvector has the same part of the variance explained.

    Parameters
    ----------
    problem : Problem
    rows : Rows
        Those of the problem.
    widths : ndarray, shape (settings, rows)
        Largest residual of a row.
    covered : ndarray, shape (settings, groups)
        Share of the way that the descent has come.
    """
    if problem.misfit == 0:
        return np.zeros((len(widths), len(rows.eigenvalues)))
    mean, inside = clipped_location(widths / problem.label_noise_std)
    shift = (mean @ rows.weights) / np.maximum(inside @ rows.weights, 1e-300) / NARROW
    spread = problem.misfit * problem.label_noise_std * np.abs(shift)[:, None] * covered
    return np.asarray(spread**2 / (problem.dimension * rows.eigenvalues))
