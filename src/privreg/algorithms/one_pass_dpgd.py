r"""One-pass DP-GD with clipping for least squares.

Each sample is used once, in order. With the gradient :math:`g_k = x_k(x_k^\top\theta_{k-1} - y_k)`,

.. math:: \theta_k = \theta_{k-1}
    - \min\Big(\eta_k, \frac{2}{\|x_k\|^2}\Big)\,\min\Big(1, \frac{C}{\|g_k\|}\Big)\, g_k
    + 2 C \sigma_k b_k, \qquad b_k \sim N(0, I),

from :math:`\theta_0 = 0`, and only :math:`\theta_n` is released (bombari2025, Algorithm 1).
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.one_pass_mechanism import Mechanism as Mechanism
from privreg.algorithms.one_pass_together import (
    fit_together,
    isotropic_risk_paths_together,
    risk_paths_together,
)
from privreg.models import LinearModel
from privreg.noise.source import SECRET, NoiseSource, require_source
from privreg.privacy import assumptions
from privreg.privacy.release import Release
from privreg.validation import require_instance


def fit(
    mechanism: Mechanism,
    features: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Run every setting of a mechanism over given samples, with the same private noise directions.

    Blocks of samples go through matrix products: inside a block a prediction depends on earlier
    samples only through inner products that all settings share. One setting alone and tables of
    few columns go from sample to sample, which is quicker; the two ways agree up to rounding.

    Parameters
    ----------
    mechanism : Mechanism
        Which settings; see its guarantee.
    features : array_like, shape (sample_size, dimension)
        Finite, in the order of use; as many as the mechanism has steps.
    labels : array_like, shape (sample_size,)
        Finite.
    rng : Generator
        Draws the private noise.

    Returns
    -------
    ndarray, shape (settings, dimension)
        The private output of each setting, of which only one may be released: they share noise.

    Guarantee
    ---------
    Each row of the result keeps the mechanism's budget, for every finite data set from subnormal
    to 1e308 and in real arithmetic; only last iterates are private, so that no exact sum of
    integers can make up for what floating point reveals.
    """
    require_instance("mechanism", mechanism, Mechanism)
    (found,) = fit_together([mechanism], features, labels, rng)
    return found


def release(
    mechanism: Mechanism,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    noise: NoiseSource = SECRET,
) -> Release[NDArray[np.float64]]:
    """The last iterate of a mechanism of one setting, with its budget and what it rests on.

    Parameters
    ----------
    mechanism : Mechanism
        Of one setting with a finite budget: several share their noise, and only one may leave.
    features, labels
        As in `fit`.
    noise : Secret or Seeded
        Where the noise comes from.

    Returns
    -------
    Release
        Of the iterate, shape (dimension,).

    Guarantee
    ---------
    That of `fit`.

    Examples
    --------
    >>> from privreg.privacy.budget import Budget
    >>> from privreg.schedules import Polynomial
    >>> mechanism = Mechanism.from_schedule(
    ...     Polynomial(2.0, 0.5), sample_size=400, dimension=3, budget=Budget.zcdp(0.5),
    ...     clip_constant=1.0,
    ... )
    >>> features = np.random.default_rng(0).standard_normal((400, 3))
    >>> found = release(mechanism, features, features @ [1.0, 0.0, -1.0])
    >>> found.budget, found.value.shape
    (Budget(rho=0.5, neighbours='replace-one'), (3,))
    """
    require_instance("mechanism", mechanism, Mechanism)
    if mechanism.settings != 1 or not isfinite(mechanism.budget.rho):
        raise ValueError(
            "mechanism must have one setting and a finite budget for a release, "
            f"got {mechanism.settings} and {mechanism.budget}"
        )
    source = require_source("noise", noise)
    (iterate,) = fit(mechanism, features, labels, source.generator())
    held = (*assumptions.BESIDES_THE_STREAM, assumptions.LAST_ALONE, *source.assumptions)
    return Release(iterate, mechanism.budget, held)


def risk_path(
    mechanism: Mechanism,
    model: LinearModel,
    rng: np.random.Generator,
    *,
    record: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Excess risk along runs over samples drawn on the fly, which are never stored.

    All settings share the data and the directions of the private noise.

    Parameters
    ----------
    mechanism : Mechanism
        Which settings; see its guarantee. The path is a diagnostic, not a private release.
    model : LinearModel
        Draws the samples.
    rng : Generator
        Draws samples and noise.
    record : array_like of int, optional
        Increasing steps after which the risk is recorded, 0 for the start; the last step alone if
        left out.

    Returns
    -------
    ndarray, shape (settings, len(record))
        Excess risk; the last step's includes the output noise.
    """
    require_instance("mechanism", mechanism, Mechanism)
    (risk,) = risk_paths_together([mechanism], model, rng, record=record)
    return risk


def isotropic_risk_path(
    mechanism: Mechanism,
    rng: np.random.Generator,
    *,
    dimension: int,
    target_norm: float,
    label_noise_std: float,
    record: ArrayLike | None = None,
) -> NDArray[np.float64]:
    r"""The same for an isotropic covariance, exactly in law, at a cost that does not depend on d.

    By rotation invariance :math:`m = \|\theta_k - \theta^*\|^2` is a Markov chain driven by a few
    scalars: the component of a sample along the error, the norm of the rest, the label noise and
    three components of the private noise.

    Parameters
    ----------
    mechanism, rng
        As for `risk_path`.
    record : array_like of int, optional
        As for `risk_path`.
    dimension : int
        At least 3.
    target_norm : float
        Norm of theta*, at least 0 and at most 1e50.
    label_noise_std : float
        Standard deviation of the label noise, at least 0 and at most 1e50.

    Returns
    -------
    ndarray, shape (settings, len(record))
        Excess risk, half the squared error.
    """
    require_instance("mechanism", mechanism, Mechanism)
    (risk,) = isotropic_risk_paths_together(
        [mechanism],
        rng,
        dimension=dimension,
        target_norm=target_norm,
        label_noise_std=label_noise_std,
        record=record,
    )
    return risk
