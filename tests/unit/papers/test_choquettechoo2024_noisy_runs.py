"""Responses of Noisy-FTRL's iterate, by changing one draw at a time."""

import numpy as np
import pytest

from reproduction.papers.choquettechoo2024.noisy_runs import NoisyRun
from reproduction.papers.choquettechoo2024.regression import Covariance

STEPS, DIMENSION = 7, 3


@pytest.fixture
def run() -> NoisyRun:
    return NoisyRun(Covariance(dimension=DIMENSION, decay=1.0), STEPS, 0.1, 0.7)


def test_responses_are_what_a_unit_of_a_draw_moves(run, rng):
    normals = rng.standard_normal((STEPS, 2 * DIMENSION + 1))
    path = run._path(normals)
    squares = np.zeros((2, STEPS, STEPS))
    for drawn in range(STEPS):
        for column in range(DIMENSION, 2 * DIMENSION + 1):
            part = int(column > DIMENSION)
            changed = normals.copy()
            changed[drawn, column] += 1.0
            moved = (run._path(changed).parts - path.parts)[1:, 1 + part] / run.step_size
            # Columns hold the label, and white noise in units of its standard deviation.
            moved /= run.gradient_noise_std if part else 1.0
            squares[part, :, drawn] += np.sum(moved**2, axis=1)
    np.testing.assert_allclose(path.sums, squares.sum(axis=2).T, rtol=1e-9)
    sums = np.cumsum(np.abs(run._coefficients))
    decay = (1 - run.step_size * run.least) ** np.arange(STEPS)
    halves = [np.dot(np.abs(run._coefficients[: t + 1]), decay[t::-1] ** 0.5) for t in range(STEPS)]
    for step in range(STEPS):
        labels, noise = squares[:, step, : step + 1]
        ages = np.arange(step, -1, -1)
        expected = (
            np.max(labels / decay[ages]),
            np.max(noise / np.array(halves)[ages]),
            np.max(noise / (DIMENSION * sums[ages] ** 2)),
        )
        np.testing.assert_allclose(path.largest[step], expected, rtol=1e-9)


def test_parts_add_up_to_the_recursion_and_sizes_are_of_its_gradients(run, rng):
    normals = rng.standard_normal((STEPS, 2 * DIMENSION + 1))
    path, zeta = run._path(normals), 5.0
    sizes = run._sizes(path, np.array([[[zeta]]]))[0]
    features = normals[:, :DIMENSION] * np.sqrt(run.eigenvalues)
    white = run.gradient_noise_std * normals[:, DIMENSION + 1 :]
    error = run.distance
    for step, x in enumerate(features):
        gradient = (x @ error - zeta * normals[step, DIMENSION]) * x
        noise = run._coefficients[: step + 1] @ white[step::-1]
        error = error - run.step_size * (gradient + noise)
        np.testing.assert_allclose(path.parts[step + 1].T @ [1.0, zeta, 1.0], error, rtol=1e-9)
        np.testing.assert_allclose(sizes[step, :2], [error @ error, gradient @ gradient], rtol=1e-9)
