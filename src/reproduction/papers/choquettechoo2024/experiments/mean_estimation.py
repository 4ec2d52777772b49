"""Mean estimation: the best correlation against independent noise, exactly and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Deviation,
    Positive,
    Rho,
    Some,
    StepSize,
    StepSizeAxis,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Theorem 2.1, Figure 1 and Appendix B"
FAMILIES = ("independent", "optimal")


class Parameters(Strict):
    """Step sizes of the curve, and those whose coefficients are drawn and simulated."""

    step_sizes: StepSizeAxis = Field(description="eta of the ratio.")
    shown_step_sizes: Some[Annotated[StepSize, Field(le=1)]] = Field(
        description="eta of the coefficients and of the runs; the paper states none."
    )
    coefficients: Annotated[Count, Field(ge=2)] = Field(description="Coefficients shown.")
    frequencies: Annotated[Count, Field(ge=3)] = Field(
        description="Frequencies shown, over (0, pi]."
    )
    rho: Rho = Field(description="zCDP budget; private parts are proportional to 1/rho.")
    sample_std: Deviation = Field(description="Standard deviation of a sample.")
    damping_factors: Some[Positive] = Field(
        description="nu over eta of other coefficients, none of them 1."
    )
    perturbations: Count = Field(description="Random changes of the optimal coefficients.")
    memories: Annotated[Count, Field(ge=20)] = Field(
        description="Length of a run in units of 1/eta."
    )

    @model_validator(mode="after")
    def _steps_contract(self) -> Self:
        if self.step_sizes.high > 1:
            raise ValueError(f"step_sizes.high must be at most 1, got {self.step_sizes.high:g}")
        return self

    @model_validator(mode="after")
    def _other_coefficients(self) -> Self:
        if 1 in self.damping_factors:
            raise ValueError(f"damping_factors must not hold 1, got {self.damping_factors}")
        return self

    @property
    def derived_steps(self) -> float:
        """Memories of the runs, in steps."""
        return float(np.sum(1 / np.array(self.shown_step_sizes)))


def theory(parameters: Parameters) -> xr.Dataset:
    """Closed forms, the same by quadrature, and the coefficients in time and frequency."""
    import xarray as xr

    from privreg.noise.toeplitz import mean_estimation_optimal
    from privreg.theory.correlated_noise.mean_estimation import (
        least_private_excess_risk,
        optimal_risk_ratio,
    )
    from privreg.theory.correlated_noise.spectral_integrals import (
        frequency_rule,
        inverse_distance_integral,
        squared_distance,
    )

    eta = parameters.step_sizes.values()
    shown = np.asarray(parameters.shown_step_sizes)
    multiplier = (2 * parameters.rho) ** -0.5
    least = least_private_excess_risk(eta, noise_multiplier=multiplier)
    independent = 0.5 * eta / (2 - eta) * multiplier**2
    by_rule = np.empty_like(eta)
    for at, step in enumerate(eta):
        grid, weights = frequency_rule(step)
        by_rule[at] = weights @ squared_distance(grid, step) ** -0.5
    beta = np.stack(
        [mean_estimation_optimal(parameters.coefficients, step_size=step) for step in shown]
    )
    time = np.arange(parameters.coefficients)
    with np.errstate(divide="ignore"):
        tail = -(time**-1.5) * (1 - shown[:, None]) ** time / (2 * np.sqrt(np.pi))
    tail[:, 0] = np.nan
    frequency = np.pi * np.arange(1, parameters.frequencies + 1) / parameters.frequencies
    exact = [stationary(parameters, step) for step in shown]
    others = np.stack([_over_optimal(parameters, step) for step in shown])
    perturbed = [_perturbed_over_optimal(parameters, step) for step in shown]
    correlation = [_largest_correlation(step) for step in shown]
    local = np.gradient(np.log(least), np.log(eta))
    return xr.Dataset(
        {
            "ratio": variable(
                "step_size", optimal_risk_ratio(eta), "private risk, optimal over independent"
            ),
            "optimal_risk": variable("step_size", least, "private excess risk, optimal noise"),
            "independent_risk": variable(
                "step_size",
                independent,
                "private excess risk, independent noise",
            ),
            "independent_constant": variable(
                "step_size", parameters.rho * independent / eta, "independent risk over eta / rho"
            ),
            "optimal_slope": variable("step_size", local, "local exponent of the optimal risk"),
            "log_squared_constant": variable(
                "step_size",
                2 * least / multiplier**2 / (eta * np.log(8 / eta)) ** 2,
                "optimal squared error over (eta log(8/eta))^2 / (2 rho); tends to 1/pi^2",
            ),
            "quadrature_error": variable(
                "step_size",
                np.abs(by_rule / inverse_distance_integral(eta) - 1),
                "relative distance of the integral's closed form from quadrature",
            ),
            "other_over_optimal": variable(
                ("shown_step_size", "damping_factor"),
                others,
                "private risk of other coefficients of the family over the optimum",
            ),
            "perturbed_over_optimal": variable(
                "shown_step_size",
                perturbed,
                "least private risk of randomly changed coefficients over the optimum",
            ),
            "largest_later_coefficient": variable(
                "shown_step_size", beta[:, 1:].max(axis=1), "largest coefficient after the first"
            ),
            "tail_ratio": variable(
                "shown_step_size",
                beta[:, -1] / tail[:, -1],
                "last coefficient shown over its asymptote",
            ),
            "exponential_tail_ratio": variable(
                "shown_step_size",
                beta[:, -1] / tail[:, -1] * ((1 - shown) * np.exp(shown)) ** time[-1],
                "last coefficient shown over -t^(-3/2) exp(-eta t) / (2 sqrt(pi))",
            ),
            "largest_noise_correlation": variable(
                "shown_step_size",
                correlation,
                "largest covariance of the noises of two different steps, over all of 200 steps",
            ),
            "coefficient": variable(("shown_step_size", "time"), beta, "optimal coefficient"),
            "coefficient_tail": variable(
                ("shown_step_size", "time"),
                tail,
                "-t^(-3/2) (1 - eta)^t / (2 sqrt(pi))",
                missing="it is infinite at lag 0",
            ),
            "power": variable(
                ("shown_step_size", "frequency"),
                np.sqrt(squared_distance(frequency, shown[:, None])),
                "optimal power spectrum",
            ),
            "exact_risk": variable(("shown_step_size", "family"), exact, "stationary excess risk"),
        },
        coords={
            "step_size": variable("step_size", eta, "step size eta"),
            "shown_step_size": variable("shown_step_size", shown, "step size eta"),
            "time": variable("time", time, "lag in steps"),
            "frequency": variable("frequency", frequency, "frequency", units="rad"),
            "family": variable("family", list(FAMILIES), "how the noise is correlated"),
            "damping_factor": variable("damping_factor", parameters.damping_factors, "nu / eta"),
        },
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """One long run per trial and step size: mean squared error after a burn-in of half of it."""
    import xarray as xr
    from scipy.signal import lfilter

    from privreg.noise.streams import correlate_noise
    from privreg.noise.toeplitz import mean_estimation_optimal

    shown = parameters.shown_step_sizes
    risk = np.empty((len(trials), len(shown), len(FAMILIES)))
    for at, trial in enumerate(trials):
        for column, eta in enumerate(shown):
            steps = int(parameters.memories / eta)
            beta = mean_estimation_optimal(steps, step_size=eta)
            white = trial.rng.standard_normal((steps, 1))
            sample = parameters.sample_std * trial.rng.standard_normal(steps)
            for row, family in enumerate(FAMILIES):
                noise = white if family == "independent" else correlate_noise(beta, white)
                drive = eta * (sample - _source_std(parameters, eta, family) * noise[:, 0])
                error = lfilter([1.0], [1.0, -(1.0 - eta)], drive)
                risk[at, column, row] = 0.5 * np.mean(error[steps // 2 :] ** 2)
    return xr.Dataset(
        {
            "risk": variable(
                ("trial", "shown_step_size", "family"), risk, "excess risk, mean over a run"
            )
        },
        coords={
            "shown_step_size": variable("shown_step_size", shown, "step size eta"),
            "family": variable("family", list(FAMILIES), "how the noise is correlated"),
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Mean over trials beside the exact value, in standard errors."""
    import xarray as xr

    runs = np.moveaxis(simulation.risk.values, 0, -1)
    dims = ("shown_step_size", "family")
    exact = np.array([stationary(parameters, step) for step in parameters.shown_step_sizes])
    summary = mean_and_error("risk", runs, dims, "excess risk")
    error = runs.std(axis=-1, ddof=1) / np.sqrt(runs.shape[-1])
    return xr.Dataset(
        {
            **summary,
            "exact_risk": variable(dims, exact, "stationary excess risk"),
            "deviation": variable(
                dims, (runs.mean(axis=-1) - exact) / error, "distance in standard errors"
            ),
        },
        coords={name: simulation[name].variable for name in (*dims, "trial")},
    )


def stationary(parameters: Parameters, step_size: float) -> list[float]:
    """Exact excess risk of the two families."""
    from privreg.theory.correlated_noise.mean_estimation import stationary_excess_risk

    return [
        float(
            stationary_excess_risk(
                step_size,
                noise=_noise(step_size, family),
                gradient_noise_std=_source_std(parameters, step_size, family),
                sample_std=parameters.sample_std,
            )
        )
        for family in FAMILIES
    ]


def _noise(step_size: float, family: str):  # type: ignore[no-untyped-def]
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    if family == "independent":
        return StationaryNoise.independent()
    return StationaryNoise.damped_square_root(step_size)


def _source_std(parameters: Parameters, step_size: float, family: str) -> float:
    return float((_noise(step_size, family).squared_sensitivity / (2 * parameters.rho)) ** 0.5)


def _over_optimal(parameters: Parameters, step_size: float) -> list[float]:
    """Private risks at dampings other than the step size, over that at the step size."""
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    def risk(damping: float) -> float:
        noise = StationaryNoise.damped_square_root(damping)
        return noise.squared_sensitivity * float(noise.relative_variance(step_size))

    least = risk(step_size)
    return [risk(min(1.0, factor * step_size)) / least for factor in parameters.damping_factors]


def _perturbed_over_optimal(parameters: Parameters, step_size: float) -> float:
    """Least private risk among random changes by a tenth, over that of the optimal coefficients."""
    from privreg.noise.toeplitz import inverse_coefficients, mean_estimation_optimal

    rng = np.random.Generator(np.random.SFC64(0))
    steps = int(20 / step_size)
    beta = mean_estimation_optimal(steps, step_size=step_size)
    decay = (1 - step_size) ** np.arange(steps)

    def risk(coefficients: np.ndarray) -> float:
        response = np.convolve(coefficients, decay)[:steps]
        encoder = inverse_coefficients(coefficients)
        return float((response @ response) * (encoder @ encoder))

    changes = 0.1 * rng.standard_normal((parameters.perturbations, steps))
    return min(risk(beta * (1 + change)) for change in changes) / risk(beta)


def _largest_correlation(step_size: float) -> float:
    from privreg.noise.toeplitz import dense_matrix, mean_estimation_optimal

    decoder = dense_matrix(mean_estimation_optimal(200, step_size=step_size))
    covariance = decoder @ decoder.T
    return float(covariance[~np.eye(200, dtype=bool)].max())
