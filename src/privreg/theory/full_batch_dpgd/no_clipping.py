"""Whether full-batch private gradient descent clips: the condition, and its proof's demands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.units import from_units, in_units
from privreg.validation import (
    require_answer,
    require_array,
    require_count,
    require_number,
    require_real,
)

FloatArray = NDArray[np.float64]
LARGEST = 1e30


class NoClippingRatios(NamedTuple):
    """How far a data set is from violating the No-Clipping Condition.

    Parts (ii) to (v) each hold with a constant c_0 at or above the ratio; `constant` is the least
    c_0 for all four. `spectrum_bounded` is ½I ⪯ Σ ⪯ 2I and `contracts` is ‖I - ηΣ‖ ≤ 7/8, part (i).
    """

    feature_norm: float
    residual: float
    transported: float
    accumulated: float
    spectrum_bounded: bool
    contracts: bool

    @property
    def constant(self) -> float:
        """Least c_0, the maximum of the four ratios."""
        return max(self[:4])


class NoClippingDemand(NamedTuple):
    """Least clipping bound and number of samples at which the proof excludes clipping."""

    clip_norm: float
    sample_size: float


def no_clipping_ratios(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    target: ArrayLike,
    step_size: float,
    steps: int,
    label_noise_std: float,
) -> NoClippingRatios:
    r"""Evaluate the No-Clipping Condition on data.

    .. math::
        \|\mathbf x_i\| \le c_0\sqrt p, \quad |y_i - \mathbf x_i^\top\theta| \le c_0\sigma, \quad
        |\mathbf x_i^\top M^t\theta| \le c_0, \quad
        |\mathbf x_i^\top A_t X^\top(y - X\theta)| \le c_0\sigma\sqrt{np}

    for all rows i ≤ n and steps t = 1..T, with M = I - ηΣ and A_t = (I - M^t) Σ^{-1}.

    Parameters
    ----------
    features : array_like, shape (n, p)
    labels : array_like, shape (n,)
    target : array_like, shape (p,)
        θ, in the model the population parameter.
    step_size : float
        η, more than 0 and at most 1e30.
    steps : int
        T, at least 1.
    label_noise_std : float
        σ, more than 0.

    Source
    ------
    brown2024, Condition 2.4 (where y ∈ R^p should read R^n). Features with a covariance eigenvalue
    of 2 violate part (i) by sampling error although the descent contracts: both are reported.
    """
    within = {"least": -LARGEST, "most": LARGEST}
    x = require_array("features", features, shape=(None, None), **within)
    y = require_array("labels", labels, shape=x.shape[:1], **within)
    theta = require_array("target", target, shape=x.shape[1:], least=-LARGEST, most=LARGEST)
    label_noise_std = require_number("label_noise_std", label_noise_std, least=1e-30, most=LARGEST)
    step_size = require_number("step_size", step_size, above=0, most=LARGEST)
    steps = require_count("steps", steps)
    n, p = x.shape
    covariance = x.T @ x / n
    eigenvalues = np.linalg.eigvalsh(covariance)
    residual = (y - x @ theta) / label_noise_std
    rows, unit = in_units(x)
    pull = step_size * (x.T @ residual)
    transported, accumulated = theta, np.zeros(p)
    largest = np.zeros(2)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            # A_t = A_{t-1} M + ηI, so no inverse of Σ is needed.
            transported = transported - step_size * (covariance @ transported)
            accumulated = accumulated - step_size * (covariance @ accumulated) + pull
            moved = np.abs(rows @ np.column_stack([transported, accumulated]))
            largest = np.maximum(largest, np.max(moved, axis=0))
    largest = require_answer("features, labels and step_size", from_units(largest, unit))
    norm = from_units(np.max(np.linalg.norm(rows, axis=1)), unit)
    return NoClippingRatios(
        feature_norm=float(norm / np.sqrt(p)),
        residual=float(np.max(np.abs(residual))),
        transported=float(largest[0]),
        accumulated=float(largest[1] / np.sqrt(n * p)),
        spectrum_bounded=bool(eigenvalues[0] >= 0.5 and eigenvalues[-1] <= 2),
        contracts=bool(np.max(np.abs(1 - step_size * eigenvalues)) <= 7 / 8),
    )


def generative_constant(sample_size: ArrayLike, *, steps: int, failure: float) -> FloatArray:
    r"""The c_0 that holds with probability 1 - β in the linear-Gaussian model, of the shape of n.

    .. math:: c_0 = 12\,\ln^{3/2}(5nT/\beta)

    Parameters
    ----------
    sample_size : array_like, shape (...)
        n, at least 1; the lemma asks for a constant times p + ln(1/β).
    steps : int
        T, at least 1.
    failure : float
        β in (0, 1).

    Source
    ------
    brown2024, Lemma 2.6. Its proof gives the 12 only as p grows (about 41 at p = 2); the statement
    holds with a wide margin all the same.
    """
    rows = require_real("sample_size", sample_size, least=1, most=1e30)
    steps = require_count("steps", steps)
    failure = require_number("failure", failure, above=0, below=1)
    return 12 * (np.log(5 * rows * steps) - np.log(failure)) ** 1.5


def no_clipping_demand(
    constant: float,
    *,
    features: int,
    steps: int,
    step_size: float,
    rho: float,
    failure: float,
    label_noise_std: float,
) -> NoClippingDemand:
    r"""Least γ and n at which the proof excludes clipping, at the noise of the whole budget.

    .. math::
        \gamma \ge 4c_0^2\max(\sigma, 1)\sqrt p, \qquad
        \frac n\eta\sqrt{\frac{\rho}{2T}} \ge 64 c_0^2\, p\sqrt{\ln(2nT/\beta)}

    The second inequality holds from the least n on, at least 1. It does not depend on γ, since the
    noise is proportional to it.

    Parameters
    ----------
    constant : float
        c_0 of the condition: measured (`NoClippingRatios.constant`) or `generative_constant`.
    features, steps : int
        p and T.
    step_size, rho, failure, label_noise_std : float
        η, total zCDP budget ρ, failure probability β and σ, all more than 0.

    Source
    ------
    brown2024, Lemma 2.5 with λ of Lemma 2.1. As printed the lemma has σ for max(σ, 1), which its
    proof needs: it bounds c_0 by c_0 σ.
    """
    values = {"constant": constant, "step_size": step_size, "rho": rho}
    for name, value in {**values, "label_noise_std": label_noise_std}.items():
        require_number(name, value, least=1e-30, most=LARGEST)
    failure = require_number("failure", failure, above=0, below=1)
    features, steps = require_count("features", features), require_count("steps", steps)
    scale = 64 * constant**2 * features * step_size * np.sqrt(2 * steps / rho)
    sample_size = max(scale, 1.0)
    # From n = 1 on the logarithm is above ln 2 and a round shrinks the error to 3/4 at most.
    for _ in range(200):
        last = sample_size
        sample_size = max(scale * np.sqrt(np.log(2 * last * steps) - np.log(failure)), 1.0)
        if sample_size == last:
            break
    clip_norm = 4 * constant**2 * max(label_noise_std, 1.0) * np.sqrt(features)
    return NoClippingDemand(float(clip_norm), float(sample_size))
