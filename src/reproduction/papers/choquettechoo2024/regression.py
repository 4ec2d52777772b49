"""What the regression experiments share: the two algorithms, their noise at a budget, spectra."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

ALGORITHMS = ("noisy_sgd", "noisy_ftrl")


class Setting(NamedTuple):
    """A covariance and a step size."""

    eigenvalues: np.ndarray
    step_size: float


def power_law(dimension: int, exponent: float) -> np.ndarray:
    """Eigenvalues k^-a, the largest being 1."""
    return np.arange(1, dimension + 1, dtype=float) ** -exponent


def damping(setting: Setting) -> float:
    """The paper's choice, the step size times the least eigenvalue."""
    return float(setting.step_size * setting.eigenvalues.min())


def stationary_noise(setting: Setting, algorithm: str) -> StationaryNoise:
    """Correlation of an algorithm."""
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    if algorithm == "noisy_sgd":
        return StationaryNoise.independent()
    return StationaryNoise.damped_square_root(damping(setting))


def source_std(setting: Setting, algorithm: str, *, rho: float) -> float:
    """Noise at the limiting sensitivity, unit clip norm and zero-out neighbours."""
    from privreg.privacy.budget import Budget
    from privreg.theory.correlated_noise.stationary_noise import calibrated_noise_std

    return calibrated_noise_std(
        squared_sensitivity=stationary_noise(setting, algorithm).squared_sensitivity,
        clip_norm=1.0,
        budget=Budget.zcdp(rho, neighbours="zero-out"),
    )


def exact_risk(
    setting: Setting, algorithm: str, *, rho: float, label_noise_std: float = 0.0
) -> float:
    """Stationary excess risk in closed form."""
    from privreg.theory.correlated_noise.linear_regression import stationary_error

    return stationary_error(
        setting.eigenvalues,
        step_size=setting.step_size,
        noise=stationary_noise(setting, algorithm),
        gradient_noise_std=source_std(setting, algorithm, rho=rho),
        label_noise_std=label_noise_std,
    ).excess_risk
