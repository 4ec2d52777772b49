"""DP-FTRL with shaped noise: the rows that it walks, its clips, and the ends of what it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from privreg.algorithms.samples import ArraySamples, Chunk
from privreg.algorithms.shaped_dp_ftrl import _rows_but_last, shaped_dp_ftrl
from privreg.algorithms.shaped_mechanism import FixedClip, ResidualClip, ShapedMechanism
from privreg.noise.correlations import IndependentCorrelation, TreeCorrelation
from privreg.noise.covariance import identity_covariance

SIZE, DIMENSION = 40, 3


@pytest.fixture
def rows(rng):
    features = rng.standard_normal((SIZE, DIMENSION))
    return features, features @ [1.0, -0.5, 0.2] + rng.standard_normal(SIZE)


def mechanism_of(clipping, *, noise_multiplier=0.0, correlation=None, size=SIZE):
    return ShapedMechanism(
        identity_covariance(DIMENSION),
        correlation or TreeCorrelation(),
        clipping,
        noise_multiplier,
        size,
    )


def run(rows, mechanism, *, step_size=0.1, seed=2):
    rng = np.random.Generator(np.random.SFC64(seed))
    return shaped_dp_ftrl(ArraySamples(*rows), mechanism=mechanism, step_size=step_size, rng=rng)


@dataclass
class InChunks:
    """Samples that come in chunks of given sizes."""

    features: np.ndarray
    labels: np.ndarray
    sizes: tuple[int, ...]
    dimension: int = DIMENSION

    @property
    def sample_size(self):
        return len(self.labels)

    def chunks(self):
        for part in np.split(np.arange(self.sample_size), np.cumsum(self.sizes)[:-1]):
            rows = self.features[part]
            yield Chunk(rows, self.labels[part], np.linalg.norm(rows, axis=1))


@pytest.mark.parametrize("sizes", [(33, 7), (7, 33), (39, 1), (1, 38, 1), (40,), (7, 32, 1)])
def test_every_row_but_the_last_is_walked_once(rows, sizes):
    """In blocks of which none is empty: the kernel reads the first row of a block."""
    blocks = list(_rows_but_last(InChunks(*rows, sizes)))
    assert all(len(features) == len(labels) > 0 for features, labels in blocks)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in blocks]), rows[0][:-1])
    np.testing.assert_array_equal(np.concatenate([y for _, y in blocks]), rows[1][:-1])


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_a_clip_follows_the_residuals_of_public_rows(rows, scale):
    """Without noise: clip norms, how many gradients are clipped, and no draw from the generator."""
    public = (rows[0][:9] + 1.0, scale * rows[1][:9])
    features, labels = rows[0], scale * rows[1]
    clipping = ResidualClip(0.7, *public)
    w, total, clipped, largest = np.zeros(DIMENSION), np.zeros(DIMENSION), 0, 0.0
    for x, y in zip(features[:-1], labels, strict=False):
        clip = 0.7 * np.sqrt(2 * np.mean((public[0] @ w - public[1]) ** 2))
        assert clipping.clip_norm(w) == pytest.approx(clip, rel=1e-12)
        gradient = x * (x @ w - y)
        length = np.linalg.norm(gradient)
        clipped, largest = clipped + (length > clip), max(largest, clip)
        w = w - 0.1 * gradient * min(1.0, clip / length)
        total += w
    rng = np.random.Generator(np.random.SFC64(2))
    found = shaped_dp_ftrl(
        ArraySamples(features, labels), mechanism=mechanism_of(clipping), step_size=0.1, rng=rng
    )
    np.testing.assert_allclose(found.average, total / SIZE, rtol=1e-9)
    assert 0 < clipped < SIZE - 1
    assert found.clipped_fraction.non_private == pytest.approx(clipped / (SIZE - 1))
    assert found.largest_clip_norm == pytest.approx(largest)
    assert rng.random() == np.random.Generator(np.random.SFC64(2)).random()


def test_a_residual_clip_answers_for_any_parameters(rows):
    clipping = ResidualClip(2.0, *rows)
    assert clipping.clip_norm(np.full(DIMENSION, np.inf)) == math.inf
    assert clipping.clip_norm(np.full(DIMENSION, 1e300)) == math.inf
    for wrong in (np.zeros(DIMENSION - 1), np.zeros((1, DIMENSION))):
        with pytest.raises(ValueError, match="parameters must have shape"):
            clipping.clip_norm(wrong)


def test_rows_beyond_all_scales_are_clipped_alike(rows):
    """A clipped gradient does not know its row's scale: 1e20 of it or 1e200."""
    for clipping in (FixedClip(2.0), ResidualClip(1.0, *rows)):
        found = []
        for scale in (1e20, 1e200):
            features, labels = rows[0].copy(), rows[1].copy()
            features[5], labels[5] = scale * features[5], scale * labels[5]
            found.append(run((features, labels), mechanism_of(clipping)).average)
        np.testing.assert_allclose(*found, rtol=1e-9)


def test_without_a_clip_rows_are_as_they_are():
    """One step: η x y / 2 is the average of it and of the start."""
    rows = np.array([[1e60, 0.0, 2.0], [1.0, 1.0, 1.0]]), np.array([3e60, 1.0])
    found = run(rows, mechanism_of(FixedClip(math.inf), size=2)).average
    np.testing.assert_allclose(found, 0.1 * rows[0][0] * 3e60 / 2, rtol=1e-12)


@pytest.mark.parametrize(("step_size", "clip_norm"), [(0.4, 0.2), (2.0, 3.0)])
def test_a_clipped_step_is_as_long_as_said(step_size, clip_norm):
    rows = np.array([[3.0, 0.0, 4.0], [1.0, 1.0, 1.0]]), np.array([7.0, 1.0])
    found = run(rows, mechanism_of(FixedClip(clip_norm), size=2), step_size=step_size)
    np.testing.assert_allclose(found.average, step_size * clip_norm * np.array([0.3, 0, 0.4]))
    assert found.clipped_fraction.non_private == 1.0


def test_noise_is_none_or_what_double_precision_holds():
    for multiplier in (0.0, 1 / 1e50, 1.5e-50, 1e50):
        found = mechanism_of(FixedClip(1.0), noise_multiplier=multiplier)
        assert found.noise_multiplier == multiplier
    for multiplier in (0.9e-50, 1.1e50, -1e-9, math.nan):
        with pytest.raises(ValueError, match="noise_multiplier must be"):
            mechanism_of(FixedClip(1.0), noise_multiplier=multiplier)


def test_residual_clips_take_what_is_in_range(rows):
    for right in (1e-50, 1.5e-50, 1e50):
        assert ResidualClip(right, *rows).per_residual == right
    for wrong in (0.9e-50, 1.1e50, math.inf):
        with pytest.raises(ValueError, match="per_residual must be"):
            ResidualClip(wrong, *rows)
    for wrong in (1.1e50, -1.1e50):
        with pytest.raises(ValueError, match="features must be"):
            ResidualClip(1.0, wrong * np.ones((2, 1)), np.ones(2))
        with pytest.raises(ValueError, match="labels must be"):
            ResidualClip(1.0, np.ones((2, 1)), wrong * np.ones(2))
    with pytest.raises(ValueError, match="labels must have shape"):
        ResidualClip(1.0, np.ones((2, 1)), np.ones(3))


def test_independent_noise_takes_a_clip_that_follows(rows):
    found = run(
        rows,
        mechanism_of(
            ResidualClip(1.0, *rows), noise_multiplier=0.1, correlation=IndependentCorrelation()
        ),
    )
    assert np.all(np.isfinite(found.average))


def test_steps_have_a_length(rows):
    for wrong in (0.0, 1.1e50, math.nan):
        with pytest.raises(ValueError, match="step_size must be"):
            run(rows, mechanism_of(FixedClip(1.0)), step_size=wrong)
