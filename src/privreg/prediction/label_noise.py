r"""Laws of the label noise, as Gaussians whose scale is random.

.. math:: \xi = \sigma S Z, \qquad Z \sim N(0, 1),\quad \mathbb E S^2 = 1

Student's t with ν degrees of freedom has :math:`S^2 = (\nu - 2) / \chi^2_\nu`; Laplace's law has an
exponential S². What clipping leaves of a Gaussian is known in closed form, so that of a mixture is
a short sum.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, gammaincinv, xlogy

from privreg.immutable import frozen
from privreg.prediction.problem import LabelNoiseLaw

FloatArray = NDArray[np.float64]
DEGREES = {"student_t5": 5.0, "student_t3": 3.0}
# Probabilities at which the scales are cut, the largest scales first: their cells are the finest.
CUTS = (0.0, 0.002, 0.015, 0.06, 0.16, 0.32, 0.52, 0.72, 0.88, 1.0)
# Laplace's density has a peak, which the smallest scales make.
PEAKED = (*CUTS[:-2], 0.8, 0.88, 0.93, 0.96, 0.98, 0.993, 1.0)


def squared_scales(law: LabelNoiseLaw) -> tuple[FloatArray, FloatArray]:
    r"""Values of S² and their probabilities, (cells,) each, with :math:`\mathbb E S^2 = 1` exactly.

    A cell of probabilities is represented by the conditional mean of S² in it, for which

    .. math:: \mathbb E\Big[\frac{\nu - 2}{\chi^2_\nu};\ a < \chi^2_\nu < b\Big]
        = \Pr(a < \chi^2_{\nu - 2} < b),

    and for an exponential S², between its upper quantiles at u and v, by

    .. math:: \mathbb E[S^2; u < e^{-S^2} < v] = v - v \log v - u + u \log u.
    """
    if law == "gaussian":
        return np.ones(1), np.ones(1)
    return _cells(law)


@lru_cache(maxsize=8)
def _cells(law: LabelNoiseLaw) -> tuple[FloatArray, FloatArray]:
    cuts = np.array(PEAKED if law == "laplace" else CUTS)
    if law == "laplace":
        parts = cuts - xlogy(cuts, cuts)
    else:
        degrees = DEGREES[law]
        parts = chdtr(degrees - 2, 2 * gammaincinv(degrees / 2, cuts))
    weights = np.diff(cuts)
    squares = np.diff(parts) / weights
    return frozen(squares), frozen(weights)
