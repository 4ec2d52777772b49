"""Runs of Noisy-FTRL and DP-FTRL, compared with Appendix D's high-probability bounds.

Each bound holds up to a constant that the paper does not give. Events and step sizes have C = 16,
which Remark F.7 gives for Gaussian vectors; the bounds themselves have the constant 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Quantity, Trial, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Theorems D.4 and D.13, Propositions D.5, D.7 and D.8, Lemma D.10, equation (9)"
CONSTANT = 16.0
EVENTS = ("features", "labels", "label part", "label response", "noise part", "noise response")
BOUNDS = ("iterate", "gradient", "label part", "noise part")
# Powers of log(T/p) in the bounds, in their order.
POWERS = (3, 5, 3, 2)


class Parameters(regression.Covariance):
    """Gaussian regression from a distance of 1, numbers of steps, one failure probability."""

    step_counts: q.Grid[q.Steps] = Field(description="Steps T, increasing.")
    failure_probability: q.Probability = Field(description="p.")
    label_noise_stds: q.Several[q.PositiveDeviation] = Field(description="zeta; draws are shared.")
    gradient_noise_std: q.PositiveDeviation = Field(description="Deviation of white noise.")
    rho: q.Rho = Field(description="zCDP budget of the private run.")


AXES = {
    "step_count": Axis("steps T", "step_counts"),
    "label_noise_std": Axis("standard deviation of the label noise", "label_noise_stds"),
    "condition": Axis("event of Section D.2.1", EVENTS),
    "quantity": Axis("what is bounded", BOUNDS),
}


@per(
    "step_count",
    event=Quantity("largest ratio to the limit of an event", "label_noise_std condition"),
    bound=Quantity("largest ratio to a bound", "label_noise_std quantity"),
    absolute=Quantity("largest ratio to the absolute bound of D.10", "label_noise_std"),
    clipped="share of clipped gradients, DP-FTRL of D.13",
    risk="excess risk of the last iterate, DP-FTRL of D.13",
)
def run(parameters: Parameters, trial: Trial, step_count: int) -> dict:
    """One draw for all label noises, and a run of DP-FTRL with D.13's values."""
    normals = trial.rng.standard_normal((step_count, 2 * parameters.dimension + 1))
    ratios = NoisyRun(parameters, step_count).largest_ratios(normals)
    return ratios | PrivateRun(parameters, step_count).outcome(trial.rng)


@per(
    "step_count",
    "label_noise_std",
    failed_events="share of runs in which an event fails",
    failed_halved_events="share of runs in which an event fails at half of its limit",
)
def failures(simulation: Dataset) -> dict:
    events = trials_last(simulation.event)
    return {
        "failed_events": (events > 1).any(axis=2).mean(axis=-1),
        "failed_halved_events": (2 * events > 1).any(axis=2).mean(axis=-1),
    }


@per(
    "step_count",
    "label_noise_std",
    bound_quantile=Quantity("(1 - p)-quantile of the ratio to a bound", "quantity"),
)
def quantiles(parameters: Parameters, simulation: Dataset) -> np.ndarray:
    bounds = trials_last(simulation.bound)
    return np.quantile(bounds, 1 - parameters.failure_probability, axis=-1)


@per(
    "label_noise_std",
    bound_growth=Quantity("growth of the quantile from fewest to most steps", "quantity"),
    plain_bound_growth=Quantity("growth without the bound's power of log(T/p)", "quantity"),
)
def growths(parameters: Parameters, simulation: Dataset) -> dict:
    """Growth of quantiles, divided by the growth of their bounds: the bound's constant cancels."""
    quantile = quantiles(parameters, simulation)
    plain = quantile * _logarithms(parameters)[:, :, None] ** POWERS
    return {"bound_growth": quantile[-1] / quantile[0], "plain_bound_growth": plain[-1] / plain[0]}


@per(absolute_ratio="largest tr V V' divided by d times the squared sum")
def absolute_ratio(simulation: Dataset) -> float:
    return simulation.absolute.values.max()


@per(
    "step_count",
    clipped_runs="share of runs of DP-FTRL that clip a gradient",
    risk_over_bound="mean excess risk divided by the bound of D.13(c)",
)
def private(parameters: Parameters, simulation: Dataset, step_count: int) -> dict:
    at = simulation.sel(step_count=step_count)
    return {
        "clipped_runs": (at.clipped.values > 0).mean(),
        "risk_over_bound": at.risk.values.mean() / PrivateRun(parameters, step_count).bound(),
    }


simulate = stage(AXES, run)
summarise = stage(AXES, failures, quantiles, growths, absolute_ratio, private)


def _logarithms(parameters: Parameters) -> np.ndarray:
    """The logarithm log(T/p), shape (steps, 1)."""
    steps = np.asarray(parameters.step_counts, dtype=float)[:, None]
    return np.log(steps / parameters.failure_probability)


class _Run:
    """Inputs of both kinds of runs, which start at a distance of 1 from the target."""

    def __init__(self, parameters: Any, steps: int) -> None:
        self.parameters, self.steps = parameters, steps
        self.eigenvalues, self.moment = parameters.eigenvalues, parameters.moment
        self.least = float(self.eigenvalues.min())
        self.distance = np.full(parameters.dimension, parameters.dimension**-0.5)
        self.logarithm = float(np.log(steps / parameters.failure_probability))
        self.step_size = 1 / (CONSTANT * self.moment * self.logarithm)


class _Path(NamedTuple):
    """Draws of a run, the parts of its iterate, and squared responses to earlier draws, by step.

    Labels and the label part are for label noise of variance 1. `parts`, shape (steps + 1, 3, d),
    holds the parts of start, labels and noise. `sums`, shape (steps, 2), are sums of the squared
    responses of labels and noise. `largest`, shape (steps, 3), are the largest responses relative
    to the limit for the draw's age (labels, noise) and to the absolute limit (noise).
    """

    features: np.ndarray
    labels: np.ndarray
    parts: np.ndarray
    sums: np.ndarray
    largest: np.ndarray


class NoisyRun(_Run):
    """Noisy-FTRL without clipping."""

    def __init__(self, parameters: Any, steps: int) -> None:
        super().__init__(parameters, steps)
        self.damping = self.step_size * self.least
        self.coefficients = regression.coefficients("damped_square_root", steps, self.damping)
        self.sums = np.cumsum(np.abs(self.coefficients))

    def largest_ratios(self, normals: np.ndarray) -> dict[str, np.ndarray]:
        """Largest ratio over the steps to each limit and bound; label noises share draws."""
        zetas = np.asarray(self.parameters.label_noise_stds)[:, None]
        path = self.path(normals)
        sizes = self.sizes(path, zetas[:, None]) / self._limits(zetas)[:, None]
        return {
            # Labels and their limits are in proportion to the label noise.
            "event": np.tile(self._events(path).max(axis=1), (len(zetas), 1)),
            "bound": sizes.max(axis=1),
            "absolute": np.full(len(zetas), path.largest[:, 2].max()),
        }

    def path(self, normals: np.ndarray) -> _Path:
        d, eta, beta = self.eigenvalues.size, self.step_size, self.coefficients
        features, labels = normals[:, :d] * np.sqrt(self.eigenvalues), normals[:, d]
        matrix = regression.matrix("damped_square_root", self.steps, self.damping)
        drawn = matrix @ (self.parameters.gradient_noise_std * normals[:, d + 1 :])
        moves = eta * features
        pushes = np.stack([np.zeros_like(drawn), moves * labels[:, None], -eta * drawn], axis=1)
        parts = np.zeros((self.steps + 1, 3, d))
        parts[0, 0] = self.distance
        # By the age of a draw.
        ages = np.arange(self.steps)
        decay, halves = (1 - self.damping) ** ages, (1 - self.damping) ** (ages / 2)
        decayed_sums = np.convolve(np.abs(beta), halves)[: self.steps]
        absolute = d * self.sums**2
        sums, largest = np.zeros((self.steps, 2)), np.zeros((self.steps, 3))
        # Responses of the label part to each label, and of the noise part to each draw.
        moved, answers = np.zeros((self.steps, d)), np.zeros((d, self.steps * d))
        own = np.einsum("iti->it", answers.reshape(d, self.steps, d))
        for t, (x, move) in enumerate(zip(features, moves, strict=True)):
            parts[t + 1] = parts[t] - (parts[t] @ x)[:, None] * move + pushes[t]
            earlier = moved[:t]
            earlier -= (earlier @ x)[:, None] * move
            moved[t] = x
            now = answers[:, : (t + 1) * d]
            now -= move[:, None] * (x @ now)
            own[:, : t + 1] += beta[t::-1]
            traces = np.vecdot(moved[: t + 1], moved[: t + 1])
            responses = np.einsum("ij,ij->j", now, now).reshape(-1, d).sum(axis=1)
            sums[t] = traces.sum(), responses.sum()
            ratios = (
                traces / decay[t::-1],
                responses / decayed_sums[t::-1],
                responses / absolute[t::-1],
            )
            largest[t] = [each.max() for each in ratios]
        return _Path(features, labels, parts, sums, largest)

    def _events(self, path: _Path) -> np.ndarray:
        """Ratios to the limits of the six events of Section D.2.1, by step."""
        p, log = self.parameters.failure_probability, self.logarithm
        _, label, noise = np.vecdot(path.parts[1:], path.parts[1:]).T
        label_limit, noise_limit = CONSTANT * self.step_size**2 * log * path.sums.T
        union = self.steps**2 / p
        return np.stack(
            [
                np.vecdot(path.features, path.features) / (CONSTANT * self.moment * log),
                path.labels**2 / (2 * np.log(2 * self.steps / p)),
                label / label_limit,
                path.largest[:, 0] / (union * self.moment),
                noise / (self.parameters.gradient_noise_std**2 * noise_limit),
                path.largest[:, 1] / (union * self.eigenvalues.size),
            ]
        )

    def sizes(self, path: _Path, zetas: np.ndarray) -> np.ndarray:
        """Squared norms of the bounded quantities, shape (label noises, steps, 4)."""
        start, label, noise = path.parts.swapaxes(0, 1)
        whole, label = start + noise + zetas * label, zetas * label[1:]
        residual = np.vecdot(whole[:, :-1], path.features) - zetas[..., 0] * path.labels
        gradient = residual[..., None] * path.features
        parts = (whole[:, 1:], gradient, label, np.broadcast_to(noise[1:], label.shape))
        return np.stack([np.vecdot(part, part) for part in parts], axis=-1)

    def _limits(self, zetas: np.ndarray) -> np.ndarray:
        """Right sides of Theorem D.4 and Propositions D.7 and D.8, with constant 1."""
        moment, log, eta, mu = self.moment, self.logarithm, self.step_size, self.least
        std, d = self.parameters.gradient_noise_std, self.eigenvalues.size
        label = eta * moment * zetas**2 / mu
        noise = eta**2 * std**2 * d * float(self.sums[-1]) ** 2 / (eta * mu)
        iterate = (1 + label + noise) * log**3
        gradient = moment**2 * (1 + label + zetas**2 / moment + noise) * log**5
        last = np.full_like(label, noise * log**2)
        return np.hstack([iterate, gradient, label * log**3, last])


class PrivateRun(_Run):
    """DP-FTRL with the clip norm and the step size of Theorem D.13."""

    def __init__(self, parameters: Any, steps: int) -> None:
        from privreg.noise.sensitivity import damped_square_root_limit

        super().__init__(parameters, steps)
        moment, log, mu, d = self.moment, self.logarithm, self.least, parameters.dimension
        first, zeta = self.step_size, parameters.label_noise_stds[0]
        # The second limit depends on the sensitivity at the step size itself: iterate a few times.
        for _ in range(20):
            squared = damped_square_root_limit(self.step_size * mu) ** 2
            limit = 8 * CONSTANT**2 * moment**2 * d * squared * 4 * log**5
            self.step_size = min(first, mu * parameters.rho / limit)
        largest = max(1.0, (self.step_size * moment * zeta**2 / mu) ** 0.5, zeta / moment**0.5)
        self.label_noise_std = zeta
        self.clip_norm = 4 * CONSTANT * moment * largest * log**2.5

    def outcome(self, rng: np.random.Generator) -> dict[str, float]:
        """Share of clipped gradients, and the excess risk of the last iterate."""
        from privreg.algorithms.dp_ftrl import dp_ftrl
        from privreg.algorithms.samples import ArraySamples

        features = rng.standard_normal((self.steps, self.eigenvalues.size))
        features *= np.sqrt(self.eigenvalues)
        labels = features @ self.distance + self.label_noise_std * rng.standard_normal(self.steps)
        limits = {"clip_norm": self.clip_norm, "rho": self.parameters.rho}
        damping = self.step_size * self.least
        mechanism = regression.mechanism("damped_square_root", self.steps, damping, **limits)
        samples = ArraySamples(features, labels)
        run = dp_ftrl(samples, mechanism=mechanism, step_size=self.step_size, rng=rng)
        error = run.iterates[-1] - self.distance
        return {
            "clipped": run.clipped_fraction.non_private,
            "risk": float(0.5 * error**2 @ self.eigenvalues),
        }

    def bound(self) -> float:
        """Theorem D.13(c) at the last step, with the exact stationary risk."""
        eigenvalues, eta, low = self.eigenvalues, self.step_size, self.least
        limit = regression.stationary(
            eigenvalues,
            eta,
            regression.family_noise("damped_square_root", eta * low),
            rho=self.parameters.rho,
            clip_norm=self.clip_norm,
            label_noise_std=self.label_noise_std,
        ).excess_risk
        first = 0.5 * eigenvalues.sum() / eigenvalues.size
        start = 2 * float(eigenvalues.max()) / low * (np.exp(-eta * low * self.steps) * first)
        return float(start + 2 * limit)
