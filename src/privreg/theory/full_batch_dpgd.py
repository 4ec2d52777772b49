"""Law of the iterates of full-batch DP-GD without clipping, and conditions for no clipping."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import (
    MOST,
    Immutable,
    require_answer,
    require_array,
    require_count,
    require_counts,
    require_fields,
    require_frozen,
    require_instance,
    require_number,
    require_real,
    require_scale,
    require_scales,
    scale_or_zero,
)

FloatArray = NDArray[np.float64]
NEAR = 2.0**-7
# Answers are checked: a law that diverges may overflow, and one without noise divides by 0.
DIVERGING = np.errstate(over="ignore", divide="ignore", invalid="ignore")
SIGNED: dict[str, float] = {"least": -MOST, "most": MOST}
_steps = partial(require_counts, least=0)


@dataclass(frozen=True)
class GradientDescentLaw(Immutable):
    r"""Joint law of the iterates of noisy gradient descent, a vector autoregression of order one.

    .. math::
        \theta_t = \theta_{t-1} - \eta\Sigma(\theta_{t-1} - \hat\theta) + \eta z_t,
        \qquad z_t \sim N(0, \lambda^2 I_p)

    where Σ = XᵀX/n has shape (p, p) and θ̂ (p,) is the empirical minimiser. All methods work in the
    eigenbasis of Σ; the contraction of direction k is a_k = 1 - η w_k with eigenvalue w_k.

    Parameters
    ----------
    eigenvalues : array_like, shape (p,)
        Eigenvalues w of Σ, at least 0.
    eigenvectors : array_like, shape (p, p)
        Eigenvectors of Σ as orthonormal columns; the identity for a diagonal Σ.
    minimiser, start : array_like, shape (p,)
        θ̂ and θ_0.
    step_size, gradient_noise_std : float
        η, more than 0, and λ, at least 0; the noise of a step has standard deviation ηλ.

    Source
    ------
    brown2024, Lemma 2.3 and equations (8), (18), (19), (88) to (94). Equation (83) absorbs η in the
    noise; the left side of equation (26) should be θ_t.
    """

    eigenvalues: FloatArray
    eigenvectors: FloatArray
    minimiser: FloatArray
    start: FloatArray
    step_size: float
    gradient_noise_std: float

    def __post_init__(self) -> None:
        # A covariance is that of features in the domain.
        values = partial(require_frozen, shape=(None,), least=0.0, most=MOST**2)
        require_fields(
            self, eigenvalues=values, step_size=require_scale, gradient_noise_std=scale_or_zero
        )
        p = self.eigenvalues.size
        vector = partial(require_frozen, shape=(p,), least=-MOST, most=MOST)
        square = partial(vector, shape=(p, p))
        require_fields(self, eigenvectors=square, minimiser=vector, start=vector)

    @property
    def _pull(self) -> FloatArray:
        """x = η w; unlike a, it gives small 1 - a and 1 + a without loss of digits."""
        return self.step_size * self.eigenvalues

    @property
    def contraction(self) -> FloatArray:
        """a = 1 - η w, shape (p,); the iterates converge if all entries are in (-1, 1)."""
        return 1 - self._pull

    def _transported(self, times: ArrayLike) -> FloatArray:
        """M^t (θ_0 - θ̂) in the eigenbasis, shape (*t.shape, p)."""
        offset = self.eigenvectors.T @ (self.start - self.minimiser)
        return _power(self._pull, _steps("times", times)[..., None]) * offset

    @DIVERGING
    def mean(self, times: ArrayLike) -> FloatArray:
        """Mean θ̂ + M^t (θ_0 - θ̂) with M = I - ηΣ, shape (*times.shape, p)."""
        mean = self.minimiser + self._transported(times) @ self.eigenvectors.T
        return require_answer("times", mean)

    @DIVERGING
    def mode_covariance(self, later: ArrayLike, earlier: ArrayLike) -> FloatArray:
        r"""Covariance of two iterates along each eigendirection, times in any order, (..., p).

        .. math::
            c_k(\tau, t) = \eta^2\lambda^2\, a_k^{|\tau - t|}\,
            \frac{1 - a_k^{2\min(\tau, t)}}{1 - a_k^2}
        """
        first, second = np.broadcast_arrays(_steps("later", later), _steps("earlier", earlier))
        gap = np.abs(first - second)[..., None]
        shorter = np.minimum(first, second)[..., None]
        variance = (self.step_size * self.gradient_noise_std) ** 2
        modes = variance * _power(self._pull, gap) * _geometric_sum(self._pull, shorter)
        # Without noise nothing grows, however much it would have.
        return require_answer("later and earlier", modes if variance else np.zeros_like(modes))

    def covariance(self, later: ArrayLike, earlier: ArrayLike | None = None) -> FloatArray:
        """Cross-covariance η²λ² M^|τ-t| A^(min(τ,t)) of two iterates, shape (..., p, p).

        A^(t) is the sum of M^(2s) over s < t, with M = I - ηΣ. By default both times are equal.
        """
        modes = self.mode_covariance(later, later if earlier is None else earlier)
        return np.asarray((self.eigenvectors * modes[..., None, :]) @ self.eigenvectors.T)

    @DIVERGING
    def expected_squared_error(self, times: ArrayLike) -> FloatArray:
        r"""Mean squared distance to θ̂, with the shape of the times; A^(t) is as in `covariance`.

        .. math::
            \mathbb E\|\theta_t - \hat\theta\|^2
            = \|M^t(\theta_0 - \hat\theta)\|^2 + \eta^2\lambda^2\,\mathrm{tr}\,A^{(t)}
        """
        bias = np.sum(self._transported(times) ** 2, axis=-1)
        error = bias + np.sum(self.mode_covariance(times, times), axis=-1)
        return require_answer("times", error)

    @DIVERGING
    def functionals(self, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
        r"""Mean and covariance of weighted sums of the iterates, for each coordinate separately.

        .. math:: \theta^{(l)} = \sum_{t=1}^T W_{lt}\,\theta_t

        Parameters
        ----------
        weights : array_like, shape (m, T)
            W; column t - 1 belongs to θ_t.

        Returns
        -------
        bias, covariance : ndarray, shapes (p, m) and (p, m, m)
            Entry (j, l) of `bias` is the mean of θ_j^(l), minus θ̂_j times the sum of row l of W.
            Entry j of `covariance` is the covariance matrix of θ_j^(1), ..., θ_j^(m).
        """
        matrix = require_array("weights", weights, shape=(None, None), **SIGNED)
        times = np.arange(1, matrix.shape[1] + 1)
        contraction = self.contraction[:, None]
        # The noise of step s enters θ_t as ηa^(t-s), so its weight in a sum obeys a backward
        # recursion; T × T covariances are never formed.
        loads = np.empty((self.eigenvalues.size, *matrix.shape))
        load = np.zeros((self.eigenvalues.size, len(matrix)))
        bias = (matrix @ (self._transported(times) @ self.eigenvectors.T)).T
        for step in reversed(range(matrix.shape[1])):
            load = matrix[:, step] + contraction * load
            loads[..., step] = load
        variance = (self.step_size * self.gradient_noise_std) ** 2
        modes = variance * loads @ np.swapaxes(loads, -1, -2)
        covariance = np.einsum("jk,klm->jlm", self.eigenvectors**2, modes)
        require_answer("weights", np.append(bias, covariance))
        return bias, covariance


def gradient_descent_law(
    gram: ArrayLike,
    moment: ArrayLike,
    *,
    sample_size: int,
    step_size: float,
    gradient_noise_std: float,
    start: Any = None,
) -> GradientDescentLaw:
    """Law of the iterates on a data set, from its sums XᵀX and Xᵀy.

    Parameters
    ----------
    gram : array_like, shape (p, p)
        XᵀX, not divided by n; positive definite.
    moment : array_like, shape (p,)
        Xᵀy.
    sample_size, step_size, gradient_noise_std, start
        Number n of rows, η, standard deviation λ of gradient noise, and start θ_0 (0 by default).

    Source
    ------
    brown2024, section 2.1.
    """
    sample_size = require_count("sample_size", sample_size)
    sums = require_array("gram", gram, shape=(None, None))
    if sums.shape[0] != sums.shape[1] or not np.allclose(sums, sums.T, rtol=1e-9, atol=0):
        raise ValueError(f"gram must be symmetric, got an asymmetric matrix of shape {sums.shape}")
    moments = require_array("moment", moment, shape=sums.shape[:1])
    eigenvalues, eigenvectors = np.linalg.eigh(sums / sample_size)
    if not eigenvalues[0] > eigenvalues[-1] * np.finfo(float).eps * len(eigenvalues):
        raise ValueError("gram must be positive definite, got a singular or indefinite matrix")
    minimiser = np.asarray(np.linalg.solve(sums, moments))
    if np.max(np.abs(minimiser)) > MOST:
        raise ValueError(f"moment must give a minimiser of size at most {MOST:g}, got a larger one")
    origin = np.zeros_like(minimiser) if start is None else start
    return GradientDescentLaw(
        eigenvalues, eigenvectors, minimiser, origin, step_size, gradient_noise_std
    )


@DIVERGING
def clipping_bound(
    law: GradientDescentLaw, features: ArrayLike, labels: ArrayLike, *, clip_norm: float, steps: int
) -> tuple[float, float]:
    r"""Bound on the probability of any clipping, and the expected share of clipped gradients.

    .. math::
        \mathrm{TV}(\text{clipped}, \text{unclipped}) \le \Pr[\text{any clip}] \le
        \sum_{t=0}^{T-1}\sum_{i=1}^n
        \Pr\big[\|\mathbf x_i\|\,|y_i - \mathbf x_i^\top\theta_t| > \gamma\big]

    with θ_t from the unclipped law, in which every residual is Gaussian. With the same noise, the
    clipped and unclipped iterates agree until a gradient is clipped. The probability of any
    clipping is therefore the same under both laws.

    Parameters
    ----------
    law : GradientDescentLaw
        Unclipped law for this data.
    features, labels : array_like, shapes (n, p) and (n,)
        Data set.
    clip_norm : float
        γ, more than 0; `inf` clips nothing.
    steps : int
        Number T of steps; gradients are taken at θ_0..θ_{T-1}.

    Returns
    -------
    probability, fraction : float
        Bound min(1, sum), and exact expected share of gradients longer than γ on unclipped paths.

    Source
    ------
    brown2024, Lemmas 2.2 and C.1 to C.3; the union bound over the exact marginals is ours.
    """
    from scipy.special import ndtr

    require_instance("law", law, GradientDescentLaw)
    x, y = _records(features, labels, law.eigenvalues.size)
    clip_norm = require_scale("clip_norm", clip_norm, infinite=True)
    steps = require_count("steps", steps)
    norms = np.linalg.norm(x, axis=1)
    widths = np.divide(clip_norm, norms, out=np.full_like(norms, np.inf), where=norms > 0)
    squares = (x @ law.eigenvectors) ** 2
    total = 0.0
    for step in range(steps):
        centre = y - x @ law.mean(step)
        spread = np.sqrt(squares @ law.mode_covariance(step, step))
        require_answer("features", centre + spread)
        tails = ndtr((-widths - centre) / spread) + ndtr((centre - widths) / spread)
        # Without noise a residual clips or does not.
        total += float(np.sum(np.where(spread > 0, tails, np.abs(centre) > widths)))
    return min(1.0, total), total / (steps * len(y))


class NoClippingRatios(NamedTuple):
    """Least c_0 at which a data set meets each part of the No-Clipping Condition.

    The first four fields are for parts (ii) to (v), in order: a part holds if c_0 is at least its
    field. Part (i) requires ½I ⪯ Σ ⪯ 2I (`spectrum_bounded`) and ‖I - ηΣ‖ ≤ 7/8 (`contracts`).
    """

    feature_norm: float
    residual: float
    transported: float
    accumulated: float
    spectrum_bounded: bool
    contracts: bool

    @property
    def constant(self) -> float:
        """Least c_0 at which parts (ii) to (v) all hold."""
        return max(self[:4])


@DIVERGING
def no_clipping_ratios(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    target: ArrayLike,
    step_size: float,
    steps: int,
    label_noise_std: float,
) -> NoClippingRatios:
    r"""Evaluate the No-Clipping Condition on a data set.

    .. math::
        \|\mathbf x_i\| \le c_0\sqrt p, \quad |y_i - \mathbf x_i^\top\theta| \le c_0\sigma, \quad
        |\mathbf x_i^\top M^t\theta| \le c_0, \quad
        |\mathbf x_i^\top A_t X^\top(y - X\theta)| \le c_0\sigma\sqrt{np}

    for all rows i ≤ n and steps t = 1..T, with M = I - ηΣ and A_t = (I - M^t) Σ^{-1}.

    Parameters
    ----------
    features, labels : array_like, shapes (n, p) and (n,)
        Data set.
    target : array_like, shape (p,)
        θ, such as the true parameter of the model.
    step_size, steps, label_noise_std
        Step size η, number T of steps and standard deviation σ of the label noise.

    Source
    ------
    brown2024, Condition 2.4 (where y ∈ R^p should read R^n). Its part (i) wants
    the sample covariance's eigenvalues in [1/2, 2]. Sampling error violates this if the true
    covariance has an eigenvalue of 2, although the descent contracts.
    """
    x, y = _records(features, labels)
    theta = require_array("target", target, shape=x.shape[1:], **SIGNED)
    label_noise_std, step_size = require_scales(
        label_noise_std=label_noise_std, step_size=step_size
    )
    steps = require_count("steps", steps)
    n, p = x.shape
    covariance = x.T @ x / n
    eigenvalues = np.linalg.eigvalsh(covariance)
    residual = (y - x @ theta) / label_noise_std
    pull = step_size * (x.T @ residual)
    transported, accumulated = theta, np.zeros(p)
    largest = np.zeros(2)
    for _ in range(steps):
        # A_t = A_{t-1} M + ηI, so no inverse of Σ is needed.
        transported = transported - step_size * (covariance @ transported)
        accumulated = accumulated - step_size * (covariance @ accumulated) + pull
        moved = np.abs(x @ np.column_stack([transported, accumulated]))
        largest = np.maximum(largest, np.max(moved, axis=0))
    require_answer("features, labels and step_size", largest)
    return NoClippingRatios(
        feature_norm=float(np.max(np.linalg.norm(x, axis=1)) / np.sqrt(p)),
        residual=float(np.max(np.abs(residual))),
        transported=float(largest[0]),
        accumulated=float(largest[1] / np.sqrt(n * p)),
        spectrum_bounded=bool(eigenvalues[0] >= 0.5 and eigenvalues[-1] <= 2),
        contracts=bool(np.max(np.abs(1 - step_size * eigenvalues)) <= 7 / 8),
    )


def generative_constant(sample_size: ArrayLike, *, steps: int, failure: float) -> FloatArray:
    r"""c_0 that meets the No-Clipping Condition with probability 1 - β on n linear-Gaussian rows.

    .. math:: c_0 = 12\,\ln^{3/2}(5nT/\beta)

    Parameters
    ----------
    sample_size : array_like, shape (...)
        n, at least 1; the lemma requires n ≥ C (p + ln(1/β)) for p features and some constant C.
    steps, failure
        Number T of steps, and failure probability β in (0, 1).

    Source
    ------
    brown2024, Lemma 2.6. The proof gives the factor 12 only in the limit of large p, and about 41
    at p = 2. The lemma holds nevertheless, by a wide margin.
    """
    rows = require_real("sample_size", sample_size, least=1, most=2.0**53)
    steps = require_count("steps", steps)
    failure = require_number("failure", failure, above=0, below=1)
    return 12 * (np.log(5 * rows * steps) - np.log(failure)) ** 1.5


class NoClippingDemand(NamedTuple):
    """Least clipping norm and sample size for the proof of no clipping (brown2024, Lemma 2.5)."""

    clip_norm: float
    sample_size: float


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
    r"""Least clipping norm γ and sample size n at which the proof of Lemma 2.5 excludes clipping.

    .. math::
        \gamma \ge 4c_0^2\max(\sigma, 1)\sqrt p, \qquad
        \frac n\eta\sqrt{\frac{\rho}{2T}} \ge 64 c_0^2\, p\sqrt{\ln(2nT/\beta)}

    The noise spends the whole budget. The second inequality holds for the returned n, at least 1,
    and for all larger n. It does not depend on γ, since the noise is proportional to γ.

    Parameters
    ----------
    constant : float
        c_0 of the condition: `NoClippingRatios.constant` or `generative_constant`.
    features, steps : int
        Numbers p of features and T of steps.
    step_size, rho, failure, label_noise_std : float
        η, total zCDP budget ρ, failure probability β in (0, 1), and deviation σ of label noise.

    Source
    ------
    brown2024, Lemma 2.5 with λ of Lemma 2.1. The lemma prints σ for max(σ, 1). Its proof needs
    max(σ, 1), since it bounds c_0 by c_0 σ.
    """
    require_scales(constant=constant, step_size=step_size, rho=rho, label_noise_std=label_noise_std)
    failure = require_number("failure", failure, above=0, below=1)
    features, steps = require_counts("features and steps", (features, steps)).tolist()
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


def _records(
    features: ArrayLike, labels: ArrayLike, dimension: int | None = None
) -> tuple[FloatArray, FloatArray]:
    x = require_array("features", features, shape=(None, dimension), **SIGNED)
    return x, require_array("labels", labels, shape=x.shape[:1], **SIGNED)


def _near_one(pull: FloatArray) -> NDArray[np.bool_]:
    """Points with |1 - x| so near 1 that powers of the rounded |1 - x| lose digits."""
    return (pull < NEAR) | (np.abs(pull - 2) < NEAR)


def _log_size(pull: FloatArray) -> FloatArray:
    """log |1 - x|."""
    below, above = np.log1p(-np.minimum(pull, 1.0)), np.log1p(np.maximum(pull, 1.0) - 2)
    return np.where(pull < 1, below, above)


def _power(pull: FloatArray, times: NDArray[np.int64]) -> FloatArray:
    """(1 - x)^t."""
    signs = np.where((pull > 1) & (times % 2 == 1), -1.0, 1.0)
    precise = signs * np.exp(times * _log_size(np.where(_near_one(pull), pull, 0.5)))
    return np.where(_near_one(pull), precise, (1 - pull) ** times)


def _geometric_sum(pull: FloatArray, terms: NDArray[np.int64]) -> FloatArray:
    """1 + a² + … + a^(2(terms-1)) with a = 1 - x, also at a² = 1, where the closed form is 0/0."""
    pulls, counts = np.broadcast_arrays(pull, np.asarray(terms, float))
    ratios, near = (1 - pulls) ** 2, _near_one(pulls)
    gap = np.where(near, pulls * (2 - pulls), 1 - (1 - pulls) ** 2)
    logs = np.where(near, 2 * _log_size(pulls), np.log(ratios))
    # Near 1 the quotient loses digits: use expm1 of the logarithm, which keeps them.
    sums = -np.expm1(counts * logs) / gap
    return np.where(gap == 0, counts, np.where(ratios == 0, np.minimum(counts, 1.0), sums))
