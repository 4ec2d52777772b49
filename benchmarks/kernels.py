"""Speed of the library's kernels, as ratios within one run.

    python benchmarks/kernels.py              fits beside scikit-learn, exact descent beside plain
    python benchmarks/kernels.py OTHER/src    all kernels beside another checkout, in turns

Each case is a call on data that are there already; the first, which compiles, does not count. Every
side is a process of its own, and sides change places from turn to turn: printed are the least
processor times of all turns, and the median of the ratios within a turn.
"""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import privreg

TURNS = 9
BUDGET = privreg.Budget.approximate(1.0, 1e-6)
Call = Callable[[], object]
rng = np.random.Generator(np.random.SFC64(1))


def table(rows: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    features = rng.uniform(-1, 1, (rows, dimension))
    return features, features @ np.linspace(1, -1, dimension) + 0.3 * rng.standard_normal(rows)


def samples(rows: int, dimension: int) -> privreg.ArraySamples:
    return privreg.ArraySamples(*table(rows, dimension))


def private_fit(rows: int, dimension: int) -> Call:
    bounds = {"feature_bounds": (-1, 1), "label_bounds": (-5, 5)}
    model = privreg.PrivateLinearRegression(BUDGET, random_state=1, **bounds)
    return partial(model.fit, *table(rows, dimension))


def scikit_learn_fit(rows: int, dimension: int) -> Call:
    from sklearn.linear_model import LinearRegression

    return partial(LinearRegression().fit, *table(rows, dimension))


def full_batch() -> Call:
    settings = {"clip_norm": 2.0, "step_size": 0.25, "gradient_noise_std": 0.01, "steps": 50}
    return partial(privreg.full_batch_dpgd, samples(10_000, 10), **settings, runs=10, rng=rng)


def one_pass() -> Call:
    method = privreg.OnePassDPGD(privreg.Harmonic(5.0, 0.1), clip_constant=0.2)
    declared = privreg.Declared(privreg.Bounds(23.0, 30.0), sample_size=20_000)
    return partial(method.run, samples(20_000, 500), BUDGET, declared=declared)


def equivalent() -> Call:
    spectrum = privreg.spectra.power_law(0.25)
    settings = {"aspect_ratio": 1e-3, "zcdp_root": 1.0, "clip_constant": 0.1, "times": [1.0]}
    settings |= {"signal": 0.5 * spectrum.eigenvalues**-0.5, "label_noise_std": 0.3, "rtol": 1e-4}
    schedule = privreg.Polynomial(np.geomspace(0.5, 1000.0, 41), 1.0)
    return partial(privreg.deterministic_equivalent.solve, spectrum, schedule, **settings)


def noisy_sgd() -> Call:
    law = {"mean": np.zeros(20), "std": np.full(20, 0.5), "target": np.ones(20)}
    settings = {"initial": np.zeros(20), "step_sizes": np.full(20_000, 0.01), "rng": rng}
    settings |= {"gradient_noise_stds": [0.1], "clip_norms": [1.0]}
    records = privreg.LinearRecords("uniform", **law)
    return partial(privreg.run_noisy_sgd, *table(20_000, 20), records=records, **settings)


def correlated() -> Call:
    sizes = {"sample_size": 20_000, "batch_size": 100}
    mechanism = privreg.FTRLMechanism.for_budget(
        np.eye(1, 200)[0], clip_norm=1.0, budget=BUDGET, **sizes
    )
    settings = {"mechanism": mechanism, "step_size": 0.1, "rng": rng}
    return partial(privreg.dp_ftrl, samples(20_000, 20), **settings)


def adaptive() -> Call:
    settings = {"bounds": privreg.Bounds(8.0, 5.0), "epsilon": 1.0, "delta": 1e-6, "rng": rng}
    return partial(privreg.adassp, samples(20_000, 50), **settings)


DESCENT = {"clip_norm": 6.0, "step_size": 0.25, "steps": 50}


def exact_descent() -> Call:
    method = privreg.FullBatchDPGD(**DESCENT)
    return partial(method.run, samples(1000, 10), privreg.Budget.zcdp(0.5))


def plain_descent() -> Call:
    data = samples(1000, 10)
    return partial(privreg.full_batch_dpgd, data, **DESCENT, gradient_noise_std=0.1, rng=rng)


def plan() -> Call:
    def search() -> object:
        # Another problem each time, since the searches of one are kept.
        problem = privreg.Problem(5000, rng.uniform(0.3, 0.4, 3), signal=1.5, label_noise_std=0.1)
        return privreg.plan_run(problem, BUDGET, methods=["full_batch", "adassp"])

    return search


# A case, and its peer where there is one.
CASES: dict[str, tuple[Callable[[], Call], Callable[[], Call] | None]] = {
    f"fit of {rows:,} x {dimension}": (
        partial(private_fit, rows, dimension),
        partial(scikit_learn_fit, rows, dimension),
    )
    for rows, dimension in ((10_000, 10), (100_000, 50), (1_000_000, 20))
} | {
    "full-batch DP-GD": (full_batch, None),
    "one-pass DP-GD": (one_pass, None),
    "deterministic equivalent": (equivalent, None),
    "exact full-batch DP-GD": (exact_descent, plain_descent),
    "noisy SGD": (noisy_sgd, None),
    "DP-FTRL": (correlated, None),
    "AdaSSP": (adaptive, None),
    "plan": (plan, None),
}


def work(side: int) -> None:
    """Answer each line, the name of a case, with the processor seconds of a call."""
    warnings.simplefilter("ignore")
    ready: dict[str, Call] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            ready[name] = CASES[name][side]()
            ready[name]()
        calls, start = 0, time.process_time()
        # A turn takes a tenth of a second at least.
        while time.process_time() < start + 0.1:
            ready[name]()
            calls += 1
        print((time.process_time() - start) / calls, flush=True)


def main() -> None:
    here = Path(__file__).parents[1] / "src"
    # A peer is the second side of a case; another checkout runs the first.
    sides = [(here, "0"), (sys.argv[1], "0") if sys.argv[1:] else (here, "1")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = []
    for source, side in sides:
        env = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "work", side]
        workers.append(subprocess.Popen(command, env=env, **pipes))
    for name, (_, peer) in CASES.items():
        if sys.argv[1:] or peer:
            times = np.empty((TURNS, 2))
            for turn in range(TURNS):
                for which in (turn % 2, 1 - turn % 2):
                    print(name, file=workers[which].stdin, flush=True)
                    times[turn, which] = float(workers[which].stdout.readline())
            ours, theirs = 1e3 * times.min(axis=0)
            ratio = np.median(times[:, 0] / times[:, 1])
            print(f"{name}: {ours:.2f} ms, {theirs:.2f} ms, ratio {ratio:.3f}")
    for worker in workers:
        worker.communicate()


if __name__ == "__main__":
    work(int(sys.argv[2])) if sys.argv[1:2] == ["work"] else main()
