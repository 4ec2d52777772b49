"""Means of trials less a control variate of mean zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def controlled(
    value: FloatArray, control: FloatArray, square: FloatArray, product: FloatArray
) -> FloatArray:
    r"""Each trial's mean, less its control times a coefficient from the other trials.

    .. math:: y_t - \beta_{-t} c_t,\qquad
        \beta_{-t} = \frac{\operatorname{Cov}_{-t}(y, c)}{\operatorname{Var}_{-t}(c)}

    The coefficient is independent of the trial, and the control has mean zero: so has their
    product, and no bias enters.

    Parameters
    ----------
    value, control, square, product : ndarray, shape (..., trials)
        Means over each trial's runs of y, c, c² and yc; at least two trials, of as many runs each.

    Returns
    -------
    ndarray, shape (..., trials)
    """
    value_of_others, control_of_others, square_of_others, product_of_others = (
        (each.sum(axis=-1, keepdims=True) - each) / (each.shape[-1] - 1)
        for each in (value, control, square, product)
    )
    covariance = product_of_others - value_of_others * control_of_others
    variance = square_of_others - control_of_others**2
    # Equal controls of one run each tell of no slope.
    known = variance > 1e-12 * square_of_others
    slope = np.where(known, covariance, 0.0) / np.where(known, variance, 1.0)
    return np.asarray(value - slope * control)
