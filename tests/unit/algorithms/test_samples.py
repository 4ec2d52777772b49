"""Data sets: rows drawn from a seed, rows rescaled so that their squares are numbers, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.samples import (
    LARGEST_LABEL,
    LONGEST,
    ArraySamples,
    Chunk,
    GaussianSamples,
    as_samples,
    rescaled,
    row_norms,
)

ROOT = np.array([[1.0, 0.0], [0.5, 2.0]])


@pytest.mark.parametrize("root", [None, ROOT])
@pytest.mark.parametrize("mean", [0.0, 0.7])
def test_seeded_rows_are_a_linear_model(root, mean):
    """The last number that a row draws is its label's noise, the others make its features."""
    target, seed = np.array([1.0, -2.0]), np.random.SeedSequence(5)
    shift = {"label_noise_mean": mean} if mean else {}
    samples = GaussianSamples(1500, target, 0.3, seed, covariance_root=root, **shift)
    chunks = list(samples.chunks())
    assert sum(len(chunk.labels) for chunk in chunks) == 1500
    for number, (features, labels, norms) in enumerate(chunks):
        child = np.random.SeedSequence(5, spawn_key=(number,))
        draws = np.random.Generator(np.random.SFC64(child)).standard_normal((len(labels), 3))
        expected = draws[:, :2] @ (np.eye(2) if root is None else ROOT).T
        np.testing.assert_allclose(features, expected, rtol=1e-12)
        np.testing.assert_allclose(labels, expected @ target + mean + 0.3 * draws[:, 2], rtol=1e-9)
        np.testing.assert_allclose(norms, np.linalg.norm(features, axis=1), rtol=1e-12)


def test_long_rows_are_shortened_with_their_labels():
    rows = np.array([[3e60, 4e60], [1.0, 0.0]])
    found = rescaled(Chunk(rows, np.array([5e20, 1e300]), row_norms(rows)))
    np.testing.assert_allclose(found.features[0], [0.6 * LONGEST, 0.8 * LONGEST], rtol=1e-12)
    np.testing.assert_allclose(found.labels, [5e20 * LONGEST / 5e60, LARGEST_LABEL], rtol=1e-12)


@pytest.mark.parametrize(
    ("row", "label", "in_range"),
    [
        ([0.0, 0.0], 1.0, True),
        ([1.0, 0.0], 1.0, True),
        ([1e60, 0.0], 1.0, False),
        ([1e-60, 0.0], 1.0, False),
        ([1.0, 0.0], 1e111, False),
        ([1.0, 0.0], 1e109, True),
    ],
)
def test_which_rows_are_within_range(row, label, in_range):
    assert ArraySamples([row], [label]).is_within_range == in_range


def test_what_is_no_data_set_is_refused():
    with pytest.raises(ValueError, match="covariance_root must have shape"):
        GaussianSamples(5, [1.0], 0.3, np.random.SeedSequence(5), covariance_root=ROOT)
    for wrong in ([[1.0]], np.ones((2, 2)), None):
        with pytest.raises(ValueError, match="samples must be ArraySamples or GaussianSamples"):
            as_samples(wrong)
