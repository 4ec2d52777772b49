"""The printed bounds beside the exact risk of regression: in the limit, and at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Deviation,
    Dimension,
    Positive,
    Power,
    ShareAxis,
    Steps,
)
from reproduction.papers.choquettechoo2024.regression import power_law

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

PLACE = "Theorems C.14, C.15, C.18 and D.11, Lemmas C.4 and D.12"
FAMILIES = ("independent", "damped_square_root", "damped_anti_pgd")


class Parameters(Strict):
    """One covariance, step sizes up to the limit of the theorems, three correlations."""

    dimension: Dimension = Field(description="d.")
    decay: Power = Field(description="a of the eigenvalues k^-a.")
    step_shares: ShareAxis = Field(description="Step size times R^2, less than 1.")
    curve_share: Annotated[Positive, Field(lt=1)] = Field(
        description="Step size times R^2 of the curves."
    )
    curve_steps: Annotated[Steps, Field(ge=2)] = Field(description="Steps of the curves.")
    label_noise_std: Deviation = Field(description="Standard deviation of the label noise.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact risk over each bound; curves over the bound for every step."""
    import xarray as xr

    from privreg.noise.toeplitz import damped_anti_pgd, damped_square_root, identity
    from privreg.theory.correlated_noise.bounds import (
        fourth_moment_bound,
        stationary_lower_bound,
        stationary_upper_bound,
        transient_bound,
    )
    from privreg.theory.correlated_noise.error_curves import error_curve
    from privreg.theory.correlated_noise.linear_regression import stationary_error

    eigenvalues = power_law(parameters.dimension, parameters.decay)
    moment = fourth_moment_bound(eigenvalues)
    shares = parameters.step_shares.values()
    shape = (len(FAMILIES), len(shares))
    over_lower, over_upper, least, most = (np.zeros(shape) for _ in range(4))
    for (row, column), _ in np.ndenumerate(over_lower):
        eta = float(shares[column] / moment)
        noise = _noise(FAMILIES[row], eta * eigenvalues.min())
        settings: dict[str, Any] = {
            "step_size": eta,
            "noise": noise,
            "gradient_noise_std": float((noise.squared_sensitivity / 2) ** 0.5),
            "label_noise_std": parameters.label_noise_std,
        }
        exact = stationary_error(eigenvalues, **settings).excess_risk
        over_lower[row, column] = exact / (2 * stationary_lower_bound(eigenvalues, **settings))
        over_upper[row, column] = exact / stationary_upper_bound(eigenvalues, **settings)
        inner = _integral_shares(noise, eta * eigenvalues)
        least[row, column], most[row, column] = inner.min(), inner.max()
    eta = parameters.curve_share / moment
    damping = float(eta * eigenvalues.min())
    count = parameters.curve_steps
    decoders = (
        identity(1),
        damped_square_root(count, damping=damping),
        damped_anti_pgd(2, damping=damping),
    )
    worst, growth = [], []
    for name, decoder in zip(FAMILIES, decoders, strict=True):
        noise = _noise(name, damping)
        curve = error_curve(
            eigenvalues,
            step_size=eta,
            coefficients=decoder,
            steps=count,
            initial_error=np.full(eigenvalues.size, eigenvalues.size**-0.5),
        )
        std = float((noise.squared_sensitivity / 2) ** 0.5)
        limit = stationary_error(
            eigenvalues, step_size=eta, noise=noise, gradient_noise_std=std
        ).excess_risk
        bound = transient_bound(
            np.arange(count + 1),
            eigenvalues=eigenvalues,
            step_size=eta,
            initial_risk=float(curve.initial[0]),
            stationary_risk=limit,
        )
        worst.append(float(np.max(curve.excess_risk(gradient_noise_std=std) / bound)))
        growth.append(float(np.min(np.diff(curve.private)) / curve.private[-1]))
    dims = ("family", "step_share")
    return xr.Dataset(
        {
            "over_printed_lower": variable(
                dims, over_lower, "exact excess risk, with the factor 1/2, over printed C.18"
            ),
            "doubled_over_printed_lower": variable(
                dims, 2 * over_lower, "exact squared error in the norm of H over printed C.18"
            ),
            "over_upper": variable(dims, over_upper, "exact excess risk over C.14"),
            "least_integral_share": variable(dims, least, "least ratio of Lemma C.4"),
            "largest_integral_share": variable(dims, most, "largest ratio of Lemma C.4"),
            "worst_transient": variable(
                "family", worst, "largest ratio of the exact curve to D.11 over the steps"
            ),
            "least_growth": variable(
                "family", growth, "least step of the private error from the optimum, over its last"
            ),
        },
        coords={
            "family": variable("family", list(FAMILIES), "how the noise is correlated"),
            "step_share": variable("step_share", shares, "step size times R^2"),
        },
    )


def _noise(family: str, damping: float) -> StationaryNoise:
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    if family == "independent":
        return StationaryNoise.independent()
    return getattr(StationaryNoise, family)(damping)


def _integral_shares(noise: StationaryNoise, rates: np.ndarray) -> np.ndarray:
    """The integral of Lemma C.4 by quadrature, over what the lemma bounds it with."""
    from privreg.theory.correlated_noise.spectral_integrals import (
        frequency_rule,
        squared_distance,
    )

    grid, weights = frequency_rule(min(1.0, float(rates.min())))
    load = weights * noise.power(grid) / (2 * np.pi)
    integrals = [rate * load @ (1 / squared_distance(grid, rate)) for rate in rates]
    return np.array(integrals) / noise.relative_variance(rates)
