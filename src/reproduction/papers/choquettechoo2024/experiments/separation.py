"""Gain of correlated noise if all eigenvalues but one are small, and damped anti-PGD."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, per, stage
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Section 1.3, Section 2.2, Table 2, Proposition C.24"
RULES = ("constant", "over log d")


class Parameters(regression.Covariance):
    """Dimensions of the spectrum (1, 1/d, ..., 1/d), and one covariance for anti-PGD."""

    dimensions: q.Grid[q.Plural[q.Dimension]] = Field(description="Dimensions d, increasing.")
    step_size: q.SmallStep = Field(description="eta, constant or times 1/log d.")
    step_sizes: q.SmallStepAxis = Field(description="eta of anti-PGD.")
    dampings: q.SmallStepAxis = Field(description="nu of anti-PGD, below 1.")

    def damped_risk(self, step_size: float, damping: float) -> float:
        """Excess risk of damped anti-PGD."""
        noise = regression.family_noise("damped_anti_pgd", float(damping))
        return regression.stationary(self.eigenvalues, float(step_size), noise).excess_risk


AXES = {
    "rule": Axis("how the step size follows the dimension", RULES),
    "dimension": Axis("dimension d", "dimensions"),
    "step_size": Axis("step size eta", "step_sizes"),
    "damping": Axis("damping nu", "dampings"),
    "small_dimension": Axis("dimension d of one covariance", (8, 32, 128, 512, 2048)),
    "spectrum_decay": Axis("a of eigenvalues k^-a", (0.0, 1.0, 2.0)),
    "step_trace": Axis("step size times tr H, c of Proposition C.24", (0.01, 0.05, 0.25)),
}


@per("rule", "dimension", over_printed="risk of Noisy-SGD / that of nu-Noisy-FTRL / (d / log d)")
def over_printed(parameters: Parameters, rule: str, dimension: int) -> float:
    logarithm = np.log(dimension)
    eta = parameters.step_size / (1.0 if rule == "constant" else logarithm)
    return _factor(regression.two_levels(dimension), float(eta)) / (dimension / logarithm)


@per(
    "dimension",
    steep_over_printed="over_printed for eigenvalues k^-2 and a constant step size",
    steep_over_linear="quotient of both risks divided by d, eigenvalues k^-2, constant step size",
)
def steep_factors(parameters: Parameters, dimension: int) -> dict:
    """Factors for eigenvalues k^-2, with an effective dimension of at most pi^2 / 6."""
    factor = _factor(regression.power_law(dimension, 2.0), parameters.step_size)
    over_linear = factor / dimension
    steep = over_linear * np.log(dimension)
    return {"steep_over_printed": steep, "steep_over_linear": over_linear}


@per(
    "step_size",
    "damping",
    damped_constant="risk of damped anti-PGD divided by eta (nu d + eta tr H / nu) / rho",
)
def damped_constant(parameters: Parameters, step_size: float, damping: float) -> float:
    trace = parameters.eigenvalues.sum()
    rate = step_size * (parameters.dimension * damping + step_size * trace / damping)
    return parameters.damped_risk(step_size, damping) / rate


@per(
    "step_size",
    geometric_constant="risk divided by the geometric mean of Noisy-SGD's and the lower bound",
)
def geometric_constant(parameters: Parameters, step_size: float) -> float:
    return _geometric_constant(parameters, float(step_size))


@per(
    "small_dimension",
    "spectrum_decay",
    geometric_constant_of_spectra="the geometric constant at the smallest step size",
)
def geometric_constant_of_spectra(
    parameters: Parameters, small_dimension: int, spectrum_decay: float
) -> float:
    at = parameters.model_copy(update={"dimension": small_dimension, "decay": spectrum_decay})
    return _geometric_constant(at, float(parameters.step_sizes.low))


@per(
    "small_dimension",
    "step_trace",
    last_damping_constant="risk at eta = c / tr H, nu = d^(-1/2) divided by the second rate of "
    "Proposition C.24",
)
def last_damping_constant(parameters: Parameters, small_dimension: int, step_trace: float) -> float:
    at = parameters.model_copy(update={"dimension": small_dimension})
    c, trace, d = step_trace, float(at.eigenvalues.sum()), at.dimension
    eta = c / trace
    rate = (c**0.5 + c**-0.5) * eta**1.5 * 0.5 * np.sqrt(d * trace)
    return float(at.damped_risk(eta, d**-0.5) / rate)


theory = stage(AXES, blocks_of=globals())


def _factor(eigenvalues: np.ndarray, step_size: float) -> float:
    """Risk of Noisy-SGD divided by that of nu-Noisy-FTRL."""
    sgd, ftrl = regression.exact_risks(regression.Setting(eigenvalues, step_size), rho=1.0)
    return sgd / ftrl


def _geometric_constant(parameters: Parameters, step_size: float) -> float:
    from privreg.theory.correlated_noise.bounds import universal_lower_bound

    eigenvalues = parameters.eigenvalues
    damping = float(np.sqrt(step_size * eigenvalues.sum() / eigenvalues.size))
    sgd = regression.exact_risk(regression.Setting(eigenvalues, step_size), "noisy_sgd", rho=1.0)
    least = universal_lower_bound(eigenvalues, step_size=step_size, noise_multiplier=0.5**0.5)
    return float(parameters.damped_risk(step_size, damping) / np.sqrt(sgd * least))
