"""Sums of clipped gradients against their definition, in any blocks, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.clipped_gradient import (
    clipped_gradient_sum,
    require_clip_norm,
    rescale_chunks,
    rescale_samples,
)
from privreg.algorithms.samples import ArraySamples, Chunk, row_norms


def chunk_of(features: np.ndarray, labels: np.ndarray) -> Chunk:
    return Chunk(features, labels, row_norms(features))


@pytest.mark.parametrize("rows", [1, 16, 17, 40])
@pytest.mark.parametrize("lanes", [100, 2500])
def test_sums_are_those_of_a_loop_over_records(
    rng: np.random.Generator, rows: int, lanes: int
) -> None:
    """Of more lanes than 32768 / 16 a block holds 16 rows."""
    features, labels = rng.standard_normal((rows, 2)), rng.standard_normal(rows)
    theta, bounds = rng.standard_normal((2, lanes)), rng.uniform(0.2, 2.0, lanes)
    bounds[0] = np.inf
    chunks = iter([chunk_of(features[:5], labels[:5]), chunk_of(features[5:], labels[5:])])
    if rows < 6:
        chunks = iter([chunk_of(features, labels)])
    sums, clipped = clipped_gradient_sum(chunks, theta, clip_norm=bounds)
    gradients = (labels[:, None] - features @ theta)[:, :, None] * features[:, None, :]
    lengths = np.linalg.norm(gradients, axis=2)
    expected = np.sum(gradients * np.minimum(1.0, bounds / lengths)[:, :, None], axis=0)
    np.testing.assert_allclose(sums, expected.T, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(clipped, np.sum(lengths > bounds, axis=0))
    assert 0 < clipped[1:].sum() < rows * lanes
    assert clipped[0] == 0


def test_a_gradient_as_long_as_the_bound_is_not_clipped() -> None:
    for label, clipped in ((0.5, 0), (0.75, 1), (-0.5, 0), (-0.75, 1)):
        rows = iter([chunk_of(np.array([[2.0, 0.0]]), np.array([label]))])
        sums, count = clipped_gradient_sum(rows, np.zeros((2, 1)), clip_norm=[1.0])
        np.testing.assert_array_equal(sums[:, 0], [np.sign(label), 0.0])
        assert count[0] == clipped


def test_no_rows_and_rows_of_zeros_sum_to_nothing() -> None:
    for chunks in ([], [chunk_of(np.zeros((3, 2)), np.full(3, 1e308))]):
        sums, clipped = clipped_gradient_sum(iter(chunks), np.ones((2, 1)), clip_norm=[1.0])
        np.testing.assert_array_equal(sums, np.zeros((2, 1)))
        assert clipped[0] == 0


def test_without_clipping_rows_stay_as_they_are() -> None:
    """Taming changes a long row, which only clipping allows."""
    beyond = [chunk_of(np.array([[1e60, 0.0]]), np.array([1.0]))]
    assert next(iter(rescale_chunks(beyond, np.array([np.inf])))) is beyond[0]
    assert np.max(next(iter(rescale_chunks(beyond, np.array([1.0])))).features) <= 1e50
    assert list(rescale_chunks(2 * beyond, np.array([np.inf]))) == 2 * beyond
    within = [chunk_of(np.ones((2, 2)), np.ones(2))]
    assert next(iter(rescale_chunks(within, np.array([1.0, np.inf])))) is within[0]
    with pytest.raises(ValueError, match="clip_norm must be finite for rows beyond"):
        list(rescale_chunks(beyond, np.array([1.0, np.inf])))


def test_data_sets_are_rescaled_where_a_row_is_beyond_the_range() -> None:
    within, beyond = (ArraySamples([[size, 0.0]], [1.0]) for size in (1.0, 1e60))
    bounds = np.array([1.0])
    assert rescale_samples(within, bounds) is within
    changed = rescale_samples(beyond, bounds)
    assert (changed.sample_size, changed.dimension) == (1, 2)
    assert np.max(next(changed.chunks()).features) <= 1e50


@pytest.mark.parametrize("bound", [1e-50, 1e50, np.inf])
def test_bounds_that_rescaled_rows_can_hold(bound: float) -> None:
    np.testing.assert_array_equal(require_clip_norm([1.0, bound]), [1.0, bound])


@pytest.mark.parametrize(("bound", "end"), [(9e-51, "at least 1e-50"), (1.1e50, r"at most 1e\+50")])
def test_bounds_beyond_are_refused(bound: float, end: str) -> None:
    with pytest.raises(ValueError, match=f"widths must be {end}, "):
        require_clip_norm([1.0, np.inf, bound], name="widths")


@pytest.mark.parametrize(
    ("theta", "bounds", "message"),
    [
        (np.zeros((2, 1)), [1.0, 1.0], "clip_norm must have shape"),
        (np.zeros((3, 1)), [1.0], "parameters must have shape"),
        (np.array([[0.0], [1.001e40]]), [1.0], "parameters must be at most"),
        (np.array([[0.0], [-1.001e40]]), [1.0], "parameters must be at most"),
        (np.zeros((2, 1)), [0.0], "clip_norm"),
    ],
)
def test_refuses(theta: np.ndarray, bounds: list[float], message: str) -> None:
    chunk = chunk_of(np.ones((2, 2)), np.ones(2))
    with pytest.raises(ValueError, match=message):
        clipped_gradient_sum(iter([chunk]), theta, clip_norm=bounds)


def test_parameters_of_the_largest_size_are_taken() -> None:
    sums, _ = clipped_gradient_sum(
        iter([chunk_of(np.array([[1.0]]), np.array([0.0]))]), [[1e40]], clip_norm=[1.0]
    )
    assert sums[0, 0] == -1.0
