"""The exact Gaussian law of noisy full-batch gradient descent on least squares without clipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class GradientDescentLaw:
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
        Orthonormal columns, or the identity for a diagonal Σ.
    minimiser : array_like, shape (p,)
        θ̂.
    start : array_like, shape (p,)
        θ_0.
    step_size : float
        η, more than 0.
    gradient_noise_std : float
        λ, at least 0; the noise of a step has standard deviation ηλ.

    Source
    ------
    brown2024, Lemma 2.3 and equations (8), (18), (19), (88) to (94). Equation (83) absorbs η in the
    noise; equation (26) should have θ_t on its left.
    """

    eigenvalues: FloatArray
    eigenvectors: FloatArray
    minimiser: FloatArray
    start: FloatArray
    step_size: float
    gradient_noise_std: float

    def __post_init__(self) -> None:
        if not self.step_size > 0:
            raise ValueError(f"step_size must be more than 0, got {self.step_size}")
        if not (np.isfinite(self.gradient_noise_std) and self.gradient_noise_std >= 0):
            raise ValueError(
                f"gradient_noise_std must be finite and at least 0, got {self.gradient_noise_std}"
            )
        p = np.size(self.eigenvalues)
        shapes = {"eigenvalues": (p,), "minimiser": (p,), "start": (p,), "eigenvectors": (p, p)}
        for name, shape in shapes.items():
            array = np.asarray(getattr(self, name), dtype=np.float64)
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
            object.__setattr__(self, name, array)
        if np.any(self.eigenvalues < 0):
            raise ValueError(f"eigenvalues must be at least 0, got {np.min(self.eigenvalues)}")

    @property
    def contraction(self) -> FloatArray:
        """a = 1 - η w, shape (p,); the iterates settle if all lie in (-1, 1)."""
        return 1 - self.step_size * self.eigenvalues

    def mean(self, times: ArrayLike) -> FloatArray:
        """θ̂ + M^t (θ_0 - θ̂) with M = I - ηΣ, shape (*times.shape, p)."""
        steps = _checked_times(times)
        offset = self.eigenvectors.T @ (self.start - self.minimiser)
        powers = self.contraction ** steps[..., None]
        return self.minimiser + (powers * offset) @ self.eigenvectors.T

    def mode_covariance(self, later: ArrayLike, earlier: ArrayLike) -> FloatArray:
        r"""Cross-covariance of each eigendirection at two times, in either order.

        .. math::
            c_k(\tau, t) = \eta^2\lambda^2\, a_k^{|\tau - t|}\,
            \frac{1 - a_k^{2\min(\tau, t)}}{1 - a_k^2}

        Parameters
        ----------
        later, earlier : array_like of int
            Times τ and t, broadcast together.

        Returns
        -------
        ndarray, shape (..., p)
        """
        first, second = np.broadcast_arrays(_checked_times(later), _checked_times(earlier))
        gap = np.abs(first - second)[..., None]
        shorter = np.minimum(first, second)[..., None]
        contraction = self.contraction
        variance = (self.step_size * self.gradient_noise_std) ** 2
        return variance * contraction**gap * _geometric_sum(contraction**2, shorter)

    def covariance(self, later: ArrayLike, earlier: ArrayLike | None = None) -> FloatArray:
        """Cross-covariance η²λ² M^|τ-t| A^(min), shape (..., p, p); a variance by default."""
        modes = self.mode_covariance(later, later if earlier is None else earlier)
        return (self.eigenvectors * modes[..., None, :]) @ self.eigenvectors.T

    def stationary_covariance(self) -> FloatArray:
        r"""Covariance η²λ² (I - M²)^{-1} of an iterate in the long run, shape (p, p).

        Raises
        ------
        ValueError
            If a contraction lies outside (-1, 1), so that no stationary law exists.
        """
        contraction = self.contraction
        if np.any(np.abs(contraction) >= 1):
            raise ValueError(
                "step_size must put every 1 - step_size * eigenvalue in (-1, 1), "
                f"got {contraction[np.argmax(np.abs(contraction))]:.6g}"
            )
        modes = (self.step_size * self.gradient_noise_std) ** 2 / (1 - contraction**2)
        return (self.eigenvectors * modes) @ self.eigenvectors.T

    def expected_squared_error(self, times: ArrayLike) -> FloatArray:
        r"""Mean squared distance to the empirical minimiser.

        .. math::
            \mathbb E\|\theta_t - \hat\theta\|^2
            = \|M^t(\theta_0 - \hat\theta)\|^2 + \eta^2\lambda^2\,\mathrm{tr}\,\mathbf A^{(t)}

        Parameters
        ----------
        times : array_like of int, shape (...)
            Steps t, at least 0.

        Returns
        -------
        ndarray, shape (...)
        """
        bias = np.sum((self.mean(times) - self.minimiser) ** 2, axis=-1)
        return bias + np.sum(self.mode_covariance(times, times), axis=-1)

    def functionals(self, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
        r"""Law of weighted sums of the iterates, coordinate by coordinate.

        .. math:: \theta^{(l)} = \sum_{t=1}^T W_{lt}\,\theta_t

        Parameters
        ----------
        weights : array_like, shape (m, T)
            W; column t - 1 belongs to θ_t. Averages have rows that sum to one.

        Returns
        -------
        bias : ndarray, shape (p, m)
            Mean of coordinate j of θ^(l), less its row sum times θ̂_j.
        covariance : ndarray, shape (p, m, m)
            Covariance over l of coordinate j.
        """
        matrix = np.asarray(weights, dtype=np.float64)
        if matrix.ndim != 2:
            raise ValueError(f"weights must be a matrix (m, T), got shape {matrix.shape}")
        times = np.arange(1, matrix.shape[1] + 1)
        bias = (matrix @ (self.mean(times) - self.minimiser)).T
        # The noise of step s enters θ_t as ηa^(t-s), so its weight in a sum obeys a backward
        # recursion; T × T covariances are never formed.
        loads = np.empty((self.eigenvalues.size, *matrix.shape))
        load = np.zeros((self.eigenvalues.size, len(matrix)))
        for step in reversed(range(matrix.shape[1])):
            load = matrix[:, step] + self.contraction[:, None] * load
            loads[..., step] = load
        modes = (self.step_size * self.gradient_noise_std) ** 2 * loads @ np.swapaxes(loads, -1, -2)
        return bias, np.einsum("jk,klm->jlm", self.eigenvectors**2, modes)


def gradient_descent_law(
    gram: ArrayLike,
    moment: ArrayLike,
    *,
    sample_size: int,
    step_size: float,
    gradient_noise_std: float,
    start: ArrayLike | None = None,
) -> GradientDescentLaw:
    r"""Law of the iterates on a data set, from its sums XᵀX and Xᵀy.

    Parameters
    ----------
    gram : array_like, shape (p, p)
        XᵀX, not divided by n; positive definite.
    moment : array_like, shape (p,)
        Xᵀy.
    sample_size : int
        n.
    step_size, gradient_noise_std : float
        η and λ.
    start : array_like, shape (p,), optional
        θ_0, 0 by default.

    Returns
    -------
    GradientDescentLaw

    Source
    ------
    brown2024, section 2.1.
    """
    sums = np.asarray(gram, dtype=np.float64)
    eigenvalues, eigenvectors = np.linalg.eigh(sums / sample_size)
    if not eigenvalues[0] > eigenvalues[-1] * np.finfo(float).eps * len(eigenvalues):
        raise ValueError(f"gram must be positive definite, got eigenvalue {eigenvalues[0]:.3g}")
    minimiser = np.asarray(np.linalg.solve(sums, np.asarray(moment, dtype=np.float64)))
    origin = np.zeros_like(minimiser) if start is None else np.asarray(start, dtype=np.float64)
    return GradientDescentLaw(
        eigenvalues, eigenvectors, minimiser, origin, step_size, gradient_noise_std
    )


def clipping_bound(
    law: GradientDescentLaw,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    clip_norm: float,
    steps: int,
) -> tuple[float, float]:
    r"""Bound on the probability that any gradient clips, and the expected share that would.

    .. math::
        \mathrm{TV}(\text{clipped}, \text{unclipped}) \le \Pr[\text{any clip}] \le
        \sum_{t=0}^{T-1}\sum_{i=1}^n
        \Pr\big[\|\mathbf x_i\|\,|y_i - \mathbf x_i^\top\theta_t| > \gamma\big]

    with θ_t from the unclipped law, in which every residual is Gaussian. Run with the same noise,
    the clipped and unclipped iterates differ exactly where some gradient clips, so the probability
    of any clip is the same under both laws.

    Parameters
    ----------
    law : GradientDescentLaw
        Unclipped law for this data.
    features : array_like, shape (n, p)
    labels : array_like, shape (n,)
    clip_norm : float
        γ, more than 0.
    steps : int
        T: gradients are taken at θ_0..θ_{T-1}.

    Returns
    -------
    probability : float
        min(1, sum): a bound on the probability of any clip and on the total variation distance.
    fraction : float
        Expected share of clipped gradients along the unclipped path, exact.

    Source
    ------
    brown2024, Lemmas 2.2 and C.1 to C.3; the union bound over the exact marginals is ours.
    """
    from scipy.special import ndtr

    x, y = np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    norms = np.linalg.norm(x, axis=1)
    widths = np.divide(clip_norm, norms, out=np.full_like(norms, np.inf), where=norms > 0)
    squares = (x @ law.eigenvectors) ** 2
    total = 0.0
    for step in range(steps):
        centre = y - x @ law.mean(step)
        spread = np.sqrt(squares @ law.mode_covariance(step, step))
        with np.errstate(divide="ignore", invalid="ignore"):
            tails = ndtr((-widths - centre) / spread) + ndtr((centre - widths) / spread)
        # Without noise a residual clips or does not.
        total += float(np.sum(np.where(spread > 0, tails, np.abs(centre) > widths)))
    return min(1.0, total), total / (steps * len(y))


def _geometric_sum(ratio: ArrayLike, terms: ArrayLike) -> FloatArray:
    """1 + r + … + r^(terms-1), also at r = 1, where the closed form is 0/0."""
    ratios, counts = np.broadcast_arrays(np.asarray(ratio, float), np.asarray(terms, float))
    gap = 1 - ratios
    # Near 1 the quotient loses digits: use expm1 of the logarithm, which keeps them.
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = -np.expm1(counts * np.log(ratios)) / gap
    return np.where(gap == 0, counts, np.where(ratios == 0, np.minimum(counts, 1.0), sums))


def _checked_times(times: ArrayLike) -> NDArray[np.int64]:
    steps = np.asarray(times, dtype=np.int64)
    if np.any(steps < 0):
        raise ValueError(f"times must be at least 0, got {np.min(steps)}")
    return steps
