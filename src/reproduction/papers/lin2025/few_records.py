"""A law of few records and a quadratic: conditional means are sums over the records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Law:
    """Equally likely records: each feature vector with label noise of either sign."""

    features: np.ndarray
    label_noise: np.ndarray
    target: np.ndarray
    moment: np.ndarray

    @classmethod
    def draw(cls, features: int, dimension: int, rng: np.random.Generator) -> Law:
        half = rng.standard_normal((features, dimension))
        noise = np.abs(rng.standard_normal(features))
        rows = np.concatenate([half, half])
        return cls(
            rows,
            np.concatenate([noise, -noise]),
            rng.standard_normal(dimension) / np.sqrt(dimension),
            rows.T @ rows / len(rows),
        )

    @property
    def label_noise_square(self) -> float:
        return float(np.mean(self.label_noise**2))

    def risk(self, error: np.ndarray) -> float:
        return float(np.mean((self.features @ error - self.label_noise) ** 2) / 2)


@dataclass(frozen=True)
class Quadratic:
    """q(v) = v' H v / 2 + w' v."""

    hessian: np.ndarray
    linear: np.ndarray

    @classmethod
    def draw(cls, law: Law, rng: np.random.Generator) -> Quadratic:
        root = rng.standard_normal(law.moment.shape)
        return cls((root + root.T) / 2, rng.standard_normal(len(law.moment)))

    def __call__(self, point: np.ndarray) -> np.ndarray:
        """Its values, (..., d) -> (...)."""
        return ((point @ self.hessian) * point).sum(axis=-1) / 2 + point @ self.linear

    def gradient(self, point: np.ndarray) -> np.ndarray:
        return self.hessian @ point + self.linear
