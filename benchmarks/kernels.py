"""Speed of the library's kernels, as ratios within one run.

    python benchmarks/kernels.py              beside NumPy loops, SciPy and scikit-learn
    python benchmarks/kernels.py OTHER/src    beside another checkout, in turns

Each case is a call on data that are there already; the first, which compiles, does not count. Every
side is a process of its own, and sides change places from turn to turn: printed are the least
processor times of all turns, and the median of the ratios within a turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

TURNS = 9
# Of one search on the deterministic equivalent.
RATES = np.geomspace(0.5, 1000.0, 41)
Call = Callable[[], object]
rng = np.random.Generator(np.random.SFC64(1))


def table(rows: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    features = rng.uniform(-1, 1, (rows, dimension))
    return features, features @ np.linspace(1, -1, dimension) + 0.3 * rng.standard_normal(rows)


def private_fit(rows: int, dimension: int) -> Call:
    from privreg import Budget, PrivateLinearRegression

    features, labels = table(rows, dimension)
    bounds = {"feature_bounds": (-1, 1), "label_bounds": (-5, 5)}
    model = PrivateLinearRegression(Budget.approximate(1.0, 1e-6), random_state=1, **bounds)
    return lambda: model.fit(features, labels)


def scikit_learn_fit(rows: int, dimension: int) -> Call:
    from sklearn.linear_model import LinearRegression

    features, labels = table(rows, dimension)
    return lambda: LinearRegression().fit(features, labels)


def full_batch() -> Call:
    from privreg import ArraySamples, full_batch_dpgd

    data = ArraySamples(*table(10_000, 10))
    settings = {"clip_norm": 2.0, "step_size": 0.25, "gradient_noise_std": 0.01, "steps": 50}
    return lambda: full_batch_dpgd(data, **settings, runs=10, rng=rng)


def full_batch_loop() -> Call:
    features, labels = table(10_000, 10)

    def loop() -> None:
        for _ in range(10):
            theta = np.zeros(10)
            for _ in range(50):
                gradients = features * (features @ theta - labels)[:, None]
                norms = np.linalg.norm(gradients, axis=1, keepdims=True)
                gradients *= np.minimum(1.0, 2.0 / norms)
                theta -= 0.25 * (gradients.mean(axis=0) + 0.01 * rng.standard_normal(10))

    return loop


def one_pass() -> Call:
    from privreg import ArraySamples, Budget, Declared, Harmonic, OnePassDPGD
    from privreg.algorithms.adassp import Bounds

    data = ArraySamples(*table(20_000, 500))
    method = OnePassDPGD(Harmonic(5.0, 0.1), clip_constant=0.2)
    declared = Declared(Bounds(23.0, 30.0), sample_size=20_000)
    return lambda: method.run(data, Budget.approximate(1.0, 1e-6), declared=declared)


def one_pass_loop() -> Call:
    features, labels = table(20_000, 500)

    def loop() -> None:
        theta, squares = np.zeros(500), np.einsum("ij,ij->i", features, features)
        for row, label, square in zip(features, labels, squares, strict=True):
            clip = 0.2 / np.sqrt(square)
            theta -= 0.005 * max(-clip, min(clip, row @ theta - label)) * row
            theta += 0.01 * rng.standard_normal(500)

    return loop


def equivalent() -> Call:
    from privreg import Polynomial, deterministic_equivalent, spectra

    spectrum = spectra.power_law(0.25)
    settings = {"aspect_ratio": 1e-3, "zcdp_root": 1.0, "clip_constant": 0.1, "times": [1.0]}
    settings |= {"signal": 0.5 * spectrum.eigenvalues**-0.5, "label_noise_std": 0.3, "rtol": 1e-4}
    schedule = Polynomial(RATES, 1.0)
    return lambda: deterministic_equivalent.solve(spectrum, schedule, **settings)


def equivalent_by_scipy() -> Call:
    from scipy.integrate import solve_ivp
    from scipy.special import erf

    from privreg import spectra

    spectrum = spectra.power_law(0.25)
    values, share = spectrum.eigenvalues, spectrum.weights * spectrum.eigenvalues

    def slope(t: float, state: np.ndarray, rate: float) -> np.ndarray:
        loss = max(share @ state, 0.0) + 0.3**2 / 2
        taken, ratio = min(rate * max(1 - t, 0.0), 2000.0), 0.1 / np.sqrt(2 * loss)
        descent, density = erf(ratio / np.sqrt(2)), np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
        variance = ratio**2 * (1 - descent) + descent - ratio * density
        noise = 2 * (0.1 * 1e-3) ** 2 * 2 * rate**2 * max(1 - t, 0.0)
        return values * (taken**2 * variance * loss * 1e-3 - 2 * taken * descent * state) + noise

    def solve() -> None:
        for rate in RATES:
            options = {"method": "LSODA", "rtol": 1e-4, "atol": 1e-10, "args": (rate,)}
            solve_ivp(slope, (0, 1), 0.5 * values**-0.5, **options)

    return solve


def noisy_sgd() -> Call:
    from privreg import LinearRecords, run_noisy_sgd

    features, labels = table(20_000, 20)
    records = LinearRecords("uniform", mean=np.zeros(20), std=np.full(20, 0.5), target=np.ones(20))
    settings = {"initial": np.zeros(20), "step_sizes": np.full(20_000, 0.01), "rng": rng}
    return lambda: run_noisy_sgd(
        features, labels, records=records, gradient_noise_stds=[0.1], clip_norms=[1.0], **settings
    )


def correlated() -> Call:
    from privreg import ArraySamples, Budget, FTRLMechanism, dp_ftrl

    data, budget = ArraySamples(*table(20_000, 20)), Budget.approximate(1.0, 1e-6)
    sizes = {"sample_size": 20_000, "batch_size": 100}
    mechanism = FTRLMechanism.for_budget(np.eye(1, 200)[0], clip_norm=1.0, budget=budget, **sizes)
    return lambda: dp_ftrl(data, mechanism=mechanism, step_size=0.1, rng=rng)


def adaptive() -> Call:
    from privreg import ArraySamples, Bounds, adassp

    data, bounds = ArraySamples(*table(20_000, 50)), Bounds(8.0, 5.0)
    return lambda: adassp(data, bounds=bounds, epsilon=1.0, delta=1e-6, rng=rng)


def sound_descent() -> Call:
    from privreg import ArraySamples, Budget, sound_full_batch_dpgd

    data, budget = ArraySamples(*table(1000, 10)), Budget.zcdp(0.5)
    settings = {"clip_norm": 6.0, "step_size": 0.25, "steps": 50}
    return lambda: sound_full_batch_dpgd(data, **settings, budget=budget)


def plain_descent() -> Call:
    from privreg import ArraySamples, full_batch_dpgd

    data = ArraySamples(*table(1000, 10))
    settings = {"clip_norm": 6.0, "step_size": 0.25, "steps": 50, "gradient_noise_std": 0.1}
    return lambda: full_batch_dpgd(data, **settings, rng=rng)


def plan() -> Call:
    from privreg import Budget, Problem, plan_run

    budget = Budget.approximate(1.0, 1e-6)

    def search() -> object:
        # Another problem each time, since the searches of one are kept.
        problem = Problem(5000, rng.uniform(0.3, 0.4, 3), signal=1.5, label_noise_std=0.1)
        return plan_run(problem, budget, methods=["full_batch", "adassp"])

    return search


# A case, and its peer where there is one.
CASES: dict[str, tuple[Callable[[], Call], Callable[[], Call] | None]] = {
    f"fit of {rows:,} x {dimension}": (
        lambda n=rows, p=dimension: private_fit(n, p),
        lambda n=rows, p=dimension: scikit_learn_fit(n, p),
    )
    for rows, dimension in ((10_000, 10), (100_000, 50), (1_000_000, 20))
} | {
    "full-batch DP-GD": (full_batch, full_batch_loop),
    "one-pass DP-GD": (one_pass, one_pass_loop),
    "deterministic equivalent": (equivalent, equivalent_by_scipy),
    "sound full-batch DP-GD": (sound_descent, plain_descent),
    "noisy SGD": (noisy_sgd, None),
    "DP-FTRL": (correlated, None),
    "AdaSSP": (adaptive, None),
    "plan": (plan, None),
}


def work(side: int) -> None:
    """Answer each line, the name of a case, with the processor seconds of a call."""
    warnings.simplefilter("ignore")
    ready: dict[str, tuple[Call, int]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            make = CASES[name][side]
            assert make is not None
            call = make()
            call()
            before = time.process_time()
            call()
            # A turn takes a tenth of a second at least.
            ready[name] = call, 1 + int(0.1 / (time.process_time() - before + 1e-4))
        call, count = ready[name]
        before = time.process_time()
        for _ in range(count):
            call()
        print((time.process_time() - before) / count, flush=True)


def main() -> None:
    other = sys.argv[1] if len(sys.argv) > 1 else None
    here = Path(__file__).parents[1] / "src"
    # A peer is the second side of a case; another checkout runs the first.
    sides = [(here, "0"), (Path(other), "0") if other else (here, "1")]
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, "work", side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"},
        )
        for source, side in sides
    ]

    def ask(which: int, name: str) -> float:
        worker = workers[which]
        assert worker.stdin
        assert worker.stdout
        print(name, file=worker.stdin, flush=True)
        return float(worker.stdout.readline())

    for name, (_, peer) in CASES.items():
        if other is None and peer is None:
            continue
        pairs = []
        for turn in range(TURNS):
            first = turn % 2
            times = {which: ask(which, name) for which in (first, 1 - first)}
            pairs.append((times[0], times[1]))
        ours, theirs = np.array(pairs).T
        ratio = np.median(ours / theirs)
        print(f"{name}: {ours.min() * 1e3:.2f} ms, {theirs.min() * 1e3:.2f} ms, ratio {ratio:.3f}")
    for worker in workers:
        worker.communicate()


if __name__ == "__main__":
    work(int(sys.argv[2])) if sys.argv[1:2] == ["work"] else main()
