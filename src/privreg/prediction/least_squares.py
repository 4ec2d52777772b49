r"""Length of an interval of private least squares, and its error, from public numbers.

The law of products q/√p follows from that of the errors and of Gaussian rows. Its expected
histogram, with the noise that a private one would have, goes through the code of the fit itself:
what it chooses as clip, and what it allows for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gdtrix, ndtr, ndtri, stdtrit

from privreg.algorithms.huber_scales import scale_is_hidden, white_cap
from privreg.algorithms.least_squares_descent import LONG, product_edges
from privreg.algorithms.least_squares_settings import (
    WIDE_SHARES,
    LeastSquaresSettings,
    default_least_squares_settings,
)
from privreg.algorithms.product_tail import LEAN, ProductTail
from privreg.algorithms.split_budget import NoisyValue
from privreg.inference.least_squares_intervals import BELOW
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import gram_sensitivity, sum_sensitivity
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.theory.bias_aware import bias_aware_quantile
from privreg.validation import require_choice, require_instance, require_number

FloatArray = NDArray[np.float64]
ErrorLaw = Literal["gaussian", "student_t5", "student_t3", "exponential", "lognormal"]
ERROR_LAWS: tuple[ErrorLaw, ...] = get_args(ErrorLaw)
ERRORS, ROWS = 4000, 40
# Mean of (N(0, 1) - 0.3) where it is positive: what raising to a noisy value adds, in deviations.
RAISED = float(np.exp(-(BELOW**2) / 2) / np.sqrt(2 * np.pi) - BELOW * ndtr(-BELOW))


@dataclass(frozen=True)
class LeastSquaresPrediction:
    """What a private least-squares fit will be worth, beside least squares on the same rows.

    Attributes
    ----------
    length : float
        Length of a slope's 95 % interval over that of least squares; `inf` where noise hides the
        tail.
    error : float
        Squared error over that of least squares.
    clip_width : float
        Clip of q/√p over the errors' standard deviation.
    """

    length: float
    error: float
    clip_width: float


def predicted_length(
    problem: Problem,
    budget: Budget,
    *,
    errors: ErrorLaw = "gaussian",
    settings: LeastSquaresSettings | None = None,
) -> LeastSquaresPrediction:
    """Length and error of a fit that has not happened, for errors independent of the features.

    Parameters
    ----------
    problem : Problem
        Its size, label bound and label noise; rows count as Gaussian.
    budget : Budget
    errors : {"gaussian", "student_t5", "student_t3", "exponential", "lognormal"}
        Law of the errors about their mean; the last is exp of a standard normal one.
    settings : LeastSquaresSettings, optional
        `default_least_squares_settings` by default.

    Examples
    --------
    >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
    >>> budget = Budget.approximate(1.0, 1e-6).gaussian()
    >>> normal = predicted_length(problem, budget)
    >>> skewed = predicted_length(problem, budget, errors="exponential")
    >>> 1.4 < normal.length < 1.7, skewed.length > normal.length
    (True, True)
    """
    require_instance("problem", problem, Problem)
    require_instance("budget", budget, Budget)
    require_choice("errors", errors, ERROR_LAWS)
    n, p = problem.sample_size, problem.dimension
    if settings is None:
        settings = default_least_squares_settings(sample_size=n, dimension=p, budget=budget)
    require_instance("settings", settings, LeastSquaresSettings)
    bound = problem.label_bound / problem.label_noise_std
    return predicted_fit(n, p, budget, settings, errors=errors, label_bound=bound)


@lru_cache(maxsize=256)
def predicted_fit(
    sample_size: int,
    dimension: int,
    budget: Budget,
    settings: LeastSquaresSettings,
    *,
    errors: ErrorLaw = "gaussian",
    label_bound: float = 4.0,
) -> LeastSquaresPrediction:
    """`predicted_length` from the numbers that decide.

    Parameters
    ----------
    sample_size, dimension : int
    budget : Budget
    settings : LeastSquaresSettings
    errors : str
    label_bound : float
        In standard deviations of the errors.
    """
    n, p = sample_size, dimension
    require_number("label_bound", label_bound, above=0, most=1e100)
    counting = float(gram_sensitivity(1.0, neighbours=budget.neighbours))
    count_std = float(
        gaussian_noise_std(sensitivity=counting, rho=settings.tail_share * budget.rho)
    )
    if scale_is_hidden(noise_std=count_std, sample_size=n):
        return LeastSquaresPrediction(np.inf, np.inf, np.inf)
    short_cap = white_cap(p, sample_size=n, rho=settings.curvature_share * budget.rho)
    cap = white_cap(p, sample_size=n, rho=settings.long_share * LONG**2 * budget.rho)
    products, scale = _products(p, errors, max(cap, short_cap) / np.sqrt(p))
    edges = product_edges(scale, label_bound, cap=max(cap, short_cap), dimension=p)
    shares = np.bincount(np.searchsorted(edges, products), minlength=len(edges) + 1)
    tail = ProductTail(edges, NoisyValue(n * shares / len(products), count_std), float(n))
    change = float(sum_sensitivity(np.sqrt(p), neighbours=budget.neighbours))
    noise = float(gaussian_noise_std(sensitivity=change, rho=settings.final_share * budget.rho)) / n
    width = tail.best_width(noise=noise)
    kept = float(np.mean(products <= width))
    sampling = float(np.mean(np.minimum(products, width) ** 2)) / n * n / max(n - p, 1)
    variance = (sampling + (noise * width) ** 2 * _steps_noise()) / kept**2
    bias = LEAN * tail.excess(width) / kept
    semi = float(gram_sensitivity(1.0, neighbours=budget.neighbours)) * width**2 * p
    second = float(gaussian_noise_std(sensitivity=semi, rho=settings.moment_share * budget.rho)) / n
    known = second / n / kept**2
    # A variance is raised to its own noisy value less a share of its deviation.
    std = float(np.sqrt(variance + RAISED * known))
    relative = known / std**2
    degrees = 2 / max(relative, 1e-6) ** 2
    normal = float(ndtri(0.975))
    quantile = float(stdtrit(degrees, 0.975)) / normal if degrees > 2 else np.inf
    length = quantile * float(bias_aware_quantile(bias / std)) * std
    plain = float(np.sqrt(1.0 / n))
    return LeastSquaresPrediction(length / (normal * plain), variance / plain**2, width)


def _steps_noise() -> float:
    """Variance of the last iterate over that of one step which had the whole share: 1."""
    sizes = np.array(WIDE_SHARES) / np.cumsum(WIDE_SHARES)
    kept = np.append(np.cumprod((1 - sizes)[::-1])[::-1][1:], 1.0)
    return float(np.sum((sizes * kept) ** 2 / np.array(WIDE_SHARES)))


@lru_cache(maxsize=64)
def _products(dimension: int, errors: ErrorLaw, cap: float) -> tuple[FloatArray, float]:
    """Equally likely values of q/√p for errors of variance 1, and their robust scale."""
    levels = (np.arange(ERRORS) + 0.5) / ERRORS
    found = {
        "gaussian": lambda: ndtri(levels),
        "student_t5": lambda: stdtrit(5, levels) / np.sqrt(5 / 3),
        "student_t3": lambda: stdtrit(3, levels) / np.sqrt(3),
        "exponential": lambda: gdtrix(1.0, 1.0, levels) - 1.0,
        "lognormal": lambda: (np.exp(ndtri(levels)) - np.exp(0.5)) / np.sqrt(np.exp(2) - np.exp(1)),
    }[errors]()
    middle = np.median(found) if errors in ("exponential", "lognormal") else 0.0
    # Residuals at the robust start are about the errors' location.
    absolute = np.abs(found - middle)
    inside = (np.arange(ROWS) + 0.5) / ROWS
    lengths = np.sqrt(chdtri(dimension, inside) / dimension)
    lengths = lengths * np.minimum(1.0, (cap / lengths) ** 2)
    return np.outer(lengths, absolute).ravel(), float(np.median(absolute) / ndtri(0.75))
