"""Functions of encoders, decoders and workloads against rational arithmetic and dense matrices."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import toeplitz as dense_toeplitz

from privreg.noise import optimal, sensitivity, streams, toeplitz
from privreg.noise.covariance import DiagonalCovariance, PublicCovariance
from privreg.noise.streams import SquareRootCorrelation

from . import exact

SEEDS = pytest.mark.parametrize("seed", range(20))


def numbers(rng: np.random.Generator, shape, *, decades: float = 12.0) -> np.ndarray:
    """Of the whole range: a common unit, and entries far apart in size or not."""
    spread = rng.choice([0.0, 1.0, 10.0])
    unit = rng.uniform(-decades, decades - 1 - spread)
    values = rng.standard_normal(shape) * 10.0 ** (unit + rng.uniform(0, spread, shape))
    return np.clip(values, -(10.0**decades), 10.0**decades)


def patterns(steps: int, count: int, separation: int) -> list[tuple[int, ...]]:
    return [
        chosen
        for size in range(1, count + 1)
        for chosen in combinations(range(steps), size)
        if all(later - earlier >= separation for earlier, later in pairwise(chosen))
    ]


@SEEDS
@pytest.mark.parametrize("kind", ["toeplitz", "falling", "matrix"])
def test_no_sensitivity_is_below_the_exact_one(kind, seed):
    rng = np.random.default_rng(seed)
    steps, k, b = (int(rng.integers(1, most)) for most in (8, 5, 5))
    encoder = numbers(rng, (int(rng.integers(1, 6)), steps) if kind == "matrix" else steps)
    if kind == "falling":
        encoder = np.sort(np.abs(encoder))[::-1]
    if seed % 3 == 0:
        encoder = np.abs(encoder)
    matrix = exact.fractions(encoder) if kind == "matrix" else exact.dense(exact.fractions(encoder))
    single = exact.largest_square(matrix, [(t,) for t in range(steps)])
    spaced = exact.largest_square(matrix, patterns(steps, k, b))
    ordered = exact.largest_square(
        matrix, [tuple(range(first, steps, b))[:k] for first in range(steps)]
    )
    few = 10 * exact.ULP
    fixed = {"participations": k, "separation": b}
    found = sensitivity.single_participation_sensitivity(encoder)
    assert abs(exact.shortfall(found, single)) <= few
    assert sensitivity.single_participation_sensitivity(1e-170 * encoder) >= 1e-170 * found
    bound = sensitivity.multi_participation_bound(encoder, **fixed)
    assert exact.shortfall(bound, spaced) <= few
    found = sensitivity.fixed_order_sensitivity(encoder, **fixed)
    assert exact.shortfall(found, ordered) <= few
    if np.all(encoder >= 0):
        # Signs cannot make it larger.
        assert exact.shortfall(found, ordered) >= -few
    if kind == "falling":
        found = sensitivity.multi_participation_sensitivity(encoder, **fixed)
        assert abs(exact.shortfall(found, spaced)) <= few
        assert found == bound
        # Of such encoders the fixed order is the worst.
        assert ordered == spaced


@pytest.mark.parametrize("steps", [1_000_000, 4096])
def test_a_long_norm_has_no_rounding_that_grows(steps):
    """Plain summation of a million equal squares is 1,500 ulp low."""
    square = Fraction(0.1) ** 2 * steps
    found = sensitivity.single_participation_sensitivity(np.full(steps, 0.1))
    assert abs(exact.shortfall(found, square)) <= 4 * exact.ULP
    matrix = np.full((min(steps, 4096), 2), 0.1)
    square = Fraction(0.1) ** 2 * len(matrix)
    found = sensitivity.single_participation_sensitivity(matrix)
    assert abs(exact.shortfall(found, square)) <= 4 * exact.ULP


@SEEDS
def test_variances_are_exact_to_rounding(seed):
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(1, 9))
    first, second = numbers(rng, steps), numbers(rng, steps)
    square = exact.dense(exact.fractions(second))
    assert np.array_equal(
        np.block([[square, 0 * square], [0 * square, square]]),
        exact.fractions(toeplitz.restarted(toeplitz.dense_matrix(second), copies=2)),
    )
    # Variances, of a Toeplitz decoder and of the same as a matrix.
    rows = exact.dense(exact.fractions(first)) @ square
    variances = np.sum(rows**2, axis=1)
    sizes = np.sum((exact.dense(exact.fractions(np.abs(first))) @ abs(square)) ** 2, axis=1)
    for decoder in (second, toeplitz.dense_matrix(second)):
        found = toeplitz.step_variances(decoder, workload=first)
        for got, true, size in zip(found, variances, sizes, strict=True):
            assert abs(Fraction(float(got)) - true) <= size * Fraction(8 * steps * exact.ULP)
        scale = 10.0 ** rng.uniform(-3, 3)
        summed = toeplitz.workload_errors(decoder, sensitivity=scale, workload=first)
        assert summed.last == pytest.approx(scale * found[-1] ** 0.5, rel=1e-12)
        assert summed.mean == pytest.approx(scale * np.mean(found) ** 0.5, rel=1e-12)
        assert summed.largest == pytest.approx(scale * np.max(found) ** 0.5, rel=1e-12)


@SEEDS
def test_streams_are_the_decoder_times_white_noise(seed):
    rng = np.random.default_rng(seed)
    steps, bands = int(rng.integers(1, 300)), int(rng.integers(1, 300))
    decoder = numbers(rng, bands, decades=6)
    white = np.random.default_rng(seed).standard_normal((steps, 2))
    column = np.pad(decoder, (0, max(steps - bands, 0)))[:steps]
    matrix = dense_toeplitz(column, np.zeros(steps))
    # Transforms lose some ulp of the norms of the two factors in every entry.
    size = 200 * exact.ULP * np.linalg.norm(column) * np.linalg.norm(white, axis=0)
    wanted = matrix @ white
    made = [
        streams.correlate_noise(decoder, white),
        streams.ToeplitzNoise(column, dimension=2, rng=np.random.default_rng(seed)).draw(steps),
    ]
    for found in made:
        assert np.all(np.abs(found - wanted) <= size)


@pytest.mark.parametrize("seed", range(8))
def test_errors_of_damping_and_optimum_are_those_of_dense_matrices(seed):
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(2, 25))
    workload = rng.standard_normal((int(rng.integers(1, 4)), steps)) * 10.0 ** rng.uniform(-3, 3)
    weights = rng.random(len(workload)) + 0.01
    criterion = str(rng.choice(["mean", "last"]))
    settings = {"criterion": criterion, "workload": workload, "weights": weights}

    def error(encoder: np.ndarray, gamma: float) -> float:
        decoder = np.linalg.inv(dense_toeplitz(encoder, np.zeros(steps)))
        rows = [dense_toeplitz(kernel, np.zeros(steps)) @ decoder for kernel in workload]
        variance = np.array([np.sum(row**2, axis=1) for row in rows])
        summed = np.mean(variance, axis=1) if criterion == "mean" else variance[:, -1]
        return float(gamma * np.sqrt(weights @ summed))

    taken = {"participations": int(rng.integers(1, 4)), "separation": int(rng.integers(1, 5))}

    def damped_error(damping: float) -> float:
        encoder = toeplitz.damped_square_root_encoder(steps, damping=damping)
        return error(encoder, sensitivity.multi_participation_sensitivity(encoder, **taken))

    best = optimal.best_damping(steps, **settings, **taken)
    others = [damped_error(damping) for damping in (0.0, *np.geomspace(1e-7, 1, 60))]
    assert damped_error(best) <= min(others) * (1 + 1e-6)
    optimum = optimal.toeplitz_optimum(steps, **settings)
    assert optimum.error == pytest.approx(
        error(optimum.encoder, float(np.linalg.norm(optimum.encoder))), rel=1e-8
    )
    for _ in range(20):
        other = optimum.encoder + 10.0 ** rng.uniform(-4, -1) * np.append(
            0.0, rng.standard_normal(steps - 1)
        )
        assert optimum.error <= error(other, float(np.linalg.norm(other))) * (1 + 1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_dense_optimum_has_the_error_that_its_matrices_have(seed):
    rng = np.random.default_rng(seed)
    epochs, period = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    steps = epochs * period
    workload = np.append(1.0, 0.3 * rng.standard_normal(steps - 1)) * 10.0 ** rng.uniform(-3, 3)
    found = optimal.dense_optimum(steps, epochs=epochs, workload=workload)
    gamma = sensitivity.fixed_order_sensitivity(
        found.encoder, participations=epochs, separation=period
    )
    recomputed = toeplitz.workload_errors(found.decoder, sensitivity=gamma, workload=workload)
    assert recomputed.mean == pytest.approx(found.error, rel=1e-8)
    assert_allclose(found.encoder @ found.decoder, np.eye(steps), atol=1e-10)
    assert -1e-9 <= found.gap < 0.01


@SEEDS
def test_square_root_correlation_has_its_exact_sensitivity(seed):
    rng = np.random.default_rng(seed)
    steps, damping = int(rng.integers(1, 30)), float(rng.choice([rng.random(), 0.0, 1.0]))
    square, term, factor = Fraction(0), Fraction(1), 1 - Fraction(damping)
    for t in range(1, steps + 1):
        square += term**2
        term *= factor * Fraction(2 * t - 1, 2 * t)
    found = SquareRootCorrelation(damping).sensitivity(steps)
    assert abs(exact.shortfall(found, square)) <= 30 * exact.ULP


@SEEDS
def test_inverse_norms_are_never_below_the_exact_ones(seed):
    rng = np.random.default_rng(seed)
    rows, d = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    features = rng.standard_normal((rows, d)) * 10.0 ** rng.uniform(-3, 3, d)
    largest = float(np.linalg.eigvalsh(features.T @ features)[-1])
    ridge = largest * 10.0 ** rng.uniform(-8.99, 1)
    vectors = np.stack([features[0], rng.standard_normal(d)])
    given = exact.fractions(features)
    gram = given.T @ given + exact.fractions(np.eye(d)) * Fraction(ridge)
    inverse = exact.solved(gram)
    shape = PublicCovariance(features, ridge=ridge)
    found = shape.inverse_norms(vectors)
    # Squares that underflow make no norm too small.
    assert np.all(shape.inverse_norms(1e-170 * vectors) >= 1e-170 * found)
    for vector, norm in zip(exact.fractions(vectors), found, strict=True):
        short = exact.shortfall(float(norm), rows * (vector @ inverse @ vector))
        # The allowance covers rounding, and is of its order.
        assert -30 * exact.ULP * (rows + d) * (1 + largest / ridge) <= short <= 2 * exact.ULP
    diagonal = np.abs(numbers(rng, d)) + 1e-12
    found = DiagonalCovariance(diagonal).inverse_norms(vectors)
    assert np.all(DiagonalCovariance(diagonal).inverse_norms(1e-170 * vectors) >= 1e-170 * found)
    for vector, norm in zip(exact.fractions(vectors), found, strict=True):
        square = sum(vector**2 / exact.fractions(diagonal))
        assert abs(exact.shortfall(float(norm), square)) <= 6 * exact.ULP
