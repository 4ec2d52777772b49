"""Mistakes in the code and wrong statements that this paper's ledger must notice."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.falsify import Patch, WrongStatement, WrongVersion, listed, power, scaled
from reproduction.engine.recipe import DataArray

DESCENT = "privreg.algorithms.full_batch_dpgd"
RECIPES = "reproduction.papers.brown2024.experiments"


def _twice_the_norm(right: Any) -> Any:
    return lambda chunks, parameters, *, clip_norm: right(
        chunks, parameters, clip_norm=[2 * norm for norm in clip_norm]
    )


def _half_the_noise(right: Any) -> Any:
    return lambda samples, *, gradient_noise_std, **options: right(
        samples, gradient_noise_std=0.5 * gradient_noise_std, **options
    )


def _normal_quantile(_: Any) -> Any:
    from scipy.special import ndtri

    return lambda replicates, *, level: float(ndtri((1 + level) / 2))


def _least_squares(_: Any) -> Any:
    from privreg.algorithms.ols import ols

    return lambda data, clip_norm: ols(data).coefficients


def _noise_of_mean_one(right: Any) -> Any:
    return lambda *arguments, **options: right(*arguments, **{**options, "label_noise_mean": 1.0})


def _normal_for_spherical(_: Any) -> Any:
    from scipy.special import gammainc

    # The first shape is 1/2 and the second (p - 1) / 2; the law of a square is that of N(0, 1/p).
    return lambda first, second, square: gammainc(first, (2 * second + 1) * square / 2)


def _one_step_on(right: Any) -> Any:
    def wrong(*arguments: Any, **options: Any) -> Any:
        law = right(*arguments, **options)
        mean = law.mean
        object.__setattr__(law, "mean", lambda times: mean(np.asarray(times) + 1))
        return law

    return wrong


def _two_logarithms_less(ratio: DataArray) -> DataArray:
    # ln(n rho / (beta p)) is ln(n / p) where rho = beta; p = 10.
    return ratio * np.log(ratio.sample_size / 10) ** 2


WRONG_VERSIONS = (
    WrongVersion(
        name="half-the-sensitivity",
        says="The noise is for a sensitivity of gamma / n instead of 2 gamma / n.",
        runs={"accounting": ("theory",)},
        patches=(Patch(f"{DESCENT}:full_batch_noise_std", scaled(0.5)),),
        turns=("budget-of-all-iterates", "noise-counts-the-gradients-of-all-runs"),
    ),
    WrongVersion(
        name="clip-that-is-too-wide",
        says="Gradients are clipped at twice the norm that the noise is for.",
        runs={"accounting": ("simulate",), "accuracy": ("simulate",)},
        patches=(Patch("privreg.algorithms.samples:clipped_gradient_sum", _twice_the_norm),),
        turns=(
            "sensitivity-of-the-mean-gradient",
            "sensitivity-is-attained",
            "clipping-is-a-huber-gradient",
        ),
    ),
    WrongVersion(
        name="label-noise-of-mean-one",
        says="Label noise has mean 1 in place of 0.",
        runs={"concentration": ("simulate",)},
        patches=(Patch(f"{RECIPES}.concentration:draw", _noise_of_mean_one),),
        turns=("error-of-least-squares",),
    ),
    WrongVersion(
        name="normal-quantiles-for-t",
        says="Intervals use the normal quantile in place of Student's t quantile.",
        runs={"coverage": ("intervals",)},
        patches=(Patch("privreg.inference.intervals:t_quantile", _normal_quantile),),
        turns=("simulated-coverage", "batch-means-length"),
    ),
    WrongVersion(
        name="least-squares-for-the-clipped-minimiser",
        says="Clipped descent ends at the least-squares estimate.",
        runs={"accuracy": ("simulate",)},
        patches=(Patch(f"{RECIPES}.accuracy:clipped_minimiser", _least_squares),),
        turns=("noiseless-descent-finds-the-huber-minimiser",),
    ),
    WrongVersion(
        name="half-the-noise-of-the-runs",
        says="The simulated runs have half of the noise that their law is computed with.",
        runs={"unclipped_law": ("simulate",)},
        patches=(Patch(f"{DESCENT}:full_batch_dpgd", _half_the_noise),),
        turns=("unclipped-covariance", "unclipped-runs-are-gaussian", "unclipped-noise-scale"),
    ),
    WrongVersion(
        name="normal-coordinates-of-directions",
        says="A coordinate of a propagated row's direction is normal with variance 1 / p.",
        runs={"concentration": ("simulate",)},
        patches=(Patch("scipy.special:betainc", _normal_for_spherical),),
        turns=("propagated-rows-are-spherically-symmetric",),
    ),
    WrongVersion(
        name="mean-of-the-next-iterate",
        says="The mean of iterate t has the power t + 1 of the contraction.",
        runs={"unclipped_law": ("simulate",)},
        patches=(Patch("privreg.theory.full_batch_dpgd:gradient_descent_law", _one_step_on),),
        turns=listed("""
            unclipped-mean unclipped-covariance unclipped-runs-are-gaussian unclipped-noise-scale
        """),
    ),
)

WRONG_STATEMENTS = (
    WrongStatement(
        name="square-of-the-logarithm",
        says="The factor of sigma p / (sqrt(rho) n) is ln^2(n rho / (beta p)).",
        observes={"theory/main_theorem": {"over_printed_rate": _two_logarithms_less}},
        turns=("main-rate-in-the-sample-size",),
    ),
    WrongStatement(
        name="least-squares-at-root-p",
        says="The squared error of least squares is of order sigma^2 sqrt(p) / n.",
        observes={"simulation/fixed_ratio": {"sampling_square_ratio": power("dimension", 0.5)}},
        turns=("least-squares-within-its-rate", "least-squares-level"),
    ),
)
