"""diffprivlib's `LinearRegression` on tables that lie mapped into [-1, 1].

The functional mechanism with Laplace noise; bounds are symmetric, as its sensitivities ask for, and
an intercept is fitted, without which it clips nothing.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from diffprivlib.models import LinearRegression

arguments = argparse.ArgumentParser()
arguments.add_argument("--tables", type=Path, required=True)
arguments.add_argument("--output", type=Path, required=True)
options = arguments.parse_args()
warnings.simplefilter("ignore", RuntimeWarning)

fits = {}
for path in sorted(options.tables.glob("*.npz")):
    with np.load(path) as table:
        rows, labels, train = table["rows"], table["labels"], table["train"]
        rhos, epsilons = table["rhos"], table["epsilons"]
    for rho, epsilon in zip(rhos, epsilons, strict=True):
        found, seconds = [], []
        for seed, chosen in enumerate(train):
            features, targets = rows[chosen], labels[chosen]
            start = time.perf_counter()
            model = LinearRegression(
                epsilon=float(epsilon), bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed
            ).fit(features, targets)
            seconds.append(time.perf_counter() - start)
            found.append([*np.ravel(model.coef_).tolist(), float(np.ravel(model.intercept_)[0])])
        fits.setdefault(path.stem, {})[f"{rho:g}"] = {"coefficients": found, "seconds": seconds}
versions = {name: version(name) for name in ("diffprivlib", "numpy", "scikit-learn", "scipy")}
result = {"versions": versions, "peers": {"diffprivlib": fits}}
options.output.write_text(json.dumps(result))
