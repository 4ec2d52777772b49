"""DP-GD at the noise with which all of its gradients together cost a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from privreg.algorithms.full_batch_dpgd import FullBatchIterates
    from privreg.algorithms.samples import Samples


def descend(
    data: Samples,
    *,
    clip_norm: ArrayLike,
    rho: ArrayLike,
    steps: int,
    gradients: int | None = None,
    **options: Any,
) -> FullBatchIterates:
    """Run DP-GD.

    Parameters
    ----------
    data : Samples
    clip_norm, rho : array_like, shape settings
        Threshold and budget, broadcast.
    steps : int
        Gradient steps T.
    gradients : int, optional
        Gradients that share the budget; those of one run unless given.
    **options
        Of `full_batch_dpgd`.

    Returns
    -------
    FullBatchIterates

    Source
    ------
    brown2024, Algorithm 1 and Lemma 2.1.
    """
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std

    noise = full_batch_noise_std(
        clip_norm=clip_norm,
        rho=rho,
        sample_size=data.sample_size,
        gradients=steps if gradients is None else gradients,
    )
    return full_batch_dpgd(
        data, clip_norm=clip_norm, gradient_noise_std=noise, steps=steps, **options
    )
