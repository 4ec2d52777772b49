"""Runs of Noisy-FTRL and DP-FTRL beside Appendix D's high-probability bounds.

Each bound holds up to a constant that the paper does not give. C = 16, which Remark F.7 names for
Gaussian vectors, stands in the events and step sizes, and 1 in the bounds themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class _Path(NamedTuple):
    """What a run drew, its iterate by parts, and squared responses to earlier draws by step.

    Labels and the label part are those of standard normal label noise, in which they are linear.
    `parts`, shape (steps + 1, 3, d), has those of the start, the labels and the noise; `sums` and
    `largest`, shapes (steps, 2) and (steps, 3), are of responses of the label and the noise part,
    the largest over what each may be at its age, and the noise's over its absolute limit.
    """

    features: np.ndarray
    labels: np.ndarray
    parts: np.ndarray
    sums: np.ndarray
    largest: np.ndarray


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
        path = self._path(normals)
        sizes = self._sizes(path, zetas[:, None]) / self._limits(zetas)[:, None]
        return {
            # Labels and their limits grow alike with the label noise.
            "event": np.tile(self._events(path).max(axis=1), (len(zetas), 1)),
            "bound": sizes.max(axis=1),
            "absolute": np.full(len(zetas), path.largest[:, 2].max()),
        }

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

    def _path(self, normals: np.ndarray) -> _Path:
        from privreg.noise.toeplitz import dense_matrix

        d, eta, beta = self.eigenvalues.size, self.step_size, self._coefficients
        features = normals[:, :d] * np.sqrt(self.eigenvalues)
        labels = normals[:, d]
        drawn = dense_matrix(beta) @ (self.gradient_noise_std * normals[:, d + 1 :])
        moves = eta * features
        pushes = np.stack([np.zeros_like(drawn), moves * labels[:, None], -eta * drawn], axis=1)
        parts = np.zeros((self.steps + 1, 3, d))
        parts[0, 0] = self.distance
        # By the age of a draw.
        decay = (1 - self._damping) ** np.arange(self.steps)
        absolute = d * self._sums**2
        sums, largest = np.zeros((self.steps, 2)), np.zeros((self.steps, 3))
        # Responses of the label part to each label, of the noise part to each draw's coordinates.
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
            largest[t] = (
                (traces / decay[t::-1]).max(),
                (responses / self._decayed_sums[t::-1]).max(),
                (responses / absolute[t::-1]).max(),
            )
        return _Path(features, labels, parts, sums, largest)

    def _events(self, path: _Path) -> np.ndarray:
        """Ratios to the six events of Section D.2.1, by step."""
        eta, p, log = self.step_size, self.failure_probability, self.logarithm
        _, label, noise = np.vecdot(path.parts[1:], path.parts[1:]).T
        label_limit, noise_limit = CONSTANT * eta**2 * log * path.sums.T
        union = self.steps**2 / p
        return np.stack(
            [
                np.vecdot(path.features, path.features) / (CONSTANT * self.moment * log),
                path.labels**2 / (2 * np.log(2 * self.steps / p)),
                label / label_limit,
                path.largest[:, 0] / (union * self.moment),
                noise / (self.gradient_noise_std**2 * noise_limit),
                path.largest[:, 1] / (union * self.eigenvalues.size),
            ]
        )

    def _sizes(self, path: _Path, zetas: np.ndarray) -> np.ndarray:
        """Squared norms of what is bounded, shape (label noises, steps, 4)."""
        start, label, noise = path.parts.swapaxes(0, 1)
        whole, label = start + noise + zetas * label, zetas * label[1:]
        residual = np.vecdot(whole[:, :-1], path.features) - zetas[..., 0] * path.labels
        gradient = residual[..., None] * path.features
        parts = (whole[:, 1:], gradient, label, np.broadcast_to(noise[1:], label.shape))
        return np.stack([np.vecdot(part, part) for part in parts], axis=-1)

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
