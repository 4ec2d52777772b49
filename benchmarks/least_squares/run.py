"""Coverage, length and error of `PrivateLinearRegression` where the population is known.

`python benchmarks/least_squares/run.py judged|chosen [NAME ...]` prints a row for each table or law
and ε, as in docs/private-intervals.md: 100 samples each, seconds a row.
"""

import sys
import warnings
from collections.abc import Iterator

import numpy as np
from chosen import CHOSEN
from populations import JUDGED, Population

from privreg import Budget, PrivateLinearRegression

SAMPLES = 100


def samples(population: Population, epsilon: float) -> Iterator[tuple]:
    """Covered slopes, covered mean, length, errors and HC1's covered slopes of each sample."""
    x, y, n = population.features, population.labels, population.rows
    design, centre = np.column_stack([x, np.ones(len(x))]), np.append(x.mean(axis=0), 1.0)
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    model = PrivateLinearRegression(
        Budget.approximate(epsilon, 1e-6),
        feature_bounds=(x.min(axis=0), x.max(axis=0)),
        label_bounds=(float(y.min()), float(y.max())),
    )
    for seed in range(SAMPLES):
        chosen = np.random.Generator(np.random.SFC64(seed)).integers(len(x), size=n)
        rows, labels = design[chosen], y[chosen]
        model.set_params(random_state=seed).fit(x[chosen], labels)
        squares = np.linalg.lstsq(rows, labels, rcond=None)[0]
        influence = np.linalg.pinv(rows) * (labels - rows @ squares)
        robust = 1.96 * np.sqrt((influence**2).sum(axis=1) * n / (n - rows.shape[1]))[:-1]
        off = np.append(model.coef_, model.intercept_) - beta
        intervals = model.confidence_intervals()
        yield (
            intervals.covers(beta)[:-1],
            model.intervals_at(centre[None, :-1]).covers([centre @ beta])[0],
            np.median(intervals.half_width[:-1] / robust),
            [np.sum((design @ each) ** 2) for each in (off, squares - beta)],
            np.abs(squares - beta)[:-1] <= robust,
        )


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)
    listed = {"judged": JUDGED, "chosen": CHOSEN}[sys.argv[1]]
    print("name, ε: coverage ± its error, least slope, mean prediction, length, error, HC1 covers")
    for name in sys.argv[2:] or listed:
        population = listed[name]()
        for epsilon in (0.5, 1.0, 4.0):
            made = samples(population, epsilon)
            slopes, means, lengths, errors, plain = map(np.array, zip(*made, strict=True))
            # Slopes of one sample are not independent.
            spread = slopes.mean(axis=1).std(ddof=1) / np.sqrt(SAMPLES)
            private, squares = np.median(errors, axis=0)
            found = (slopes.mean(axis=0).min(), means.mean(), np.median(lengths))
            cells = ", ".join(f"{each:.3g}" for each in (*found, private / squares, plain.mean()))
            print(f"{name}, {epsilon:g}: {slopes.mean():.3f} ± {spread:.3f}, {cells}", flush=True)


if __name__ == "__main__":
    main()
