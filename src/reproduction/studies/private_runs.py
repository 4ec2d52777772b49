"""Problems with a stated law, rows drawn from them, and errors of fits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privreg.kernels import standard_normal
from privreg.methods.clipping import DEGREES
from privreg.methods.problem import FeatureLaw, LabelNoiseLaw, Problem

FloatArray = NDArray[np.float64]


def problem_of(
    sample_size: int,
    spectrum: FloatArray,
    *,
    norm: float,
    noise: float,
    law: FeatureLaw,
    noise_law: LabelNoiseLaw = "gaussian",
) -> Problem:
    """Problem with features of mean variance 1, or one-hot ones and a signal of √p times the norm.

    The spectrum holds variances up to a factor, or the squared shares of one-hot features.
    """
    p = len(spectrum)
    if law == "one_hot":
        shares = np.sqrt(spectrum)
        values, norm = shares / shares.sum(), norm * np.sqrt(p)
    else:
        values = spectrum * (p / spectrum.sum())
    return Problem(
        sample_size,
        values,
        signal=norm,
        label_noise_std=noise,
        feature_law=law,
        label_noise_law=noise_law,
    )


def draw(problem: Problem, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Features and labels of a problem."""
    n, p = problem.sample_size, problem.dimension
    if problem.feature_law == "one_hot":
        rows = np.zeros((n, p))
        shares = problem.eigenvalues / problem.eigenvalues.sum()
        rows[np.arange(n), rng.choice(p, size=n, p=shares)] = 1.0
    else:
        if problem.feature_law == "uniform":
            rows = rng.uniform(-np.sqrt(3), np.sqrt(3), (n, p))
        elif problem.feature_law == "student_t5":
            rows = rng.standard_t(5, (n, p))
            rows *= np.sqrt(0.6)
        else:
            rows = standard_normal(rng, (n, p))
        rows *= np.sqrt(problem.eigenvalues)
    errors = problem.label_noise_std * _unit_errors(problem.label_noise_law, n, rng)
    return rows, rows @ problem.signal + errors


def _unit_errors(law: LabelNoiseLaw, count: int, rng: np.random.Generator) -> FloatArray:
    """Label noise of mean 0 and variance 1."""
    if law == "laplace":
        return rng.laplace(0.0, np.sqrt(0.5), count)
    if law == "gaussian":
        return standard_normal(rng, count)
    degrees = DEGREES[law]
    return rng.standard_t(degrees, count) * np.sqrt((degrees - 2) / degrees)


def excess_risk(problem: Problem, coefficients: FloatArray) -> FloatArray:
    """Half the squared prediction error, less that of the best coefficients, shape (runs,)."""
    return np.asarray((coefficients - problem.signal) ** 2 @ problem.eigenvalues / 2)
