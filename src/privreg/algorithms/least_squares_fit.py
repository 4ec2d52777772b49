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
    """Everything that `least_squares_descent` releases."""

    iterates: FloatArray  # (T, p), in the units of the rows, warm-up and wide steps
    start: FloatArray  # (p,), the last iterate of the warm-up: that of a robust fit
    start_variance: float  # of its private noise along a whitened coordinate
    whitening: FloatArray  # (p, p), W: the second moment of z = Wᵀx is near the identity
    step_matrices: FloatArray  # (3, p, p), a_k S of the wide steps, in φ = W⁻¹θ
    gradient_noise_stds: FloatArray  # (3,), of their mean clipped gradients
    clip_norm: float  # C of the wide steps, √p times a width of `tail`
    cap: float  # R₂ and R₁: what rows are shortened to in gradients, and in A₁
    short_cap: float
    residual_scale: float  # after the warm-up
    tail: ProductTail  # of q/√p at the start
    gram: NoisyValue  # second moment (p, p) of the rows in the coordinates of the last round
    centre: NoisyValue | None  # mean row (p,), where there is an intercept
    # A₁ and A₂, (p, p): second moments of rows that are not clipped, shortened to R₁ and R₂.
    curvature: NoisyValue
    long_curvature: NoisyValue
    second_moment: NoisyValue  # B, mean square of the clipped gradient, (p, p)
    mean_curvature: NoisyValue  # tr(A₁)/p and tr(B)/p at the last iterate
    mean_square: NoisyValue
    sample_size: float  # what sums were divided by
    settings: LeastSquaresSettings
    spending: tuple[tuple[str, Budget], ...]  # the sum is the whole budget

    @property
    def parameters(self) -> FloatArray:
        """θ_T, shape (p,)."""
        return self.iterates[-1]

    @property
    def clip_width(self) -> float:
        """C/√p, in the units of `tail`."""
        return self.clip_norm / float(np.sqrt(self.parameters.size))
