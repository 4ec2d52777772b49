"""Problems to plan for: synthetic ones, and tables whose rows are drawn with replacement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privreg.prediction.problem import FEATURE_LAWS, Problem
from privreg.privacy.budget import Budget
from reproduction.studies.private_runs import draw, problem_of
from reproduction.studies.regret import Case

FloatArray = NDArray[np.float64]
PROBLEM_SEED = 1000
# Bounds that are declared for standardised tables, in standard deviations.
FEATURE_BOUND, LABEL_BOUND = 4.0, 5.0
# What is stated of a table: the features explain this share of the labels' variance, evenly over
# coefficients or over variance; noise is well-behaved, or heavy-tailed and explained in part.
STATED = ((0.4, "coefficients", "gaussian", 0.0), (0.9, "variance", "student_t3", 0.3))


def synthetic_case(number: int, largest_sample: int) -> Case:
    """One of a fixed list of problems, stated as it is.

    Parameters
    ----------
    number : int
    largest_sample : int
        Largest number of rows.
    """
    rng = np.random.Generator(np.random.SFC64(PROBLEM_SEED + number))
    n = round(float(np.exp(rng.uniform(np.log(1500), np.log(largest_sample)))))
    p = int(rng.choice([3, 5, 10, 20, 40]))
    law = FEATURE_LAWS[number % 4]
    price = 10 ** rng.uniform(-1, 1.3)
    noise, norm = float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([0.5, 1.0, 2.0]))
    spectrum = np.geomspace(float(rng.choice([1.0, 0.3, 0.05])), 1.0, p)
    problem = problem_of(n, spectrum, norm=norm, noise=noise, law=law)
    budget = Budget.zcdp(max(2 * p / (n * price), 2e-4))
    return Case(f"synthetic {number}", problem, budget, (problem,), lambda rng: draw(problem, rng))


def table_case(
    name: str, features: FloatArray, labels: FloatArray, *, sample_size: int, rho: float
) -> Case:
    """A standardised table as a population, of which a range is stated.

    Public are the sizes, bounds, the features' second moment and the labels' variance. The signal's
    direction and size, and the law of the noise, are not.

    Parameters
    ----------
    name : str
    features : ndarray, shape (rows, p)
    labels : ndarray, shape (rows,)
    sample_size : int
        Rows that are drawn.
    rho : float
    """
    features = _standardised(np.clip(_standardised(features), -FEATURE_BOUND, FEATURE_BOUND), False)
    labels = _standardised(labels)
    values, vectors = np.linalg.eigh(features.T @ features / len(features))
    rotated = features @ vectors
    coefficients = rotated.T @ labels / len(labels) / values
    p = len(values)
    bounds = {"feature_norm": 2 * np.sqrt(p), "label_bound": LABEL_BOUND}
    noise = float(np.std(labels - rotated @ coefficients))
    truth = Problem(sample_size, values, signal=coefficients, label_noise_std=noise, **bounds)
    stated = tuple(
        Problem(
            sample_size,
            values,
            signal=np.sqrt(
                np.full(p, share / values.sum()) if even == "coefficients" else share / p / values
            ),
            label_noise_std=np.sqrt(1 - share),
            label_noise_law=law,
            misfit=misfit,
            **bounds,
        )
        for share, even, law, misfit in STATED
    )

    def rows(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        chosen = rng.integers(len(labels), size=sample_size)
        return rotated[chosen], labels[chosen]

    return Case(f"{name}, rho = {rho:g}", truth, Budget.zcdp(rho), stated, rows)


def leading_components(features: FloatArray, components: int) -> FloatArray:
    """The features, or where they are more than `components` so many principal components.

    Parameters
    ----------
    features : ndarray, shape (rows, p)
    components : int
    """
    if features.shape[1] <= components:
        return features
    centred = features - features.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ vectors[:, : -components - 1 : -1])


def column_as_labels(
    features: FloatArray, labels: FloatArray, column: int
) -> tuple[FloatArray, FloatArray]:
    """A table in which a feature and the labels have changed places.

    Parameters
    ----------
    features : ndarray, shape (rows, p)
    labels : ndarray, shape (rows,)
    column : int
    """
    changed = features.copy()
    changed[:, column] = labels
    return changed, features[:, column].copy()


def _standardised(values: FloatArray, scale: bool = True) -> FloatArray:
    centred = values - values.mean(axis=0)
    return centred / np.maximum(centred.std(axis=0), 1e-12) if scale else centred
