"""Time and error of the modes that are sound in floating point beside the plain ones, in one run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/sound_mode.py

Both modes run on the same data at the same budget, turn by turn. The error is the mean squared
distance to the empirical minimiser, of descent from the tenth step on, with its standard error
over runs. Prints the ratios sound / plain. Needs OpenDP.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privreg.algorithms.adassp import Bounds, adassp_zcdp
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.ols import ols
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.sound import sound_adassp, sound_full_batch_dpgd
from privreg.privacy.budget import Budget

BUDGET = Budget.zcdp(0.5)
STEPS, STEP_SIZE, CLIP_NORM = 50, 0.25, 6.0
FIRST = 10
# The plain mode is the quicker one: with more of its runs its sampling error hardly counts.
PLAIN_RUNS = 4
BOUNDS = Bounds(feature_norm=5.0, label=3.0)


class Arm(NamedTuple):
    """Processor seconds of the fastest run, and the mean error with its standard error."""

    seconds: float
    error: float
    standard_error: float


def make_data(rows: int, features: int) -> ArraySamples:
    rng = np.random.Generator(np.random.SFC64(1))
    x = rng.standard_normal((rows, features))
    target = np.full(features, features**-0.5)
    return ArraySamples(x, x @ target + 0.5 * rng.standard_normal(rows))


def measure(
    plain: Callable[[], np.ndarray], sound: Callable[[], np.ndarray], runs: int, best: np.ndarray
) -> list[Arm]:
    """Both arms turn by turn; each call returns estimates, shape (..., p)."""
    times: dict[bool, list[float]] = {False: [], True: []}
    errors: dict[bool, list[float]] = {False: [], True: []}
    plain(), sound()
    for turn in range((PLAIN_RUNS + 1) * runs):
        arm = turn % (PLAIN_RUNS + 1) == 0
        begin = time.process_time()
        found = sound() if arm else plain()
        times[arm].append(time.process_time() - begin)
        errors[arm].append(float(np.mean(np.sum((found - best) ** 2, axis=-1))))
    return [
        Arm(min(times[arm]), np.mean(errors[arm]), np.std(errors[arm]) / len(errors[arm]) ** 0.5)
        for arm in (False, True)
    ]


def report(name: str, plain: Arm, sound: Arm) -> None:
    ratio = sound.error / plain.error
    spread = ratio * np.hypot(
        sound.standard_error / sound.error, plain.standard_error / plain.error
    )
    print(
        f"{name:14s} time {1e3 * plain.seconds:7.2f} ms plain, {1e3 * sound.seconds:7.2f} ms sound;"
        f" error ratio {ratio:.4f} ± {spread:.4f}, z = {(ratio - 1) / spread:+.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--runs", type=int, default=2500)
    arguments = parser.parse_args()
    data = make_data(arguments.rows, arguments.features)
    best = ols(data).coefficients
    rng = np.random.Generator(np.random.SFC64(2))
    noise = full_batch_noise_std(
        clip_norm=CLIP_NORM, rho=BUDGET.rho, sample_size=data.sample_size, gradients=STEPS
    )
    common = {"clip_norm": CLIP_NORM, "step_size": STEP_SIZE, "steps": STEPS}
    report(
        "full-batch",
        *measure(
            lambda: full_batch_dpgd(data, **common, gradient_noise_std=noise, rng=rng).iterates[
                0, FIRST - 1 :
            ],
            lambda: sound_full_batch_dpgd(data, **common, budget=BUDGET).value[FIRST - 1 :],
            arguments.runs,
            best,
        ),
    )
    report(
        "AdaSSP",
        *measure(
            lambda: adassp_zcdp(data, bounds=BOUNDS, budget=BUDGET, rng=rng),
            lambda: sound_adassp(data, bounds=BOUNDS, budget=BUDGET).value,
            20 * arguments.runs,
            best,
        ),
    )


if __name__ == "__main__":
    main()
