"""Data sets, their norms and screening, and sums of their clipped gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from privreg.algorithms.full_batch_dpgd import ScreenedSamples, screen
from privreg.algorithms.gaussian_samples import GaussianSamples
from privreg.algorithms.samples import (
    LARGEST_LABEL,
    LONGEST,
    ArraySamples,
    Chunk,
    as_samples,
    build,
    clippable_chunks,
    clipped_gradient_sum,
    moments,
    require_clip_norm,
    rescale_chunks,
    rescaled,
    row_norms,
)
from privreg.privacy.budget import Budget
from privreg.privacy.release import Release

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
        assert_allclose(features, expected, rtol=1e-12)
        assert_allclose(labels, expected @ target + mean + 0.3 * draws[:, 2], rtol=1e-9)
        assert_allclose(norms, np.linalg.norm(features, axis=1), rtol=1e-12)


def test_long_rows_are_shortened_with_their_labels():
    rows = np.array([[3e60, 4e60], [1.0, 0.0]])
    found = rescaled(Chunk(rows, np.array([5e20, 1e300]), row_norms(rows)))
    assert_allclose(found.features[0], [0.6 * LONGEST, 0.8 * LONGEST], rtol=1e-12)
    assert_allclose(found.labels, [5e20 * LONGEST / 5e60, LARGEST_LABEL], rtol=1e-12)


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


RUN = {"step_size": 0.3, "steps": 4, "lanes": 1}


def tube() -> ScreenedSamples:
    centres = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    samples = ArraySamples([[1.0, 0.0]], [0.0])
    return build(ScreenedSamples, samples=samples, centres=centres, radius=0.5)


@pytest.mark.parametrize("step", [0, 1, 2, 50])
@pytest.mark.parametrize(("gap", "inside"), [(0.4, True), (0.5, True), (0.6, False)])
def test_the_tube_follows_its_centres_and_stays_at_the_last(step, gap, inside):
    centre = [0.0, 1.0, 3.0][min(step, 2)]
    for point in ([centre + gap, 0.0], [centre - gap, 0.0], [centre, gap]):
        assert tube().holds(np.array([point]).T, step=step) == inside
        # All lanes must be in it.
        pair = np.array([[centre, 0.0], point]).T
        assert tube().holds(pair, step=step) == inside


def test_sums_and_kept_rows_are_the_whole_data_set(rng):
    samples = ArraySamples(rng.standard_normal((400, 3)), rng.standard_normal(400))
    found = screen(samples, clip_norm=7.0, gradient_noise_std=0.01, start=np.zeros(3), **RUN)
    assert found is not None
    assert 0 < len(found.kept.labels) < 100
    for ours, whole in zip(found.moments(), moments(samples), strict=True):
        assert_allclose(ours, whole, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="value must be private throughout"):
        Release(found, Budget.zcdp(1.0))
    with pytest.raises(TypeError):
        ScreenedSamples(**vars(found))


def test_a_row_at_the_bound_is_not_called_safe():
    """Opposite rows leave the centre at 0: their gradients are 1 long, up to rounding."""
    features = np.append([1.0, -1.0], np.full(20, 1e-3))[:, None]
    samples = ArraySamples(features, np.append([1.0, 1.0], np.zeros(20)))
    options = {"gradient_noise_std": 0.0, "start": np.zeros(1), **RUN}
    for clip_norm, kept in ((1.0 - 1e-6, 2), (1.0, 2), (1.0 + 1e-6, 0)):
        found = screen(samples, clip_norm=clip_norm, **options)
        assert found is not None
        assert len(found.kept.labels) == kept


def test_without_noise_the_tube_is_as_wide_as_rounding(rng):
    samples = ArraySamples(rng.standard_normal((50, 2)), np.ones(50))
    found = screen(samples, clip_norm=100.0, gradient_noise_std=0.0, start=np.ones(2), **RUN)
    longest = np.max(np.linalg.norm(found.centres, axis=1))
    assert found.radius == pytest.approx(1e-9 * longest, rel=1e-6, abs=0)


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
    assert_allclose(sums, expected.T, rtol=1e-12, atol=1e-13)
    assert_array_equal(clipped, np.sum(lengths > bounds, axis=0))
    assert 0 < clipped[1:].sum() < rows * lanes
    assert clipped[0] == 0


def test_a_gradient_as_long_as_the_bound_is_not_clipped():
    for label, clipped in ((0.5, 0), (0.75, 1), (-0.5, 0), (-0.75, 1)):
        rows = iter([chunk_of([[2.0, 0.0]], [label])])
        sums, count = clipped_gradient_sum(rows, np.zeros((2, 1)), clip_norm=[1.0])
        assert_array_equal(sums[:, 0], [np.sign(label), 0.0])
        assert count[0] == clipped


def test_no_rows_and_rows_of_zeros_sum_to_nothing():
    for chunks in ([], [chunk_of(np.zeros((3, 2)), np.full(3, 1e308))]):
        sums, clipped = clipped_gradient_sum(iter(chunks), np.ones((2, 1)), clip_norm=[1.0])
        assert_array_equal(sums, np.zeros((2, 1)))
        assert clipped[0] == 0


def test_rows_beyond_the_range_are_rescaled_where_they_are_clipped():
    """Rescaling changes a long row, which only clipping allows."""
    beyond, within = chunk_of([[1e60, 0.0]], [1.0]), chunk_of(np.ones((2, 2)), np.ones(2))
    assert list(rescale_chunks([beyond, beyond], np.array([np.inf]))) == [beyond, beyond]
    assert np.max(next(iter(rescale_chunks([beyond], np.array([1.0])))).features) <= 1e50
    assert next(iter(rescale_chunks([within], np.array([1.0, np.inf])))) is within
    with pytest.raises(ValueError, match="clip_norm must be all finite or all infinite"):
        list(rescale_chunks([beyond], np.array([1.0, np.inf])))
    plain, changed = (
        next(clippable_chunks(ArraySamples(chunk.features, chunk.labels), np.array([1.0]))())
        for chunk in (within, beyond)
    )
    assert_array_equal(plain.features, within.features)
    assert np.max(changed.features) <= 1e50


def test_bounds_are_positive_or_infinite():
    for bound in (1e-12, 1e12, np.inf):
        assert_array_equal(require_clip_norm([1.0, bound]), [1.0, bound])
    with pytest.raises(ValueError, match="widths must be at least"):
        require_clip_norm([1.0, np.inf, 0.0], name="widths")
