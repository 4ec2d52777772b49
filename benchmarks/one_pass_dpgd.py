"""One-pass DP-GD: the kernel that draws its own data, against a NumPy loop that draws in blocks.

`python benchmarks/one_pass_dpgd.py` prints times, their ratio within this run, the floor that the
random draws set, and the peak memory of a run of a million samples.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from privreg.algorithms import one_pass_dpgd
from privreg.models import LinearModel
from privreg.privacy.budget import Budget
from privreg.schedules import Polynomial

SAMPLES, DIMENSION, REPEATS, BLOCK = 20_000, 1_000, 5, 256


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def numpy_run(
    mechanism: one_pass_dpgd.Mechanism, model: LinearModel, rng: np.random.Generator
) -> float:
    """Algorithm 1 with vectorised rows, samples and noise drawn in blocks."""
    theta = np.zeros(model.dimension)
    amplitude, norm = mechanism.amplitude[0], mechanism.clip_norm[0]
    for start in range(0, mechanism.sample_size, BLOCK):
        count = min(BLOCK, mechanism.sample_size - start)
        features, labels = model.sample(count, rng)
        noise = mechanism.noise_shape[start : start + count]
        noisy = bool(np.any(noise > 0))
        directions = rng.standard_normal((count, model.dimension)) if noisy else None
        squares = np.einsum("ij,ij->i", features, features)
        for k in range(count):
            residual = features[k] @ theta - labels[k]
            threshold = norm / np.sqrt(squares[k])
            rate = min(amplitude * mechanism.step_shape[start + k], 2 / squares[k])
            theta -= rate * max(-threshold, min(threshold, residual)) * features[k]
            if directions is not None:
                theta += 2 * norm * amplitude * noise[k] * directions[k]
    return float(model.excess_risk(theta))


def kernel_run(
    mechanism: one_pass_dpgd.Mechanism, model: LinearModel, rng: np.random.Generator
) -> float:
    return float(one_pass_dpgd.risk_path(mechanism, model, rng)[0, 0])


def median_seconds(run: Callable[[int], object]) -> float:
    seconds = []
    for repeat in range(REPEATS):
        started = time.perf_counter()
        run(repeat)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def mechanism_for(exponent: float, sample_size: int, dimension: int) -> one_pass_dpgd.Mechanism:
    return one_pass_dpgd.Mechanism.from_schedule(
        Polynomial(3.0, exponent),
        sample_size=sample_size,
        dimension=dimension,
        budget=Budget.half_square(1.0),
        clip_constant=1.0,
    )


def million_samples() -> None:
    """Run n = 10^6, d = 100 and print the peak memory of this process."""
    model = LinearModel.even_target(np.ones(100), label_noise_std=0.3)
    started = time.perf_counter()
    kernel_run(mechanism_for(0.5, 1_000_000, 100), model, generator(0))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"n = 1,000,000, d = 100: {seconds:.2f} s, peak memory {peak:.0f} MB")


def main() -> None:
    # First, and in a process of its own: a child's peak begins at its parent's.
    subprocess.run([sys.executable, __file__, "million"], check=True)
    model = LinearModel.even_target(np.ones(DIMENSION), label_noise_std=0.3)
    kernel_run(mechanism_for(0.5, 10, DIMENSION), model, generator(0))
    print(f"n = {SAMPLES:,}, d = {DIMENSION:,}, medians of {REPEATS}")
    for exponent, name in ((0.0, "noise on the output"), (0.5, "noise on every step")):
        mechanism = mechanism_for(exponent, SAMPLES, DIMENSION)
        plain = median_seconds(lambda seed, m=mechanism: numpy_run(m, model, generator(seed)))
        fast = median_seconds(lambda seed, m=mechanism: kernel_run(m, model, generator(seed)))
        draws = SAMPLES * DIMENSION * (1 + (exponent > 0))
        floor = median_seconds(lambda seed, size=draws: generator(seed).standard_normal(size))
        print(
            f"{name}: NumPy {plain * 1e3:.0f} ms, kernel {fast * 1e3:.0f} ms, "
            f"ratio {plain / fast:.2f}; NumPy's draws alone {floor * 1e3:.0f} ms"
        )


if __name__ == "__main__":
    million_samples() if "million" in sys.argv else main()
