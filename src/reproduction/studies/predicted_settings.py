"""Settings in which predictions are tried: a problem, its budget and the methods for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from privreg.algorithms.samples import ArraySamples
from privreg.methods.runs import Declared
from privreg.planning.search import search
from privreg.prediction.problem import FEATURE_LAWS, Problem
from privreg.privacy.budget import Budget
from reproduction.studies.private_runs import draw, excess_risk, problem_of

LABEL_NOISE_STD = 0.7
# From so many rows on a trial estimates this share of the coefficients.
SHARES = ((500_000, 1 / 3), (50_000, 1 / 2), (0, 1))
MOST_RUNS = 10
# Privacy's part of a coefficient's variance over the sample's, for least squares without clipping.
PRICES = (0.5, 2.0, 8.0, 30.0)
# By sample size: each method meets every law.
ROTATIONS = (
    ("huber", "full_batch", "one_pass_harmonic", "adassp"),
    ("full_batch", "huber", "correlated_noise", "one_pass_root"),
    ("one_pass_harmonic", "adassp", "huber", "full_batch"),
    ("adassp", "one_pass_linear", "full_batch", "one_pass_harmonic"),
)
# Where the method of the rotation is not to be relied on.
INSTEAD = ("one_pass_harmonic", "full_batch", "one_pass_constant", "huber", "adassp")


@dataclass(frozen=True, eq=False)
class Setting:
    """A problem, one of `PRICES`, and the method to be tried first."""

    problem: Problem
    price: float
    first: str

    @property
    def budget(self) -> Budget:
        problem = self.problem
        return Budget.zcdp(2 * problem.dimension / (problem.sample_size * self.price))

    def chosen(self) -> tuple[str, Any, Any]:
        """Name, settings and prediction of the first method that can be relied on, or the last."""
        for name in (self.first, *INSTEAD):
            method: Any = search(
                name, self.problem, self.budget, objective=lambda each: each.excess_risk,
                intervals=True,
            )  # fmt: skip
            found = method.predict(self.problem, self.budget)
            if found.holds and not found.warnings and found.beats_the_mean:
                break
        return name, method, found

    def risks(self, method: Any, coefficients: int, rng: np.random.Generator) -> np.ndarray:
        """Excess risks of enough runs to estimate so many coefficients, or its rows' share of them.

        Where rows are many and privacy decides, one set of them serves several runs.
        """
        problem = self.problem
        share = next(share for rows, share in SHARES if problem.sample_size >= rows)
        wanted = ceil(coefficients * share / problem.dimension)
        runs = min(wanted, MOST_RUNS, ceil(2 * self.price)) if share < 1 else 1
        declared, found = Declared.of(problem), []
        for _ in range(ceil(wanted / runs)):
            samples = ArraySamples(*draw(problem, rng))
            fitted = method.simulate(samples, self.budget, rng, declared=declared, runs=runs)
            found.append(excess_risk(problem, fitted))
        return np.array(found)


def every_setting(sizes: Sequence[tuple[int, Sequence[int]]]) -> list[Setting]:
    """Settings of each sample size, each of its dimensions and each law, the last one fastest."""
    return [
        Setting(
            problem_of(
                n,
                np.geomspace(0.1, 1.0, p) if (size + width + number) % 2 else np.ones(p),
                norm=1.0,
                noise=LABEL_NOISE_STD,
                law=law,
            ),
            PRICES[(size + 2 * width + number) % 4],
            ROTATIONS[size % 4][(width + number) % 4],
        )
        for size, (n, dimensions) in enumerate(sizes)
        for width, p in enumerate(dimensions)
        for number, law in enumerate(FEATURE_LAWS)
    ]
