"""Two matrices of noise coefficients with the same objective of prior work."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Section 1.2, Our approach"
MATRICES = ("loud last step", "loud first step")


class Parameters(Strict):
    """Mean estimation, whose gradients are never clipped at G = 1."""

    step_counts: q.Grid[q.Steps] = Field(description="Steps T, increasing.")
    step_size: q.StepSize = Field(description="eta.")
    rho: q.Rho = Field(description="zCDP budget of all iterates.")


AXES = {
    "matrix": Axis("noise coefficients", MATRICES),
    "step_count": Axis("steps T", "step_counts"),
}


@per(
    error_distance=Quantity("relative distance of the two squared errors (3)", "step_count"),
    sensitivity_distance=Quantity("relative distance of the two sensitivities", "step_count"),
    risk_slope=Quantity("log-log slope of the last private excess risk in the steps", "matrix"),
)
def pairs(parameters: Parameters) -> dict:
    found = [
        [_matrix(parameters, int(steps), which) for which in MATRICES]
        for steps in parameters.step_counts
    ]
    errors, sensitivities, risks = np.moveaxis(np.array(found), -1, 0)
    return {
        "error_distance": np.abs(errors[:, 0] / errors[:, 1] - 1),
        "sensitivity_distance": np.abs(sensitivities[:, 0] / sensitivities[:, 1] - 1),
        "risk_slope": regression.slope(parameters.step_counts, risks),
    }


theory = stage(AXES, pairs)


def _matrix(parameters: Parameters, steps: int, which: str) -> tuple[float, float, float]:
    """Squared error, sensitivity and risk of a diagonal matrix.

    A draw at the first step is in all T prefix sums, a draw at the last step in one. The variances
    1 + T/4 at the first and 1 + T²/4 at the last step therefore add the same to the squared error.
    """
    eta, matrix = parameters.step_size, np.eye(steps)
    place, variance = (-1, 1 + steps**2 / 4) if which == MATRICES[0] else (0, 1 + steps / 4)
    matrix[place, place] = variance**0.5
    sensitivity = float(np.linalg.norm(np.linalg.inv(matrix), axis=0).max())
    error = float(np.sum((np.tril(np.ones((steps, steps))) @ matrix) ** 2))
    spread = eta**2 * float(np.sum(((1 - eta) ** np.arange(steps)[::-1] @ matrix) ** 2))
    return error, sensitivity, 0.5 * spread * sensitivity**2 / (2 * parameters.rho)
