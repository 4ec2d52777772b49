"""What a private Huber regression releases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.split_budget import NoisyValue
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HuberFit:
    """Everything that `huber_descent` releases: the iterates and what their law needs."""

    iterates: FloatArray  # (T, p), θ_1..θ_T in the units of the rows
    whitening: FloatArray  # (p, p), W: the second moment of z = Wᵀx is near the identity
    step_matrices: FloatArray  # (T, p, p), S_t, in whitened coordinates φ = W⁻¹θ
    gradient_noise_stds: FloatArray  # (T,), λ_t of the mean clipped gradient
    clip_norm: float  # γ of the final steps, w √p times their residual scale
    residual_scale: float
    start_scale: float  # residual scale at the start: it bounds how far that may have been away
    # Second moment (p, p) of the rows in the coordinates of the last round, the root that took it
    # to those of W, and how much of its deviation from the identity was kept.
    gram: NoisyValue
    last_root: FloatArray
    gram_weight: float
    # Mean derivative A and mean square B of the clipped gradient, (p, p) in whitened coordinates.
    curvature: NoisyValue | None
    second_moment: NoisyValue | None
    mean_curvature: NoisyValue  # tr(A)/p and tr(B)/p at the last iterate
    mean_square: NoisyValue
    sample_size: float  # what sums were divided by
    symmetric: bool  # whether A is: not where a record has several rows
    settings: HuberSettings
    spending: tuple[tuple[str, Budget], ...]  # the sum is the whole budget
    centre: NoisyValue | None = None  # mean row (p,), where there is an intercept

    @property
    def parameters(self) -> FloatArray:
        """θ_T, shape (p,)."""
        return self.iterates[-1]
