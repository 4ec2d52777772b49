"""The last iterate's law against simulation, and shrinkage through noise that is known."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.theory.huber_descent import (
    averaging_step_sizes,
    noise_edge,
    privacy_covariance,
    shrink_to,
    shrink_to_identity,
    symmetric_noise,
)


def test_the_recursion_is_the_law_of_linear_descent(rng):
    p, runs, steps = 3, 40_000, 4
    root = rng.standard_normal((p, p))
    curvature = root @ root.T / p + np.eye(p)
    matrices = [size * np.linalg.inv(curvature + 0.3 * np.eye(p)) for size in (1, 1, 0.5, 0.3)]
    stds = [1.0, 0.5, 0.7, 0.2]
    start = np.diag([1.0, 4.0, 0.25])
    error = rng.standard_normal((runs, p)) * np.sqrt(np.diag(start))
    for step in range(steps):
        kick = -error @ curvature + stds[step] * rng.standard_normal((runs, p))
        error = error + kick @ matrices[step].T
    found = privacy_covariance(curvature, matrices, stds, start_covariance=start)
    # A covariance of 40,000 normals has a relative standard error of 0.7 %.
    np.testing.assert_allclose(np.cov(error.T), found, atol=0.03 * np.max(np.diag(found)))


def test_averaged_newton_steps_have_the_noise_of_one(rng):
    """K steps at a K-th of the budget each: λ² K, averaged to λ², and the start is forgotten."""
    curvature = np.diag([0.5, 2.0])
    newton = np.linalg.inv(curvature)
    for count in (1, 3, 7):
        sizes = averaging_step_sizes(2, count)
        assert sizes.size == 2 + count
        found = privacy_covariance(
            curvature,
            [size * newton for size in sizes],
            np.concatenate([[5.0, 5.0], np.full(count, np.sqrt(count))]),
            start_covariance=100 * np.eye(2),
        )
        np.testing.assert_allclose(found, newton @ newton, atol=1e-12)


def test_an_unknown_curvature_adds_what_simulation_says(rng):
    p, runs, noise = 4, 20_000, 0.1
    newton, start = np.eye(p), np.diag([1.0, 2.0, 3.0, 4.0])
    errors = np.empty((runs, p))
    for run in range(runs):
        curvature = np.eye(p) + symmetric_noise(p, noise_std=noise, rng=rng)
        errors[run] = (np.eye(p) - newton @ curvature) @ (
            np.sqrt(np.diag(start)) * rng.standard_normal(p)
        )
    found = privacy_covariance(
        np.eye(p), [newton], [0.0], start_covariance=start, curvature_noise=noise
    )
    np.testing.assert_allclose(np.cov(errors.T), found, atol=0.05 * np.max(found))


def test_symmetric_noise_is_isotropic(rng):
    draws = np.array([symmetric_noise(3, noise_std=2.0, rng=rng) for _ in range(20_000)])
    np.testing.assert_array_equal(draws, np.swapaxes(draws, 1, 2))
    for unit in ([1, 0, 0], [0.6, 0.8, 0], [1 / 3, 2 / 3, 2 / 3]):
        assert np.std(draws @ unit @ unit) == pytest.approx(2.0, rel=0.02)
    assert np.mean(np.sum(draws**2, axis=(1, 2))) == pytest.approx(4 * 3 * 4 / 2, rel=0.02)


def test_shrinkage_is_near_the_best_and_never_far_worse_than_either_end(rng):
    p, noise = 12, 0.3
    for size in (0.0, 0.1, 1.0, 10.0):
        deviation = symmetric_noise(p, noise_std=size, rng=rng)
        losses = []
        for _ in range(300):
            noisy = np.eye(p) + deviation + symmetric_noise(p, noise_std=noise, rng=rng)
            shrunk = shrink_to(np.eye(p), noisy, noise_std=noise)
            losses.append(np.sum((shrunk.matrix - np.eye(p) - deviation) ** 2))
        squares, expected = np.sum(deviation**2), noise**2 * p * (p + 1) / 2
        best = squares * expected / (squares + expected)
        assert np.mean(losses) <= best + 0.12 * expected


def test_shrinkage_ends(rng):
    noisy = np.diag([1.0, 3.0])
    np.testing.assert_array_equal(shrink_to_identity(noisy, noise_std=0.0).matrix, noisy)
    assert shrink_to_identity(noisy, noise_std=0.0).weight == 1
    assert shrink_to_identity(noisy, noise_std=9.0).weight == 0
    assert noise_edge(200, noise_std=1.0) == pytest.approx(
        np.linalg.eigvalsh(symmetric_noise(200, noise_std=1.0, rng=rng))[-1], rel=0.1
    )
