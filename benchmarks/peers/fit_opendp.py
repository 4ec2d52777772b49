"""Least squares from second moments that OpenDP's Gaussian mechanism makes noisy.

OpenDP has no linear regression on several features. What it documents is the mechanism; the sum,
its sensitivity and the solution are written here: one release of the second moments of (1, x, y),
off-diagonal entries times √2, so that Euclidean distance is the matrices' Frobenius distance, and
replacing a record of squared length B² moves the sum by at most √2 B². It is solved as it is, and
with a ridge that lifts its smallest eigenvalue to the noise's size.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")
arguments = argparse.ArgumentParser()
arguments.add_argument("--tables", type=Path, required=True)
arguments.add_argument("--output", type=Path, required=True)
options = arguments.parse_args()


def noisy_moments(records, square_length, rho):
    """Second moments (q, q) of records (n, q), and the deviation of a diagonal entry's noise."""
    sums = records.T @ records
    upper = np.triu_indices(len(sums), 1)
    vector = np.concatenate([np.diag(sums), np.sqrt(2) * sums[upper]])
    sensitivity = np.sqrt(2) * square_length
    scale = sensitivity / np.sqrt(2 * rho)
    space = (
        dp.vector_domain(dp.atom_domain(T=float, nan=False), size=vector.size),
        dp.l2_distance(T=float),
    )
    measurement = dp.m.make_gaussian(*space, scale=scale)
    if measurement.map(sensitivity) > rho * (1 + 1e-9):
        raise ValueError(f"OpenDP grants {measurement.map(sensitivity)} and not {rho}")
    released = np.array(measurement(vector.tolist()))
    found = np.zeros_like(sums)
    found[upper] = released[len(sums) :] / np.sqrt(2)
    return found + found.T + np.diag(released[: len(sums)]), scale


def solved(moments, scale, *, ridge):
    """Coefficients of y on (1, x) from second moments of (1, x, y)."""
    gram = moments[:-1, :-1]
    lifted = scale * np.sqrt(2 * len(gram)) - np.linalg.eigvalsh(gram)[0] if ridge else 0.0
    return np.linalg.solve(gram + max(0.0, lifted) * np.eye(len(gram)), moments[:-1, -1])


fits = {"OpenDP, solved": {}, "OpenDP, ridge": {}}
for path in sorted(options.tables.glob("*.npz")):
    with np.load(path) as table:
        rows, labels, train = table["rows"], table["labels"], table["train"]
        rhos, categories = table["rhos"], table["categories"]
    # One-hot columns in {0, 1} make rows shorter than in {-1, 1}.
    rows[:, categories] = (rows[:, categories] + 1) / 2
    square_length = 2 + np.sum(~categories) + np.any(categories)
    for rho in rhos:
        entries = {name: {"coefficients": [], "seconds": []} for name in fits}
        for chosen in train:
            start = time.perf_counter()
            features = np.clip(rows[chosen], -1, 1)
            records = np.column_stack(
                [np.ones(len(chosen)), features, np.clip(labels[chosen], -1, 1)]
            )
            moments, scale = noisy_moments(records, float(square_length), float(rho))
            shared = time.perf_counter() - start
            for name, entry in entries.items():
                start = time.perf_counter()
                theta = solved(moments, scale, ridge=name.endswith("ridge"))
                entry["seconds"].append(shared + time.perf_counter() - start)
                slopes, intercept = theta[1:], theta[0] + theta[1:][categories].sum() / 2
                slopes[categories] /= 2
                entry["coefficients"].append([*slopes.tolist(), float(intercept)])
        for name, entry in entries.items():
            fits[name].setdefault(path.stem, {})[f"{rho:g}"] = entry
versions = {name: version(name) for name in ("opendp", "numpy")}
options.output.write_text(json.dumps({"versions": versions, "peers": fits}))
