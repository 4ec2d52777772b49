"""What releasing all iterates costs: sensitivities by columns, the loss of the worst neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import ClipNorm, Probability, Rho, Steps

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Theorem 1.1, equation (24) and Appendix A"
FAMILIES = ("identity", "square_root", "damped_square_root", "anti_pgd", "damped_anti_pgd")


class Parameters(Strict):
    """Short runs on data in which one record alone has a gradient."""

    steps: Annotated[Steps, Field(ge=2)] = Field(description="Steps T, one record each.")
    damping: Probability = Field(description="nu of the damped families.")
    rho: Rho = Field(description="zCDP budget of all iterates.")
    clip_norm: ClipNorm = Field(description="G.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Loss of zero-out neighbours with one noise, for the first record and for the last."""
    import xarray as xr

    from privreg.algorithms.dp_ftrl import FTRLMechanism
    from privreg.noise import toeplitz
    from privreg.privacy.budget import Budget

    count = parameters.steps
    options = {"damping": parameters.damping}
    sensitivity, column, losses = [], [], []
    for name in FAMILIES:
        decoder = getattr(toeplitz, name)(count, **(options if "damped" in name else {}))
        inverse = np.linalg.inv(toeplitz.dense_matrix(decoder))
        mechanism = FTRLMechanism.for_budget(
            decoder,
            clip_norm=parameters.clip_norm,
            budget=Budget.zcdp(parameters.rho, neighbours="zero-out"),
            sample_size=count,
        )
        norms = np.linalg.norm(inverse, axis=0)
        sensitivity.append(mechanism.sensitivity)
        column.append(norms.max())
        losses.append([_loss(mechanism, place) for place in (0, count - 1)])
    return xr.Dataset(
        {
            "sensitivity_error": variable(
                "family",
                np.abs(np.array(sensitivity) / np.array(column) - 1),
                "relative distance of the sensitivity from the largest column norm",
            ),
            "loss_over_budget": variable(
                ("family", "record"),
                np.array(losses) / parameters.rho,
                "squared distance of the joint releases over 2 sigma^2, over rho",
            ),
        },
        coords={
            "family": variable("family", list(FAMILIES), "coefficients"),
            "record": variable("record", ["first", "last"], "record that is zeroed out"),
        },
    )


def _loss(mechanism, place: int) -> float:  # type: ignore[no-untyped-def]
    """Half the squared distance of the two releases in units of the white noise."""
    from privreg.algorithms.dp_ftrl import dp_ftrl
    from privreg.algorithms.samples import ArraySamples
    from privreg.noise.toeplitz import dense_matrix

    count, eta = mechanism.steps, 0.1
    paths = []
    for present in (True, False):
        features, labels = np.zeros((count, 1)), np.zeros(count)
        # A label so far away that the gradient is clipped wherever the iterate is.
        features[place], labels[place] = float(present), -1e9 * present
        run = dp_ftrl(
            ArraySamples(features, labels),
            mechanism=mechanism,
            step_size=eta,
            rng=np.random.Generator(np.random.SFC64(1)),
            times=np.arange(1, count + 1),
        )
        paths.append(run.iterates[:, 0])
    change = np.diff(paths[0] - paths[1], prepend=0.0) / eta
    white = np.linalg.solve(dense_matrix(mechanism.decoder), change)
    return float(0.5 * (white @ white) / mechanism.gradient_noise_std**2)
