"""Best risk after a number of steps, for both algorithms, by tuning the step size exactly."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.choquettechoo2024.regression import power_law

PLACE = "Section 2.3, Theorems D.11 and D.13, Corollaries D.14 and D.15"
ALGORITHMS = ("dp_sgd", "dp_ftrl")


class Parameters(Strict):
    """Regression without label noise, from a distance spread evenly over the eigenvectors."""

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
}


@per(
    "dimension",
    risk=Quantity("excess risk of the last iterate at the best step size", "steps algorithm"),
    risk_ratio=Quantity("risk of DP-FTRL over that of DP-SGD", "steps"),
    last_slope=Quantity("exponent between the last two steps", "algorithm"),
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


theory = stage(AXES, tuned)


def _tuned_risk(parameters: Parameters, dimension: int, steps: int, algorithm: str) -> float:
    from privreg.theory.correlated_noise import finite_time

    eigenvalues = power_law(dimension, parameters.decay)
    damped = finite_time.damped_noise(eigenvalues[-1])
    return finite_time.tune_step_size(
        eigenvalues,
        steps=steps,
        correlations=finite_time.independent_noise if algorithm == "dp_sgd" else damped,
        noise_multiplier=(2 * parameters.rho) ** -0.5,
        clip_norm=parameters.clip_norm,
        initial_error=np.full(dimension, parameters.distance / np.sqrt(dimension)),
    ).excess_risk
