"""Time full-batch DP-GD against a plain NumPy loop on the same data and noise, in one process.

    OPENBLAS_NUM_THREADS=1 python benchmarks/full_batch_dpgd.py

Prints nanoseconds for each sample, step and run, the best of a few repetitions, and their ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.samples import ArraySamples

RHO, STEP_SIZE = 0.015, 0.25


def plain_loop(
    data: ArraySamples,
    *,
    clip_norm: float,
    gradient_noise_std: float,
    steps: int,
    runs: int,
    seed: int,
) -> NDArray[np.float64]:
    """One run after another, the n × p gradients of a step in one array."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((steps, runs, data.dimension))
    last = np.zeros((runs, data.dimension))
    for run in range(runs):
        theta = last[run]
        for step in range(steps):
            gradients = data.features * (data.features @ theta - data.labels)[:, None]
            norms = np.linalg.norm(gradients, axis=1)
            gradients *= np.minimum(1.0, clip_norm / norms)[:, None]
            theta += STEP_SIZE * (gradient_noise_std * noise[step, run] - gradients.mean(axis=0))
    return last


def best_time(call: Callable[[], object], repetitions: int) -> float:
    """Least wall time in seconds; the first call, which compiles, is left out."""
    call()
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    n, p = arguments.samples, arguments.features
    steps, runs = arguments.steps, arguments.runs

    rng = np.random.default_rng(0)
    features = rng.standard_normal((n, p))
    labels = features @ (np.ones(p) / np.sqrt(p)) + rng.standard_normal(n)
    data = ArraySamples(features, labels)
    clip_norm = 5 * np.sqrt(p)
    gradient_noise_std = float(
        full_batch_noise_std(clip_norm=clip_norm, rho=RHO, sample_size=n, gradients=steps)
    )
    common = {"clip_norm": clip_norm, "gradient_noise_std": gradient_noise_std, "steps": steps}

    def library(screening: bool) -> NDArray[np.float64]:
        return full_batch_dpgd(
            data,
            **common,
            step_size=STEP_SIZE,
            runs=runs,
            rng=np.random.default_rng(1),
            times=[steps],
            screening=screening,
        ).iterates[:, 0]

    few = max(1, runs // 20)
    gap = np.max(np.abs(library(False) - plain_loop(data, **common, runs=runs, seed=1)))
    passes = float(n) * steps
    seconds = {
        "plain NumPy loop": best_time(
            lambda: plain_loop(data, **common, runs=few, seed=1), arguments.repetitions
        )
        / few,
        "all rows": best_time(lambda: library(False), arguments.repetitions) / runs,
        "screened rows": best_time(lambda: library(True), arguments.repetitions) / runs,
    }
    print(f"n = {n}, p = {p}, {steps} steps, {runs} runs; largest difference {gap:.1e}")
    reference = seconds["plain NumPy loop"]
    for name, value in seconds.items():
        rate = value / passes * 1e9
        print(f"{name:18s} {rate:8.2f} ns a sample, step and run   {reference / value:6.1f} x")


if __name__ == "__main__":
    main()
