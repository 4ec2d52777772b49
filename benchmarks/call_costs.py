"""What a call of an algorithm costs, against another checkout, in one run.

`python benchmarks/call_costs.py OTHER/src` starts a process on this checkout and one on the other,
lets them take turns in either order, and prints CPU microseconds a call (the least of all turns)
and the median of the ratios within a turn.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TURNS = 40
# Name, rows, features, calls a turn.
SIZES = {"small": (100, 10, 200), "large": (20_000, 100, 2)}


def calls(kind: str, rows: int, dimension: int) -> Callable[[], object]:
    """One call with data that are there already."""
    rng = np.random.Generator(np.random.SFC64(1))
    features, labels = rng.standard_normal((rows, dimension)), rng.standard_normal(rows)
    return KINDS[kind](features, labels, rng)


def noisy_sgd(features: Any, labels: Any, rng: Any) -> Callable[[], object]:
    from privreg.algorithms import noisy_sgd

    rows, dimension = features.shape
    run = noisy_sgd.run_noisy_sgd
    records = noisy_sgd.LinearRecords.uniform(
        mean=0.0, half_width=1.0, target=np.ones(dimension), label_noise_std=1.0
    )
    options: dict[str, Any] = {
        _word(run, "gradient_noise_stds", "noise_stds"): [0.1],
        "clip_norms": [1.0],
    }
    start, steps = np.zeros(dimension), np.full(rows, 0.01)
    return lambda: run(
        features, labels, records=records, initial=start, step_sizes=steps, rng=rng, **options
    )


def full_batch(features: Any, labels: Any, rng: Any) -> Callable[[], object]:
    from privreg.algorithms import full_batch_dpgd, samples

    descent = full_batch_dpgd.full_batch_dpgd
    options: dict[str, Any] = {
        _word(descent, "clip_norm", "clip"): 1.0,
        _word(descent, "gradient_noise_std", "noise_std"): 0.1,
    }
    data = samples.ArraySamples(features, labels)
    return lambda: descent(data, step_size=0.1, steps=5, rng=rng, **options)


def one_pass(features: Any, labels: Any, rng: Any) -> Callable[[], object]:
    try:
        from privreg.algorithms import one_pass_dpgd
    except ImportError:
        from privreg.algorithms import dpgd as one_pass_dpgd  # type: ignore[attr-defined, no-redef]

    rows = len(features)
    promise: Any = np.inf
    if _word(one_pass_dpgd.Mechanism, "budget", "privacy") == "budget":
        from privreg.privacy.budget import Budget

        promise = Budget.half_square(np.inf)
    shape, one = np.full(rows, 0.01), np.ones(1)
    mechanism = one_pass_dpgd.Mechanism(shape, shape, one, one, promise)
    return lambda: one_pass_dpgd.fit(mechanism, features, labels, rng)


def adassp(features: Any, labels: Any, rng: Any) -> Callable[[], object]:
    from privreg.algorithms import adassp, samples

    data, bounds = samples.ArraySamples(features, labels), adassp.Bounds(4.0, 2.0)
    fit = adassp.adassp
    return lambda: fit(data, bounds=bounds, epsilon=1.0, delta=1e-6, rng=rng)


def arrays(features: Any, labels: Any, rng: Any) -> Callable[[], object]:
    from privreg.algorithms import samples

    return lambda: samples.ArraySamples(features, labels)


KINDS = {
    "noisy_sgd": noisy_sgd,
    "full_batch": full_batch,
    "one_pass": one_pass,
    "adassp": adassp,
    "arrays": arrays,
}


def _word(function: Callable[..., object], first: str, second: str) -> str:
    """The one of two names that a function of either tree takes."""
    return first if first in inspect.signature(function).parameters else second


def work() -> None:
    """Answer each line with the CPU seconds of a turn."""
    ready: dict[tuple[str, str], Callable[[], object]] = {}
    for line in sys.stdin:
        kind, size = line.split()
        rows, dimension, count = SIZES[size]
        if (kind, size) not in ready:
            ready[kind, size] = calls(kind, rows, dimension)
            ready[kind, size]()
        call = ready[kind, size]
        before = time.process_time()
        for _ in range(count):
            call()
        print((time.process_time() - before) / count, flush=True)


def main() -> None:
    if len(sys.argv) < 2:
        print("Nothing to compare with: give the src of another checkout.")
        return
    here = Path(__file__).parent.parent / "src"
    workers = []
    for source in (here, Path(sys.argv[1])):
        environment = {**os.environ, "PYTHONPATH": str(source)}
        workers.append(
            subprocess.Popen(
                [sys.executable, __file__, "work"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
        )

    def ask(which: int, words: str) -> float:
        stdin, stdout = workers[which].stdin, workers[which].stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(words + "\n")
        stdin.flush()
        return float(stdout.readline())

    for kind in KINDS:
        for size in SIZES:
            for which in (0, 1):
                ask(which, f"{kind} {size}")
            turns = np.array(
                [
                    [ask(which, f"{kind} {size}") for which in order][:: order[1] - order[0]]
                    for turn in range(TURNS)
                    for order in [(0, 1) if turn % 2 else (1, 0)]
                ]
            )
            ratio = np.median(turns[:, 0] / turns[:, 1])
            least = 1e6 * turns.min(axis=0)
            print(f"{kind} {size}: {least[0]:.1f} µs, {least[1]:.1f} before, ratio {ratio:.3f}")
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    work() if sys.argv[1:] == ["work"] else main()
