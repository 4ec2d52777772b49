r"""Exact mean excess risk of one-pass DP-FTRL without clipping, for Gaussian features.

The deviation u_t = w_t - w* follows :math:`u_{t+1} = (I - \eta x_tx_t^\top)u_t + \eta\zeta_tx_t
- \eta\xi_t`. For Gaussian x the diagonal m of a second moment E[uu^⊤] in H's eigenbasis moves by
itself,

.. math:: m' = T m = (1 - 2\eta\lambda + 2\eta^2\lambda^2)\,m + \eta^2\lambda\,(\lambda^\top m).

The start, the label noise and each vector of white noise are independent with mean 0, and so add
separately to the risk of the average. Mean gradients miss the last term: the noise in w_t comes
back as if it were label noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from privreg.units import from_units, in_unit, in_units, squared_times
from privreg.validation import FloatArray, require_array, require_count, require_number


class RiskParts(NamedTuple):
    """Mean excess risk of the average iterate by its causes."""

    bias: float
    label_noise: float
    private: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.bias + self.label_noise + self.private


def sgd_risk(
    eigenvalues: ArrayLike,
    *,
    target: ArrayLike,
    label_noise_std: float,
    step_size: float,
    sample_size: int,
) -> RiskParts:
    r"""Mean excess risk of the average of one-pass SGD's first N iterates, without private noise.

    .. math:: \frac1{2N^2}\sum_i\lambda_i\sum_{t<N} m_{t,i}\Big(1 + 2\sum_{k=1}^{N-1-t}\rho_i^k\Big)

    Infinite where the second moment overflows because the step is too large.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        λ of the features' covariance, at least 0 and at most 1e50.
    target : array_like, shape (d,)
        w* in the eigenbasis, at least -1e50 and at most 1e50; the start is 0.
    label_noise_std : float
        σ_ζ, at least 0 and at most 1e50.
    step_size : float
        η, more than 0 and at most 1e50.
    sample_size : int
        N.

    Source
    ------
    anon2024, Lemma B.6 with equality, for Gaussian features.
    """
    lam, eta, size = _setting(eigenvalues, step_size, sample_size)
    offset = require_array("target", target, shape=lam.shape, least=-1e50, most=1e50)
    zeta = require_number("label_noise_std", label_noise_std, least=0, most=1e50)
    lam, unit = in_units(lam)
    offset, offset_unit = in_units(offset)
    step, step_unit = in_unit(eta)
    eta = float(from_units(eta, unit))
    moments = np.stack([offset**2, np.zeros_like(lam)])
    # Label noise of deviation 1, in units of the step.
    source = np.stack([np.zeros_like(lam), step**2 * lam])
    # E[S_t u_t] of the partial sums S_t, and E[S_t²], by direction.
    cross, squares = moments.copy(), moments.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(1, size):
            moments = _transport(moments, lam, eta) + source
            cross = (1 - eta * lam) * cross + moments
            squares += 2 * cross - moments
        bias, label = squares @ lam / (2 * size**2)
        bias = from_units(bias, unit + 2 * offset_unit)
        label = squared_times(zeta, float(from_units(label, 2 * (unit + step_unit))))
        bias, label = _finite_or_infinite(np.array([bias, label]))
    return RiskParts(float(bias), float(label), 0.0)


def private_risk(
    eigenvalues: ArrayLike,
    *,
    covariance: ArrayLike,
    noise_std: float,
    step_size: float,
    sample_size: int,
    decoder: ArrayLike | None = None,
) -> float:
    """Mean excess risk that shaped private noise adds to the average, gradients unclipped.

    Infinite where the second moment overflows.

    Parameters
    ----------
    eigenvalues, step_size, sample_size
        As in `sgd_risk`.
    covariance : array_like, shape (d,)
        Σ_ii in the eigenbasis, at least 0 and at most 1e50; only the diagonal enters.
    noise_std : float
        σ, noise multiplier times clip norm, at least 0 and at most 1e50.
    decoder : array_like, shape (steps,), optional
        β of Toeplitz-correlated noise, N - 1 coefficients or more, at least -1e50 and at most 1e50;
        1, 0, 0, ... is independent noise. The tree by default.
    """
    lam, eta, size = _setting(eigenvalues, step_size, sample_size)
    shape = require_array("covariance", covariance, shape=lam.shape, least=0, most=1e50)
    std = require_number("noise_std", noise_std, least=0, most=1e50)
    steps = size - 1
    total = 0.0
    if decoder is not None:
        beta = require_array("decoder", decoder, shape=(None,), least=-1e50, most=1e50)
        if beta.size < steps:
            raise ValueError(f"decoder must have at least {steps} coefficients, got {beta.size}")
    # A direction without curvature has no risk, and its error may grow beyond all numbers.
    curved = lam > 0
    if steps == 0 or std == 0 or not np.any(curved):
        return 0.0
    if not np.all(curved):
        lam, shape = lam[curved], shape[curved]
    (lam, unit), (shape, shape_unit) = in_units(lam), in_units(shape)
    (push, push_unit), (scale, scale_unit) = in_unit(eta), in_unit(std)
    moved = lam, shape, float(from_units(eta, unit)), push
    unit += shape_unit + 2 * (push_unit + scale_unit)
    if decoder is not None:
        beta, beta_unit = in_units(beta[:steps])
        unit += 2 * beta_unit
        total = float(np.sum(_finite_or_infinite(_impulse_risks(*moved, beta))))
    else:
        for height in range(steps.bit_length()):
            span = 1 << height
            entries = np.arange(span, steps + 1, 2 * span)
            # Added on entry, taken back `span` steps later.
            kicks = np.zeros(size - span)
            kicks[:1], kicks[span : span + 1] = 1.0, -1.0
            risks = _finite_or_infinite(_impulse_risks(*moved, kicks))
            total += float(np.sum(risks[size - entries - 1]))
    return float(from_units(scale**2 * total / size**2, unit))


def _setting(
    eigenvalues: ArrayLike, step_size: float, sample_size: int
) -> tuple[FloatArray, float, int]:
    lam = require_array("eigenvalues", eigenvalues, shape=(None,), least=0, most=1e50)
    eta = require_number("step_size", step_size, above=0, most=1e50)
    return lam, eta, require_count("sample_size", sample_size)


def _transport(moments: FloatArray, lam: FloatArray, eta: float) -> FloatArray:
    shrunk = (1 - 2 * eta * lam + 2 * (eta * lam) ** 2) * moments
    return shrunk + eta**2 * lam * (moments @ lam)[..., None]


@njit(nogil=True, cache=True, error_model="numpy")
def _impulse_risks(
    lam: FloatArray, shape: FloatArray, eta: float, push: float, kicks: FloatArray
) -> FloatArray:
    """½ λᵀE[S²] of the sum S of the first L iterates after z entered, for L from 1.

    z of covariance diag(shape) is added -β_l times `push` in step l, where β are the kicks.
    """
    d = lam.size
    risks = np.zeros(kicks.size)
    # Second moments of u_l with itself, with z, and of the sum S_l with u_l, z and itself.
    moments, with_kick, sum_with_kick = np.zeros(d), np.zeros(d), np.zeros(d)
    cross, squares = np.zeros(d), np.zeros(d)
    contraction, decay, coupling = np.empty(d), np.empty(d), np.empty(d)
    for i in range(d):
        rate = eta * lam[i]
        contraction[i] = 1.0 - rate
        decay[i] = 1.0 - 2.0 * rate + 2.0 * rate**2
        coupling[i] = eta * rate
    for step in range(kicks.size):
        moved = -push * kicks[step]
        total = 0.0
        for i in range(d):
            total += lam[i] * moments[i]
        risk = 0.0
        for i in range(d):
            moment = decay[i] * moments[i] + coupling[i] * total
            moment += 2.0 * moved * contraction[i] * with_kick[i] + moved**2 * shape[i]
            moments[i] = moment
            cross[i] = contraction[i] * cross[i] + moved * sum_with_kick[i] + moment
            with_kick[i] = contraction[i] * with_kick[i] + moved * shape[i]
            squares[i] += 2.0 * cross[i] - moment
            sum_with_kick[i] += with_kick[i]
            risk += lam[i] * squares[i]
        risks[step] = 0.5 * risk
    return risks


def _finite_or_infinite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, np.inf)
