"""Ordinary least squares with textbook intervals, the non-private baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import stdtrit

from privreg.algorithms.samples import Samples, as_samples, moments
from privreg.checks import FloatArray, require_number
from privreg.kernels import plain_sum


@dataclass(frozen=True)
class LeastSquares:
    """A least-squares fit. Not private.

    Attributes
    ----------
    coefficients : ndarray, shape (p,)
        Minimiser of the sum of squared residuals.
    standard_errors : ndarray, shape (p,)
        Estimated standard deviation of each coefficient about the population parameter.
    degrees_of_freedom : int
        n - p, for n rows and p features.
    """

    not_private: ClassVar[bool] = True
    coefficients: FloatArray
    standard_errors: FloatArray
    degrees_of_freedom: int

    def half_widths(self, *, level: float) -> FloatArray:
        r"""Half-widths of the t intervals for the *population* parameter θ*.

        .. math::
            \hat\theta_j \pm t_{(1+\ell)/2,\,n-p}\; s\,\sqrt{[(X^\top X)^{-1}]_{jj}},
            \qquad s^2 = \frac{\|y - X\hat\theta\|^2}{n - p}

        Parameters
        ----------
        level : float
            Coverage ℓ in (0, 1), exact for Gaussian label noise and fixed features.

        Source
        ------
        brown2024, section 4.2 (the dashed line of Figures 6 and 11). The paper's private intervals
        cover the empirical minimiser instead, which is a different target.
        """
        level = require_number("level", level, above=0, below=1)
        return stdtrit(self.degrees_of_freedom, (1 + level) / 2) * self.standard_errors


def ols(samples: Samples) -> LeastSquares:
    r"""Fit by least squares, :math:`\hat\theta = (X^\top X)^{-1} X^\top y`.

    Parameters
    ----------
    samples : Samples
        Data with more rows than features and linearly independent features. The data are read
        twice, for the Gram matrix and for residuals.

    Source
    ------
    brown2024, section 1.
    """
    samples = as_samples(samples)
    n, p = samples.sample_size, samples.dimension
    if n <= p:
        raise ValueError(f"samples must have more rows than features, got n = {n} and p = {p}")
    gram, moment = moments(samples)
    try:
        inverse = np.linalg.inv(gram)
    except np.linalg.LinAlgError:
        inverse = None
    if inverse is None or np.linalg.cond(gram) > 1 / np.finfo(float).eps:
        raise ValueError("samples must have linearly independent features, got dependent ones")
    coefficients = np.linalg.solve(gram, moment)
    squares = plain_sum(
        float(np.sum((labels - features @ coefficients) ** 2))
        for features, labels, _ in samples.chunks()
    )
    variance = squares / (n - p)
    standard_errors: FloatArray = np.sqrt(variance * np.diag(inverse))
    return LeastSquares(np.asarray(coefficients), standard_errors, n - p)
