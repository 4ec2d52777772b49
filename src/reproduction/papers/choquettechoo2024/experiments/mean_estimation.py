"""Mean estimation: the best correlation and independent noise, exactly and simulated."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Quantity,
    Trial,
    close,
    every,
    means,
    per,
    stage,
    stated,
)
from reproduction.engine.summaries import trials_last
from reproduction.papers.choquettechoo2024 import regression
from reproduction.papers.choquettechoo2024.regression import family_noise

PLACE = "Theorem 2.1, Figure 1 and Appendix B"
FAMILIES = {"independent": "independent", "optimal": "damped_square_root"}


class Parameters(Strict):
    """Step sizes of the curve, and those whose coefficients are drawn and simulated."""

    step_sizes: q.StepSizeAxis = Field(description="eta of the ratio.")
    shown_step_sizes: q.Some[q.SmallStep] = Field(description="eta of coefficients and runs.")
    coefficients: q.Plural[q.Count] = Field(description="Coefficients shown.")
    frequencies: q.Count = Field(description="Frequencies shown, over (0, pi].")
    rho: q.Rho = Field(description="zCDP budget; private parts are proportional to 1/rho.")
    sample_std: q.Deviation = Field(description="Standard deviation of a sample.")
    damping_factors: q.Some[q.Positive] = Field(description="Other values of nu / eta, never 1.")
    perturbations: q.Count = Field(description="Random changes of the optimal coefficients.")
    memories: q.Count = Field(description="Length of a run in units of 1/eta.")

    @property
    def shown_frequencies(self) -> np.ndarray:
        return np.pi * np.arange(1, self.frequencies + 1) / self.frequencies

    def source_std(self, step_size: float, family: str) -> float:
        """Standard deviation of the white noise."""
        noise = family_noise(FAMILIES[family], step_size)
        return float((noise.squared_sensitivity / (2 * self.rho)) ** 0.5)

    def least_risk(self, step_size: ArrayLike) -> np.ndarray:
        """Least private part of the risk over all correlations."""
        from privreg.theory.correlated_noise.stationary import least_private_excess_risk

        return least_private_excess_risk(step_size, noise_multiplier=(2 * self.rho) ** -0.5)


AXES = {
    "step_size": Axis("step size eta", "step_sizes"),
    "shown_step_size": Axis("step size eta", "shown_step_sizes"),
    "time": Axis("lag in steps", lambda parameters: np.arange(parameters.coefficients)),
    "frequency": Axis("frequency", "shown_frequencies", units="rad"),
    "family": Axis("how the noise is correlated", tuple(FAMILIES)),
    "damping_factor": Axis("nu / eta", "damping_factors"),
}
SHOWN = ("shown_step_size", "family")


@per(
    "step_size",
    ratio="private risk, optimal divided by independent",
    independent_constant="independent risk divided by eta / rho",
    log_squared_constant="optimal squared error over (eta log(8/eta))^2 / (2 rho); tends to 1/pi^2",
)
def private_risks(parameters: Parameters) -> dict:
    from privreg.theory.correlated_noise.stationary import optimal_risk_ratio

    eta, multiplier = parameters.step_sizes.values(), (2 * parameters.rho) ** -0.5
    least = parameters.least_risk(eta)
    independent = 0.5 * eta / (2 - eta) * multiplier**2
    return {
        "ratio": optimal_risk_ratio(eta),
        "independent_constant": parameters.rho * independent / eta,
        "log_squared_constant": 2 * least / multiplier**2 / (eta * np.log(8 / eta)) ** 2,
    }


@per(
    "step_size", quadrature_error="relative distance of the integral's closed form from quadrature"
)
def quadrature_error(step_size: float) -> float:
    from privreg.theory.correlated_noise.stationary import inverse_distance_integral

    return float(
        np.abs(
            regression.inverse_distance_by_rule(step_size) / inverse_distance_integral(step_size)
            - 1
        )
    )


@per(
    "shown_step_size",
    coefficient=Quantity("optimal coefficient", "time"),
    coefficient_tail=Quantity(
        "-t^(-3/2) (1 - eta)^t / (2 sqrt(pi))", "time", missing="it is infinite at lag 0"
    ),
    largest_later_coefficient="largest coefficient after the first",
    tail_ratio="last coefficient shown, divided by its asymptote",
    exponential_tail_ratio="last coefficient shown over -t^(-3/2) exp(-eta t) / (2 sqrt(pi))",
)
def coefficients(parameters: Parameters, shown_step_size: float) -> dict:
    from privreg.noise.toeplitz import mean_estimation_optimal

    eta, time = shown_step_size, np.arange(parameters.coefficients)
    beta = mean_estimation_optimal(parameters.coefficients, step_size=eta)
    with np.errstate(divide="ignore"):
        tail = -(time**-1.5) * (1 - eta) ** time / (2 * np.sqrt(np.pi))
    tail[0] = np.nan
    ratio = beta[-1] / tail[-1]
    return {
        "coefficient": beta,
        "coefficient_tail": tail,
        "largest_later_coefficient": beta[1:].max(),
        "tail_ratio": ratio,
        "exponential_tail_ratio": ratio * ((1 - eta) * np.exp(eta)) ** time[-1],
    }


@per("shown_step_size", power=Quantity("optimal power spectrum", "frequency"))
def power(parameters: Parameters, shown_step_size: float) -> np.ndarray:
    from privreg.theory.correlated_noise.stationary import squared_distance

    return np.sqrt(squared_distance(parameters.shown_frequencies, shown_step_size))


@per(
    "shown_step_size",
    "damping_factor",
    other_over_optimal="private risk of other coefficients of the family, divided by the optimum",
)
def other_over_optimal(shown_step_size: float, damping_factor: float) -> float:
    def risk(damping: float) -> float:
        noise = family_noise("damped_square_root", damping)
        return noise.squared_sensitivity * float(noise.relative_variance(shown_step_size))

    return risk(min(1.0, damping_factor * shown_step_size)) / risk(shown_step_size)


@per(
    "shown_step_size",
    perturbed_over_optimal="least private risk after random changes, divided by the optimum",
)
def perturbed_over_optimal(parameters: Parameters, shown_step_size: float) -> float:
    """Private risk after random changes of all coefficients by a tenth, relative to the optimum."""
    from privreg.noise.toeplitz import inverse_coefficients, mean_estimation_optimal

    steps = int(20 / shown_step_size)
    beta = mean_estimation_optimal(steps, step_size=shown_step_size)
    decay = (1 - shown_step_size) ** np.arange(steps)

    def risk(coefficients: np.ndarray) -> float:
        response = np.convolve(coefficients, decay)[:steps]
        encoder = inverse_coefficients(coefficients)
        return float((response @ response) * (encoder @ encoder))

    rng = np.random.Generator(np.random.SFC64(0))
    changes = 0.1 * rng.standard_normal((parameters.perturbations, steps))
    return min(risk(beta * (1 + change)) for change in changes) / risk(beta)


@per(
    "shown_step_size",
    largest_noise_correlation="largest covariance of the noises of two different steps, among 200",
)
def largest_noise_correlation(shown_step_size: float) -> float:
    from privreg.noise.toeplitz import dense_matrix, mean_estimation_optimal

    decoder = dense_matrix(mean_estimation_optimal(200, step_size=shown_step_size))
    covariance = decoder @ decoder.T
    return float(covariance[~np.eye(200, dtype=bool)].max())


@per(
    least_rate_share="least quotient of printed rate and optimal risk, step sizes up to 1/2",
    largest_rate_share="largest quotient of printed rate and optimal risk, step sizes up to 1/2",
    rate_share_up_to_one="least quotient of printed rate and optimal risk, step sizes up to 1",
)
def printed_rate(parameters: Parameters) -> dict[str, float]:
    """Quotients of the printed rate and the optimal risk; the rate is 0 at step size 1."""
    eta = parameters.step_sizes.values()

    def shares(eta: np.ndarray) -> np.ndarray:
        return (eta * np.log(1 / eta)) ** 2 / parameters.rho / parameters.least_risk(eta)

    share = shares(eta[eta <= 0.5])
    names = ("least_rate_share", "largest_rate_share", "rate_share_up_to_one")
    return dict(zip(names, (share.min(), share.max(), shares(eta).min()), strict=True))


@per(
    two_point_constant="part of the samples divided by eta times their largest squared deviation",
    two_point_variance_constant="part of the samples divided by eta times their variance",
)
def two_point_constants() -> dict[str, float]:
    """Samples on the points 0 and 1."""
    from privreg.theory.correlated_noise.stationary import stationary_excess_risk

    eta, rare = 0.1, 1e-4
    risk = stationary_excess_risk(
        eta,
        noise=family_noise("independent", 1.0),
        gradient_noise_std=0.0,
        sample_std=float((rare * (1 - rare)) ** 0.5),
    )
    return {
        "two_point_constant": float(risk) / (eta * (1 - rare) ** 2),
        "two_point_variance_constant": float(risk) / (eta * rare * (1 - rare)),
    }


@per(
    "shown_step_size",
    printed_least_value=stated(
        "printed least value of (18) divided by the exact private squared error",
        where="Appendix B, text after equation (19)",
        statement="The least value of (18) is eta^2 G^2 sigma_dp^2 / (4 pi^2) times the squared "
        "integral of 1 / |1 - eta - exp(i omega)|.",
        check=every(close(1.0, relative=1e-6)),
        corrected={
            "holds_with": "1 / (2 rho) in place of sigma_dp^2",
            "evidence": {"variable": "least_value_with_budget"},
        },
        id="least-value-after-equation-19",
        ours=["eta = 0.01, 0.1, 0.5", "sigma_dp^2 of Theorem 2.1 for the optimal coefficients"],
        finding="sensitivity-twice-after-equation-19",
    ),
    least_value_with_budget="the quotient with 1 / (2 rho) in place of sigma_dp^2",
)
def least_values(parameters: Parameters, shown_step_size: float) -> dict[str, float]:
    exact = 2 * parameters.least_risk(shown_step_size)
    # The square of eta / (2 pi) times the integral of 1 / |1 - eta - exp(i omega)|.
    eta = shown_step_size
    integral = (eta * regression.inverse_distance_by_rule(eta) / (2 * np.pi)) ** 2
    printed = parameters.source_std(shown_step_size, "optimal") ** 2
    return {
        "printed_least_value": float(integral * printed / exact),
        "least_value_with_budget": float(integral / (2 * parameters.rho) / exact),
    }


theory = stage(AXES, blocks_of=globals())


@per(*SHOWN, risk="excess risk, mean over a run")
def run(parameters: Parameters, trial: Trial, shown_step_size: float) -> list[float]:
    """One long run on the same draws for each family, after a burn-in of half of it."""
    from scipy.signal import lfilter

    from privreg.noise.streams import correlate_noise
    from privreg.noise.toeplitz import mean_estimation_optimal

    eta = shown_step_size
    steps = int(parameters.memories / eta)
    white = trial.rng.standard_normal((steps, 1))
    sample = parameters.sample_std * trial.rng.standard_normal(steps)
    beta = mean_estimation_optimal(steps, step_size=eta)
    noises = {"independent": white, "optimal": correlate_noise(beta, white)}
    found = []
    for family, noise in noises.items():
        drive = eta * (sample - parameters.source_std(eta, family) * noise[:, 0])
        error = lfilter([1.0], [1.0, -(1.0 - eta)], drive)
        found.append(0.5 * np.mean(error[steps // 2 :] ** 2))
    return found


@per(*SHOWN, deviation="distance in standard errors")
def deviation(
    parameters: Parameters, simulation: Dataset, shown_step_size: float, family: str
) -> np.ndarray:
    from privreg.theory.correlated_noise.stationary import stationary_excess_risk

    exact = stationary_excess_risk(
        shown_step_size,
        noise=family_noise(FAMILIES[family], shown_step_size),
        gradient_noise_std=parameters.source_std(shown_step_size, family),
        sample_std=parameters.sample_std,
    )
    cell = simulation.risk.sel(shown_step_size=shown_step_size, family=family)
    return regression.deviations(trials_last(cell), exact)


simulate = stage(AXES, run)
summarise = stage(AXES, means(run), deviation)
