"""Settings in which predictions are tested: a problem, its budget and the methods for it."""

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
# (rows, share): with so many rows a trial needs only this share, by its control variates.
SHARES = ((500_000, 1 / 13), (50_000, 1 / 5), (0, 1))
MOST_RUNS = 10
# Variance of a coefficient from privacy divided by that from sampling, for unclipped least squares.
PRICES = (0.5, 2.0, 8.0, 30.0)
# Methods that plans choose for symmetric errors, in all 34 synthetic problems of `planning`.
PLANNED = ("huber", "full_batch")
# One row per sample size, used in turn over dimensions and laws. Every second entry is the better
# of `PLANNED`; the others are tested although plans would not choose them.
ROTATIONS = (
    (PLANNED, ("one_pass_harmonic",), PLANNED, ("adassp",)),
    (("correlated_noise",), PLANNED, ("one_pass_root",), PLANNED),
    (PLANNED, ("adassp",), PLANNED, ("one_pass_harmonic",)),
    (("one_pass_linear",), PLANNED, ("one_pass_harmonic",), PLANNED),
)
# Used in this order if the predictions of the rotation's methods have warnings.
INSTEAD = ("one_pass_harmonic", "full_batch", "one_pass_constant", "huber", "adassp")


@dataclass(frozen=True, eq=False)
class Setting:
    """Problem, one of `PRICES`, and the methods to choose from before those of `INSTEAD`."""

    problem: Problem
    price: float
    first: tuple[str, ...]

    @property
    def budget(self) -> Budget:
        problem = self.problem
        return Budget.zcdp(2 * problem.dimension / (problem.sample_size * self.price))

    def chosen(self) -> tuple[str, Any, Any]:
        """Name, settings and prediction of the first method without warnings, or of the last."""
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

        All runs estimate `coefficients` coefficients, or a share of them if there are many rows. If
        privacy then dominates the error, several runs use the same rows.
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
    """One setting for each sample size, each of its dimensions and each law; laws vary fastest.

    If the numbers of sizes and of dimensions are multiples of four, each law of the features occurs
    equally often with each law of the label noise.
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
