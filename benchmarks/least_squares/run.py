"""Coverage, length and error of `PrivateLinearRegression` where the population is known.

python benchmarks/least_squares/run.py --output judged.json [--list chosen] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from chosen import CHOSEN
from populations import JUDGED, Population, least_squares

from privreg import Budget, PrivateLinearRegression

EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--target", default="least_squares")
    parser.add_argument("--list", choices=("judged", "chosen"), default="judged")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    populations = CHOSEN if options.list == "chosen" else JUDGED
    found = json.loads(options.output.read_text()) if options.output.exists() else {}
    for name in options.only or populations:
        population = populations[name]()
        for epsilon in EPSILONS:
            start = time.perf_counter()
            cell = judge(population, epsilon, options.samples, options.target)
            found[f"{name} | {epsilon:g}"] = cell
            shown = {key: value for key, value in cell.items() if key != "by_slope"}
            print(name, epsilon, shown, f"{time.perf_counter() - start:.0f} s", flush=True)
            options.output.write_text(json.dumps(found, indent=1))
    return 0


def judge(population: Population, epsilon: float, samples: int, target: str) -> dict:
    """One cell: means with their Monte-Carlo errors."""
    x, y, n = population.features, population.labels, population.rows
    centre = x.mean(axis=0)
    design = np.column_stack([x, np.ones(len(x))])
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    gram = design.T @ design / len(x)
    truth = np.append(centre, 1.0) @ beta
    low, high = x.min(axis=0), x.max(axis=0)
    model = PrivateLinearRegression(
        Budget.approximate(epsilon, DELTA),
        feature_bounds=(low, high),
        label_bounds=(float(y.min()), float(y.max())),
        target=target,
    )
    slopes, means, lengths, errors, plain, infinite = [], [], [], [], [], []
    for seed in range(samples):
        rng = np.random.Generator(np.random.SFC64(seed))
        chosen = rng.integers(len(x), size=n)
        model.set_params(random_state=seed).fit(x[chosen], y[chosen])
        intervals = model.confidence_intervals()
        squares, robust = least_squares(design[chosen], y[chosen])
        slopes.append(intervals.covers(beta)[:-1])
        means.append(bool(model.intervals_at(centre[None]).covers([truth])[0]))
        lengths.append(np.median(intervals.half_width[:-1] / (1.96 * robust[:-1])))
        infinite.append(np.mean(np.isinf(intervals.half_width[:-1])))
        off = np.append(model.coef_, model.intercept_) - beta
        errors.append((off @ gram @ off, (squares - beta) @ gram @ (squares - beta)))
        plain.append(np.abs(squares - beta)[:-1] <= 1.96 * robust[:-1])
    covered, error = np.array(slopes), np.median(errors, axis=0)
    return {
        "rows": n,
        "features": x.shape[1],
        "samples": samples,
        "coverage": float(covered.mean()),
        # Slopes of one sample are not independent.
        "coverage_error": float(covered.mean(axis=1).std(ddof=1) / np.sqrt(samples)),
        "least": float(covered.mean(axis=0).min()),
        "mean": float(np.mean(means)),
        "length": float(np.median(lengths)),
        "error": float(error[0] / error[1]),
        "infinite": float(np.mean(infinite)),
        "non_private_coverage": float(np.mean(plain)),
        "by_slope": covered.mean(axis=0).tolist(),
    }


if __name__ == "__main__":
    raise SystemExit(main())
