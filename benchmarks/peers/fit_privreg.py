"""Both targets of `PrivateLinearRegression`, AdaSSP, written recipes, and least squares."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import protocol
import recipes
from protocol import Fit, Method, Promise

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms.adassp import Bounds, adassp_zcdp
from privreg.algorithms.samples import ArraySamples
from privreg.version import __version__

sys.path.insert(0, str(Path(__file__).parents[1] / "least_squares"))
from populations import least_squares as hc1


def ours(target: str) -> Method:
    """The estimator with nothing but bounds, budget and target."""

    def fit(
        rows: np.ndarray,
        labels: np.ndarray,
        promise: Promise,
        rng: np.random.Generator,
        setting: None,
    ) -> Fit:
        model = PrivateLinearRegression(
            Budget.zcdp(promise.rho),
            feature_bounds=(-1.0, 1.0),
            label_bounds=(-1.0, 1.0),
            target=target,
            random_state=int(rng.integers(2**31)),
        ).fit(rows, labels)
        lengths = model.confidence_intervals().half_width[:-1]
        return Fit(np.append(model.coef_, model.intercept_), lengths)

    return Method(fit)


def adassp(
    rows: np.ndarray,
    labels: np.ndarray,
    promise: Promise,
    rng: np.random.Generator,
    bound: float,
) -> Fit:
    """AdaSSP with a bound on the label that is told to it."""
    found = adassp_zcdp(
        ArraySamples(promise.short(rows), labels),
        bounds=Bounds(promise.short_norm, bound),
        budget=Budget.zcdp(promise.rho),
        rng=rng,
    )
    return promise.fit_of(found)


def least_squares(
    rows: np.ndarray, labels: np.ndarray, promise: Promise, rng: np.random.Generator, setting: None
) -> Fit:
    """Ordinary least squares with HC1 intervals, infinite where rows determine nothing."""
    design = np.column_stack([np.clip(rows, -1, 1), np.ones(len(rows))])
    theta, errors = hc1(design, np.clip(labels, -1, 1))
    constant = np.ptp(rows, axis=0) == 0
    return Fit(theta, np.where(constant, np.inf, 1.96 * errors[:-1]))


METHODS = {
    "ours": ours("least_squares"),
    "ours, robust": ours("huber"),
    "AdaSSP": Method(adassp, (1.0, 0.5, 0.25, 0.1, 0.05)),
    "AdaSSP, boosted": Method(
        recipes.boosted_adassp,
        [
            recipes.Boosting(bound, rounds)
            for bound in (1.0, 0.3, 0.1)
            for rounds in (3, 10, 30, 100)
        ],
    ),
    "standardised": Method(
        recipes.standardised,
        [
            recipes.Standardising(length, clip)
            for length in (0.7, 1.0, 1.5)
            for clip in (1.0, 3.0, 8.0)
        ],
    ),
    "bins": Method(
        recipes.bins,
        [
            recipes.Binning(least, levels)
            for least in (20.0, 100.0, 400.0)
            for levels in (6, 12, 20)
        ],
    ),
    "not private": Method(least_squares),
}

if __name__ == "__main__":
    # A fit that will not beat the mean says so, each of many seeds alike.
    warnings.simplefilter("ignore", UserWarning)
    protocol.run(METHODS, ("numpy", "scikit-learn", "scipy"), {"privreg": __version__})
