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
    r"""Everything that `huber_descent` releases: the iterates and what their law needs.

    Attributes
    ----------
    iterates : ndarray, shape (T, p)
        θ_1..θ_T in the units of the rows.
    whitening : ndarray, shape (p, p)
        W: descent runs on z = Wᵀx, whose second moment is near the identity.
    step_matrices : ndarray, shape (T, p, p)
        S_t, in whitened coordinates φ = W⁻¹θ.
    gradient_noise_stds : ndarray, shape (T,)
        λ_t of the mean clipped gradient in whitened coordinates.
    clip_norm : float
        γ of the final steps.
    residual_scale : float
        The scale at the start of the final steps; w times √p times it is γ.
    start_scale : float
        The residual scale at the start, which bounds how far it may have been away.
    gram : NoisyValue
        Second moment of the rows (p, p) in the coordinates of the last round, from which
        `last_root` took it to those of W.
    last_root : ndarray, shape (p, p)
        What the last round multiplied W by.
    gram_weight : float
        How much of the last round's deviation from the identity was kept, in [0, 1].
    curvature, second_moment : NoisyValue or None
        Mean derivative A and mean square B of the clipped gradient, (p, p) in whitened
        coordinates; None where the settings spend nothing on them.
    mean_curvature, mean_square : NoisyValue
        tr(A)/p and tr(B)/p at the last iterate.
    sample_size : float
        What sums were divided by.
    symmetric : bool
        Whether `curvature` is symmetric: not where a record has several rows.
    settings : HuberSettings
    spending : tuple of (str, Budget)
        What was spent on what; the sum is the whole budget.
    centre : NoisyValue or None
        Mean row (p,), where there is an intercept.
    """

    iterates: FloatArray
    whitening: FloatArray
    step_matrices: FloatArray
    gradient_noise_stds: FloatArray
    clip_norm: float
    residual_scale: float
    start_scale: float
    gram: NoisyValue
    last_root: FloatArray
    gram_weight: float
    curvature: NoisyValue | None
    second_moment: NoisyValue | None
    mean_curvature: NoisyValue
    mean_square: NoisyValue
    sample_size: float
    symmetric: bool
    settings: HuberSettings
    spending: tuple[tuple[str, Budget], ...]
    centre: NoisyValue | None = None

    @property
    def parameters(self) -> FloatArray:
        """θ_T, shape (p,)."""
        return self.iterates[-1]
