"""What a private least-squares fit releases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.least_squares_settings import LeastSquaresSettings
from privreg.algorithms.product_tail import ProductTail
from privreg.algorithms.split_budget import NoisyValue
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LeastSquaresFit:
    r"""Everything that `least_squares_descent` releases.

    Attributes
    ----------
    iterates : ndarray, shape (T, p)
        θ_1..θ_T in the units of the rows, warm-up and wide steps.
    start : ndarray, shape (p,)
        θ_H, the last iterate of the warm-up: that of a robust fit.
    start_variance : float
        Variance of its private noise along a whitened coordinate.
    whitening : ndarray, shape (p, p)
        W: descent runs on z = Wᵀx, whose second moment is near the identity.
    step_matrices : ndarray, shape (3, p, p)
        a_k S of the wide steps, in whitened coordinates φ = W⁻¹θ.
    gradient_noise_stds : ndarray, shape (3,)
        Noise of their mean clipped gradients.
    clip_norm : float
        C of the wide steps, √p times a width of `tail`.
    cap, short_cap : float
        R₂ and R₁: what rows are shortened to in gradients, and in the curvature of short rows.
    residual_scale : float
        After the warm-up.
    tail : ProductTail
        Histogram of q/√p at θ_H.
    gram : NoisyValue
        Second moment (p, p) of the rows in the coordinates of the last round.
    centre : NoisyValue or None
        Mean row (p,), where there is an intercept.
    curvature, long_curvature : NoisyValue
        A₁ and A₂, (p, p): second moments of rows that are not clipped, shortened to R₁ and R₂.
    second_moment : NoisyValue
        B, mean square of the clipped gradient, (p, p).
    mean_curvature, mean_square : NoisyValue
        tr(A₁)/p and tr(B)/p at the last iterate.
    sample_size : float
        What sums were divided by.
    settings : LeastSquaresSettings
    spending : tuple of (str, Budget)
        What was spent on what; the sum is the whole budget.
    """

    iterates: FloatArray
    start: FloatArray
    start_variance: float
    whitening: FloatArray
    step_matrices: FloatArray
    gradient_noise_stds: FloatArray
    clip_norm: float
    cap: float
    short_cap: float
    residual_scale: float
    tail: ProductTail
    gram: NoisyValue
    centre: NoisyValue | None
    curvature: NoisyValue
    long_curvature: NoisyValue
    second_moment: NoisyValue
    mean_curvature: NoisyValue
    mean_square: NoisyValue
    sample_size: float
    settings: LeastSquaresSettings
    spending: tuple[tuple[str, Budget], ...]

    @property
    def parameters(self) -> FloatArray:
        """θ_T, shape (p,)."""
        return self.iterates[-1]

    @property
    def clip_width(self) -> float:
        """C/√p, in the units of `tail`."""
        return self.clip_norm / float(np.sqrt(self.parameters.size))
