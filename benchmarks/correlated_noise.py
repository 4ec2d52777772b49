"""Correlated noise beside jax-privacy 2.0.0, in one process.

    python benchmarks/correlated_noise.py [--steps 1000 2048 4096] [--repeats 3]

Three comparisons, after both sides have compiled (its optimiser compiles anew at every call, about
a second of its time):

1. the Toeplitz mechanism with the least mean prefix error, here against `optimize_banded_toeplitz`
   with all bands and otherwise default settings, and the damped square root with the best damping,
   one number searched for;
2. a noise stream of a thousand steps in a thousand dimensions, here `BufferedNoise` with at most
   the excess error of the buffered mechanism that jax-privacy finds by default, drawn at once and
   step by step, there one compiled scan that draws and correlates, in single and double precision,
   and its gradient privatizer step by step;
3. the same stream for a million steps in 16 dimensions, for its memory.

It fails if an error differs by more than 1e-4, the optimum is less than 20 times as fast, the best
damping is more than 0.7 % off, the stream is slower than the fastest of theirs, or the long one
holds more than three blocks of its noise.
jax-privacy is no dependency of the package: without it this side is timed alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

from privreg.noise import errors, optimal, sensitivity, toeplitz
from privreg.noise.buffered import BufferedToeplitz, buffered_square_root
from privreg.noise.streams import BufferedNoise

try:
    import jax
    import jax.numpy as jnp
    from jax_privacy import noise_addition
    from jax_privacy.matrix_factorization import buffered_toeplitz
    from jax_privacy.matrix_factorization import toeplitz as peer_toeplitz
except ModuleNotFoundError:
    jax = None

STREAM_STEPS, STREAM_DIMENSION = 1000, 1000
LONG_STEPS, LONG_DIMENSION = 1_000_000, 16


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
    failed |= stream(arguments.repeats)
    failed |= long_stream()
    print("failed" if failed else "all within their bounds")
    return int(failed)


def optimum(steps: int, repeats: int) -> bool:
    ours, found = timed(lambda: optimal.toeplitz_optimum(steps), repeats)
    search, damping = timed(lambda: optimal.best_damping(steps), repeats)
    excess = optimal.damped_error(steps, damping=damping) / found.error - 1
    print(f"Toeplitz optimum, {steps} steps")
    print(f"  here            error {found.error:.9f}   {ours:9.4f} s")
    print(f"  best damping    {100 * excess:.3f} % above, at {damping:.3e}   {search:9.4f} s")
    failed = excess > 0.007
    if jax is not None:
        with jax.enable_x64():
            start = perf_counter()
            encoder = np.asarray(peer_toeplitz.optimize_banded_toeplitz(steps, steps))
            theirs = perf_counter() - start
        error = prefix_error(encoder, toeplitz.inverse_coefficients(encoder), "mean")
        print(f"  jax-privacy     error {error:.9f}   {theirs:9.4f} s")
        print(f"  ratio           error {found.error / error - 1:+.1e}   {theirs / ours:9.0f}")
        failed |= found.error > error * (1 + 1e-4) or theirs < 20 * ours
    return failed


def stream(repeats: int) -> bool:
    exact = prefix_error(
        toeplitz.damped_square_root_encoder(STREAM_STEPS, damping=0.0),
        toeplitz.square_root(STREAM_STEPS),
        "largest",
    )
    print(f"stream, {STREAM_STEPS} steps in {STREAM_DIMENSION} dimensions")
    tolerance, theirs = 1e-3, np.inf
    if jax is not None:
        with jax.enable_x64():
            peer = buffered_toeplitz.optimize(n=STREAM_STEPS)
            encoder = np.asarray(peer.toeplitz_coefs(STREAM_STEPS))
        error = prefix_error(encoder, toeplitz.inverse_coefficients(encoder), "largest")
        tolerance = max(error / exact - 1, 1e-8)
        print(f"  jax-privacy     {len(peer.buf_decay)} buffers, error {tolerance:.1e} above exact")
        theirs = peer_stream(peer, repeats)
    mechanism = buffered_square_root(STREAM_STEPS, tolerance=tolerance)
    buffers, excess = mechanism.decays.size, mechanism.excess_error
    print(f"  here            {buffers} buffers, error {excess:.1e} above exact")
    at_once, _ = timed(lambda: noise(mechanism).draw(STREAM_STEPS), 3 * repeats)
    by_step, _ = timed(lambda: [vector[0] for vector in noise(mechanism)], 3 * repeats)
    print(f"  here, at once                          {1e3 * at_once:9.2f} ms")
    print(f"  here, step by step                     {1e3 * by_step:9.2f} ms")
    if jax is not None:
        print(f"  ratio                                  {theirs / at_once:9.1f}")
    return at_once > theirs


def peer_stream(peer: Any, repeats: int) -> float:
    """Least time of jax-privacy's ways to the same noise."""
    times = []
    for name, dtype in (("single", np.float32), ("double", np.float64)):
        with jax.enable_x64():
            decays = jnp.asarray(peer.buf_decay, dtype=dtype)
            scales = jnp.asarray(peer.output_scale, dtype=dtype)
            matrix = buffered_toeplitz.BufferedToeplitz(
                buf_decay=decays, output_scale=scales
            ).inverse_as_streaming_matrix()

            def draw(key: Any, matrix: Any = matrix, dtype: Any = dtype) -> Any:
                def step(state: Any, key: Any) -> Any:
                    white = jax.random.normal(key, (STREAM_DIMENSION,), dtype)
                    value, state = matrix.multiply_next(white, state)
                    return state, value

                start = matrix.init_multiply(jnp.zeros(STREAM_DIMENSION, dtype))
                return jax.lax.scan(step, start, jax.random.split(key, STREAM_STEPS))[1]

            seconds, _ = timed(partial(finished, jax.jit(draw), jax.random.key(0)), 3 * repeats)
        times.append(seconds)
        print(f"  jax-privacy, one scan, {name:16s}{1e3 * seconds:9.2f} ms")
    with jax.enable_x64():
        seconds, _ = timed(partial(by_privatizer, peer), repeats)
    print(f"  jax-privacy, privatizer step by step   {1e3 * seconds:9.2f} ms")
    return min([*times, seconds])


def by_privatizer(peer: Any) -> Any:
    matrix = peer.inverse_as_streaming_matrix()
    privatizer = noise_addition.matrix_factorization_privatizer(matrix, stddev=1.0, prng_key=0)
    zeros = jnp.zeros(STREAM_DIMENSION)
    update, state = jax.jit(privatizer.update), privatizer.init(zeros)
    for _ in range(STREAM_STEPS):
        value, state = update(zeros, state)
    return value.block_until_ready()


def finished(function: Callable[[Any], Any], argument: Any) -> Any:
    return function(argument).block_until_ready()


def long_stream() -> bool:
    start = perf_counter()
    mechanism = buffered_square_root(LONG_STEPS, tolerance=1e-3)
    fitted = perf_counter() - start
    stream = BufferedNoise(mechanism, dimension=LONG_DIMENSION, rng=generator())
    block = LONG_STEPS // 1000
    stream.draw(block)
    tracemalloc.start()
    start = perf_counter()
    while stream.count < LONG_STEPS:
        stream.draw(block)
    seconds, peak = perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    error = f"error {mechanism.excess_error:.1e} above exact"
    print(f"stream, {LONG_STEPS} steps in {LONG_DIMENSION} dimensions, {block} at a time")
    print(f"  {mechanism.decays.size} buffers, {error}, fitted in {fitted:.2f} s")
    one, whole = (8e-6 * count * LONG_DIMENSION for count in (block, LONG_STEPS))
    print(f"  {seconds:.2f} s, peak {peak / 1e6:.2f} MB, a block {one:.2f} MB, all {whole:.0f} MB")
    return peak / 1e6 > 3 * one


def prefix_error(encoder: np.ndarray, decoder: np.ndarray, criterion: str) -> float:
    gamma = sensitivity.single_participation_sensitivity(encoder)
    return getattr(errors.workload_errors(decoder, sensitivity=gamma), criterion)


def noise(mechanism: BufferedToeplitz) -> BufferedNoise:
    return BufferedNoise(mechanism, dimension=STREAM_DIMENSION, rng=generator())


def generator() -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(0))


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
