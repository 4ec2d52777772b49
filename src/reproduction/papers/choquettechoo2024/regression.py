"""Covariances, correlations of the noise and exact stationary risks that the experiments share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis
from reproduction.engine.summaries import error_of_mean

if TYPE_CHECKING:
    from privreg.algorithms.dp_ftrl import FTRLMechanism
    from privreg.theory.correlated_noise.stationary import StationaryError, StationaryNoise

ALGORITHMS = {"noisy_sgd": "independent", "noisy_ftrl": "damped_square_root"}
ALGORITHM = Axis("algorithm", tuple(ALGORITHMS))
FAMILIES = ("independent", "damped_square_root", "damped_anti_pgd")
FAMILY_NAMES = "independent noise, nu-DP-FTRL and damped anti-PGD"
FAMILY = Axis("how the noise is correlated", FAMILIES)


class Covariance(Strict):
    """Gaussian features."""

    dimension: q.Dimension = Field(description="d.")
    decay: q.Decay = Field(description="a of the eigenvalues k^-a.")

    @property
    def eigenvalues(self) -> np.ndarray:
        return power_law(self.dimension, self.decay)

    @property
    def moment(self) -> float:
        """R², the least constant that bounds the fourth moments."""
        from privreg.theory.correlated_noise.bounds import fourth_moment_bound

        return fourth_moment_bound(self.eigenvalues)


class Setting(NamedTuple):
    """A covariance and a step size."""

    eigenvalues: np.ndarray
    step_size: float


def power_law(dimension: int, exponent: float) -> np.ndarray:
    """Eigenvalues k^-a, the largest being 1."""
    return np.arange(1, dimension + 1, dtype=float) ** -exponent


def two_levels(dimension: int) -> np.ndarray:
    """Eigenvalues (1, 1/d, ..., 1/d)."""
    return np.append(1.0, np.full(dimension - 1, 1 / dimension))


def damping(setting: Setting) -> float:
    """Damping that the paper chooses: the step size times the least eigenvalue."""
    return float(setting.step_size * setting.eigenvalues.min())


def family_noise(family: str, damping: float) -> StationaryNoise:
    """Correlation of the noise of a family, in its stationary state."""
    from privreg.theory.correlated_noise.stationary import StationaryNoise

    if family == "independent":
        return StationaryNoise.independent()
    return getattr(StationaryNoise, family)(damping)


def coefficients(family: str, steps: int, damping: float) -> np.ndarray:
    """First column of a family's coefficient matrix; `damping` is that of a damped family."""
    from privreg.noise import toeplitz

    name = "identity" if family == "independent" else family
    options = {"damping": damping} if "damped" in family else {}
    return np.asarray(getattr(toeplitz, name)(steps, **options))


def matrix(family: str, steps: int, damping: float) -> np.ndarray:
    """The coefficient matrix of a family."""
    from privreg.noise.toeplitz import dense_matrix

    return dense_matrix(coefficients(family, steps, damping))


def mechanism(
    family: str, steps: int, damping: float, *, clip_norm: float, rho: float
) -> FTRLMechanism:
    """DP-FTRL with one record per step, at a zCDP budget for zero-out neighbours."""
    from privreg.algorithms.dp_ftrl import FTRLMechanism
    from privreg.privacy.budget import Budget

    return FTRLMechanism.for_budget(
        coefficients(family, steps, damping),
        clip_norm=clip_norm,
        budget=Budget.zcdp(rho, neighbours="zero-out"),
        sample_size=steps,
    )


def stationary(
    eigenvalues: np.ndarray,
    step_size: float,
    noise: StationaryNoise,
    *,
    rho: float = 1.0,
    clip_norm: float = 1.0,
    label_noise_std: float = 0.0,
) -> StationaryError:
    """Stationary error in closed form."""
    from privreg.theory.correlated_noise.stationary import stationary_error

    return stationary_error(
        eigenvalues,
        step_size=step_size,
        noise=noise,
        gradient_noise_std=clip_norm * float((noise.squared_sensitivity / (2 * rho)) ** 0.5),
        label_noise_std=label_noise_std,
    )


def source_std(setting: Setting, algorithm: str, *, rho: float) -> float:
    """Standard deviation of noise at the limiting sensitivity, for clip norm 1 and zero-out."""
    from privreg.privacy.budget import Budget
    from privreg.theory.correlated_noise.stationary import calibrated_noise_std

    noise = family_noise(ALGORITHMS[algorithm], damping(setting))
    budget = Budget.zcdp(rho, neighbours="zero-out")
    return calibrated_noise_std(
        squared_sensitivity=noise.squared_sensitivity, clip_norm=1.0, budget=budget
    )


def exact_risk(setting: Setting, algorithm: str, *, rho: float) -> float:
    """Stationary excess risk without label noise, in closed form."""
    from privreg.theory.correlated_noise.stationary import stationary_error

    return stationary_error(
        setting.eigenvalues,
        step_size=setting.step_size,
        noise=family_noise(ALGORITHMS[algorithm], damping(setting)),
        gradient_noise_std=source_std(setting, algorithm, rho=rho),
    ).excess_risk


def exact_risks(setting: Setting, *, rho: float) -> list[float]:
    """Stationary excess risks of Noisy-SGD and nu-Noisy-FTRL."""
    return [exact_risk(setting, name, rho=rho) for name in ALGORITHMS]


def slope(abscissa: ArrayLike, values: ArrayLike) -> np.ndarray:
    """Log-log slope along the first axis."""
    return np.polyfit(np.log(abscissa), np.log(values), 1)[0]


def deviations(runs: np.ndarray, exact: ArrayLike) -> np.ndarray:
    """Distance of the means over the last axis from exact values, in standard errors."""
    return (runs.mean(axis=-1) - exact) / error_of_mean(runs)


def inverse_distance_by_rule(rate: float) -> float:
    """The integral of 1 / |1 - rate - exp(i omega)| over frequencies by quadrature."""
    from privreg.theory.correlated_noise import stationary as integrals

    grid, weights = integrals.frequency_rule(rate)
    return float(weights @ integrals.squared_distance(grid, rate) ** -0.5)
