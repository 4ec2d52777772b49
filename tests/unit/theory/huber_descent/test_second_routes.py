"""Huber descent at random inputs: dense linear algebra by other ways, and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from privreg.theory.huber_descent import (
    averaging_step_sizes,
    inverse_root,
    noise_edge,
    privacy_covariance,
    sandwich,
    shrink_to,
    shrink_to_identity,
    symmetric_noise,
)

SEEDS = range(6)


def symmetric(rng: np.random.Generator, p: int) -> np.ndarray:
    matrix = rng.standard_normal((p, p))
    return matrix + matrix.T


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_iterate_has_the_covariance_of_a_linear_map(seed: int) -> None:
    """One Kronecker-structured linear map a step, on the covariance as a vector."""
    rng = np.random.default_rng(seed)
    p, steps = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    unit = 10.0 ** rng.uniform(-6, 6)
    slope = symmetric(rng, p) * unit
    matrices = rng.standard_normal((steps, p, p)) / unit
    stds = 10.0 ** rng.uniform(-6, 6) * rng.random(steps)
    root = rng.standard_normal((p, p)) * 10.0 ** rng.uniform(-6, 6)
    unknown = float(rng.choice([0.0, unit * rng.random()]))
    found = privacy_covariance(
        slope, matrices, stds, start_covariance=root @ root.T, curvature_noise=unknown
    )
    vector = (root @ root.T).reshape(-1)
    one = np.eye(p).reshape(-1)
    for matrix, std in zip(matrices, stds, strict=True):
        kept, through = np.eye(p) - matrix @ slope, np.kron(matrix, matrix)
        missed = unknown**2 / 2 * through @ (np.outer(one, one) + np.eye(p * p))
        vector = (np.kron(kept, kept) + missed) @ vector + std**2 * through @ one
    np.testing.assert_allclose(
        found, vector.reshape(p, p), rtol=1e-9, atol=1e-11 * np.abs(vector).max()
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sandwich_is_that_of_exact_inverses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 5))
    u, v = (np.linalg.qr(rng.standard_normal((p, p)))[0] for _ in range(2))
    spread = 10.0 ** rng.uniform(-8, 0, p)
    slope = (u * spread) @ v * 10.0 ** rng.uniform(-6, 6)
    middle = symmetric(rng, p) * 10.0 ** rng.uniform(-6, 6)
    n = 10.0 ** rng.uniform(0, 12)
    found = sandwich(slope, middle, sample_size=n)
    with mp.workdps(80):
        inverse = mp.matrix(slope.tolist()) ** -1
        exact = inverse * mp.matrix(middle.tolist()) * inverse.T / mp.mpf(n)
        wanted = np.array(exact.tolist(), dtype=float)
    condition = np.linalg.cond(slope)
    scale = np.linalg.norm(np.linalg.inv(slope), 2) ** 2 * np.linalg.norm(middle, 2) / n
    # Two solves, each backward stable.
    assert np.abs(found - wanted).max() <= 100 * p * condition * 2e-16 * scale


@pytest.mark.parametrize("seed", SEEDS)
def test_the_shrunk_matrix_is_that_of_exact_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        p = int(rng.integers(1, 5))
        unit = 10.0 ** rng.uniform(-12, 12)
        noisy, target = symmetric(rng, p) * unit, symmetric(rng, p) * unit
        noise = float(rng.choice([0.0, unit * rng.random()]))
        found = shrink_to(target, noisy, noise_std=noise)
        deviation = [
            Fraction(y) - Fraction(t)
            for y, t in zip(noisy.ravel().tolist(), target.ravel().tolist(), strict=True)
        ]
        observed = sum(x * x for x in deviation)
        expected = Fraction(noise) ** 2 * p * (p + 1) / 2
        weight = float(max(Fraction(0), 1 - expected / observed))
        assert found.weight == pytest.approx(weight, abs=1e-13)
        np.testing.assert_allclose(
            found.matrix, target + weight * (noisy - target), atol=1e-12 * unit
        )
        centre = np.trace(noisy) / p
        if p > 1:
            one = shrink_to_identity(noisy, noise_std=noise)
            assert one.weight == shrink_to(centre * np.eye(p), noisy, noise_std=noise).weight
            np.testing.assert_allclose(np.trace(one.matrix), p * centre, atol=1e-12 * unit * p)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_inverse_root_solves_its_equation_above_the_floor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 5))
    unit = 10.0 ** rng.uniform(-12, 12)
    matrix = symmetric(rng, p) * unit
    least = unit * 10.0 ** rng.uniform(-3, 1)
    root = inverse_root(matrix, floor=least)
    values, vectors = np.linalg.eigh(matrix)
    raised = (vectors * np.maximum(values, least)) @ vectors.T
    np.testing.assert_allclose(root @ (raised / unit) @ root * unit, np.eye(p), atol=1e-9)
    np.testing.assert_allclose(root, root.T, rtol=1e-9, atol=1e-12 * np.abs(root).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_and_steps_are_what_they_are_made_of(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, std = int(rng.integers(1, 40)), 10.0 ** rng.uniform(-12, 12)
    normals = np.random.default_rng(seed).standard_normal((p, p))
    found = symmetric_noise(p, noise_std=std, rng=np.random.default_rng(seed))
    np.testing.assert_allclose(found, 0.5 * std * normals + 0.5 * std * normals.T, rtol=1e-12)
    assert noise_edge(p, noise_std=std) == pytest.approx(float(mp.mpf(std) * mp.sqrt(2 * p)))
    warm, final = int(rng.integers(0, 9)), int(rng.integers(1, 40))
    # A Newton step of size 1/k on the k-th draw gives the mean of all draws.
    draws = rng.standard_normal(final)
    position = 0.0
    sizes = averaging_step_sizes(warm, final)
    assert sizes.size == warm + final
    assert np.all(sizes[:warm] == 1)
    for size, draw in zip(sizes[warm:], draws, strict=True):
        position -= size * (position - draw)
    assert position == pytest.approx(draws.mean(), abs=1e-12)
