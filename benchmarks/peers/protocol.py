"""What every peer's process does: read tables, tune on other draws, fit, time, write.

No package but NumPy is needed. Rows and labels are mapped into [-1, 1] by the declared bounds, and
coefficients are those of mapped rows, the intercept last.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Fit(NamedTuple):
    """Coefficients (p + 1,), and half-widths of 95 % intervals for the slopes, if there are any."""

    coefficients: np.ndarray
    half_widths: np.ndarray | None = None


@dataclass(frozen=True)
class Promise:
    """A budget, ρ of zCDP or ε, and the features that are columns of one one-hot group."""

    rho: float
    epsilon: float
    categories: np.ndarray

    def short(self, rows: np.ndarray) -> np.ndarray:
        """Rows (1, x) with the columns of the one-hot group in {0, 1} instead of {-1, 1}."""
        rows = np.column_stack([np.ones(len(rows)), np.clip(rows, -1, 1)])
        columns = 1 + np.flatnonzero(self.categories)
        rows[:, columns] = (rows[:, columns] + 1) / 2
        return rows

    @property
    def short_norm(self) -> float:
        """Largest length of a short row: at most one column of the group is 1."""
        return float(np.sqrt(1 + np.sum(~self.categories) + np.any(self.categories)))

    def fit_of(self, short: np.ndarray) -> Fit:
        """Coefficients of rows from those of short ones."""
        slopes = short[1:].copy()
        slopes[self.categories] /= 2
        return Fit(np.append(slopes, short[0] + slopes[self.categories].sum()))


class Method(NamedTuple):
    """A fit of rows and labels, and the settings of which the best on other draws is taken."""

    fit: Callable[[np.ndarray, np.ndarray, Promise, np.random.Generator, Any], Fit]
    settings: Sequence[Any] = (None,)


def run(
    methods: dict[str, Method], packages: Sequence[str], versions: dict[str, str] | None = None
) -> None:
    """Fit all tables of a folder and write what came out, as the command line says."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--tables", type=Path, required=True)
    arguments.add_argument("--output", type=Path, required=True)
    options = arguments.parse_args()
    fits: dict = {name: {} for name in methods}
    for path in sorted(options.tables.glob("*.npz")):
        with np.load(path) as stored:
            table = dict(stored)
        for rho, epsilon in zip(table["rhos"], table["epsilons"], strict=True):
            promise = Promise(float(rho), float(epsilon), table["categories"])
            for name, method in methods.items():
                fits[name].setdefault(path.stem, {})[f"{rho:g}"] = fitted(method, table, promise)
        print(path.stem, flush=True)
    versions = (versions or {}) | {name: version(name) for name in packages}
    options.output.write_text(json.dumps({"versions": versions, "peers": fits}))


def fitted(method: Method, table: dict[str, np.ndarray], promise: Promise) -> dict:
    """All seeds' fits of one table at one budget."""
    setting = tuned(method, table, promise)
    entry: dict = {"coefficients": [], "seconds": [], "half_widths": [], "setting": setting}
    for seed, chosen in enumerate(table["train"]):
        rows, labels = table["rows"][chosen], table["labels"][chosen]
        rng = np.random.Generator(np.random.SFC64(seed))
        start = time.perf_counter()
        fit = method.fit(rows, labels, promise, rng, setting)
        entry["seconds"].append(time.perf_counter() - start)
        entry["coefficients"].append(np.asarray(fit.coefficients).tolist())
        if fit.half_widths is not None:
            # JSON has no infinity.
            widths = np.where(np.isfinite(fit.half_widths), fit.half_widths, -1.0)
            entry["half_widths"].append(widths.tolist())
    return entry


def tuned(method: Method, table: dict[str, np.ndarray], promise: Promise) -> Any:
    """The setting of the least median error over draws that are not reported, at no cost."""
    if len(method.settings) == 1:
        return method.settings[0]
    draws = list(zip(table["tuning"], table["tuning_held"], strict=True))

    def error(setting: Any) -> float:
        found = []
        for seed, (chosen, held) in enumerate(draws):
            rng = np.random.Generator(np.random.SFC64(1000 + seed))
            rows, labels = table["rows"][chosen], table["labels"][chosen]
            theta = method.fit(rows, labels, promise, rng, setting).coefficients
            found.append(squared_error(theta, table["rows"][held], table["labels"][held]))
        return float(np.median(found))

    return min(method.settings, key=error)


def squared_error(theta: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> float:
    """Mean squared error of predictions that are clipped to the label's bounds."""
    predicted = np.clip(rows @ theta[:-1] + theta[-1], -1, 1)
    return float(np.mean((predicted - labels) ** 2))


def noisy_matrix(
    matrix: np.ndarray, change: float, rho: float, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """A symmetric matrix with noise that is isotropic in the Frobenius norm, and its deviation."""
    std = change / np.sqrt(2 * rho)
    upper = np.triu(rng.standard_normal(matrix.shape), 1) / np.sqrt(2)
    diagonal = np.diag(rng.standard_normal(len(matrix)))
    return matrix + std * (upper + upper.T + diagonal), float(std)


def solved(gram: np.ndarray, moment: np.ndarray, least: float) -> np.ndarray:
    """Coefficients with the ridge that lifts the smallest eigenvalue of a noisy Gram matrix."""
    ridge = max(0.0, least - float(np.linalg.eigvalsh(gram)[0]))
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), moment)
