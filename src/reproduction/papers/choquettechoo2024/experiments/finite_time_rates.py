"""Best risk after a number of steps, for both algorithms, by tuning the step size exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipNorm,
    Dimension,
    Positive,
    Power,
    Rho,
    Rising,
    SizeAxis,
)
from reproduction.papers.choquettechoo2024.regression import power_law

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Section 2.3, Theorems D.11 and D.13, Corollaries D.14 and D.15"
ALGORITHMS = ("dp_sgd", "dp_ftrl")


class Parameters(Strict):
    """Regression without label noise, from a distance spread evenly over the eigenvectors."""

    dimensions: Rising[Dimension] = Field(description="Dimensions d.")
    decay: Power = Field(description="a of the eigenvalues k^-a.")
    steps: SizeAxis = Field(description="Steps T, rounded.")
    rho: Rho = Field(description="zCDP budget of all iterates.")
    clip_norm: ClipNorm = Field(description="Norm G that no gradient exceeds.")
    distance: Positive = Field(description="Distance of the start from the minimiser.")

    @property
    def derived_steps(self) -> float:
        """Steps of all settings."""
        return float(np.sum(self.steps.values()))


def theory(parameters: Parameters) -> xr.Dataset:
    """Tuned risks and their local exponents over the steps."""
    import xarray as xr

    from privreg.theory.correlated_noise.finite_time import (
        damped_noise,
        independent_noise,
        tune_step_size,
    )
    from reproduction.experiment.progress import track

    counts = np.round(parameters.steps.values()).astype(int)
    shape = (len(parameters.dimensions), len(counts), len(ALGORITHMS))
    risk, step = np.zeros(shape), np.zeros(shape)
    cases = list(np.ndindex(*shape))
    for row, column, place in track(cases, total=len(cases), label="tuning"):
        d = parameters.dimensions[row]
        eigenvalues = power_law(d, parameters.decay)
        found = tune_step_size(
            eigenvalues,
            steps=int(counts[column]),
            correlations=independent_noise if place == 0 else damped_noise(eigenvalues[-1]),
            noise_multiplier=(2 * parameters.rho) ** -0.5,
            clip_norm=parameters.clip_norm,
            initial_error=np.full(d, parameters.distance / np.sqrt(d)),
        )
        step[row, column, place], risk[row, column, place] = found
    slope = np.gradient(np.log(risk), np.log(counts), axis=1)
    dims = ("dimension", "steps", "algorithm")
    return xr.Dataset(
        {
            "risk": variable(dims, risk, "excess risk of the last iterate at the best step size"),
            "risk_ratio": variable(
                dims[:2], risk[..., 1] / risk[..., 0], "risk of DP-FTRL over that of DP-SGD"
            ),
            "last_slope": variable(
                ("dimension", "algorithm"), slope[:, -1], "exponent between the last two steps"
            ),
            "best_step_size": variable(dims, step, "best step size"),
            "local_slope": variable(dims, slope, "local exponent of the risk over the steps"),
        },
        coords={
            "dimension": variable("dimension", parameters.dimensions, "dimension d"),
            "steps": variable("steps", counts, "steps T"),
            "algorithm": variable("algorithm", list(ALGORITHMS), "algorithm"),
        },
    )
