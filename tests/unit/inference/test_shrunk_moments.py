"""Moments shrunk by their known noise: what is kept, what is put in place, what noise is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from privreg.algorithms.huber_descent import HuberFit, HuberSettings
from privreg.algorithms.whitened_descent import NoisyValue
from privreg.inference.population_intervals import ShrunkMoments, shrunk_moments

P, GAMMA = 3, 4.0
NORMAL = norm.cdf(1.0) - norm.cdf(-1.0)
A = np.array([[0.7, 0.1, 0.0], [0.1, 0.6, -0.05], [0.0, -0.05, 0.5]])
B = np.array([[0.9, 0.0, 0.2], [0.0, 0.8, 0.1], [0.2, 0.1, 1.2]])
# Below it the weight of a deviation is not to be told from noise.
HIDDEN = 2 / np.sqrt(P * (P + 1))


def fit_of(**changes):
    """A fit whose statistics carry no noise, in coordinates that are white already."""
    statistics = {
        "gram": NoisyValue(np.eye(P), 0.0),
        "last_root": np.eye(P),
        "gram_weight": 0.0,
        "curvature": NoisyValue(A, 0.0),
        "second_moment": NoisyValue(B, 0.0),
        "mean_curvature": NoisyValue(np.asarray(np.trace(A) / P), 0.0),
        "mean_square": NoisyValue(np.asarray(np.trace(B) / P), 0.0),
    } | changes
    return HuberFit(
        iterates=np.ones((2, P)),
        whitening=np.eye(P),
        step_matrices=np.array([np.eye(P)] * 2),
        gradient_noise_stds=np.zeros(2),
        clip_norm=GAMMA,
        residual_scale=1.0,
        initial_scale=1.0,
        sample_size=100.0,
        symmetric=True,
        settings=HuberSettings(clip_width=1.0),
        spending=(),
        **statistics,
    )


def number(value, noise_std=0.0):
    return NoisyValue(np.asarray(value), noise_std)


def test_moments_without_noise_are_kept():
    found = shrunk_moments(fit_of())
    np.testing.assert_allclose(found.curvature, A, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.second_moment, B, rtol=1e-12, atol=1e-15)
    assert found.mean_curvature == pytest.approx(0.6)
    assert found.curvature_noise == found.second_moment_noise == found.step_noise == 0
    assert not np.any(found.gram_noise)


def test_moments_that_noise_hides_are_means_times_those_of_the_rows():
    found = shrunk_moments(fit_of(curvature=NoisyValue(A, 10.0), second_moment=NoisyValue(B, 20.0)))
    np.testing.assert_allclose(found.curvature, 0.6 * np.eye(P), atol=1e-12)
    np.testing.assert_allclose(found.second_moment, 2.9 / 3 * np.eye(P), atol=1e-12)
    assert found.curvature_noise == pytest.approx(10.0 * np.sqrt(HIDDEN))
    assert found.second_moment_noise == pytest.approx(20.0 * np.sqrt(HIDDEN))
    assert found.step_noise == found.curvature_noise


def test_what_noise_is_left_is_the_root_of_the_weight():
    """ω = 1 - s² p(p+1)/2 / ‖Y - T‖²; the targets are 0.6 I and 2.9/3 I."""
    distances = [np.sum((each - np.trace(each) / P * np.eye(P)) ** 2) for each in (A, B)]
    stds = [np.sqrt(0.1 * distance / 6) for distance in distances]
    found = shrunk_moments(
        fit_of(curvature=NoisyValue(A, stds[0]), second_moment=NoisyValue(B, stds[1]))
    )
    assert found.curvature_noise == pytest.approx(stds[0] * np.sqrt(0.9))
    assert found.second_moment_noise == pytest.approx(stds[1] * np.sqrt(0.9))
    np.testing.assert_allclose(found.curvature, 0.9 * A + 0.1 * 0.6 * np.eye(P), atol=1e-12)


def test_of_one_coefficient_all_noise_is_left():
    """Weights are at most 1: with one coefficient 2/√2 would be more."""
    one = fit_of(
        gram=NoisyValue(np.eye(1), 0.0),
        last_root=np.eye(1),
        curvature=NoisyValue(A[:1, :1], 0.3),
        second_moment=NoisyValue(B[:1, :1], 0.4),
    )
    found = shrunk_moments(replace(one, iterates=np.ones((2, 1))))
    assert (found.curvature_noise, found.second_moment_noise) == (0.3, 0.4)


@pytest.mark.parametrize("weight", [0.1, 0.9])
def test_without_moments_both_are_those_of_the_rows(weight):
    """Σ is what the last root made of the Gram matrix, of mean diagonal 1."""
    root = np.array([[1.0, 0.2, 0.0], [0.2, 0.8, 0.1], [0.0, 0.1, 0.7]])
    gram = np.diag([1.0, 1.2, 1.5])
    fit = fit_of(
        curvature=None,
        second_moment=None,
        gram=NoisyValue(gram, 1e-12),
        last_root=root,
        gram_weight=weight,
    )
    found = shrunk_moments(fit)
    rows = root.T @ gram @ root
    rows *= P / np.trace(rows)
    np.testing.assert_allclose(found.curvature, 0.6 * rows, rtol=1e-9)
    np.testing.assert_allclose(found.second_moment, 2.9 / 3 * rows, rtol=1e-9)
    assert found.curvature_noise == found.second_moment_noise == 0
    left = 1e-12 * np.sqrt(max(weight, HIDDEN))
    np.testing.assert_allclose(found.gram_noise, left * root.T @ root, rtol=1e-9)
    typical = np.trace(root.T @ root) / P
    assert found.step_noise == pytest.approx(0.6 * left * typical, rel=1e-9, abs=0)
    alone = shrunk_moments(replace(fit, curvature=NoisyValue(A, 0.0)))
    np.testing.assert_array_equal(alone.curvature, found.curvature)


def test_directions_without_rows_are_raised():
    """A tenth of a tenth of what is seen: rows to 0.05, A and B to 0.05 and 0.02 of their means."""
    gram = np.diag([1.0, 1.0, 0.001])
    found = shrunk_moments(fit_of(curvature=None, second_moment=None, gram=NoisyValue(gram, 0.0)))
    np.testing.assert_allclose(
        np.diag(found.curvature), 0.6 * np.array([1, 1, 0.05]) * 3 / 2.05, rtol=1e-9
    )
    lost = np.diag([1.0, 0.8, 0.0])
    found = shrunk_moments(
        fit_of(curvature=NoisyValue(lost, 0.0), second_moment=NoisyValue(lost, 0.0))
    )
    np.testing.assert_allclose(np.diag(found.curvature), [1, 0.8, 0.05 * 0.6], rtol=1e-9)
    middle = (0.6 + 2.9 / 3) / 2
    np.testing.assert_allclose(np.diag(found.second_moment), [1, 0.8, 0.02 * middle], rtol=1e-9)


@pytest.mark.parametrize(("released", "kept"), [(-1.0, 0.1 * NORMAL), (9.0, 1.5), (0.4, 0.4)])
def test_mean_curvature_stays_within_reach_of_the_normal_law(released, kept):
    fit = fit_of(curvature=None, second_moment=None, mean_curvature=number(released))
    assert shrunk_moments(fit).mean_curvature == pytest.approx(kept)


@pytest.mark.parametrize(("released", "kept"), [(-1.0, 1e-3), (9.0, 1.0), (0.4 * 16 / 3, 0.4)])
def test_mean_square_is_at_most_that_of_the_clip(released, kept):
    """γ²/p, of which at least a thousandth is taken to be there."""
    fit = fit_of(curvature=None, second_moment=None, mean_square=number(released))
    np.testing.assert_allclose(
        shrunk_moments(fit).second_moment, kept * GAMMA**2 / P * np.eye(P), rtol=1e-9
    )


def test_means_are_weighed_by_their_noise():
    """A mean diagonal has a variance of s²/p: with s² = 3/4 a quarter, beside 1/12 of a number."""
    fit = fit_of(
        curvature=NoisyValue(A, np.sqrt(0.75)),
        second_moment=None,
        mean_curvature=number(1.0, np.sqrt(1 / 12)),
    )
    assert shrunk_moments(fit).mean_curvature == pytest.approx(0.25 * 0.6 + 0.75 * 1.0)
    even = fit_of(second_moment=None, mean_curvature=number(1.0))
    assert shrunk_moments(even).mean_curvature == pytest.approx(0.8)
    exact = fit_of(second_moment=None, mean_curvature=number(1.0, 0.1))
    assert shrunk_moments(exact).mean_curvature == pytest.approx(0.6)


DIRECTION = np.array([1.0, -2.0, 0.5])
UNIT = DIRECTION / np.linalg.norm(DIRECTION)


@pytest.mark.parametrize(("ratio", "seen"), [(1.644, False), (1.646, True)])
def test_a_direction_is_seen_beyond_its_noise(ratio, seen):
    along = UNIT @ A @ UNIT
    fit = fit_of(curvature=NoisyValue(A, along / ratio))
    assert (shrunk_moments(fit).along(fit, DIRECTION) is not None) == seen
    root = np.diag([1.0, 2.0, 0.5])
    plain = fit_of(curvature=None, last_root=root, gram=NoisyValue(A, 1.0))
    before = root @ UNIT
    noise = before @ A @ before / (before @ before) / ratio
    plain = replace(plain, gram=NoisyValue(A, noise))
    assert (shrunk_moments(plain).along(plain, DIRECTION) is not None) == seen


def test_a_direction_that_shrinkage_leaves_alone_is_not_touched():
    fit = fit_of(curvature=NoisyValue(A, 0.01))
    moments = shrunk_moments(fit)
    assert moments.along(fit, DIRECTION) is moments


THIN = np.diag([0.9, 0.85, 0.05])


@pytest.mark.parametrize("length", [1e-24, 1.0, 1e24])
def test_a_thin_direction_is_known_within_its_own_noise(length):
    """Shrinkage has made 0.6 of 0.05; its own noise of 0.02 allows 0.07."""
    fit = fit_of(curvature=NoisyValue(THIN, 0.02))
    hidden = replace(shrunk_moments(fit), curvature=0.6 * np.eye(P), second_moment=B)
    found = hidden.along(fit, length * np.array([0.0, 0.0, -1.0]))
    np.testing.assert_allclose(found.curvature, np.diag([0.6, 0.6, 0.07]), rtol=1e-12)
    root = np.diag([1, 1, np.sqrt(0.07 / 0.6)])
    np.testing.assert_allclose(found.second_moment, root @ B @ root, rtol=1e-12)
    assert found.curvature_noise == 0.02
    assert found.second_moment_noise == hidden.second_moment_noise
    assert not np.any(found.gram_noise)


def test_what_is_taken_along_one_direction_leaves_a_definite_matrix():
    """Taken from a matrix along no eigenvector, the rest stays at half of what is allowed."""
    fit = fit_of(curvature=NoisyValue(0.1 * np.eye(P), 0.02))
    tilted = np.diag([0.9, 0.6, 0.1])
    hidden = replace(shrunk_moments(fit), curvature=tilted)
    assert UNIT @ tilted @ UNIT - 0.12 > 0
    taken = tilted - (UNIT @ tilted @ UNIT - 0.12) * np.outer(UNIT, UNIT)
    values, vectors = np.linalg.eigh(taken)
    assert values[0] < 0.06 < values[1]
    values[0] = 0.06
    found = hidden.along(fit, DIRECTION)
    np.testing.assert_allclose(found.curvature, (vectors * values) @ vectors.T, rtol=1e-9)


def test_without_moments_a_thin_direction_is_that_of_the_rows():
    root = np.diag([1.0, 1.0, 2.0])
    gram = np.diag([1.0, 1.0, 0.05])
    fit = fit_of(curvature=None, last_root=root, gram=NoisyValue(gram, 0.01))
    hidden = replace(shrunk_moments(fit), curvature=0.6 * np.eye(P), second_moment=B)
    assert hidden.mean_curvature == pytest.approx(0.6)
    found = hidden.along(fit, np.array([0.0, 0.0, 3.0]))
    # Root, value and noise: 4 · 0.05 and 4 · 0.01, of which 0.6 enter the curvature.
    np.testing.assert_allclose(found.curvature, np.diag([0.6, 0.6, 0.6 * 0.24]), rtol=1e-12)
    np.testing.assert_allclose(found.gram_noise, 0.04 * np.eye(P), rtol=1e-12)
    assert found.curvature_noise == 0


def moments_of(**changes):
    return ShrunkMoments(
        **(
            {
                "curvature": A,
                "second_moment": B,
                "mean_curvature": 0.6,
                "curvature_noise": 0.0,
                "second_moment_noise": 0.0,
                "gram_noise": np.zeros((P, P)),
            }
            | changes
        )
    )


def symmetric_basis():
    """Orthonormal in the Frobenius norm: coefficients of noise s uᵀEu ~ N(0, s²) have s each."""
    for i in range(P):
        for j in range(i + 1):
            matrix = np.zeros((P, P))
            matrix[i, j] = matrix[j, i] = 1.0 if i == j else np.sqrt(0.5)
            yield matrix


def slopes(function, at, step=1e-5):
    return np.array(
        [
            (function(at + step * each) - function(at - step * each)) / (2 * step)
            for each in symmetric_basis()
        ]
    )


@pytest.mark.parametrize("target", ["population", "empirical"])
@pytest.mark.parametrize(("noise_a", "noise_b"), [(0.03, 0.0), (0.0, 0.07), (0.03, 0.07)])
def test_relative_noise_is_that_of_first_order(target, noise_a, noise_b):
    """Of uᵀA⁻¹(B/n + M)A⁻¹u, or without B, in A and B; M is what A makes of the private part."""
    n, privacy = 50.0, np.array([[0.02, 0.005, 0.0], [0.005, 0.03, 0.0], [0.0, 0.0, 0.01]])
    inverse = np.linalg.inv(A)
    sampling, middle = inverse @ B @ inverse / n, A @ privacy @ A
    share = 1.0 if target == "population" else 0.0

    def variance(a, b):
        solved = np.linalg.solve(a, UNIT)
        return solved @ (share * b / n + middle) @ solved

    noise = np.hypot(
        noise_a * np.linalg.norm(slopes(lambda a: variance(a, B), A)),
        noise_b * np.linalg.norm(slopes(lambda b: variance(A, b), B)),
    )
    moments = moments_of(curvature_noise=noise_a, second_moment_noise=noise_b)
    found = moments.relative_noise(DIRECTION, sampling, privacy, target)
    assert found == pytest.approx(noise / variance(A, B), rel=1e-6, abs=1e-12)
    longer = moments.relative_noise(1e24 * DIRECTION, sampling, privacy, target)
    assert longer == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("target", ["population", "empirical"])
def test_relative_noise_in_rows_moves_either_part_by_its_power(target):
    """σ of the rows along u enters sampling by 1/σ and privacy by 1/σ²."""
    sigma, spread, sampling, privacy = 0.4, 0.05, 0.7, 0.2
    moments = moments_of(
        curvature=0.6 * np.diag([1.0, 1.0, sigma]), gram_noise=np.diag([9.0, 9.0, spread])
    )
    parts = (np.diag([1, 1, sampling]), np.diag([1, 1, privacy]))
    direction = np.array([0.0, 0.0, 2.0])
    found = moments.relative_noise(direction, *parts, target)
    whole = sampling + privacy if target == "population" else privacy
    moved = (sampling if target == "population" else 0.0) + 2 * privacy
    assert found == pytest.approx(spread / sigma * moved / whole)
    both = replace(moments, curvature_noise=0.03)
    alone = replace(both, gram_noise=np.zeros((P, P)))
    other = alone.relative_noise(direction, *parts, target)
    assert both.relative_noise(direction, *parts, target) == pytest.approx(np.hypot(found, other))


def test_a_curvature_that_is_not_symmetric_is_made_so():
    twisted = A + np.array([[0, 0.1, 0], [-0.1, 0, 0], [0, 0, 0]])
    found = shrunk_moments(fit_of(curvature=NoisyValue(twisted, 0.0)))
    np.testing.assert_allclose(found.curvature, A, rtol=1e-12, atol=1e-15)
