"""Privacy amplification by iteration: what one pass of noisy, contractive steps reveals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def one_pass_zcdp_root(step_sizes: ArrayLike, noise_multipliers: ArrayLike) -> NDArray[np.float64]:
    r"""Privacy parameter of one-pass DP-GD that releases its last iterate.

    .. math:: \rho = \max_k \; \eta_k \Big/ \Big(\sum_{j \ge k} \sigma_j^2\Big)^{1/2}

    Parameters
    ----------
    step_sizes : array_like, shape (..., n)
        At least 0. The step really taken on a sample may be smaller.
    noise_multipliers : array_like, shape (..., n)
        sigma_k: step k adds noise of standard deviation 2 C sigma_k a coordinate, where C is the
        norm that gradients are clipped to.

    Returns
    -------
    ndarray, shape (...)
        rho; `inf` where a sample is used and no noise follows.

    Guarantee
    ---------
    The last iterate is rho^2/2-zCDP for data sets that differ in one sample (replace one), provided
    that each sample is used once, its gradient is clipped to norm C, and the step is a contraction,
    which a step of at most 2 / |x|^2 is for least squares. Earlier iterates stay secret.

    Source
    ------
    bombari2025, Proposition 4.1 and equation (4.1), after Feldman, Mironov, Talwar and Thakurta.
    """
    steps = np.asarray(step_sizes, dtype=float)
    variances = np.asarray(noise_multipliers, dtype=float) ** 2
    remaining = np.cumsum(variances[..., ::-1], axis=-1)[..., ::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(steps > 0, steps / np.sqrt(remaining), 0.0)
    return ratio.max(axis=-1)
