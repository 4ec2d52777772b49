"""The error due to privacy: an explicit bound (Theorem 2.7), and its fall with the budget."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Dataset, Mean, Quantity, Trial, per, stage
from reproduction.papers.brown2024.setting import RHO, Runs, clipped_minimiser, descend, draw, rhos

PLACE = "Theorem 2.7, equations (70)-(80); section 2.5"


class Parameters(Runs):
    """A range of budgets; a small data set for the Huber correspondence."""

    budgets: q.Several[q.StatedBudget] = Field(description="Budgets.")
    failure: q.Probability = Field(description="beta.")
    huber_sample_size: q.SampleSize = Field(description="n of the Huber correspondence.")
    huber_clip_norm: q.ClipNorm = Field(description="gamma of the Huber correspondence.")
    huber_steps: q.Steps = Field(description="Noiseless steps towards the Huber minimiser.")


AXES = {"rho": RHO}


@per(
    error=Quantity("distance of DP-GD to the empirical minimiser", "rho run"),
    bound=Quantity("the proof's bound on that distance", "rho"),
    gradient_gap="gap between clipped gradients and Huber's",
    minimiser_gap="distance of noiseless clipped descent to the Huber minimiser",
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Privacy errors with their bounds, and the distances of the Huber correspondence."""
    from privreg.algorithms.ols import ols

    p, eta, steps = parameters.dimension, parameters.step_size, parameters.steps
    data, _ = draw(parameters.sample_size, p, trial.rng)
    minimiser = ols(data).coefficients
    path = descend(
        data,
        clip_norm=parameters.clip_norm,
        rho=rhos(parameters),
        step_size=eta,
        steps=steps,
        runs=parameters.runs,
        rng=trial.rng,
    )
    tail = np.sqrt(32 * p * np.log(4 / parameters.failure))
    bias = (7 / 8) ** steps * np.linalg.norm(minimiser)
    return {
        "error": np.linalg.norm(path.iterates[:, :, 0] - minimiser, axis=-1),
        "bound": bias + eta * path.gradient_noise_std * tail,
        **_huber(parameters, trial.rng),
    }


@per(
    within_bound=Mean("the share of runs within the bound", "rho"),
    budget_slope=Mean("the log-log slope of the distance in the budget"),
    gradient_gap="largest gap over trials between a clipped gradient and Huber's",
    minimiser_gap="largest distance over trials of noiseless clipped descent to Huber's minimiser",
)
def summary(parameters: Parameters, simulation: Dataset) -> dict:
    """Share of runs within the bound, how loose it is, and the slope in the budget."""
    error = simulation.error.transpose("rho", "trial", "run").values
    bound = simulation.bound.transpose("rho", "trial").values[..., None]
    logs = np.log(rhos(parameters))
    weights = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
    return {
        "within_bound": (error <= bound).mean(axis=-1),
        "budget_slope": weights @ np.log(error.mean(axis=-1)),
        "gradient_gap": simulation.gradient_gap.values.max(),
        "minimiser_gap": simulation.minimiser_gap.values.max(),
    }


simulate = stage(AXES, run)
summarise = stage(AXES, summary)


def _huber(parameters: Parameters, rng: np.random.Generator) -> dict[str, float]:
    """Distances of clipped gradients to Huber losses' gradients, of descent to their minimiser."""
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
    from privreg.algorithms.samples import ArraySamples, clipped_gradient_sum

    clip_norm = parameters.huber_clip_norm
    data, _ = draw(parameters.huber_sample_size, parameters.dimension, rng)
    x, width = data.features, clip_norm / data.norms
    theta = rng.standard_normal(parameters.dimension)
    # Minus each row's clipped gradient, by the sum that descent takes.
    clipped = [
        clipped_gradient_sum(row.chunks(), theta[:, None], clip_norm=[clip_norm])[0][:, 0]
        for row in (
            ArraySamples(*pair) for pair in zip(x[:, None], data.labels[:, None], strict=True)
        )
    ]
    # Huber's loss is quadratic within the width and linear beyond it: exact derivatives.
    slope = np.clip(data.labels - x @ theta, -width, width)
    descent = full_batch_dpgd(
        data,
        clip_norm=clip_norm,
        step_size=parameters.step_size,
        gradient_noise_std=0.0,
        steps=parameters.huber_steps,
        times=[parameters.huber_steps],
        rng=rng,
        screening=False,
    ).iterates[0, 0]
    minimiser = clipped_minimiser(data, clip_norm)
    return {
        "gradient_gap": np.abs(clipped - x * slope[:, None]).max(),
        "minimiser_gap": float(np.linalg.norm(descent - minimiser)),
    }
