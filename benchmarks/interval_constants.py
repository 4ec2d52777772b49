"""Coverage and length of the default's intervals at other values of the constants that set them.

    python benchmarks/interval_constants.py

Three laws of errors of mean 0 given the features: normal, exponential, and exponential of a size
that grows with one of them. The first value of each constant is the one in use. Each line has the
coverage of all coefficients and of the worst one (150 samples: standard errors of .008 and .02),
and the median length over that of least squares.
"""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np

from privreg import Budget
from privreg.algorithms import least_squares_descent
from privreg.algorithms.least_squares_descent import default_least_squares_settings
from privreg.algorithms.samples import ArraySamples
from privreg.inference import least_squares_intervals

SAMPLES, ROWS, TRUTH = 150, 4000, np.array([0.2, 1.0, -1.0, 0.5, 0.0])
BUDGET = Budget.approximate(1.0, 1e-6).gaussian()
LAWS: dict[str, Callable[..., np.ndarray]] = {
    "normal": lambda x, rng: rng.standard_normal(len(x)),
    "exponential": lambda x, rng: rng.exponential(size=len(x)) - 1,
    "size by x": lambda x, rng: np.exp(0.5 * x[:, 1]) * (rng.exponential(size=len(x)) - 1),
}
# Module, constant, and values of which the first is the one that is used.
CHOICES = [
    (least_squares_intervals, "LEAST", (0.3, 0.0, 0.7, 1.0)),
    (least_squares_intervals, "GAIN", (8.0, 0.0, 4.0, 16.0)),
    (least_squares_intervals, "SURE", (1.5, 0.5, 3.0)),
    (least_squares_intervals, "BELOW", (0.3, 0.0, 1.0)),
    (least_squares_descent, "CAUTION", (0.25, 0.0, 1.0)),
    (least_squares_descent, "LEAN", (0.6, 0.3, 1.2)),
]


def judged(law: Callable[..., np.ndarray]) -> str:
    """Coverage, that of the worst coefficient, and length beside least squares' (HC0)."""
    settings = default_least_squares_settings(sample_size=ROWS, dimension=5, budget=BUDGET)
    bounds = {"feature_norm": 9.0, "label_bound": 20.0, "intercept": True}
    covered, lengths = [], []
    for seed in range(SAMPLES):
        rng = np.random.default_rng(seed)
        features = np.column_stack([np.ones(ROWS), rng.standard_normal((ROWS, 4)).clip(-4, 4)])
        labels = features @ TRUTH + law(features, rng)
        fit = least_squares_descent.least_squares_descent(
            ArraySamples(features, labels), budget=BUDGET, settings=settings, rng=rng, **bounds
        )
        intervals = least_squares_intervals.least_squares_intervals(fit.value)
        inverse = np.linalg.pinv(features)
        influence = inverse * (labels - features @ (inverse @ labels))
        covered.append(intervals.covers(TRUTH))
        lengths.append(intervals.half_width / (1.96 * np.linalg.norm(influence, axis=1)))
    slopes = np.mean(covered, axis=0)
    return f"{slopes.mean():.3f} {slopes.min():.2f} {np.median(lengths):5.2f}"


def main() -> None:
    print("".join(f"{name:>20}" for name in ("", *LAWS)))
    for module, name, values in CHOICES:
        for value in values:
            with patch.object(module, name, value):
                cells = (f"{name} {value:g}", *map(judged, LAWS.values()))
            print("".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
