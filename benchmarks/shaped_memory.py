"""Memory and time of DP-FTRL with shaped noise where d × d matrices would take 80 GB.

    python benchmarks/shaped_memory.py [--dimension 100000] [--rows 10000] [--shape population]

One run on rows that are drawn and never held together, with the tree's noise in O(log N) vectors.
It prints time and the process's largest resident memory, and fails above 1 GB.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from privreg.algorithms.samples import Chunk
from privreg.algorithms.shaped_dp_ftrl import FixedClip, ShapedMechanism, shaped_dp_ftrl
from privreg.noise.covariance import (
    NoiseCovariance,
    PublicCovariance,
    identity_covariance,
    population_covariance,
)
from privreg.noise.streams import TreeCorrelation
from privreg.privacy.budget import Budget

ROWS_PER_CHUNK = 32
PUBLIC_ROWS = 250


@dataclass(frozen=True)
class DrawnRows:
    """Rows with eigenvalues i^-2 that exist a few at a time."""

    sample_size: int
    dimension: int

    @property
    def eigenvalues(self) -> np.ndarray:
        return np.arange(1.0, self.dimension + 1) ** -2

    def chunks(self) -> Iterator[Chunk]:
        rng = np.random.Generator(np.random.SFC64(1))
        target = 1 / np.arange(1.0, self.dimension + 1)
        scale = np.sqrt(self.eigenvalues)
        for first in range(0, self.sample_size, ROWS_PER_CHUNK):
            rows = min(ROWS_PER_CHUNK, self.sample_size - first)
            features = rng.standard_normal((rows, self.dimension))
            features *= scale
            labels = features @ target + rng.standard_normal(rows)
            yield Chunk(features, labels, np.linalg.norm(features, axis=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimension", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument(
        "--shape", choices=("identity", "population", "public"), default="population"
    )
    arguments = parser.parse_args()
    samples, step_size = DrawnRows(arguments.rows, arguments.dimension), 0.005
    covariance = shape_named(arguments.shape, samples, step_size)
    mechanism = ShapedMechanism.for_budget(
        Budget.approximate(8.0, 1e-8),
        covariance=covariance,
        correlation=TreeCorrelation(),
        clipping=FixedClip(3 * np.sqrt(covariance.inverse_trace(samples.eigenvalues))),
        sample_size=samples.sample_size,
    )
    started = perf_counter()
    run = shaped_dp_ftrl(
        samples, mechanism=mechanism, step_size=step_size, rng=np.random.default_rng(0)
    )
    seconds = perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    target = 1 / np.arange(1.0, samples.dimension + 1)
    risk = 0.5 * (run.average - target) ** 2 @ samples.eigenvalues
    start = 0.5 * target**2 @ samples.eigenvalues
    print(f"{arguments.shape}: {seconds:.1f} s, {memory:.3f} GB, excess risk {risk:.4f}", end="")
    print(f" (start {start:.4f}), {run.clipped_fraction.non_private:.1%} clipped")
    return int(memory > 1.0 or run.diverged)


def shape_named(name: str, samples: DrawnRows, step_size: float) -> NoiseCovariance:
    """The covariance of that name for these rows."""
    horizon = samples.sample_size * step_size
    if name == "identity":
        return identity_covariance(samples.dimension)
    if name == "population":
        return population_covariance(samples.eigenvalues, horizon=horizon)
    features = np.random.default_rng(2).standard_normal((PUBLIC_ROWS, samples.dimension))
    features *= np.sqrt(samples.eigenvalues)
    return PublicCovariance(features, ridge=PUBLIC_ROWS / horizon)


if __name__ == "__main__":
    sys.exit(main())
