"""Recipes that hold the proofs' steps of choquettechoo2024 and anon2024 against exact values."""

import numpy as np
import pytest

from privreg.theory.shaped_noise import private_risk
from reproduction.papers.anon2024 import gaussian_moments
from reproduction.papers.choquettechoo2024.experiments import finite_time_steps

LAM = np.array([1.0, 0.4, 0.1])


def generator(seed=0):
    return np.random.Generator(np.random.SFC64(seed))


def test_moments_of_the_tree_are_those_of_drawn_runs():
    size, eta, runs = 9, 0.2, 20000
    shape = LAM + 0.5
    rng = generator()
    nodes = rng.standard_normal((size, runs, 3)) * np.sqrt(shape)
    iterate, squares = np.zeros((runs, 3)), np.zeros((size, 3))
    for t in range(1, size):
        x = rng.standard_normal((runs, 3)) * np.sqrt(LAM)
        low = (t & -t).bit_length() - 1
        increment = nodes[t] - sum(nodes[t - (1 << level)] for level in range(low))
        iterate = iterate - eta * x * np.sum(x * iterate, axis=1, keepdims=True) - eta * increment
        squares[t] = np.mean(iterate**2, axis=0)
    exact = gaussian_moments.tree_moments(LAM, shape, eta, size)
    # A chi-squared mean of 20000 draws: 5 standard errors; two thirds is refused.
    np.testing.assert_allclose(squares[1:], exact[1:], rtol=5 * np.sqrt(3 / runs))
    assert np.all(np.abs(squares[1:] * 2 / 3 / exact[1:] - 1) > 0.2)


def test_lemma_b6_is_attained_by_noise_that_is_new_in_every_step():
    # Both sides of the lemma for independent noise differ by half of the diagonal.
    size, eta = 12, 0.2
    moments, path = np.zeros_like(LAM), [np.zeros_like(LAM)]
    for _ in range(size - 1):
        moments = gaussian_moments.transport(moments, LAM, eta) + eta**2
        path.append(moments)
    by_lemma = gaussian_moments.by_averages(LAM, eta, np.array(path))
    diagonal = 0.5 * np.sum(np.array(path) @ LAM) / size**2
    exact = private_risk(
        LAM, covariance=np.ones(3), noise_std=1.0, step_size=eta, sample_size=size,
        decoder=np.append(1.0, np.zeros(size - 1)),
    )  # fmt: skip
    assert by_lemma - diagonal == pytest.approx(exact, rel=1e-12)


def test_exact_covariances_are_those_of_drawn_features():
    eta, rng = 0.1, generator(1)
    x = rng.standard_normal((400000, 3)) * np.sqrt(LAM)
    matrix = np.diag([0.7, 0.2, 1.3])
    steps = np.einsum("ni,nj->nij", x, x @ matrix)
    moved = np.mean(np.einsum("nij,nj,nk->nik", steps, x, x), axis=0)
    exact = 2 * LAM**2 * np.diag(matrix) + LAM * (LAM @ np.diag(matrix))
    np.testing.assert_allclose(np.diag(moved), exact, rtol=0.05)
    transported = finite_time_steps.transported(LAM, eta, np.diag(matrix))
    direct = np.diag(matrix) - 2 * eta * LAM * np.diag(matrix) + eta**2 * exact
    np.testing.assert_allclose(transported, direct, rtol=1e-12)
