"""What a robust fit at the same budget would have of noise, from a least-squares fit."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from privreg.algorithms.huber_descent import default_settings
from privreg.algorithms.least_squares_descent import LeastSquaresFit
from privreg.inference.least_squares_intervals import least_squares_law
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import sum_sensitivity
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.theory.huber_descent.last_iterate import privacy_covariance
from privreg.validation import require_instance


def robust_gain(fit: LeastSquaresFit) -> float:
    r"""Variance of a coefficient over that of a robust fit, where errors are symmetric.

    .. math::
        \frac{v + m_2/n}{v_R + m_2/n}, \qquad
        v = \tfrac1p\operatorname{tr}V, \qquad
        v_R = \frac{(\Delta w s)^2\,p}{2\rho_R n^2 (2\Phi(w) - 1)^2 \pi^2}

    along a whitened coordinate: V is the known noise of the wide steps; s the private residual
    scale; w and ρ_R the clip and the final steps' budget that `default_settings` plans for a robust
    fit; Δ is 2 under replace-one, else 1; π = tr(A)/p; and m₂ is the mean square of a clipped
    product, the sampling variance of either fit as far as errors are normal. It leaves out what the
    clips and the start add to either.

    Parameters
    ----------
    fit : LeastSquaresFit

    Returns
    -------
    float
        At least 0; a function of what the fit released, at no further cost.
    """
    require_instance("fit", fit, LeastSquaresFit)
    law, n, p = least_squares_law(fit), fit.sample_size, fit.parameters.size
    typical = float(np.trace(law.curvature)) / p
    noise = privacy_covariance(
        law.curvature,
        list(fit.step_matrices),
        fit.gradient_noise_stds,
        start_covariance=np.zeros((p, p)),
        curvature_noise=0.0,
    )
    neighbours = fit.spending[0][1].neighbours
    spent = float(np.clip(sum(each.rho for _, each in fit.spending), 1e-20, 1e20))
    budget = Budget(spent, neighbours)
    robust = default_settings(sample_size=max(1, round(n)), dimension=p, budget=budget)
    width = robust.clip_width * fit.residual_scale
    change = float(sum_sensitivity(1.0, neighbours=neighbours)) * width * np.sqrt(p)
    std = gaussian_noise_std(sensitivity=change, rho=budget.rho * robust.final_share) / n
    slope = typical * (2 * float(ndtr(robust.clip_width)) - 1)
    sampling = float(np.trace(law.second_moment)) / p / typical**2 / n
    return (float(np.trace(noise)) / p + sampling) / (float(std / slope) ** 2 + sampling)
