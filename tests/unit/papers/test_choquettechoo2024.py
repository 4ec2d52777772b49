"""The recipes of choquettechoo2024: mechanisms by dense matrices, responses by one draw."""

import numpy as np
import pytest
from scipy.linalg import circulant, sqrtm
from scipy.special import logsumexp

from reproduction.papers.choquettechoo2024 import mechanisms
from reproduction.papers.choquettechoo2024.experiments.amplification import sampled_divergences
from reproduction.papers.choquettechoo2024.experiments.unclipped_runs import NoisyRun, Parameters
from reproduction.papers.choquettechoo2024.mechanisms import (
    MECHANISMS,
    Participation,
    prefix_errors,
)

EPOCHS = Participation(steps=24, participations=3, separation=8)
ONCE = Participation(steps=24, participations=1, separation=1)


@pytest.mark.parametrize("setting", [ONCE, EPOCHS])
def test_fft_mechanism_equals_its_matrices(setting):
    steps = setting.steps
    ones = np.concatenate([np.ones(steps), np.zeros(steps)])
    root = sqrtm(circulant(ones).astype(complex) + 0j)
    np.testing.assert_allclose(root @ root, circulant(ones), atol=1e-6)
    encoder, decoder = root[:, :steps], root[:steps]
    np.testing.assert_allclose(decoder @ encoder, np.tril(np.ones((steps, steps))), atol=1e-6)
    columns = encoder[:, :: setting.separation] if setting.participations > 1 else encoder[:, :1]
    gram = np.abs(columns.conj().T @ columns)
    expected = np.sqrt(gram.sum()) * np.linalg.norm(decoder[0])
    found = mechanisms._fft(setting, 1).errors
    assert found.mean == pytest.approx(expected, rel=1e-5)
    assert found.mean == found.largest


@pytest.mark.parametrize("setting", [ONCE, EPOCHS])
def test_no_mechanism_beats_the_dense_optimum_and_damping_helps(setting):
    errors = {name: prefix_errors(name, setting).errors.mean for name in MECHANISMS}
    best = errors.pop("multi_epoch")
    assert all(best <= error * (1 + 1e-3) for error in errors.values())
    assert errors["nu_dp_ftrl"] <= errors["optimal_cc"]
    assert errors["nu_dp_ftrl"] < errors["dp_sgd"]


def test_restarts_of_the_fft_mechanism_are_block_diagonal():
    stretches = 3
    length = EPOCHS.steps // stretches
    root = sqrtm(circulant(np.concatenate([np.ones(length), np.zeros(length)])).astype(complex))
    encoder, decoder = np.linalg.norm(root[:, 0]), np.linalg.norm(root[0])
    # One visit a stretch: columns of different stretches do not overlap.
    before = np.repeat(np.arange(stretches), length)
    expected = encoder * np.sqrt(stretches) * decoder * np.sqrt(np.mean(before + 1))
    assert mechanisms._fft(EPOCHS, stretches).errors.mean == pytest.approx(expected, rel=1e-5)


STEPS, DIMENSION = 7, 3


@pytest.fixture
def run() -> NoisyRun:
    parameters = Parameters(
        dimension=DIMENSION,
        decay=1.0,
        step_counts=[STEPS, 2 * STEPS],
        failure_probability=0.1,
        label_noise_stds=[0.5, 5.0],
        gradient_noise_std=0.7,
        rho=0.5,
    )
    return NoisyRun(parameters, STEPS)


def test_responses_are_what_a_unit_of_a_draw_moves(run, rng):
    normals = rng.standard_normal((STEPS, 2 * DIMENSION + 1))
    path = run.path(normals)
    squares = np.zeros((2, STEPS, STEPS))
    for drawn in range(STEPS):
        for column in range(DIMENSION, 2 * DIMENSION + 1):
            part = int(column > DIMENSION)
            changed = normals.copy()
            changed[drawn, column] += 1.0
            moved = (run.path(changed).parts - path.parts)[1:, 1 + part] / run.step_size
            # Columns hold the label, and white noise in units of its standard deviation.
            moved /= run.parameters.gradient_noise_std if part else 1.0
            squares[part, :, drawn] += np.sum(moved**2, axis=1)
    np.testing.assert_allclose(path.sums, squares.sum(axis=2).T, rtol=1e-9)
    sums = np.cumsum(np.abs(run.coefficients))
    decay = (1 - run.step_size * run.least) ** np.arange(STEPS)
    halves = [np.dot(np.abs(run.coefficients[: t + 1]), decay[t::-1] ** 0.5) for t in range(STEPS)]
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
    path, zeta = run.path(normals), 5.0
    sizes = run.sizes(path, np.array([[[zeta]]]))[0]
    features = normals[:, :DIMENSION] * np.sqrt(run.eigenvalues)
    white = run.parameters.gradient_noise_std * normals[:, DIMENSION + 1 :]
    error = run.distance
    for step, x in enumerate(features):
        gradient = (x @ error - zeta * normals[step, DIMENSION]) * x
        noise = run.coefficients[: step + 1] @ white[step::-1]
        error = error - run.step_size * (gradient + noise)
        np.testing.assert_allclose(path.parts[step + 1].T @ [1.0, zeta, 1.0], error, rtol=1e-9)
        np.testing.assert_allclose(sizes[step, :2], [error @ error, gradient @ gradient], rtol=1e-9)


@pytest.mark.parametrize(("share", "std"), [(1 / 342, 0.6), (0.01, 1.0), (0.1, 4.0)])
def test_divergences_of_a_sampled_step_equal_quadrature(share, std):
    x = np.linspace(-15 * std, 32 + 15 * std, 20_001)
    density = -0.5 * (x / std) ** 2 - np.log(std * (2 * np.pi) ** 0.5 / (x[1] - x[0]))
    ratio = np.logaddexp(np.log1p(-share), np.log(share) + (x - 0.5) / std**2)
    closed = sampled_divergences(share, std)
    for order in (2, 3, 8, 32):
        by_rule = logsumexp(density + order * ratio) / (order - 1)
        assert closed[order - 2] == pytest.approx(by_rule, rel=1e-8)
