"""How large iterates and gradients of Noisy-FTRL get, beside the printed high-probability bounds.

Each bound holds up to a constant that the paper does not give. C = 16, which Remark F.7 names for
Gaussian vectors, stands in the events and step sizes, and 1 in the bounds themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Deviation,
    Dimension,
    PositiveDeviation,
    Power,
    Probability,
    Rho,
    Rising,
    Some,
    Steps,
)
from reproduction.papers.choquettechoo2024.regression import power_law

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Theorems D.4 and D.13, Propositions D.5 to D.8, Lemma D.10, equation (9)"
CONSTANT = 16.0
EVENTS = ("features", "labels", "label part", "label response", "noise part", "noise response")
BOUNDS = ("iterate", "gradient", "label part", "noise part")


class Parameters(Strict):
    """Gaussian regression from a distance of 1, numbers of steps, one failure probability."""

    dimension: Dimension = Field(description="d.")
    decay: Power = Field(description="a of the eigenvalues k^-a.")
    step_counts: Annotated[Rising[Steps], Field(min_length=2)] = Field(
        description="Steps T, increasing."
    )
    failure_probability: Probability = Field(description="p.")
    label_noise_stds: Annotated[Some[Deviation], Field(min_length=2)] = Field(
        description="Of two runs on one draw."
    )
    gradient_noise_std: PositiveDeviation = Field(description="Of the white noise.")
    rho: Rho = Field(description="zCDP budget of the private run.")

    @property
    def eigenvalues(self) -> np.ndarray:
        return power_law(self.dimension, self.decay)

    @property
    def moment(self) -> float:
        return float(2 * self.eigenvalues.max() + self.eigenvalues.sum())

    def logarithm(self, steps: int) -> float:
        return float(np.log(steps / self.failure_probability))

    def step_size(self, steps: int) -> float:
        return 1 / (CONSTANT * self.moment * self.logarithm(steps))


class Run(NamedTuple):
    """Largest ratios over the steps of one run."""

    events: np.ndarray
    bounds: np.ndarray
    start: float
    absolute: float


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Ratios to each event and bound by number of steps, and runs of DP-FTRL with D.13's values."""
    import xarray as xr

    from reproduction.experiment.progress import track

    counts, labels = parameters.step_counts, parameters.label_noise_stds
    shape = (len(counts), len(labels))
    events = np.zeros((*shape, len(EVENTS), len(trials)))
    bounds = np.zeros((*shape, len(BOUNDS), len(trials)))
    start, absolute = np.zeros((*shape, len(trials))), np.zeros((*shape, len(trials)))
    clipped, risk = np.zeros((len(counts), len(trials))), np.zeros((len(counts), len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label="runs without clipping")):
        for row, steps in enumerate(counts):
            normals = trial.rng.standard_normal((steps, 2 * parameters.dimension + 1))
            for column, zeta in enumerate(labels):
                run = _noisy_run(parameters, steps, normals, zeta)
                events[row, column, :, at], bounds[row, column, :, at] = run.events, run.bounds
                start[row, column, at], absolute[row, column, at] = run.start, run.absolute
            clipped[row, at], risk[row, at] = _private_run(parameters, steps, trial.rng)
    dims = ("step_count", "label_noise_std")
    return xr.Dataset(
        {
            "event": variable((*dims, "condition", "trial"), events, "largest ratio to an event"),
            "bound": variable((*dims, "quantity", "trial"), bounds, "largest ratio to a bound"),
            "start": variable((*dims, "trial"), start, "largest ratio to the bound of D.6"),
            "absolute": variable(
                (*dims, "trial"), absolute, "largest ratio to the absolute bound of D.10"
            ),
            "clipped": variable(
                ("step_count", "trial"), clipped, "share of clipped gradients, DP-FTRL of D.13"
            ),
            "risk": variable(
                ("step_count", "trial"), risk, "excess risk of the last iterate, DP-FTRL of D.13"
            ),
        },
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Shares of runs in which an event fails, quantiles of the ratios to the bounds."""
    import xarray as xr

    from reproduction.experiment.summaries import mean_and_error

    events, bounds = simulation.event.values, simulation.bound.values
    dims = ("step_count", "label_noise_std")
    failed = (events > 1).any(axis=2).mean(axis=-1)
    quantile = np.quantile(bounds, 1 - parameters.failure_probability, axis=-1)
    risk = mean_and_error("risk", simulation.risk.values, ["step_count"], "the excess risk")
    limits = [_private_bound(parameters, steps) for steps in parameters.step_counts]
    return xr.Dataset(
        {
            "failed_events": variable(dims, failed, "share of runs in which an event fails"),
            "bound_quantile": variable(
                (*dims, "quantity"), quantile, "(1 - p)-quantile of the ratio to a bound"
            ),
            "least_label_constant": variable(
                "label_noise_std",
                quantile[-1, :, 2] * np.square(parameters.label_noise_stds),
                "quantile of the label part over D.7 as printed, without the label variance",
            ),
            "start_ratio": variable(
                (), simulation.start.values.max(), "largest norm of a noise-free iterate over start"
            ),
            "absolute_ratio": variable(
                (), simulation.absolute.values.max(), "largest tr V V' over d times the squared sum"
            ),
            "clipped_runs": variable(
                "step_count",
                (simulation.clipped.values > 0).mean(axis=-1),
                "share of runs of DP-FTRL that clip a gradient",
            ),
            "risk_over_bound": variable(
                "step_count", risk["risk"][1] / limits, "mean excess risk over D.13(c)"
            ),
        },
        coords=_coordinates(parameters) | {"trial": simulation.trial.variable},
    )


def _noisy_run(parameters: Parameters, steps: int, normals: np.ndarray, zeta: float) -> Run:
    from privreg.noise.toeplitz import damped_square_root

    eigenvalues, moment, d = parameters.eigenvalues, parameters.moment, parameters.dimension
    eta, log = parameters.step_size(steps), parameters.logarithm(steps)
    p = parameters.failure_probability
    mu, sigma = float(eigenvalues.min()), parameters.gradient_noise_std
    nu = eta * mu
    beta = damped_square_root(steps, damping=nu)
    features = normals[:, :d] * np.sqrt(eigenvalues)
    labels, white = zeta * normals[:, d], sigma * normals[:, d + 1 :]
    first = np.full(d, d**-0.5)
    start, label, noise = first.copy(), np.zeros(d), np.zeros(d)
    # Responses of the label part to each label, of the noise part to each draw.
    moved, answers = np.zeros((steps, d)), np.zeros((steps, d, d))
    halves = (1 - nu) ** (np.arange(steps) / 2)
    decayed = np.convolve(np.abs(beta), halves)[:steps]
    sums = np.cumsum(np.abs(beta))
    events, bounds = np.zeros(len(EVENTS)), np.zeros(len(BOUNDS))
    limits = _limits(parameters, steps, zeta, float(sums[-1]))
    starts, absolute = 1.0, 0.0
    for t in range(steps):
        x = features[t]
        gradient = x * (x @ (start + label + noise) - labels[t])
        bounds[1] = max(bounds[1], gradient @ gradient / limits[1])
        events[0] = max(events[0], x @ x / (CONSTANT * moment * log))
        events[1] = max(events[1], labels[t] ** 2 / (2 * zeta**2 * np.log(2 * steps / p)))
        drawn = beta[: t + 1] @ white[t::-1]
        start = start - eta * x * (x @ start)
        label = label - eta * x * (x @ label) + eta * x * labels[t]
        noise = noise - eta * x * (x @ noise) - eta * drawn
        moved[:t] -= eta * np.outer(moved[:t] @ x, x)
        moved[t] = x
        now = answers[: t + 1]
        now -= eta * x[:, None] * (x @ now)[:, None, :]
        now[np.arange(t + 1), :, :] += beta[t::-1, None, None] * np.eye(d)
        traces, responses = np.sum(moved[: t + 1] ** 2, axis=1), np.sum(now**2, axis=(1, 2))
        ages = np.arange(t, -1, -1)
        events[2] = max(
            events[2], label @ label / (CONSTANT * eta**2 * zeta**2 * traces.sum() * log)
        )
        rows = steps**2 * moment / p * (1 - eta * mu) ** ages
        events[3] = max(events[3], float((traces / rows).max()))
        events[4] = max(
            events[4], noise @ noise / (CONSTANT * eta**2 * sigma**2 * responses.sum() * log)
        )
        events[5] = max(events[5], float((responses / (steps**2 * d / p * decayed[ages])).max()))
        absolute = max(absolute, float((responses / (d * sums[ages] ** 2)).max()))
        starts = max(starts, float(np.linalg.norm(start) / np.linalg.norm(first)))
        whole = start + label + noise
        sizes = np.array([whole @ whole, 0.0, label @ label, noise @ noise])
        bounds = np.maximum(bounds, sizes / limits)
    return Run(events, bounds, starts, absolute)


def _limits(parameters: Parameters, steps: int, zeta: float, coefficient_sum: float) -> np.ndarray:
    """Right sides of Theorem D.4 and Propositions D.7 and D.8, with constant 1."""
    moment, log = parameters.moment, parameters.logarithm(steps)
    eta, mu = parameters.step_size(steps), float(parameters.eigenvalues.min())
    label = eta * moment * zeta**2 / mu
    noise = eta**2 * parameters.gradient_noise_std**2 * parameters.dimension * coefficient_sum**2
    noise /= eta * mu
    iterate = (1 + label + noise) * log**3
    gradient = moment**2 * (1 + label + zeta**2 / moment + noise) * log**5
    return np.array([iterate, gradient, label * log**3, noise * log**2])


class _Plan(NamedTuple):
    """Step size, clip norm and coefficients of Theorem D.13."""

    step_size: float
    clip_norm: float
    coefficients: np.ndarray
    damping: float


def _plan(parameters: Parameters, steps: int) -> _Plan:
    from privreg.noise.sensitivity import damped_square_root_limit
    from privreg.noise.toeplitz import damped_square_root

    eigenvalues, moment, log = (
        parameters.eigenvalues,
        parameters.moment,
        parameters.logarithm(steps),
    )
    mu, zeta = float(eigenvalues.min()), parameters.label_noise_stds[0]
    eta = 1 / (CONSTANT * moment * log)
    # The second limit holds the sensitivity at the step size itself: a few rounds settle it.
    for _ in range(20):
        squared = damped_square_root_limit(eta * mu) ** 2
        second = (
            mu
            * parameters.rho
            / (8 * CONSTANT**2 * moment**2 * parameters.dimension * squared * 4 * log**5)
        )
        eta = min(1 / (CONSTANT * moment * log), second)
    sizes = (1.0, (eta * moment * zeta**2 / mu) ** 0.5, zeta / moment**0.5)
    clip_norm = 4 * CONSTANT * moment * max(sizes) * log**2.5
    damping = eta * mu
    return _Plan(eta, clip_norm, damped_square_root(steps, damping=damping), damping)


def _private_run(
    parameters: Parameters, steps: int, rng: np.random.Generator
) -> tuple[float, float]:
    from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
    from privreg.algorithms.samples import ArraySamples
    from privreg.privacy.budget import Budget

    d, plan = parameters.dimension, _plan(parameters, steps)
    features = rng.standard_normal((steps, d)) * np.sqrt(parameters.eigenvalues)
    target = np.full(d, d**-0.5)
    labels = features @ target + parameters.label_noise_stds[0] * rng.standard_normal(steps)
    mechanism = FTRLMechanism.for_budget(
        plan.coefficients,
        clip_norm=plan.clip_norm,
        budget=Budget.zcdp(parameters.rho, neighbours="zero-out"),
        sample_size=steps,
    )
    run = dp_ftrl(
        ArraySamples(features, labels), mechanism=mechanism, step_size=plan.step_size, rng=rng
    )
    error = run.iterates[-1] - target
    return run.clipped_fraction.non_private, float(0.5 * error**2 @ parameters.eigenvalues)


def _private_bound(parameters: Parameters, steps: int) -> float:
    """Theorem D.13(c) at the last step, with the exact stationary risk."""
    from privreg.theory.correlated_noise.linear_regression import stationary_error
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    plan, eigenvalues = _plan(parameters, steps), parameters.eigenvalues
    noise = StationaryNoise.damped_square_root(plan.damping)
    limit = stationary_error(
        eigenvalues,
        step_size=plan.step_size,
        noise=noise,
        gradient_noise_std=plan.clip_norm
        * (noise.squared_sensitivity / (2 * parameters.rho)) ** 0.5,
        label_noise_std=parameters.label_noise_stds[0],
    ).excess_risk
    low, high = float(eigenvalues.min()), float(eigenvalues.max())
    first = 0.5 * eigenvalues.sum() / eigenvalues.size
    return float(2 * high / low * np.exp(-plan.step_size * low * steps) * first + 2 * limit)


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "step_count": variable("step_count", parameters.step_counts, "steps T"),
        "label_noise_std": variable(
            "label_noise_std", parameters.label_noise_stds, "standard deviation of the label noise"
        ),
        "condition": variable("condition", list(EVENTS), "event of Section D.2.1"),
        "quantity": variable("quantity", list(BOUNDS), "what is bounded"),
    }
