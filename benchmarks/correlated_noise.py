"""Optimal Toeplitz mechanism beside jax-privacy 2.0.0, in one process.

    python benchmarks/correlated_noise.py [--steps 1000 2048 4096] [--repeats 3]

After both sides have compiled (its optimiser compiles anew at every call, about a second of its
time), the Toeplitz mechanism with the least mean prefix error, here against
`optimize_banded_toeplitz` with all bands and otherwise default settings, and the damped square root
with the best damping, one number searched for.

It fails if an error differs by more than 1e-4, the optimum is less than 20 times as fast, or the
best damping is more than 0.7 % off.
jax-privacy is no dependency of the package: without it this side is timed alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

from privreg.noise import optimal, sensitivity, toeplitz

try:
    import jax
    from jax_privacy.matrix_factorization import toeplitz as peer_toeplitz
except ModuleNotFoundError:
    jax = None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[1000, 2048, 4096])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    if jax is None:
        print("jax-privacy is not installed: times of this side alone")
    failed = False
    for steps in arguments.steps:
        failed |= optimum(steps, arguments.repeats)
    print("failed" if failed else "all within their bounds")
    return int(failed)


def optimum(steps: int, repeats: int) -> bool:
    ours, found = timed(lambda: optimal.toeplitz_optimum(steps), repeats)
    search, damping = timed(lambda: optimal.best_damping(steps), repeats)
    damped = prefix_error(
        toeplitz.damped_square_root_encoder(steps, damping=damping),
        toeplitz.damped_square_root(steps, damping=damping),
    )
    excess = damped / found.error - 1
    print(f"Toeplitz optimum, {steps} steps")
    print(f"  here            error {found.error:.9f}   {ours:9.4f} s")
    print(f"  best damping    {100 * excess:.3f} % above, at {damping:.3e}   {search:9.4f} s")
    failed = excess > 0.007
    if jax is not None:
        with jax.enable_x64():
            start = perf_counter()
            encoder = np.asarray(peer_toeplitz.optimize_banded_toeplitz(steps, steps))
            theirs = perf_counter() - start
        error = prefix_error(encoder, toeplitz.inverse_coefficients(encoder))
        print(f"  jax-privacy     error {error:.9f}   {theirs:9.4f} s")
        print(f"  ratio           error {found.error / error - 1:+.1e}   {theirs / ours:9.0f}")
        failed |= found.error > error * (1 + 1e-4) or theirs < 20 * ours
    return failed


def prefix_error(encoder: np.ndarray, decoder: np.ndarray) -> float:
    gamma = sensitivity.single_participation_sensitivity(encoder)
    return toeplitz.workload_errors(decoder, sensitivity=gamma).mean


def timed(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Least time after a first call, and the value."""
    function()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        value = function()
        times.append(perf_counter() - start)
    return min(times), value


if __name__ == "__main__":
    sys.exit(main())
