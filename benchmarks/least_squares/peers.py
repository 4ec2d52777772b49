"""Squared error about least squares' population coefficients, beside private peers.

python benchmarks/least_squares/peers.py --output peers.json [--only NAME ...]

Judged populations, whose samples are drawn anew; the same bounds, budget and relation for all. A
peer has no intervals. What one of them is tuned by is told to it, from other draws: the best of
some bounds on the label for AdaSSP, at no cost of its budget.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from populations import JUDGED, Population

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms.adassp import Bounds, adassp_zcdp, clipped_sums
from privreg.algorithms.samples import ArraySamples
from privreg.estimators.bounds import Frame
from reproduction.studies.compared_methods import solve_with_ridge

EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-6
LABEL_BOUNDS = (1.0, 0.5, 0.25, 0.1, 0.05)
TUNING = range(1000, 1005)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    found = json.loads(options.output.read_text()) if options.output.exists() else {}
    for name in options.only or JUDGED:
        population = JUDGED[name]()
        for epsilon in EPSILONS:
            found[f"{name} | {epsilon:g}"] = cell = compare(population, epsilon, options.samples)
            print(name, epsilon, {who: f"{value:.3g}" for who, value in cell.items()}, flush=True)
            options.output.write_text(json.dumps(found, indent=1))
    return 0


def compare(population: Population, epsilon: float, samples: int) -> dict[str, float]:
    """Median squared error of each over the median of least squares on the same rows."""
    x, y, n = population.features, population.labels, population.rows
    bounds = np.column_stack([x.min(axis=0), x.max(axis=0)])
    frame = Frame(bounds, np.array([y.min(), y.max()]), True)
    rows, labels = frame.rows(x), frame.labels(y)
    gram = rows.T @ rows / len(rows)
    truth = np.linalg.lstsq(rows, labels, rcond=None)[0]
    budget = Budget.approximate(epsilon, DELTA).gaussian()
    model = PrivateLinearRegression(
        budget, feature_bounds=tuple(bounds.T), label_bounds=(float(y.min()), float(y.max()))
    )

    def distance(coefficients: np.ndarray) -> float:
        off = coefficients - truth
        return float(off @ gram @ off)

    def adassp(chosen: np.ndarray, label_bound: float, rng: np.random.Generator) -> np.ndarray:
        limits = Bounds(frame.feature_norm, label_bound)
        sums = clipped_sums(ArraySamples(rows[chosen], labels[chosen]), bounds=limits)
        return adassp_zcdp(sums, bounds=limits, budget=budget, rng=rng)

    def moments(chosen: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        joint = np.column_stack([rows[chosen], labels[chosen]])
        std = np.sqrt(2) * (frame.feature_norm**2 + 1) / np.sqrt(2 * budget.rho)
        noise = rng.standard_normal((joint.shape[1],) * 2)
        return solve_with_ridge(joint.T @ joint + std * (noise + noise.T) / 2, std)

    def draw(seed: int) -> tuple[np.random.Generator, np.ndarray]:
        rng = np.random.Generator(np.random.SFC64(seed))
        return rng, rng.integers(len(x), size=n)

    tuned = {
        bound: np.median(
            [distance(adassp(chosen, bound, rng)) for rng, chosen in map(draw, TUNING)]
        )
        for bound in LABEL_BOUNDS
    }
    best = min(tuned, key=lambda bound: tuned[bound])
    matrix, offset = frame.functionals()
    errors = []
    for seed in range(samples):
        rng, chosen = draw(seed)
        plain = np.linalg.lstsq(rows[chosen], labels[chosen], rcond=None)[0]
        model.set_params(random_state=seed).fit(x[chosen], y[chosen])
        ours = np.append(model.coef_, model.intercept_)
        errors.append(
            [
                distance(plain),
                distance(np.linalg.solve(matrix, ours - offset)),
                distance(adassp(chosen, best, rng)),
                distance(moments(chosen, rng)),
            ]
        )
    whole, *others = np.median(errors, axis=0)
    return {
        who: float(value / whole)
        for who, value in zip(("ours", "AdaSSP, tuned", "moments, ridge"), others, strict=True)
    }


if __name__ == "__main__":
    raise SystemExit(main())
