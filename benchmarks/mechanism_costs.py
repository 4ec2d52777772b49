"""Time to make each mechanism of Table 3 of choquettechoo2024, and to draw its noise, over steps.

Prints the time of generation, of the noise of all steps in 32 coordinates, and the exponent in the
number of steps between the two largest.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from privreg.noise.optimal import best_damping, dense_optimum, toeplitz_optimum
from privreg.noise.streams import ToeplitzNoise, TreeNoise, WhiteNoise, full_honaker
from privreg.noise.toeplitz import damped_square_root, square_root

STEPS = (256, 512, 1024, 2048)
DIMENSION = 32


def generator() -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(0))


def draw_white(_: object, steps: int) -> None:
    WhiteNoise(DIMENSION, rng=generator(), steps=steps).draw(steps)


def draw_toeplitz(decoder: np.ndarray, steps: int) -> None:
    ToeplitzNoise(decoder, dimension=DIMENSION, rng=generator()).draw(steps)


def draw_tree(_: object, steps: int) -> None:
    stream = TreeNoise(DIMENSION, steps=steps, rng=generator())
    for _step in range(steps):
        next(stream)


def draw_dense(decoder: np.ndarray, steps: int) -> None:
    decoder @ generator().standard_normal((decoder.shape[1], DIMENSION))


MECHANISMS: dict[str, tuple[Callable, Callable]] = {
    "DP-SGD": (lambda steps: None, draw_white),
    "Honaker/TreeAgg": (lambda steps: None, draw_tree),
    "Optimal CC": (square_root, draw_toeplitz),
    "nu-DP-FTRL": (
        lambda steps: damped_square_root(steps, damping=best_damping(steps)),
        draw_toeplitz,
    ),
    "Toeplitz optimum": (lambda steps: toeplitz_optimum(steps).decoder, draw_toeplitz),
    "Full Honaker": (lambda steps: full_honaker(steps)[1], draw_dense),
    "Multi-Epoch (ME)": (
        lambda steps: dense_optimum(steps, tolerance=1e-4).decoder,
        draw_dense,
    ),
}


def main() -> None:
    print(f"{'mechanism':<18}" + "".join(f"{f'T = {steps}':>23}" for steps in STEPS) + "  exponent")
    for name, (make, draw) in MECHANISMS.items():
        draw(make(64), 64)  # compile
        rows = []
        for steps in STEPS:
            began = time.perf_counter()
            made = make(steps)
            between = time.perf_counter()
            draw(made, steps)
            rows.append((between - began, time.perf_counter() - between))
        exponent = np.log2(rows[-1][0] / rows[-2][0])
        cells = "".join(f"{1e3 * first:>11.2f} + {1e3 * second:>5.1f} ms" for first, second in rows)
        print(f"{name:<18}{cells}  {exponent:>8.1f}")


if __name__ == "__main__":
    main()
