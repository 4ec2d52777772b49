"""The general versions of the upper bounds: eigenvalues whose extremes vary, at stated settings."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from privreg import spectra
from privreg.schedules import Harmonic, Polynomial, Schedule
from privreg.spectra import Spectrum
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, per, stage
from reproduction.papers.bombari2025 import equivalent, setting

PLACE = "Propositions D.3, D.4 and 5.2 and Theorem 2 in their general versions"
SHAPES = setting.shapes((0.0, 0.5, 1.0, 2.0))
# The constants' logarithms are read between the smallest values that the bounds compute with.
Ratio = Annotated[q.Real, Field(ge=1e-16, le=1)]
# gamma at which rates are searched for the lower bounds.
SEARCHED = (1e-7, 1e-8)
# Where the lower bounds are nearly attained: the target along one large eigenvalue of few.
LARGE, SHARE = (16.0, 64.0, 256.0), 1e-6
CLIPS = (0.01, 0.1, 1.0, 10.0)
# alpha and rho as powers of gamma: (5.14) holds for both, with alpha^2 gamma / rho^2 for one alone.
GROWING = {"as printed": (-0.3, 0.8), "with alpha^2": (-0.2, 0.5)}
GROWN = (1e-10, 1e-12)


class Parameters(setting.Clipped):
    """Covariances with two eigenvalues, at the hyper-parameters of the propositions."""

    smallest: q.Several[Annotated[q.Positive, Field(lt=1)]] = Field(
        description="Smaller eigenvalues, less than 1; the mean is 1."
    )
    largest: q.Several[Annotated[q.Positive, Field(gt=1)]] = Field(
        description="Larger eigenvalues, more than 1."
    )
    aspect_ratios: q.Several[Ratio] = Field(description="Values of gamma.")
    privacy_powers: q.Some[q.Power] = Field(
        description="Powers b of rho = gamma^b, the least first."
    )


AXES = {
    "schedule": Axis("schedule of the rate", tuple(SHAPES)),
    "privacy_power": Axis("power b of rho = gamma^b", "privacy_powers"),
    "smallest": Axis("smaller eigenvalue", "smallest"),
    "largest": Axis("larger eigenvalue", "largest"),
    "aspect_ratio": setting.ASPECT_RATIO,
    "best": Axis("schedule of the best rate", tuple(SHAPES)[:2]),
    "condition": Axis("form of condition (5.14) that a growing alpha meets", tuple(GROWING)),
}
SETTINGS = tuple(AXES)[:5]


@per(
    *SETTINGS,
    risk="excess risk of the private output at the stated hyper-parameters",
    risk_over_bound="excess risk divided by the stated order",
)
def settings(parameters: Parameters, schedule: str, aspect_ratio: float, **cell: float) -> dict:
    """Settings with c and the rate of (D.23), (D.49), (D.80) and (D.105)."""
    smallest, largest = cell["smallest"], cell["largest"]
    share = (1 - smallest) / (largest - smallest)
    spectrum = Spectrum(np.array([smallest, largest]), np.array([1 - share, share]))
    rho = aspect_ratio ** cell["privacy_power"]
    rate, clip_constant = _stated(parameters, schedule, spectrum, aspect_ratio, rho)
    found = equivalent.solve(
        parameters, spectrum, rate, aspect_ratio, rho, clip_constant, times=[1.0]
    )
    risk = found.final_risk.item()
    growth = aspect_ratio * setting.growth(SHAPES[schedule], aspect_ratio)
    power = 4 if schedule == setting.HARMONIC else 2
    order = largest * growth + (growth / rho) ** 2
    return {"risk": risk, "risk_over_bound": risk / order * smallest**power}


@per(
    "schedule",
    "privacy_power",
    power_of_smallest="largest power of the inverse smallest eigenvalue in the risk",
    power_of_largest="largest power of the largest eigenvalue in the risk",
    power_of_samples="largest power of 1 / gamma in the risk divided by the stated order",
)
def powers(earlier: Dataset, **cell: str) -> dict:
    """Log-log slopes between neighbours; the leading term depends on the budget."""
    risk, ratio = np.log(earlier.risk.sel(cell)), np.log(earlier.risk_over_bound.sel(cell))
    by_samples = ratio.diff("aspect_ratio") / -np.log(ratio.aspect_ratio).diff("aspect_ratio")
    by_smallest = risk.diff("smallest") / -np.log(risk.smallest).diff("smallest")
    by_largest = risk.diff("largest") / np.log(risk.largest).diff("largest")
    return {
        "power_of_smallest": float(by_smallest.max()),
        "power_of_largest": float(by_largest.max()),
        "power_of_samples": float(by_samples.max()),
    }


@per(
    "best",
    "privacy_power",
    power_of_largest_at_best="least power of the largest eigenvalue in the least risk over rates "
    "and clipping constants",
    power_of_samples_at_best="least power of 1 / gamma in the ratio of the least risk to (D.25) "
    "and (D.51)",
)
def lower(parameters: Parameters, best: str, privacy_power: float) -> dict:
    """Least risk against the lower bounds, with the best rate and constant; R(0) = 1/2."""
    by_largest, ratios = [], []
    for gamma in SEARCHED:
        risks, rho = [], gamma**privacy_power
        for largest in LARGE:
            rest = (1 - SHARE * largest) / (1 - SHARE)
            spectrum = Spectrum(np.array([rest, largest]), np.array([1 - SHARE, SHARE]))
            signal = np.array([0.0, 0.5 / (SHARE * largest)])
            found = (
                equivalent.tuned(parameters, spectrum, SHAPES[best], gamma, rho, c, signal=signal)
                for c in CLIPS
            )
            risks.append(min(each.final_risk for each in found))
        by_largest.append(np.diff(np.log(risks)) / np.diff(np.log(LARGE)))
        growth = gamma * setting.growth(SHAPES[best], gamma)
        ratios.append(np.log(np.array(risks) / (growth + (growth / rho) ** 2)))
    by_samples = (ratios[1] - ratios[0]) / np.log(SEARCHED[0] / SEARCHED[1])
    return {
        "power_of_largest_at_best": np.min(by_largest),
        "power_of_samples_at_best": np.min(by_samples),
    }


@per(
    "condition",
    log_power_as_alpha_grows="power of ln(1/gamma) in the risk at (5.15) divided by (5.16), for "
    "isotropic data, with powers of gamma as alpha and rho",
)
def growing(parameters: Parameters, condition: str) -> float:
    """Growth between two aspect ratios; a bounded quotient has a power of at most 0."""
    of_alpha, of_rho = GROWING[condition]
    quotients, logs = [], np.log(1 / np.array(GROWN))
    for gamma, log in zip(GROWN, logs, strict=True):
        alpha, rho = gamma**of_alpha, gamma**of_rho
        rate = Polynomial(setting.FACTOR * alpha * log / parameters.clip_constant, alpha)
        found = equivalent.solve(parameters, spectra.isotropic(), rate, gamma, rho, times=[1.0])
        growth = alpha * gamma * log ** (1 / (1 + alpha))
        quotients.append(found.final_risk.item() / (growth + (growth / rho) ** 2))
    return np.log(quotients[1] / quotients[0]) / np.log(logs[1] / logs[0])


theory = stage(AXES, settings, powers, lower, growing)


def _stated(
    parameters: Parameters, schedule: str, spectrum: Spectrum, gamma: float, rho: float
) -> tuple[Schedule, float]:
    smallest, largest = spectrum.eigenvalues.min(), spectrum.eigenvalues.max()
    shape, clip_constant = SHAPES[schedule], parameters.clip_constant
    if isinstance(shape, str):
        constant = 0.5 + parameters.label_noise_std**2 / 2 + 90
        offset = max(
            9 * constant * largest / smallest**2 * gamma,
            12 * np.sqrt(2 * constant) / smallest * gamma / rho,
        )
        numerator = 3 * np.sqrt(constant) / smallest
        return Harmonic(numerator, offset), np.sqrt(2) * numerator
    product = setting.FACTOR * max(shape, 1.0) * np.log(1 / gamma) / smallest
    return Polynomial(product / clip_constant, shape), clip_constant
