"""`PrivateLinearRegression`, AdaSSP and ordinary least squares on the peers' tables."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

from privreg.privacy.budget import Budget
from privreg.version import __version__
from reproduction.studies.compared_methods import METHODS, Prepared
from reproduction.studies.compared_tables import Declared, Drawn

NAMES = ("PrivateLinearRegression", "AdaSSP", "least squares")
LEVEL = 0.95
arguments = argparse.ArgumentParser()
arguments.add_argument("--tables", type=Path, required=True)
arguments.add_argument("--output", type=Path, required=True)
options = arguments.parse_args()
# A fit that will not beat the mean says so, each of 50 seeds alike.
warnings.simplefilter("once", UserWarning)

fits: dict = {name: {} for name in NAMES}
for path in sorted(options.tables.glob("*.npz")):
    with np.load(path) as table:
        rows, labels, train = table["rows"], table["labels"], table["train"]
        rhos, categories = table["rhos"], table["categories"]
    box = np.array([-1.0, 1.0])
    declared = Declared(np.tile(box, (rows.shape[1], 1)), box, categories)
    for rho in rhos:
        entries: dict = {
            name: {"coefficients": [], "seconds": [], "half_widths": []} for name in NAMES
        }
        for seed, chosen in enumerate(train):
            features, targets = rows[chosen], labels[chosen]
            for name, entry in entries.items():
                rng = np.random.Generator(np.random.SFC64(seed))
                start = time.perf_counter()
                # What several fits could share is computed anew for each, as the clock asks.
                prepared = Prepared(Drawn(features, targets, features[:0], targets[:0]), declared)
                fit = METHODS[name](prepared, Budget.zcdp(float(rho)), rng, LEVEL)
                entry["seconds"].append(time.perf_counter() - start)
                entry["coefficients"].append(fit.coefficients.tolist())
                if fit.half_widths is not None:
                    widths = np.where(np.isfinite(fit.half_widths), fit.half_widths, -1.0)
                    entry["half_widths"].append(widths.tolist())
        for name, entry in entries.items():
            fits[name].setdefault(path.stem, {})[f"{rho:g}"] = entry
versions = {name: version(name) for name in ("numpy", "scikit-learn", "scipy")}
result = {"versions": {"privreg": __version__} | versions, "peers": fits}
options.output.write_text(json.dumps(result))
