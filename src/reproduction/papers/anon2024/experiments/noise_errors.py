"""Error of the average iterate from noise alone: simulated, exact, and with mean gradients."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg.theory import shaped_noise as mean_gradients
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Dataset, Estimate, Mean, Trial, per, stage
from reproduction.engine.summaries import error_of_mean, trials_last
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.setting import CORRELATIONS, SHAPES

PLACE = "Algorithms 1 and 3, Lemma B.8; nothing of it is simulated in the paper"


class Parameters(setting.Problem):
    """Unclipped runs of a zero target without label noise, with white noise of deviation 1."""

    step_sizes: q.SmallStepAxis = Field(description="Step sizes.")


AXES = {name: setting.AXES[name] for name in ("correlation", "noise_shape", "step_size")}
GRID = tuple(AXES)


@per(
    "correlation",
    "step_size",
    "noise_shape",
    exact="mean excess risk due to the noise, exact",
    linear="mean excess risk due to the noise, gradients replaced by their means",
)
def errors(
    parameters: Parameters, correlation: str, noise_shape: str, step_size: float
) -> dict[str, float]:
    lam, size = parameters.eigenvalues, parameters.sample_size
    shape = parameters.shape(noise_shape, step_size)
    decoder = setting.decoder(correlation, size)
    if decoder is None:
        factor = mean_gradients.tree_factor(step_size * lam, sample_size=size)
    elif correlation == "independent":
        factor = mean_gradients.independent_factor(step_size * lam, sample_size=size)
    else:
        factor = mean_gradients.toeplitz_factor(step_size * lam, decoder=decoder, sample_size=size)
    linear = mean_gradients.privacy_error(
        factor,
        eigenvalues=lam,
        covariance=shape,
        step_size=step_size,
        sample_size=size,
        noise_std=1.0,
    )
    return {"exact": parameters.noise_risk(shape, step_size, correlation), "linear": linear}


@per(*GRID, risk="excess risk due to the noise")
def run(parameters: Parameters, trial: Trial) -> list:
    """Excess risks of averages; all settings share a trial's rows and white noise."""
    from privreg.algorithms.shaped_dp_ftrl import run_settings

    eigenvalues, size = parameters.eigenvalues, parameters.sample_size
    steps = parameters.step_sizes.values()
    scale = np.sqrt([parameters.shape(shape, eta) for shape in SHAPES for eta in steps])
    normals = trial.rng.standard_normal((size, parameters.dimension))
    seed = int(trial.rng.integers(2**63))
    found = []
    for correlation in CORRELATIONS:
        averages, _ = run_settings(
            normals * np.sqrt(eigenvalues),
            np.zeros(size),
            noise=parameters.increments(correlation, parameters.dimension, seed),
            noise_scale=scale,
            step_size=np.tile(steps, len(SHAPES)),
            **setting.unclipped(len(scale), size),
        )
        found.append((0.5 * averages**2 @ eigenvalues).reshape(len(SHAPES), -1))
    return found


@per(
    risk=Mean("the excess risk due to the noise", "correlation noise_shape step_size"),
    ratio_to_exact=Estimate("simulated error / exact error", "correlation noise_shape step_size"),
    tree_identity_gap="largest relative distance to the exact error, tree and identity",
)
def ratios(simulation: Dataset, theory: Dataset) -> dict:
    risk, exact = trials_last(simulation.risk), theory.exact.transpose(*GRID).values
    ratio = risk.mean(axis=-1) / exact
    return {
        "risk": risk,
        "ratio_to_exact": (ratio, error_of_mean(risk) / exact),
        # Tree and identity are the first of their axes.
        "tree_identity_gap": np.abs(ratio[0, 0] - 1).max(),
    }


theory = stage(AXES, errors)
simulate = stage(AXES, run)
summarise = stage(AXES, ratios)
