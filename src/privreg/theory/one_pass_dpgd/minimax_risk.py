r"""Lower bounds on the risk of every private estimator, and the prior behind them.

The prior makes the coordinates of the target independent, with density

.. math:: \pi(z) = \frac{15 d^{5/2}}{16}\Big(\frac1d - z^2\Big)^2, \qquad |z| < d^{-1/2}.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.theory.one_pass_dpgd.settings import require_scalars, require_settings
from privreg.validation import require_count, require_number, require_real, require_rng


def prior_density(coordinate: ArrayLike, *, dimension: int) -> NDArray[np.float64]:
    """Density of one coordinate of the target under the prior, 0 outside its support.

    Parameters
    ----------
    coordinate : array_like, shape (...)
        z, from -1e30 to 1e30.
    dimension : int
        d.

    Source
    ------
    bombari2025, equation (D.133).
    """
    dimension = require_count("dimension", dimension)
    point = require_real("coordinate", coordinate, least=-1e30, most=1e30)
    left = np.maximum(1 / dimension - point**2, 0.0)
    return 15 * dimension**2.5 / 16 * left**2


def prior_score(coordinate: ArrayLike, *, dimension: int) -> NDArray[np.float64]:
    r"""Score of the prior, :math:`\pi'(z)/\pi(z) = -4z / (1/d - z^2)`, inside its support.

    Its identities are :math:`\mathbb E[-z\,\pi'/\pi] = 1`, which the paper prints with a second
    minus in front, and :math:`\mathbb E[(\pi'/\pi)^2] = 10 d`.

    Parameters
    ----------
    coordinate : array_like, shape (...)
        z, of size less than d^(-1/2).
    dimension : int
        d, at least 1.

    Source
    ------
    bombari2025, equation (D.134), corrected.
    """
    dimension = require_count("dimension", dimension)
    edge = 1 / math.sqrt(dimension)
    values = require_real("coordinate", coordinate, above=-edge, below=edge)
    # The product form is positive for every number inside.
    return -4 * values / ((edge - values) * (edge + values))


def sample_prior(rng: np.random.Generator, *, dimension: int) -> NDArray[np.float64]:
    """Draw a target, shape (dimension,), of norm less than 1."""
    require_rng("rng", rng)
    dimension = require_count("dimension", dimension)
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
    gamma, rho = require_settings(infinite=False, aspect_ratio=aspect_ratio, zcdp_root=zcdp_root)
    noise, least = require_scalars(label_noise_std=label_noise_std, smallest=smallest)
    require_number("label_noise_std", noise, above=0)
    with np.errstate(under="ignore"):
        # The root, since the square of an exponential that is too small may yet be none.
        root = noise * gamma * np.exp(-(rho**2) / 2) / np.sqrt(-np.expm1(-(rho**2)))
        return np.minimum(least / 80, root**2 / 8)


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
    gamma = require_real("aspect_ratio", aspect_ratio, above=0, below=1)
    noise, greatest = require_scalars(label_noise_std=label_noise_std, largest=largest)
    require_number("label_noise_std", noise, above=0)
    require_number("largest", greatest, least=1)
    return np.asarray(noise**2 * gamma / (8 * greatest))
