"""Rényi divergence with diagonal-plus-low-rank covariances against dense ones, within one run.

    python benchmarks/renyi_low_rank.py [--dimension 1000] [--repeats 20]

Both sides see the same two neighbouring laws of homogenised SGD in the design of lin2025 (n = 1500,
σ = 1.5, order 2). It prints the two values, their relative difference, the times and their
ratio, and fails if the difference exceeds 1e-11 or the ratio is below 100.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np

from privreg.algorithms.noisy_sgd import LinearRecords
from privreg.privacy.renyi import LowRankUpdate, renyi_divergence
from privreg.schedules import ConstantRate
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
from privreg.theory.noisy_sgd.worst_pairs import PairSearch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimension", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    d = arguments.dimension
    rng = np.random.default_rng(0)
    width = np.sqrt(3 / d)
    records = LinearRecords.uniform(
        mean=0.0,
        half_width=width,
        target=rng.uniform(-width, width, d),
        label_noise_std=0.1 / d**0.5,
    )
    problem = RidgeRegression(
        np.full(d, 1 / d),
        records.target,
        rng.standard_normal(d),
        label_noise_std=records.clipped_label_noise_std,
        ridge=0.1,
    )
    law = HomogenisedSGD(problem, ConstantRate(0.05 * d), gradient_noise_std=1.5, horizon=1.5)
    features, labels = records.sample(2, rng)
    first, second, shift = neighbouring_laws(law, features, labels, time=0.75, position=0.7)

    fast, fast_value = best_time(
        # Rebuilt each time, since a covariance keeps its factorisation.
        lambda: renyi_divergence(shift, rebuild(first), rebuild(second), order=2.0),
        20 * arguments.repeats,
    )
    dense_first, dense_second = first.dense(), second.dense()
    slow, slow_value = best_time(
        lambda: renyi_divergence(shift, dense_first, dense_second, order=2.0),
        max(3, arguments.repeats // 4),
    )
    search = PairSearch(law, features, labels)
    gram_value = search.divergences(times=[0.75], position=0.7, order=2.0)[0, 1]
    difference = abs(fast_value / slow_value - 1)
    print(f"dimension              {d}")
    print(f"low rank               {fast_value:.15e}   {fast * 1e3:9.3f} ms")
    print(f"dense                  {slow_value:.15e}   {slow * 1e3:9.3f} ms")
    print(f"Gram matrices          {gram_value:.15e}")
    print(f"relative difference    {difference:.1e}")
    print(f"ratio of times         {slow / fast:.0f}")
    return int(difference > 1e-11 or slow / fast < 100)


def neighbouring_laws(
    law: HomogenisedSGD, features: np.ndarray, labels: np.ndarray, *, time: float, position: float
) -> tuple[LowRankUpdate, LowRankUpdate, np.ndarray]:
    """The two covariances and the difference of the means, written out from the definition."""
    step = float(law.schedule.rate(position)) / law.problem.dimension
    shrink = 1 - step * law.problem.ridge
    decay, before = law.transition(time, position), law.variance(position)
    diagonal = law.variance(time) - decay**2 * before
    diagonal += decay**2 * (shrink**2 * before + (step * law.gradient_noise_std) ** 2)
    mean = law.mean(position)
    covariances, means = [], []
    for row, label in zip(features, labels, strict=True):
        factors = np.column_stack([decay * row, decay * before * row])
        side = -step * shrink
        core = np.array([[step**2 * (row**2 @ before), side], [side, 0.0]])
        covariances.append(LowRankUpdate(diagonal, factors, core))
        means.append(-step * decay * row * (row @ mean - label))
    return covariances[0], covariances[1], means[0] - means[1]


def rebuild(matrix: LowRankUpdate) -> LowRankUpdate:
    return LowRankUpdate(matrix.diagonal, matrix.factors, matrix.core)


def best_time(function: Callable[[], float], repeats: int) -> tuple[float, float]:
    value = function()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        value = function()
        times.append(perf_counter() - start)
    return float(np.median(times)), value


if __name__ == "__main__":
    sys.exit(main())
