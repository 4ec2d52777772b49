"""Every peer's process: read tables, tune on other draws, fit, time, write.

No package but NumPy is needed. Rows and labels are mapped into [-1, 1] by the declared bounds, and
coefficients are those of mapped rows, the intercept last. A method is a pair: a function of rows,
labels, promise, generator and setting, and the settings of which the best on other draws is taken.
"""

import json
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

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

    def short(self, rows):
        """Rows (1, x) with the columns of the one-hot group in {0, 1} instead of {-1, 1}."""
        rows = np.column_stack([np.ones(len(rows)), np.clip(rows, -1, 1)])
        columns = 1 + np.flatnonzero(self.categories)
        rows[:, columns] = (rows[:, columns] + 1) / 2
        return rows

    @property
    def short_norm(self):
        """Largest length of a short row: at most one column of the group is 1."""
        return float(np.sqrt(1 + np.sum(~self.categories) + np.any(self.categories)))

    def fit_of(self, short):
        """Coefficients of rows from those of short ones."""
        slopes = short[1:].copy()
        slopes[self.categories] /= 2
        return Fit(np.append(slopes, short[0] + slopes[self.categories].sum()))


def run(methods, *packages):
    """Fit all tables of a folder and write what came out, as the command line says."""
    tables, output = map(Path, sys.argv[1:])
    fits = {name: {} for name in methods}
    for path in sorted(tables.glob("*.npz")):
        with np.load(path) as stored:
            table = dict(stored)
        for rho, epsilon in zip(table["rhos"], table["epsilons"], strict=True):
            promise = Promise(float(rho), float(epsilon), table["categories"])
            for name, method in methods.items():
                found = fitted(*method, table, promise)
                fits[name].setdefault(path.stem, {})[f"{rho:g}"] = found
        print(table["name"], flush=True)
    versions = {name: version(name) for name in packages}
    output.write_text(json.dumps({"versions": versions, "peers": fits}))


def fitted(fit, settings, table, promise):
    """All seeds' fits of one table at one budget, by the setting of the least error."""

    def timed(seed, chosen, setting):
        rows, labels = table["rows"][chosen], table["labels"][chosen]
        rng = np.random.Generator(np.random.SFC64(seed))
        start = time.perf_counter()
        found = fit(rows, labels, promise, rng, setting)
        return found, time.perf_counter() - start

    def tuning_error(setting):
        """Median error over draws that are not reported, which costs no budget."""
        errors = []
        draws = zip(table["tuning"], table["tuning_held"], strict=True)
        for seed, (chosen, held) in enumerate(draws, 1000):
            theta = timed(seed, chosen, setting)[0].coefficients
            errors.append(squared_error(theta, table["rows"][held], table["labels"][held]))
        return np.median(errors)

    setting = min(settings, key=tuning_error) if len(settings) > 1 else settings[0]
    fits, seconds = zip(*(timed(*each, setting) for each in enumerate(table["train"])), strict=True)
    return {
        "coefficients": [each.coefficients.tolist() for each in fits],
        "seconds": seconds,
        "half_widths": [each.half_widths.tolist() for each in fits if each.half_widths is not None],
        "setting": setting,
    }


def squared_error(theta, rows, labels):
    """Mean squared error of predictions that are clipped to the label's bounds."""
    predicted = np.clip(rows @ theta[:-1] + theta[-1], -1, 1)
    return float(np.mean((predicted - labels) ** 2))


def solved(gram, moment, least):
    """Coefficients with the ridge that lifts the smallest eigenvalue of a noisy Gram matrix."""
    ridge = max(0.0, least - float(np.linalg.eigvalsh(gram)[0]))
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), moment)
