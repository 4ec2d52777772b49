"""Risk after a number of steps at the exactly best step size, for DP-SGD and nu-DP-FTRL."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Section 2.3, Theorems D.11 and D.13, Corollaries D.14 and D.15"
ALGORITHMS = ("dp_sgd", "dp_ftrl")


class Parameters(Strict):
    """Regression without label noise; the initial distance is spread evenly over eigenvectors."""

    dimensions: q.Rising[q.Dimension] = Field(description="Dimensions d.")
    decay: q.Decay = Field(description="a of the eigenvalues k^-a.")
    steps: q.SizeAxis = Field(description="Steps T, rounded.")
    rho: q.Rho = Field(description="zCDP budget of all iterates.")
    clip_norm: q.ClipNorm = Field(description="Norm G that no gradient exceeds.")
    distance: q.Positive = Field(description="Distance of the start from the minimiser.")

    @property
    def counts(self) -> np.ndarray:
        return np.round(self.steps.values()).astype(int)


AXES = {
    "dimension": Axis("dimension d", "dimensions"),
    "steps": Axis("steps T", "counts"),
    "algorithm": Axis("algorithm", ALGORITHMS),
    "power_of": Axis("what the risk grows with", ("kappa", "d_eff", "d", "T")),
}


@per(
    "dimension",
    risk=Quantity("excess risk of the last iterate at the best step size", "steps algorithm"),
    risk_ratio=Quantity("risk of DP-FTRL divided by that of DP-SGD", "steps"),
    last_slope=Quantity("exponent of T between its last two values", "algorithm"),
)
def tuned(parameters: Parameters, dimension: int) -> dict:
    risk = np.array(
        [
            [_tuned_risk(parameters, dimension, int(count), name) for name in ALGORITHMS]
            for count in parameters.counts
        ]
    )
    slope = np.gradient(np.log(risk), np.log(parameters.counts), axis=0)
    return {"risk": risk, "risk_ratio": risk[:, 1] / risk[:, 0], "last_slope": slope[-1]}


@per(power=Quantity("exponent of the private risk at the clip norm tr H", "algorithm power_of"))
def powers() -> list[list[float]]:
    """Exponents at the step size 2 log(T) / (mu T), for m eigenvalues 1 and d - m of 1/kappa."""

    def risk(name: str, kappa: float, m: int, d: int, steps: float) -> float:
        eigenvalues = np.append(np.ones(m), np.full(d - m, 1 / kappa))
        eta = 2 * kappa * np.log(steps) / steps
        family = "independent" if name == "dp_sgd" else "damped_square_root"
        noise = regression.family_noise(family, eta / kappa)
        clip = float(eigenvalues.sum())
        return regression.stationary(eigenvalues, eta, noise, clip_norm=clip).excess_risk

    few, many, long = (1e6, 4, 1024, 1e12), (1e6, 4, 4096, 1e12), (1.0, 16, 16, 1e16)
    ends = [((1e4, 4, 1024, 1e12), few), (few, (1e6, 64, 1024, 1e12))]
    ends += [((1e6, 4, 256, 1e12), many), ((1.0, 16, 16, 1e15), long)]
    return [
        [
            float(np.log(risk(name, *last) / risk(name, *first)) / np.log(factor))
            for (first, last), factor in zip(ends, (100, 16, 16, 10), strict=True)
        ]
        for name in ALGORITHMS
    ]


theory = stage(AXES, tuned, powers)


def _tuned_risk(parameters: Parameters, dimension: int, steps: int, algorithm: str) -> float:
    from privreg.theory.correlated_noise import finite_time

    eigenvalues = regression.power_law(dimension, parameters.decay)
    damped = finite_time.damped_noise(eigenvalues[-1])
    return finite_time.tune_step_size(
        eigenvalues,
        steps=steps,
        correlations=finite_time.independent_noise if algorithm == "dp_sgd" else damped,
        noise_multiplier=(2 * parameters.rho) ** -0.5,
        clip_norm=parameters.clip_norm,
        initial_error=np.full(dimension, parameters.distance / np.sqrt(dimension)),
    ).excess_risk
