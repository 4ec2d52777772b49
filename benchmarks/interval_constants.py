"""Coverage and length of the default's intervals at other values of the constants that set them.

    python benchmarks/interval_constants.py

The first value of each constant is the one in use. For three laws of errors of `chosen.py`, a line
has the coverage of all slopes and of the worst one at ε = 1 (100 samples: standard errors of .008
and .02), and the median length over that of least squares.
"""

import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np

from privreg.algorithms import least_squares_descent
from privreg.inference import least_squares_intervals

sys.path.insert(0, str(Path(__file__).parent / "least_squares"))
LAWS = ("normal", "skewed", "skewed by x")
# Module, constant, and values of which the first is the one that is used.
CHOICES = [
    (least_squares_intervals, "LEAST", (0.3, 0.0, 0.7, 1.0)),
    (least_squares_intervals, "GAIN", (8.0, 0.0, 4.0, 16.0)),
    (least_squares_intervals, "SURE", (1.5, 0.5, 3.0)),
    (least_squares_intervals, "BELOW", (0.3, 0.0, 1.0)),
    (least_squares_descent, "CAUTION", (0.25, 0.0, 1.0)),
    (least_squares_descent, "LEAN", (0.6, 0.3, 1.2)),
]

if __name__ == "__main__":
    from chosen import CHOSEN
    from run import samples

    populations = [CHOSEN[name]() for name in LAWS]
    print("".join(f"{name:>20}" for name in ("", *LAWS)))
    for module, name, values in CHOICES:
        for value in values:
            print(f"{name} {value:g}".rjust(20), end="", flush=True)
            with patch.object(module, name, value):
                for population in populations:
                    covered, _, lengths, *_ = zip(*samples(population, 1.0), strict=True)
                    worst, length = np.mean(covered, axis=0).min(), np.median(lengths)
                    print(f"{np.mean(covered):9.3f} {worst:.2f} {length:5.2f}", end="")
            print()
