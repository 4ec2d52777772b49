"""The Gaussian law of unclipped descent: against simulation, recursion and limits; no clipping."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.samples import ArraySamples, moments
from privreg.theory.full_batch_dpgd import (
    GradientDescentLaw,
    generative_constant,
    gradient_descent_law,
    no_clipping_demand,
    no_clipping_ratios,
)

P, ETA, NOISE = 4, 0.3, 0.4


def make_data(n: int = 60, p: int = P, *, seed: int = 0) -> tuple[ArraySamples, np.ndarray]:
    rng = np.random.default_rng(seed)
    target = rng.standard_normal(p)
    target /= np.linalg.norm(target)
    x = rng.standard_normal((n, p))
    return ArraySamples(x, x @ target + rng.standard_normal(n)), target


@pytest.fixture(scope="module")
def law() -> GradientDescentLaw:
    data, _ = make_data()
    return gradient_descent_law(
        *moments(data),
        sample_size=data.sample_size,
        step_size=ETA,
        gradient_noise_std=NOISE,
        start=np.full(P, 0.5),
    )


@pytest.fixture(scope="module")
def runs() -> np.ndarray:
    data, _ = make_data()
    return full_batch_dpgd(
        data,
        clip_norm=np.inf,
        step_size=ETA,
        gradient_noise_std=NOISE,
        steps=8,
        runs=20_000,
        rng=np.random.default_rng(11),
        start=np.full(P, 0.5),
        times=[1, 3, 8],
    ).iterates


def worst_scores(
    sample: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> tuple[float, float]:
    """Largest |z| of the sample mean and of the sample covariance under a Gaussian law."""
    count = len(sample)
    variance = np.diag(covariance)
    mean_score = np.abs(sample.mean(axis=0) - mean) / np.sqrt(variance / count)
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / count)
    covariance_score = np.abs(np.cov(sample.T) - covariance) / spread
    return float(np.max(mean_score)), float(np.max(covariance_score))


def joint(law: GradientDescentLaw, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    blocks = law.covariance(times[:, None], times[None, :])
    size = times.size * law.eigenvalues.size
    return law.mean(times).ravel(), blocks.transpose(0, 2, 1, 3).reshape(size, size)


def test_twenty_thousand_runs_follow_the_law_at_three_times(law, runs):
    sample = runs.reshape(len(runs), -1)
    mean, covariance = joint(law, np.array([1, 3, 8]))
    scores = worst_scores(sample, mean, covariance)
    assert max(scores) < 4
    for factor in (2 / 3, 3 / 2):
        assert worst_scores(sample, mean, factor * covariance)[1] > 4
    start_only = np.tile(law.start, 3)
    assert worst_scores(sample, start_only, covariance)[0] > 4


def test_expected_squared_error_is_bias_plus_trace(law, runs):
    times = np.array([1, 3, 8])
    squares = np.sum((runs - law.minimiser) ** 2, axis=-1)
    error = squares.std(axis=0, ddof=1) / np.sqrt(len(runs))
    expected = law.expected_squared_error(times)
    assert np.all(np.abs(squares.mean(axis=0) - expected) < 4 * error)
    assert np.all(np.abs(squares.mean(axis=0) - 1.5 * expected) > 4 * error)


def test_long_averages_forget_the_step_size():
    variances = []
    for step_size in (0.1, 0.25, 0.5):
        law = GradientDescentLaw([1.0], [[1.0]], [0.0], [0.0], step_size, 2.0)
        variances.append(law.functionals(np.full((1, 4000), 1 / 4000))[1][0, 0, 0])
    np.testing.assert_allclose(np.array(variances) * 4000 / 4.0, 1, atol=6e-3)


def test_flat_and_exactly_solved_directions_are_numbers():
    law = GradientDescentLaw([0.0, 1e-14, 4.0, 1.0], np.eye(4), np.zeros(4), np.ones(4), 0.25, 2.0)
    variances = np.diagonal(law.covariance(7))
    np.testing.assert_allclose(variances, [0.25 * 7, 0.25 * 7, 0.25, variances[3]], rtol=1e-10)


def test_no_gradient_clips_where_the_proof_says_so_and_the_papers_constant_is_far_above():
    steps, p, failure, rho = 10, 5, 0.05, 2.0e4
    data, target = make_data(2000, p, seed=5)
    ratios = no_clipping_ratios(
        data.features, data.labels, target=target, step_size=0.25, steps=steps, label_noise_std=1.0
    )
    assert ratios.spectrum_bounded
    assert ratios.contracts
    assert 3 < ratios.constant < 6
    slow = {"target": target, "step_size": 0.05, "steps": 1, "label_noise_std": 1.0}
    assert not no_clipping_ratios(data.features, data.labels, **slow).contracts
    paper = float(generative_constant(2000, steps=steps, failure=failure))
    assert ratios.constant < 0.01 * paper
    common = {"features": p, "steps": steps, "step_size": 0.25, "failure": failure}
    demand = no_clipping_demand(ratios.constant, **common, rho=rho, label_noise_std=1.0)
    assert demand.sample_size < 2000
    noise = full_batch_noise_std(
        clip_norm=demand.clip_norm, rho=rho, sample_size=2000, gradients=steps
    )
    result = full_batch_dpgd(
        data,
        clip_norm=demand.clip_norm,
        step_size=0.25,
        gradient_noise_std=noise,
        steps=steps,
        runs=200,
        rng=np.random.default_rng(0),
    )
    assert np.count_nonzero(result.clipped_fraction.non_private.max(axis=-1)) <= failure * 200


def test_demand_solves_its_own_inequality_and_the_papers_constant_is_vacuous():
    constant = float(generative_constant(1000, steps=10, failure=0.05))
    assert constant == pytest.approx(616, abs=1)
    demanded = partial(
        no_clipping_demand,
        constant,
        features=10,
        steps=10,
        step_size=0.25,
        rho=0.015,
        failure=0.05,
    )
    demand = demanded(label_noise_std=1.0)
    left = demand.sample_size / 0.25 * np.sqrt(0.015 / 20)
    right = 64 * constant**2 * 10 * np.sqrt(np.log(2 * demand.sample_size * 10 / 0.05))
    assert left == pytest.approx(right, rel=1e-12)
    assert demand.clip_norm == pytest.approx(4.8e6, rel=0.01)
    assert demand.sample_size > 8e9
    assert demanded(label_noise_std=0.1).clip_norm == demand.clip_norm
