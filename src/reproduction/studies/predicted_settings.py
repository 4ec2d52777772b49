"""Settings in which predictions are tried: a problem, its budget and the methods for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from operator import attrgetter
from typing import Any

import numpy as np

from privreg.methods.problem import FEATURE_LAWS, LABEL_NOISE_LAWS, Problem
from privreg.planning import plan_run
from privreg.privacy.budget import Budget
from reproduction.studies.control_variates import Sample, run_with_control
from reproduction.studies.private_runs import draw, excess_risk, problem_of

EXCESS_RISK = attrgetter("excess_risk")
LABEL_NOISE_STD = 0.7
# From so many rows on a trial estimates this share of the coefficients: control variates make up
# for it.
SHARES = ((500_000, 1 / 13), (50_000, 1 / 5), (0, 1))
MOST_RUNS = 10
# Privacy's part of a coefficient's variance over the sample's, for least squares without clipping.
PRICES = (0.5, 2.0, 8.0, 30.0)
# What plans choose where errors are symmetric, in all 34 synthetic problems of the planning study.
PLANNED = ("huber", "full_batch")
# By sample size, in turn over dimensions and laws: every second method is the better one of those
# that plans choose, the others are tried all the same.
ROTATIONS = (
    (PLANNED, ("one_pass_harmonic",), PLANNED, ("adassp",)),
    (("correlated_noise",), PLANNED, ("one_pass_root",), PLANNED),
    (PLANNED, ("adassp",), PLANNED, ("one_pass_harmonic",)),
    (("one_pass_linear",), PLANNED, ("one_pass_harmonic",), PLANNED),
)
# Where the method of the rotation is not to be relied on.
INSTEAD = ("one_pass_harmonic", "full_batch", "one_pass_constant", "huber", "adassp")


@dataclass(frozen=True, eq=False)
class Setting:
    """Problem, one of `PRICES`, and the methods of which the best one is tried first."""

    problem: Problem
    price: float
    first: tuple[str, ...]

    @property
    def budget(self) -> Budget:
        problem = self.problem
        return Budget.zcdp(2 * problem.dimension / (problem.sample_size * self.price))

    def chosen(self) -> tuple[str, Any, Any]:
        """Name, settings and prediction of the first method that can be relied on, or the last."""
        first = sorted(map(self._found, self.first), key=lambda each: EXCESS_RISK(each[2]))
        for found in chain(first, map(self._found, INSTEAD)):
            prediction = found[2]
            if prediction.holds and not prediction.warnings and prediction.beats_the_mean:
                break
        return found

    def _found(self, name: str) -> tuple[str, Any, Any]:
        best = plan_run(self.problem, self.budget, methods=[name]).best
        return name, best.method, best.predictions[0]

    def runs(
        self, method: Any, coefficients: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Excess risks and control variates, shape (runs,) each.

        There are as many runs as estimate so many coefficients, or its rows' share of them. Where
        rows are many and privacy decides, one set of them serves several runs.
        """
        problem = self.problem
        share = next(share for rows, share in SHARES if problem.sample_size >= rows)
        wanted = ceil(coefficients * share / problem.dimension)
        runs = min(wanted, MOST_RUNS, ceil(2 * self.price)) if share < 1 else 1
        risks, controls = [], []
        for _ in range(ceil(wanted / runs)):
            sample = Sample(problem, self.budget, *draw(problem, rng))
            fitted, control = run_with_control(method, sample, rng, runs=runs)
            risks.append(excess_risk(problem, fitted))
            controls.append(control)
        return np.concatenate(risks), np.concatenate(controls)


def every_setting(sizes: Sequence[tuple[int, Sequence[int]]]) -> list[Setting]:
    """Settings of each sample size, each of its dimensions and each law, the last one fastest.

    Over sizes and dimensions that are multiples of four together each law of the features meets
    each law of the label noise equally often.
    """
    return [
        Setting(
            problem_of(
                n,
                np.geomspace(0.1, 1.0, p) if (size + width + number) % 2 else np.ones(p),
                norm=1.0,
                noise=LABEL_NOISE_STD,
                law=law,
                noise_law=LABEL_NOISE_LAWS[(size + width) % 4],
            ),
            PRICES[(size + 2 * width + number) % 4],
            ROTATIONS[size % 4][(width + number) % 4],
        )
        for size, (n, dimensions) in enumerate(sizes)
        for width, p in enumerate(dimensions)
        for number, law in enumerate(FEATURE_LAWS)
    ]
