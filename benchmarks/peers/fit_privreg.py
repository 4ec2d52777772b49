"""Both targets of `PrivateLinearRegression`, AdaSSP, written recipes, and least squares."""

import warnings
from functools import partial
from itertools import product

import numpy as np
import protocol
import recipes

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms.adassp import Bounds, adassp_zcdp
from privreg.algorithms.samples import ArraySamples


def ours(rows, labels, promise, rng, setting, target):
    """The estimator with nothing but bounds, budget and target."""
    bounds = {"feature_bounds": (-1.0, 1.0), "label_bounds": (-1.0, 1.0)}
    options = {"target": target, "random_state": int(rng.integers(2**31))}
    model = PrivateLinearRegression(Budget.zcdp(promise.rho), **bounds, **options)
    model.fit(rows, labels)
    lengths = model.confidence_intervals().half_width[:-1]
    return protocol.Fit(np.append(model.coef_, model.intercept_), lengths)


def adassp(rows, labels, promise, rng, bound):
    """AdaSSP with a bound on the label that is told to it."""
    samples = ArraySamples(promise.short(rows), labels)
    bounds, budget = Bounds(promise.short_norm, bound), Budget.zcdp(promise.rho)
    return promise.fit_of(adassp_zcdp(samples, bounds=bounds, budget=budget, rng=rng))


def least_squares(rows, labels, promise, rng, setting):
    """Ordinary least squares with HC1 intervals, infinite where rows determine nothing."""
    design = np.column_stack([np.clip(rows, -1, 1), np.ones(len(rows))])
    labels = np.clip(labels, -1, 1)
    inverse = np.linalg.pinv(design.T @ design)
    theta = inverse @ (design.T @ labels)
    scores = design * (labels - design @ theta)[:, None]
    n, p = design.shape
    variances = np.diag(inverse @ (scores.T @ scores) @ inverse * n / (n - p))[:-1]
    widths = 1.96 * np.sqrt(np.maximum(variances, 1e-300))
    return protocol.Fit(theta, np.where(np.ptp(rows, axis=0) == 0, np.inf, widths))


METHODS = {
    "ours": (partial(ours, target="least_squares"), [None]),
    "ours, robust": (partial(ours, target="huber"), [None]),
    "AdaSSP": (adassp, [1.0, 0.5, 0.25, 0.1, 0.05]),
    "AdaSSP, boosted": (recipes.boosted_adassp, [*product((1.0, 0.3, 0.1), (3, 10, 30, 100))]),
    "standardised": (recipes.standardised, [*product((0.7, 1.0, 1.5), (1.0, 3.0, 8.0))]),
    "plain descent": (recipes.plain_descent, [None]),
    "bins": (recipes.bins, [*product((20.0, 100.0, 400.0), (6, 12, 20))]),
    "not private": (least_squares, [None]),
}

# A fit that will not beat the mean says so, each of many seeds alike.
warnings.simplefilter("ignore", UserWarning)
protocol.run(METHODS, "privreg", "numpy", "scikit-learn", "scipy")
