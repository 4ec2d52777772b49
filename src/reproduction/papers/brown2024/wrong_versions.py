"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.falsify import Patch, WrongVersion, scaled

DESCENT = "privreg.algorithms.full_batch_dpgd"
GRADIENT = "privreg.algorithms.clipped_gradient"
CLIPPED_LOSS = "reproduction.papers.brown2024.clipped_loss"
DATA = "reproduction.papers.brown2024.synthetic_data"
LAW = "privreg.theory.full_batch_dpgd.law"


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

    return lambda data, *, clip_norm: ols(data).coefficients


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
        patches=(Patch(f"{GRADIENT}:clipped_gradient_sum", _twice_the_norm),),
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
        patches=(Patch(f"{DATA}:draw", _noise_of_mean_one),),
        turns=("error-of-least-squares",),
    ),
    WrongVersion(
        name="normal-quantiles-for-t",
        says="Intervals take the normal law's quantile for Student's t.",
        runs={"coverage": ("intervals",)},
        patches=(Patch("privreg.inference.intervals:t_quantile", _normal_quantile),),
        turns=(
            "batch-means-simulated-coverage",
            "checkpoints-simulated-coverage",
            "independent-runs-simulated-coverage",
            "batch-means-length",
        ),
    ),
    WrongVersion(
        name="least-squares-for-the-clipped-minimiser",
        says="Clipped descent ends at least squares.",
        runs={"accuracy": ("simulate",)},
        patches=(Patch(f"{CLIPPED_LOSS}:clipped_minimiser", _least_squares),),
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
        says="A coordinate of a propagated row's direction is normal of variance 1 / p.",
        runs={"concentration": ("simulate",)},
        patches=(Patch("scipy.special:betainc", _normal_for_spherical),),
        turns=("propagated-rows-are-spherically-symmetric",),
    ),
    WrongVersion(
        name="mean-of-the-next-iterate",
        says="Iterate t has the power t + 1 of the contraction in its mean.",
        runs={"unclipped_law": ("simulate",)},
        patches=(Patch(f"{LAW}:gradient_descent_law", _one_step_on),),
        turns=(
            "unclipped-mean",
            "unclipped-covariance",
            "unclipped-runs-are-gaussian",
            "unclipped-noise-scale",
        ),
    ),
)
