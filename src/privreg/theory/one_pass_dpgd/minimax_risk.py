r"""Lower bounds on the risk of every private estimator, and the prior behind them.

The prior makes the coordinates of the target independent, with density

.. math:: \pi(z) = \frac{15 d^{5/2}}{16}\Big(\frac1d - z^2\Big)^2, \qquad |z| < d^{-1/2}.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def prior_density(coordinate: ArrayLike, *, dimension: int) -> NDArray[np.float64]:
    """Density of one coordinate of the target under the prior, 0 outside its support.

    Parameters
    ----------
    coordinate : array_like, shape (...)
        z.
    dimension : int
        d, at least 1.

    Source
    ------
    bombari2025, equation (D.133).
    """
    left = np.maximum(1 / dimension - np.asarray(coordinate, dtype=float) ** 2, 0.0)
    return 15 * dimension**2.5 / 16 * left**2


def prior_score(coordinate: ArrayLike, *, dimension: int) -> NDArray[np.float64]:
    r"""Score of the prior, :math:`\pi'(z)/\pi(z) = -4z / (1/d - z^2)`, inside its support.

    Its identities are :math:`\mathbb E[-z\,\pi'/\pi] = 1`, which the paper prints with a second
    minus in front, and :math:`\mathbb E[(\pi'/\pi)^2] = 10 d`.

    Source
    ------
    bombari2025, equation (D.134), corrected.
    """
    values = np.asarray(coordinate, dtype=float)
    with np.errstate(divide="ignore"):
        return -4 * values / (1 / dimension - values**2)


def sample_prior(rng: np.random.Generator, *, dimension: int) -> NDArray[np.float64]:
    """Draw a target, shape (dimension,), of norm less than 1."""
    return (2 * rng.beta(3, 3, dimension) - 1) / math.sqrt(dimension)


def private_bound(
    *,
    aspect_ratio: ArrayLike,
    zcdp_root: ArrayLike,
    label_noise_std: float,
    smallest: float = 1.0,
) -> NDArray[np.float64]:
    r"""Excess risk below which no rho^2/2-zCDP estimator gets for all targets in the unit ball.

    .. math:: \min\Big(\frac{\lambda_{\min}}{80},\;
        \frac{\zeta^2}{8}\,\frac{\gamma^2}{e^{\rho^2} - 1}\Big)

    It follows from the tracing attack :math:`A_i = z_i x_i^\top(\hat\theta - \theta^*)`: on the
    prior's average the attacks sum to at least :math:`\zeta^2 d / 2` if the squared error is at
    most 1/40, and privacy keeps it below :math:`n\sqrt{e^{\rho^2} - 1}\,\sqrt{2\zeta^2 R}`.

    Parameters
    ----------
    aspect_ratio : array_like, shape (...)
        gamma = d / n, more than 0.
    zcdp_root : array_like, shape (...)
        rho, more than 0.
    label_noise_std : float
        Standard deviation zeta of the label noise, more than 0.
    smallest : float
        Smallest eigenvalue of the covariance, more than 0.

    Source
    ------
    bombari2025, Lemmas D.6 and D.7, equation (D.141); the constants are derived from their proofs.
    """
    gamma, rho = np.asarray(aspect_ratio, dtype=float), np.asarray(zcdp_root, dtype=float)
    for name, value in (
        ("aspect_ratio", gamma),
        ("zcdp_root", rho),
        ("label_noise_std", np.asarray(label_noise_std)),
        ("smallest", np.asarray(smallest)),
    ):
        if not np.all(value > 0):
            raise ValueError(f"{name} must be more than 0, got {value[~(value > 0)].flat[0]}")
    with np.errstate(over="ignore"):
        return np.minimum(smallest / 80, label_noise_std**2 / 8 * gamma**2 / np.expm1(rho**2))


def statistical_bound(
    *, aspect_ratio: ArrayLike, label_noise_std: float, largest: float = 1.0
) -> NDArray[np.float64]:
    r"""Excess risk below which no estimator gets for all targets in the unit ball, for large d.

    .. math:: \frac{\zeta^2\gamma}{8\lambda_{\max}}

    Parameters
    ----------
    aspect_ratio : array_like, shape (...)
        gamma = d / n, in (0, 1).
    label_noise_std : float
        Standard deviation zeta of the label noise, more than 0.
    largest : float
        Largest eigenvalue of the covariance, at least the mean eigenvalue 1.

    Source
    ------
    bombari2025, Lemma D.8. Its equation (D.157) leaves out the 1/2 of the excess risk and prints
    twice this bound, which the Bayes risk of its own prior violates.
    """
    gamma = np.asarray(aspect_ratio, dtype=float)
    if not np.all((gamma > 0) & (gamma < 1)):
        wrong = gamma[~((gamma > 0) & (gamma < 1))].flat[0]
        raise ValueError(f"aspect_ratio must be more than 0 and less than 1, got {wrong}")
    if not largest >= 1:
        raise ValueError(f"largest must be at least 1, got {largest}")
    return label_noise_std**2 * gamma / (8 * largest)
