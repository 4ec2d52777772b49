r"""What a sample that is not much larger than the dimension adds to a Huber regression's error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privreg.prediction.clipping import noise_moments
from privreg.prediction.problem import LabelNoiseLaw

FloatArray = NDArray[np.float64]
ITERATIONS = 12


def sampling_inflation(
    widths: FloatArray,
    weights: FloatArray,
    *,
    ratio: float,
    label_noise_std: float,
    law: LabelNoiseLaw = "gaussian",
    other_variance: FloatArray | float = 0.0,
) -> FloatArray:
    r"""Sampling variance of a minimiser of Huber losses over that of the sandwich as p/n → 0.

    In the limit of n and p in proportion κ the prediction of a left-out row has variance τ², and

    .. math::
        \kappa = \frac{c}{1 + c}\Pr(|r| \le w(1 + c)), \qquad
        \kappa\tau^2 = c^2\,\mathbb E\,\mathrm{clip}\Big(\frac{r}{1+c}, \pm w\Big)^2, \qquad
        r \sim \sigma\xi + N(0, v + \tau^2)

    Parameters
    ----------
    widths : ndarray, shape (settings, rows)
        w, the clip of each row's residual.
    weights : ndarray, shape (rows,)
        Of sum 1.
    ratio : float
        κ = p / n, at least 0 and less than 1.
    label_noise_std : float
        σ.
    law : str
        Of the label noise.
    other_variance : float or ndarray, shape (settings,)
        v of predictions, independent of these rows.

    Returns
    -------
    ndarray, shape (settings,)
        1 / (1 - κ) where nothing clips; `inf` where there is no solution: too few rows.

    Source
    ------
    El Karoui, Bean, Bickel, Lim and Yu (2013), system (S), with Huber's loss.
    """
    settings = len(widths)
    other = np.broadcast_to(other_variance, (settings,))

    def moments(reach: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        share, square = noise_moments(
            reach, label_noise_std=label_noise_std, law=law, other_variance=variance[:, None]
        )
        return share @ weights, square @ weights

    plain = moments(widths, np.zeros(settings))[1] / moments(widths, other)[0] ** 2
    if ratio == 0:
        return np.ones(settings)
    # The privacy noise's part of r is no part of the score at θ*.
    tau, c = ratio * plain, ratio / np.maximum(moments(widths, other)[0], ratio)
    for _ in range(ITERATIONS):
        inside = moments(widths * (1 + c)[:, None], other + tau)[0]
        grown = ratio / np.maximum(inside, 1e-12)
        c = np.where(grown < 0.9, grown / (1 - np.minimum(grown, 0.9)), np.inf)
        reach = widths * np.minimum(1 + c, 1e6)[:, None]
        score = moments(reach, tau)[1]
        tau = (np.minimum(c, 1e6) / (1 + np.minimum(c, 1e6))) ** 2 * score / ratio
    return np.where(np.isfinite(c), tau / (ratio * plain), np.inf)
