"""Runs of Noisy-FTRL and DP-FTRL beside Appendix D's high-probability bounds.

Each bound holds up to a constant that the paper does not give. C = 16, which Remark F.7 names for
Gaussian vectors, stands in the events and step sizes, and 1 in the bounds themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reproduction.papers.choquettechoo2024.regression import Covariance

if TYPE_CHECKING:
    from privreg.algorithms.dp_ftrl import FTRLMechanism

CONSTANT = 16.0
EVENTS = ("features", "labels", "label part", "label response", "noise part", "noise response")
BOUNDS = ("iterate", "gradient", "label part", "noise part")


class _State(NamedTuple):
    """After a step: what it drew, the parts of the iterate and their squared responses by draw.

    Labels and the label part are those of standard normal label noise, in which they are linear.
    """

    features: np.ndarray
    drawn_label: float
    before: np.ndarray
    start: np.ndarray
    label: np.ndarray
    noise: np.ndarray
    label_responses: np.ndarray
    noise_responses: np.ndarray


@dataclass(frozen=True)
class _Run:
    """What both kinds of runs are told; they start at a distance of 1 from the target."""

    covariance: Covariance
    steps: int
    failure_probability: float

    @cached_property
    def logarithm(self) -> float:
        return float(np.log(self.steps / self.failure_probability))

    @cached_property
    def moment(self) -> float:
        return self.covariance.moment

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        return self.covariance.eigenvalues

    @property
    def least(self) -> float:
        return float(self.eigenvalues.min())

    @property
    def distance(self) -> np.ndarray:
        d = self.covariance.dimension
        return np.full(d, d**-0.5)


@dataclass(frozen=True)
class NoisyRun(_Run):
    """Noisy-FTRL without clipping."""

    gradient_noise_std: float

    def largest_ratios(
        self, normals: np.ndarray, label_noise_stds: Sequence[float]
    ) -> dict[str, np.ndarray]:
        """Over the steps, for each label noise, to each event and bound.

        The draws, of shape (steps, 2d + 1), are the same for all of them.
        """
        zetas = np.asarray(label_noise_stds)[:, None]
        limits = self._limits(zetas)
        events, bounds = np.zeros((2, len(zetas), 1))
        absolute = 0.0
        for at in self._states(normals):
            events = np.maximum(events, self._events(at, zetas))
            bounds = np.maximum(bounds, self._sizes(at, zetas) / limits)
            absolute = max(absolute, float((at.noise_responses / self._absolute(at)).max()))
        return {"event": events, "bound": bounds, "absolute": np.full(len(zetas), absolute)}

    @cached_property
    def step_size(self) -> float:
        return 1 / (CONSTANT * self.moment * self.logarithm)

    @cached_property
    def _damping(self) -> float:
        return self.step_size * self.least

    @cached_property
    def _coefficients(self) -> np.ndarray:
        from privreg.noise.toeplitz import damped_square_root

        return damped_square_root(self.steps, damping=self._damping)

    @cached_property
    def _sums(self) -> np.ndarray:
        return np.cumsum(np.abs(self._coefficients))

    @cached_property
    def _decayed_sums(self) -> np.ndarray:
        halves = (1 - self._damping) ** (np.arange(self.steps) / 2)
        return np.convolve(np.abs(self._coefficients), halves)[: self.steps]

    def _states(self, normals: np.ndarray) -> Iterator[_State]:
        d, eta, beta = self.eigenvalues.size, self.step_size, self._coefficients
        features = normals[:, :d] * np.sqrt(self.eigenvalues)
        labels = normals[:, d]
        white = self.gradient_noise_std * normals[:, d + 1 :]
        start, label, noise = self.distance, np.zeros(d), np.zeros(d)
        # Responses of the label part to each label, of the noise part to each draw (its axes last).
        moved, answers = np.zeros((self.steps, d)), np.zeros((d, self.steps, d))
        for t, x in enumerate(features):
            before = np.array([start + noise, label])
            drawn = beta[: t + 1] @ white[t::-1]
            start = start - eta * x * (x @ start)
            label = label - eta * x * (x @ label) + eta * x * labels[t]
            noise = noise - eta * x * (x @ noise) - eta * drawn
            moved[:t] -= eta * np.outer(moved[:t] @ x, x)
            moved[t] = x
            now = answers[:, : t + 1]
            now -= np.multiply.outer(eta * x, np.tensordot(x, now, axes=1))
            for k in range(d):
                now[k, :, k] += beta[t::-1]
            traces = np.einsum("td,td->t", moved[: t + 1], moved[: t + 1])
            responses = np.einsum("itj,itj->t", now, now)
            yield _State(x, labels[t], before, start, label, noise, traces, responses)

    def _events(self, at: _State, zetas: np.ndarray) -> np.ndarray:
        """Ratios to the six events of Section D.2.1, a row for each label noise."""
        eta, p, log = self.step_size, self.failure_probability, self.logarithm
        sigma = self.gradient_noise_std
        traces, responses = at.label_responses, at.noise_responses
        ages = np.arange(len(traces))[::-1]
        # Labels and their limits grow alike with the label noise.
        label_limit = CONSTANT * eta**2 * traces.sum() * log
        noise_limit = CONSTANT * eta**2 * sigma**2 * responses.sum() * log
        label_rows = self.steps**2 * self.moment / p * (1 - self._damping) ** ages
        noise_rows = self.steps**2 * self.eigenvalues.size / p * self._decayed_sums[ages]
        ratios = [
            at.features @ at.features / (CONSTANT * self.moment * log),
            at.drawn_label**2 / (2 * np.log(2 * self.steps / p)),
            at.label @ at.label / label_limit,
            float((traces / label_rows).max()),
            at.noise @ at.noise / noise_limit,
            float((responses / noise_rows).max()),
        ]
        return np.tile(ratios, (len(zetas), 1))

    def _sizes(self, at: _State, zetas: np.ndarray) -> np.ndarray:
        """Squared norms of what is bounded, a row for each label noise."""
        others, label = at.before
        whole = at.start + at.noise + zetas * at.label
        residual = (others + zetas * label) @ at.features - zetas[:, 0] * at.drawn_label
        gradient = residual[:, None] * at.features
        parts = (whole, gradient, zetas * at.label, np.broadcast_to(at.noise, whole.shape))
        return np.stack([np.sum(part**2, axis=1) for part in parts], axis=1)

    def _absolute(self, at: _State) -> np.ndarray:
        """Lemma D.10 with absolute coefficients, by age of the draw."""
        ages = np.arange(len(at.noise_responses))[::-1]
        return self.eigenvalues.size * self._sums[ages] ** 2

    def _limits(self, zetas: np.ndarray) -> np.ndarray:
        """Right sides of Theorem D.4 and Propositions D.7 and D.8, with constant 1."""
        moment, log = self.moment, self.logarithm
        eta, mu, d = self.step_size, self.least, self.eigenvalues.size
        label = eta * moment * zetas**2 / mu
        noise = eta**2 * self.gradient_noise_std**2 * d * float(self._sums[-1]) ** 2
        noise /= eta * mu
        iterate = (1 + label + noise) * log**3
        gradient = moment**2 * (1 + label + zetas**2 / moment + noise) * log**5
        last = np.full_like(label, noise * log**2)
        return np.hstack([iterate, gradient, label * log**3, last])


@dataclass(frozen=True)
class PrivateRun(_Run):
    """DP-FTRL with the clip norm and the step size of Theorem D.13."""

    label_noise_std: float
    rho: float

    def outcome(self, rng: np.random.Generator) -> dict[str, float]:
        """Share of clipped gradients, and the excess risk of the last iterate."""
        from privreg.algorithms.dp_ftrl import dp_ftrl
        from privreg.algorithms.samples import ArraySamples

        d, eigenvalues, target = self.covariance.dimension, self.eigenvalues, self.distance
        features = rng.standard_normal((self.steps, d)) * np.sqrt(eigenvalues)
        labels = features @ target + self.label_noise_std * rng.standard_normal(self.steps)
        samples = ArraySamples(features, labels)
        run = dp_ftrl(samples, mechanism=self._mechanism, step_size=self.step_size, rng=rng)
        error = run.iterates[-1] - target
        return {
            "clipped": run.clipped_fraction.non_private,
            "risk": float(0.5 * error**2 @ eigenvalues),
        }

    def bound(self) -> float:
        """Theorem D.13(c) at the last step, with the exact stationary risk."""
        from privreg.theory.correlated_noise.linear_regression import stationary_error
        from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

        eigenvalues, low = self.eigenvalues, self.least
        noise = StationaryNoise.damped_square_root(self.step_size * low)
        limit = stationary_error(
            eigenvalues,
            step_size=self.step_size,
            noise=noise,
            gradient_noise_std=self.clip_norm * (noise.squared_sensitivity / (2 * self.rho)) ** 0.5,
            label_noise_std=self.label_noise_std,
        ).excess_risk
        first = 0.5 * eigenvalues.sum() / eigenvalues.size
        start = 2 * float(eigenvalues.max()) / low
        start *= np.exp(-self.step_size * low * self.steps) * first
        return float(start + 2 * limit)

    @cached_property
    def step_size(self) -> float:
        from privreg.noise.sensitivity import damped_square_root_limit

        moment, d, log, mu = self.moment, self.covariance.dimension, self.logarithm, self.least
        eta = 1 / (CONSTANT * moment * log)
        # The second limit holds the sensitivity at the step size itself: a few rounds settle it.
        for _ in range(20):
            squared = damped_square_root_limit(eta * mu) ** 2
            second = mu * self.rho / (8 * CONSTANT**2 * moment**2 * d * squared * 4 * log**5)
            eta = min(1 / (CONSTANT * moment * log), second)
        return eta

    @cached_property
    def clip_norm(self) -> float:
        moment, zeta = self.moment, self.label_noise_std
        sizes = (1.0, (self.step_size * moment * zeta**2 / self.least) ** 0.5, zeta / moment**0.5)
        return 4 * CONSTANT * moment * max(sizes) * self.logarithm**2.5

    @property
    def _mechanism(self) -> FTRLMechanism:
        from privreg.algorithms.dp_ftrl import FTRLMechanism
        from privreg.noise.toeplitz import damped_square_root
        from privreg.privacy.budget import Budget

        return FTRLMechanism.for_budget(
            damped_square_root(self.steps, damping=self.step_size * self.least),
            clip_norm=self.clip_norm,
            budget=Budget.zcdp(self.rho, neighbours="zero-out"),
            sample_size=self.steps,
        )
