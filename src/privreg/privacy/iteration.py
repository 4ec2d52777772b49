"""Privacy amplification by iteration: the loss of one pass of noisy, contractive steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.units import ORDINARY
from privreg.validation import require_array, require_broadcast


def one_pass_zcdp_root(step_sizes: ArrayLike, noise_multipliers: ArrayLike) -> NDArray[np.float64]:
    r"""Privacy parameter of one-pass DP-GD that releases its last iterate, over the last axis.

    .. math:: \rho = \max_k \; \eta_k \Big/ \Big(\sum_{j \ge k} \sigma_j^2\Big)^{1/2}

    Step k adds noise of standard deviation 2 C σ_k a coordinate, where C is the norm that gradients
    are clipped to; the step taken on a sample may be smaller than η_k. ρ is infinite where a sample
    is used and no noise follows.

    Guarantee --------- The last iterate is ρ²/2-zCDP for data sets that differ in one sample
    (replace one), provided that each sample is used once, its gradient is clipped to norm C, and
    the step is a contraction, which a step of at most 2 / |x|² is for least squares. Earlier
    iterates stay secret.

    Source
    ------
    bombari2025, Proposition 4.1 and equation (4.1), after Feldman, Mironov, Talwar and Thakurta.
    """
    steps = require_array("step_sizes", step_sizes, shape=(..., None), least=0)
    noise = require_array("noise_multipliers", noise_multipliers, shape=(..., None), least=0)
    require_broadcast(step_sizes=steps, noise_multipliers=noise)
    # In units of the largest noise its squares neither overflow nor lose what matters.
    scale = np.max(noise, axis=-1, keepdims=True)
    relative = noise / np.where(scale > 0, scale, 1.0)
    remaining = np.cumsum((relative**2)[..., ::-1], axis=-1)[..., ::-1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        ratio = steps / scale / np.sqrt(remaining)
        small = (remaining < ORDINARY[0]) & (noise > 0)
        if np.any(small) or not np.all(np.abs(np.log2(scale)) < 200):
            # Squares of the noise that is left at the end, or quotients, may have left the range of
            # double precision. A root of a sum does so only beyond its upper end.
            left = _root_of_rest(noise)
            beyond = np.isinf(left) & np.isfinite(scale)
            left = np.where(beyond, _root_of_rest(np.ldexp(noise, -64)), left)
            (step, own), (deviation, other) = np.frexp(steps), np.frexp(left)
            quotient = np.ldexp(step / deviation, own - other - 64 * beyond)
            ratio = np.where(left > 0, quotient, np.inf)
        largest = np.asarray(np.where(steps > 0, ratio, 0.0).max(axis=-1))
    least = np.finfo(np.float64).tiny
    # A parameter that underflows would promise more than the noise gives.
    return np.where(np.any(steps > 0, axis=-1) & (largest < least), least, largest)


def _root_of_rest(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Roots of the sums of squares from each place to the end."""
    return np.asarray(np.hypot.accumulate(noise[..., ::-1], axis=-1)[..., ::-1])
