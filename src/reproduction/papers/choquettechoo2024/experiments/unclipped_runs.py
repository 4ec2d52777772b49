"""How large iterates and gradients of Noisy-FTRL get, beside the printed bounds."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Quantity, Trial, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.choquettechoo2024.noisy_runs import BOUNDS, EVENTS, NoisyRun, PrivateRun
from reproduction.papers.choquettechoo2024.regression import Covariance

PLACE = "Theorems D.4 and D.13, Propositions D.5, D.7 and D.8, Lemma D.10, equation (9)"
# Of log(T/p) in the bounds, in their order.
POWERS = (3, 5, 3, 2)


class Parameters(Covariance):
    """Gaussian regression from a distance of 1, numbers of steps, one failure probability."""

    step_counts: q.Grid[q.Steps] = Field(description="Steps T, increasing.")
    failure_probability: q.Probability = Field(description="p.")
    label_noise_stds: q.Several[q.PositiveDeviation] = Field(description="Of two runs on one draw.")
    gradient_noise_std: q.PositiveDeviation = Field(description="Of the white noise.")
    rho: q.Rho = Field(description="zCDP budget of the private run.")

    def noisy_run(self, steps: int) -> NoisyRun:
        return NoisyRun(self, steps, self.failure_probability, self.gradient_noise_std)

    def private_run(self, steps: int) -> PrivateRun:
        return PrivateRun(self, steps, self.failure_probability, self.label_noise_stds[0], self.rho)


AXES = {
    "step_count": Axis("steps T", "step_counts"),
    "label_noise_std": Axis("standard deviation of the label noise", "label_noise_stds"),
    "condition": Axis("event of Section D.2.1", EVENTS),
    "quantity": Axis("what is bounded", BOUNDS),
}


@per(
    "step_count",
    event=Quantity("largest ratio to an event", "label_noise_std condition"),
    bound=Quantity("largest ratio to a bound", "label_noise_std quantity"),
    absolute=Quantity("largest ratio to the absolute bound of D.10", "label_noise_std"),
    clipped="share of clipped gradients, DP-FTRL of D.13",
    risk="excess risk of the last iterate, DP-FTRL of D.13",
)
def run(parameters: Parameters, trial: Trial, step_count: int) -> dict:
    """One draw for all label noises, and a run of DP-FTRL with D.13's values."""
    normals = trial.rng.standard_normal((step_count, 2 * parameters.dimension + 1))
    ratios = parameters.noisy_run(step_count).largest_ratios(normals, parameters.label_noise_stds)
    return ratios | parameters.private_run(step_count).outcome(trial.rng)


@per(
    "step_count",
    "label_noise_std",
    failed_events="share of runs in which an event fails",
    failed_halved_events="the same at half of the events' limits",
    failed_plain_events="the same without the events' factors log(T/p) and T^2/p",
    bound_quantile=Quantity("(1 - p)-quantile of the ratio to a bound", "quantity"),
    plain_bound_quantile=Quantity(
        "the same of the ratio to a bound without its power of log(T/p)", "quantity"
    ),
)
def quantiles(parameters: Parameters, simulation: Dataset) -> dict:
    events, bounds = trials_last(simulation.event), trials_last(simulation.bound)
    quantile = np.quantile(bounds, 1 - parameters.failure_probability, axis=-1)
    steps = np.asarray(parameters.step_counts, dtype=float)[:, None]
    log = np.log(steps / parameters.failure_probability)
    union = steps**2 / parameters.failure_probability
    # In the order of EVENTS.
    factors = np.hstack([log, log + np.log(2), log, union, log, union])[:, None, :, None]
    return {
        "failed_events": (events > 1).any(axis=2).mean(axis=-1),
        "failed_halved_events": (2 * events > 1).any(axis=2).mean(axis=-1),
        "failed_plain_events": (events * factors > 1).any(axis=2).mean(axis=-1),
        "bound_quantile": quantile,
        "plain_bound_quantile": quantile * log[:, :, None] ** POWERS,
    }


@per(
    "label_noise_std",
    bound_growth=Quantity("that quantile at the most steps over that at the fewest", "quantity"),
    plain_bound_growth=Quantity("the same without the bound's power of log(T/p)", "quantity"),
)
def growths(parameters: Parameters, simulation: Dataset) -> dict:
    """What no constant in the bound can change."""
    found = quantiles(parameters, simulation)
    names = ("bound_quantile", "plain_bound_quantile")
    whole, plain = (found[name][-1] / found[name][0] for name in names)
    return {"bound_growth": whole, "plain_bound_growth": plain}


@per(
    "label_noise_std",
    least_label_constant=(
        "quantile of the label part over D.7 as printed, without the label variance"
    ),
)
def least_label_constant(parameters: Parameters, simulation: Dataset) -> np.ndarray:
    quantile = quantiles(parameters, simulation)["bound_quantile"]
    part = quantile[-1, :, BOUNDS.index("label part")]
    return part * np.square(parameters.label_noise_stds)


@per(
    absolute_ratio="largest tr V V' over d times the squared sum",
)
def largest(simulation: Dataset) -> dict:
    return {"absolute_ratio": simulation.absolute.values.max()}


@per(
    "step_count",
    clipped_runs="share of runs of DP-FTRL that clip a gradient",
    risk_over_bound="mean excess risk over D.13(c)",
)
def private(parameters: Parameters, simulation: Dataset, step_count: int) -> dict:
    at = simulation.sel(step_count=step_count)
    return {
        "clipped_runs": (at.clipped.values > 0).mean(),
        "risk_over_bound": at.risk.values.mean() / parameters.private_run(step_count).bound(),
    }


simulate = stage(AXES, run)
summarise = stage(AXES, quantiles, growths, least_label_constant, largest, private)
