"""Two noise coefficient matrices that the objective of prior work cannot tell apart."""

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
    risk_slope=Quantity(
        "log-log slope of the private excess risk of the last iterate over the steps", "matrix"
    ),
)
def pairs(parameters: Parameters) -> dict:
    found = [_pair(parameters, int(steps)) for steps in parameters.step_counts]
    errors, sensitivities, risks = (np.array(each) for each in zip(*found, strict=True))
    return {
        "error_distance": np.abs(errors[:, 0] / errors[:, 1] - 1),
        "sensitivity_distance": np.abs(sensitivities[:, 0] / sensitivities[:, 1] - 1),
        "risk_slope": regression.slope(parameters.step_counts, risks),
    }


theory = stage(AXES, pairs)


def _pair(parameters: Parameters, steps: int) -> tuple[list[float], list[float], list[float]]:
    """Squared errors, sensitivities and risks of two diagonal matrices.

    A draw at the first step is in all T prefix sums, one at the last step in one: a variance of
    1 + T²/4 there and one of 1 + T/4 here add the same to the squared error.
    """
    sums, eta = np.tril(np.ones((steps, steps))), parameters.step_size
    left = (1 - eta) ** np.arange(steps)[::-1]
    errors, sensitivities, risks = [], [], []
    for place, variance in ((-1, 1 + steps**2 / 4), (0, 1 + steps / 4)):
        matrix = np.eye(steps)
        matrix[place, place] = variance**0.5
        sensitivity = float(np.linalg.norm(np.linalg.inv(matrix), axis=0).max())
        errors.append(float(np.sum((sums @ matrix) ** 2)))
        sensitivities.append(sensitivity)
        spread = eta**2 * float(np.sum((left @ matrix) ** 2))
        risks.append(0.5 * spread * sensitivity**2 / (2 * parameters.rho))
    return errors, sensitivities, risks
