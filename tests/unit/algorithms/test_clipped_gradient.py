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


def chunk_of(features, labels):
    return Chunk(np.array(features), np.array(labels), row_norms(np.array(features)))


@pytest.mark.parametrize("rows", [1, 16, 17, 40])
@pytest.mark.parametrize("lanes", [100, 2500])
def test_sums_are_those_of_a_loop_over_records(rng, rows, lanes):
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


def test_a_gradient_as_long_as_the_bound_is_not_clipped():
    for label, clipped in ((0.5, 0), (0.75, 1), (-0.5, 0), (-0.75, 1)):
        rows = iter([chunk_of([[2.0, 0.0]], [label])])
        sums, count = clipped_gradient_sum(rows, np.zeros((2, 1)), clip_norm=[1.0])
        np.testing.assert_array_equal(sums[:, 0], [np.sign(label), 0.0])
        assert count[0] == clipped


def test_no_rows_and_rows_of_zeros_sum_to_nothing():
    for chunks in ([], [chunk_of(np.zeros((3, 2)), np.full(3, 1e308))]):
        sums, clipped = clipped_gradient_sum(iter(chunks), np.ones((2, 1)), clip_norm=[1.0])
        np.testing.assert_array_equal(sums, np.zeros((2, 1)))
        assert clipped[0] == 0


def test_rows_beyond_the_range_are_rescaled_where_they_are_clipped():
    """Rescaling changes a long row, which only clipping allows."""
    beyond, within = chunk_of([[1e60, 0.0]], [1.0]), chunk_of(np.ones((2, 2)), np.ones(2))
    assert list(rescale_chunks([beyond, beyond], np.array([np.inf]))) == [beyond, beyond]
    assert np.max(next(iter(rescale_chunks([beyond], np.array([1.0])))).features) <= 1e50
    assert next(iter(rescale_chunks([within], np.array([1.0, np.inf])))) is within
    with pytest.raises(ValueError, match="clip_norm must be finite for rows beyond"):
        list(rescale_chunks([beyond], np.array([1.0, np.inf])))
    plain, changed = (
        rescale_samples(ArraySamples(chunk.features, chunk.labels), np.array([1.0]))
        for chunk in (within, beyond)
    )
    assert isinstance(plain, ArraySamples)
    assert (changed.sample_size, changed.dimension) == (1, 2)
    assert np.max(next(changed.chunks()).features) <= 1e50


def test_the_ends_of_the_ranges():
    for bound in (1e-50, 1e50, np.inf):
        np.testing.assert_array_equal(require_clip_norm([1.0, bound]), [1.0, bound])
    for bound, end in ((9e-51, "at least 1e-50"), (1.1e50, r"at most 1e\+50")):
        with pytest.raises(ValueError, match=f"widths must be {end}, "):
            require_clip_norm([1.0, np.inf, bound], name="widths")
    sums, _ = clipped_gradient_sum(iter([chunk_of([[1.0]], [0.0])]), [[1e40]], clip_norm=[1.0])
    assert sums[0, 0] == -1.0


@pytest.mark.parametrize(
    ("theta", "bounds", "message"),
    [
        (np.zeros((2, 1)), [1.0, 1.0], "clip_norm must have shape"),
        (np.zeros((3, 1)), [1.0], "parameters must have shape"),
        ([[0.0], [1.001e40]], [1.0], "parameters must be at most"),
        ([[0.0], [-1.001e40]], [1.0], "parameters must be at most"),
        (np.zeros((2, 1)), [0.0], "clip_norm"),
    ],
)
def test_refuses(theta, bounds, message):
    with pytest.raises(ValueError, match=message):
        clipped_gradient_sum(iter([chunk_of(np.ones((2, 2)), [1.0, 1.0])]), theta, clip_norm=bounds)
