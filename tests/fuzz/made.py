"""Objects that valid calls take: data, laws, mechanisms, each made as a caller would make it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from privreg import schedules
from privreg.algorithms import (
    dp_ftrl,
    full_batch_dpgd,
    noisy_sgd,
    one_pass_dpgd,
    samples,
    shaped_dp_ftrl,
)
from privreg.algorithms.shaped_mechanism import FixedClip, ShapedMechanism
from privreg.noise import buffered, correlations, covariance, toeplitz
from privreg.privacy import low_rank
from privreg.privacy.budget import Budget

D, N = 3, 12
_draws = np.random.Generator(np.random.SFC64(7))
FEATURES = _draws.standard_normal((N, D))
LABELS = _draws.standard_normal(N)
VECTOR = np.array([0.4, -0.3, 0.2])
EIGENVALUES = np.array([0.5, 1.0, 1.5])
PATH = _draws.standard_normal((2, 40, D))
STEPS = np.full(N, 0.05)


def fresh(value: Any) -> Any:
    """A copy that the call may use up."""
    if isinstance(value, Made):
        return value.make()
    return copy.deepcopy(value) if isinstance(value, (np.ndarray, list)) else value


class Made:
    """A value made anew for every call, such as a generator."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


RNG = Made(lambda: np.random.Generator(np.random.SFC64(5)))
SAMPLES = samples.ArraySamples(FEATURES, LABELS)


def law() -> Any:
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression

    problem = RidgeRegression(EIGENVALUES, VECTOR, 0 * VECTOR, label_noise_std=0.3, ridge=0.1)
    return HomogenisedSGD(
        problem, schedules.ConstantRate(0.5), **_word(HomogenisedSGD, 0.5), horizon=4.0
    )


def _word(function: Any, value: float) -> dict[str, float]:
    """The gradient noise by whichever name the function gives it."""
    import inspect

    names = inspect.signature(function).parameters
    return {next(name for name in ("gradient_noise_std", "noise_std") if name in names): value}


def descent_law() -> Any:
    from privreg.theory.full_batch_dpgd.law import GradientDescentLaw

    return GradientDescentLaw(
        EIGENVALUES, np.eye(D), VECTOR, 0 * VECTOR, step_size=0.3, **_word(GradientDescentLaw, 0.2)
    )


def problem() -> Any:
    return law().problem


def records() -> Any:
    return noisy_sgd.LinearRecords.uniform(
        mean=0.2, half_width=1.0, target=VECTOR, label_noise_std=0.3
    )


def mechanism() -> Any:
    return one_pass_dpgd.Mechanism(
        np.full(N, 0.05),
        np.full(N, 0.05),
        np.array([1.0, 2.0]),
        np.array([1.0, 1.5]),
        Budget.half_square(2.0),
    )


def kernels() -> Any:
    from privreg.theory.one_pass_dpgd.volterra import power_law_kernels

    return power_law_kernels(0.5)


def record() -> Any:
    from privreg.theory.noisy_sgd.renyi_loss import Record

    return Record(VECTOR, 0.3)


def other_record() -> Any:
    from privreg.theory.noisy_sgd.renyi_loss import Record

    return Record(-VECTOR, 0.1)


def screened() -> Any:
    from privreg.algorithms.screening import ScreenedSamples

    return ScreenedSamples(SAMPLES, VECTOR[None], 1.0, np.inf)


def pair_search() -> Any:
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

    return PairSearch(law(), FEATURES, LABELS)


LOW_RANK = low_rank.LowRankUpdate(EIGENVALUES, FEATURES[:D, :1], np.array([[0.5]]))
TIMES = np.array([0.25, 0.5, 1.0])
ENCODER = toeplitz.damped_square_root_encoder(N, damping=0.1)
DECODER = toeplitz.damped_square_root(N, damping=0.1)
TREE = correlations.TreeCorrelation()
SHAPE = covariance.population_covariance(EIGENVALUES, horizon=2.0)


def ftrl_mechanism() -> Any:
    return dp_ftrl.FTRLMechanism(DECODER, 0.5, 1.5, N)


def shaped_mechanism() -> Any:
    return ShapedMechanism(SHAPE, TREE, FixedClip(1.5), 1.2, N)


def buffered_mechanism() -> Any:
    return buffered.buffered_square_root(20)


def population() -> Any:
    from privreg.theory.noisy_sgd.population import Population

    return Population(np.diag(EIGENVALUES), VECTOR, 0.3)


def stationary_noise() -> Any:
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    return StationaryNoise.damped_square_root(0.1)


def decay() -> Any:
    from privreg.theory.shaped_noise.decay import PowerLawDecay

    return PowerLawDecay(2.0)


def curve() -> Any:
    from privreg.theory.correlated_noise.error_curves import error_curve

    return error_curve(EIGENVALUES, step_size=0.1, coefficients=[1.0], steps=8)


@lru_cache
def sector() -> Any:
    from privreg.theory.correlated_noise.convex_bound import SectorProgram

    return SectorProgram(strong_convexity=0.5, step_size=0.5, lags=3, nodes_per_panel=4)


def exponential_decay() -> Any:
    from privreg.theory.shaped_noise.decay import ExponentialDecay

    return ExponentialDecay()


def finite_decay() -> Any:
    from privreg.theory.shaped_noise.decay import FiniteDecay

    return FiniteDecay(EIGENVALUES)


def least_squares() -> Any:
    from privreg.algorithms.ols import ols

    return ols(SAMPLES)


def gaussian_samples() -> Any:
    return samples.GaussianSamples(N, VECTOR, 0.3, np.random.SeedSequence(3))


def correlations_of(steps: int, step_size: float) -> Any:
    from privreg.theory.correlated_noise.finite_time import independent_noise

    return independent_noise(steps, step_size)


def ftrl_run() -> Any:
    return dp_ftrl.dp_ftrl(SAMPLES, mechanism=ftrl_mechanism(), step_size=0.05, rng=RNG.make())


def shaped_run() -> Any:
    return shaped_dp_ftrl.shaped_dp_ftrl(
        SAMPLES, mechanism=shaped_mechanism(), step_size=0.05, rng=RNG.make()
    )


def full_batch_run() -> Any:
    return full_batch_dpgd.full_batch_dpgd(
        SAMPLES, clip_norm=1.0, step_size=0.1, gradient_noise_std=0.5, steps=3, rng=RNG.make()
    )


def noisy_sgd_runs() -> Any:
    return noisy_sgd.run_noisy_sgd(
        FEATURES,
        LABELS,
        records=records(),
        initial=VECTOR,
        step_sizes=STEPS,
        gradient_noise_stds=[0.5],
        clip_norms=[1.5],
        rng=RNG.make(),
    )


def one_setting() -> Any:
    return one_pass_dpgd.Mechanism(
        np.full(N, 0.05), np.full(N, 0.05), [1.0], [1.0], Budget.half_square(2.0)
    )
