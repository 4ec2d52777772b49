"""Privacy loss of releasing all iterates: sensitivities by columns, and worst neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, below, close, every, identity, per, stage
from reproduction.papers.choquettechoo2024 import regression

if TYPE_CHECKING:
    from privreg.algorithms.dp_ftrl import FTRLMechanism

PLACE = "Theorem 1.1, equation (24) and Appendix A"
STEP_SIZE = 0.1
FAMILIES = ("identity", "square_root", "damped_square_root", "anti_pgd", "damped_anti_pgd")


class Parameters(Strict):
    """Short runs on data in which only one record has a gradient."""

    steps: q.Plural[q.Steps] = Field(description="Steps T, one record each.")
    damping: q.Probability = Field(description="nu of the damped families.")
    rho: q.Rho = Field(description="zCDP budget of all iterates.")
    clip_norm: q.ClipNorm = Field(description="G.")

    def mechanism(self, family: str) -> FTRLMechanism:
        limits = {"clip_norm": self.clip_norm, "rho": self.rho}
        return regression.mechanism(family, self.steps, self.damping, **limits)


AXES = {
    "family": Axis("coefficients", FAMILIES),
    "record": Axis("record that is zeroed out", ("first", "last")),
}


@identity(
    "family",
    id="sensitivity-is-the-largest-column",
    where="Theorem 1.1, equation (24)",
    compares="The library takes the norm of the inverse's first column as the sensitivity. That "
    "norm is the largest column norm, as in the definition.",
    check=every(below(1e-12)),
)
def sensitivity_error(parameters: Parameters, family: str) -> float:
    """Relative distance of the sensitivity from the largest column norm."""
    matrix = regression.matrix(family, parameters.steps, parameters.damping)
    columns = np.linalg.norm(np.linalg.inv(matrix), axis=0)
    return float(np.abs(parameters.mechanism(family).sensitivity / columns.max() - 1))


@per(
    "family",
    "record",
    loss_over_budget="squared distance of the joint releases divided by 2 sigma^2 rho",
)
def loss_over_budget(parameters: Parameters, family: str, record: str) -> float:
    """Half the squared distance of zero-out neighbours in units of the noise, divided by rho."""
    mechanism, place = parameters.mechanism(family), 0 if record == "first" else -1
    paths = [_path(mechanism, place, present) for present in (True, False)]
    change = np.diff(paths[0] - paths[1], prepend=0.0) / STEP_SIZE
    matrix = regression.matrix(family, parameters.steps, parameters.damping)
    white = np.linalg.solve(matrix, change)
    return float(0.5 * (white @ white) / mechanism.gradient_noise_std**2) / parameters.rho


@identity(
    id="limit-of-the-sensitivities-5",
    kind="theorem",
    where="Equation (5), equation (28)",
    statement="For every square-summable sequence of coefficients the limit of the squared "
    "sensitivities over T steps is the mean of 1/|B|^2 over frequencies.",
    ours=["coefficients 1, -2, 0, ..., whose causal inverse is not bounded", "T = 40"],
    check=close(1.0, absolute=0.01),
    finding="limiting-sensitivity-needs-a-causal-inverse",
)
def growing_sensitivity() -> float:
    """Squared sensitivity of the coefficients 1, -2 for T steps, divided by the mean of 1/|B|^2."""
    from privreg.noise.toeplitz import inverse_coefficients

    beta = np.zeros(40)
    beta[:2] = 1.0, -2.0
    frequencies = 2 * np.pi * np.arange(400) / 400
    mean = np.mean(1 / np.abs(1 - 2 * np.exp(1j * frequencies)) ** 2)
    return float(np.sum(inverse_coefficients(beta) ** 2) / mean)


theory = stage(AXES, sensitivity_error, loss_over_budget, growing_sensitivity)


def _path(mechanism: FTRLMechanism, place: int, present: bool) -> np.ndarray:
    """Iterates if only one record, when present, has a gradient."""
    from privreg.algorithms.dp_ftrl import dp_ftrl
    from privreg.algorithms.samples import ArraySamples

    features, labels = np.zeros((mechanism.steps, 1)), np.zeros(mechanism.steps)
    # The label is so large that the gradient is clipped at every iterate.
    features[place], labels[place] = float(present), -1e9 * present
    return dp_ftrl(
        ArraySamples(features, labels),
        mechanism=mechanism,
        step_size=STEP_SIZE,
        rng=np.random.Generator(np.random.SFC64(1)),
        times=np.arange(1, mechanism.steps + 1),
    ).iterates[:, 0]
