"""One-pass noisy SGD: the kernel against NumPy, its risk against exact moments and the limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relations import generator
from scipy.integrate import quad
from scipy.stats import norm

from privreg.algorithms.noisy_sgd import (
    LinearRecords,
    clipped_normal_variance,
    run_noisy_sgd,
    simulate_noisy_sgd,
)
from privreg.schedules import ConstantRate
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression, mean_risk


def small_records(shape: str, *, mean: float = 0.0) -> LinearRecords:
    rng = generator(0)
    return LinearRecords(
        shape,  # type: ignore[arg-type]
        np.full(20, mean),
        rng.uniform(0.1, 0.4, 20),
        rng.standard_normal(20),
        label_noise_std=0.5,
        label_noise_clip=0.8,
    )


@pytest.mark.parametrize("shape", ["uniform", "gaussian"])
def test_kernel_equals_a_numpy_loop(shape: str) -> None:
    records, start = small_records(shape, mean=0.1), generator(1).standard_normal(20)
    noises, clip_norms, ridge, steps = [0.0, 1.0], [1.3, np.inf], 0.2, np.linspace(0.1, 0.05, 30)
    runs = simulate_noisy_sgd(
        records,
        initial=start,
        step_sizes=steps,
        gradient_noise_stds=noises,
        clip_norms=clip_norms,
        ridge=ridge,
        rng=generator(2),
    )
    rng = generator(2)
    iterate = np.tile(start, (2, 2, 1))
    clipped = np.zeros((2, 2), dtype=int)
    for k, step in enumerate(steps):
        if shape == "uniform":
            unit = np.sqrt(3) * (2 * rng.random(20) - 1)
        else:
            unit = rng.standard_normal(20)
        row = records.mean + records.std * unit
        label = row @ records.target + 0.5 * np.clip(rng.standard_normal(), -0.8, 0.8)
        noise = rng.standard_normal(20)
        for i, sigma in enumerate(noises):
            for j, clip_norm in enumerate(clip_norms):
                x = iterate[i, j]
                gradient = row * (row @ x - label) + ridge * x
                clipped[i, j] += np.linalg.norm(gradient) > clip_norm
                gradient = gradient * min(1.0, clip_norm / np.linalg.norm(gradient))
                iterate[i, j] = x - step * (gradient + sigma * noise)
        np.testing.assert_allclose(
            runs.risk.non_private[:, :, k + 1], records.risk(iterate), rtol=1e-10
        )
    np.testing.assert_allclose(runs.iterate, iterate, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(runs.risk.non_private[:, :, 0], records.risk(start))
    np.testing.assert_array_equal(runs.clipped_fraction.non_private, clipped / 30)
    assert np.all((clipped[:, 0] > 5) & (clipped[:, 0] < 25))
    assert not clipped[:, 1].any()


def test_given_records_are_used_in_order() -> None:
    records, start = small_records("gaussian"), np.zeros(20)
    features, labels = records.sample(15, generator(3))
    options: dict[str, Any] = {
        "initial": start,
        "step_sizes": np.full(15, 0.1),
        "gradient_noise_stds": [0.0],
        "ridge": 0.1,
    }
    runs = run_noisy_sgd(features, labels, records=records, rng=generator(4), **options)
    x = start
    for row, label in zip(features, labels, strict=True):
        x = x - 0.1 * (row * (row @ x - label) + 0.1 * x)
    np.testing.assert_allclose(runs.iterate[0, 0], x, rtol=1e-11)
    assert runs.risk.non_private.shape == (1, 1, 16)


def test_one_record_moves_one_step_by_at_most_the_clipping_norm() -> None:
    """The sensitivity behind the guarantee: however large, no record moves a step beyond ηc."""
    records = small_records("gaussian")
    start = generator(5).standard_normal(20)
    for size in (1e-3, 1.0, 1e6):
        runs = run_noisy_sgd(
            np.full((1, 20), size),
            np.array([-size]),
            records=records,
            initial=start,
            step_sizes=[0.1],
            gradient_noise_stds=[0.0],
            clip_norms=[0.3, np.inf],
            ridge=0.05,
            rng=generator(6),
        )
        moved = np.linalg.norm(runs.iterate[0] - start, axis=-1)
        assert moved[0] <= 0.1 * 0.3 * (1 + 1e-12)
        if size > 1:
            assert moved[1] > 1e6


@pytest.mark.parametrize("shape", ["uniform", "gaussian"])
def test_risk_is_that_of_fresh_records(shape: str) -> None:
    records = small_records(shape, mean=0.2)
    point = generator(7).standard_normal(20)
    features, labels = records.sample(200_000, generator(8))
    losses = 0.5 * (features @ point - labels) ** 2
    error = losses.std() / np.sqrt(losses.size)
    assert abs(losses.mean() - records.risk(point)) < 4 * error
    for wrong in (2 / 3, 3 / 2):
        assert abs(losses.mean() - wrong * records.risk(point)) > 4 * error


def test_variance_of_clipped_label_noise() -> None:
    assert clipped_normal_variance(3.0) == pytest.approx(0.9950072780, abs=1e-10)
    assert clipped_normal_variance(np.inf) == 1.0
    for clip_norm in (0.5, 2.0):
        expected = quad(
            lambda x, c=clip_norm: min(x * x, c * c) * norm.pdf(x),
            -12,
            12,
            points=[-clip_norm, clip_norm],
        )
        assert clipped_normal_variance(clip_norm) == pytest.approx(expected[0], rel=1e-8)


@pytest.mark.parametrize(("shape", "kurtosis"), [("uniform", 1.8), ("gaussian", 3.0)])
def test_mean_risk_follows_the_exact_moments(shape: str, kurtosis: float) -> None:
    records, start = small_records(shape), generator(9).standard_normal(20)
    steps, runs = np.full(60, 0.2), 400
    rng = generator(10)
    risks = np.array(
        [
            simulate_noisy_sgd(
                records,
                initial=start,
                step_sizes=steps,
                gradient_noise_stds=[1.0],
                ridge=0.3,
                rng=rng,
            ).risk.non_private[0, 0, [3, 20, 60]]
            for _ in range(runs)
        ]
    )
    problem = RidgeRegression(
        records.std**2,
        records.target,
        start,
        label_noise_std=records.clipped_label_noise_std,
        ridge=0.3,
    )
    mean, error = risks.mean(axis=0), risks.std(axis=0) / np.sqrt(runs)
    expected = mean_risk(problem, steps, gradient_noise_std=1.0, kurtosis=kurtosis)[[3, 20, 60]]
    assert np.all(np.abs(mean - expected) < 4 * error)
    for wrong in (2 / 3, 3 / 2):
        scaled = mean_risk(problem, steps, gradient_noise_std=wrong, kurtosis=kurtosis)[60]
        assert abs(mean[2] - scaled) > 4 * error[2]


def test_single_runs_concentrate_on_the_limit_as_the_root_of_d() -> None:
    dimensions, deviations = [50, 100, 200, 400, 800], []
    for d in dimensions:
        target = np.cos(6 * np.arange(d) / d) / np.sqrt(d)
        start = np.ones(d) / np.sqrt(d)
        records = LinearRecords("gaussian", np.zeros(d), np.ones(d), target, 0.3)
        problem = RidgeRegression(np.ones(d), target, start, label_noise_std=0.3, ridge=0.1)
        law = HomogenisedSGD(problem, ConstantRate(0.6), gradient_noise_std=0.5, horizon=1.5)
        steps = int(1.5 * d)
        limit = law.risk(np.arange(steps + 1) / d)
        rng = generator(d)
        sups = [
            np.abs(
                simulate_noisy_sgd(
                    records,
                    initial=start,
                    step_sizes=np.full(steps, 0.6 / d),
                    gradient_noise_stds=[0.5],
                    ridge=0.1,
                    rng=rng,
                ).risk.non_private[0, 0]
                - limit
            ).max()
            for _ in range(40)
        ]
        deviations.append(np.mean(sups))
    slope = np.polyfit(np.log(dimensions), np.log(deviations), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)


def test_last_iterate_has_the_limit_covariance() -> None:
    """The mean squared Mahalanobis distance to the limit law is d (1 + O(1/d))."""
    d, runs = 400, 60
    start, target = generator(11).standard_normal((2, d)) / np.sqrt(d)
    records = LinearRecords("gaussian", np.zeros(d), np.ones(d), target, 0.3)
    problem = RidgeRegression(np.ones(d), target, start, label_noise_std=0.3, ridge=0.1)
    law = HomogenisedSGD(problem, ConstantRate(0.6), gradient_noise_std=1.0, horizon=1.5)
    rng = generator(12)
    ends = np.array(
        [
            simulate_noisy_sgd(
                records,
                initial=start,
                step_sizes=np.full(600, 0.6 / d),
                gradient_noise_stds=[1.0],
                ridge=0.1,
                rng=rng,
            ).iterate[0, 0]
            for _ in range(runs)
        ]
    )
    distance = np.sum((ends - law.mean(1.5)) ** 2 / law.variance(1.5), axis=1) / d
    error = distance.std() / np.sqrt(runs)
    assert abs(distance.mean() - 1.0) < 4 * error + 2 / d
    for wrong in (2 / 3, 3 / 2):
        assert abs(distance.mean() * wrong - 1.0) > 4 * error + 2 / d


def test_refuses() -> None:
    records = small_records("gaussian")
    options: dict[str, Any] = {
        "initial": np.zeros(20),
        "step_sizes": [0.1],
        "gradient_noise_stds": [1.0],
        "rng": generator(0),
    }
    with pytest.raises(ValueError, match="clip_norms"):
        simulate_noisy_sgd(records, clip_norms=[0.0], **options)
    with pytest.raises(ValueError, match="initial"):
        simulate_noisy_sgd(records, **{**options, "initial": np.zeros(3)})
    with pytest.raises(ValueError, match="gradient_noise_stds"):
        simulate_noisy_sgd(records, **{**options, "gradient_noise_stds": [-1.0]})
    with pytest.raises(ValueError, match="shape"):
        LinearRecords("cauchy", np.zeros(2), np.ones(2), np.zeros(2))  # type: ignore[arg-type]
