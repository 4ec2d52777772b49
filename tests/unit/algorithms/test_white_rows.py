"""Whitened rows that are kept between passes, and counts of many values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from privreg.algorithms import huber_sums, least_squares_sums, record_gradients, records
from privreg.algorithms.record_gradients import MANY, bin_counts
from privreg.algorithms.records import Records
from privreg.algorithms.samples import ArraySamples, Chunk, row_norms
from privreg.algorithms.white_rows import white_rows

N, P = 12_000, 5
EDGES = np.geomspace(1e-2, 10.0, 12)


class Streamed:
    """The same rows, in chunks that are read again in every pass."""

    sample_size, dimension = N, P

    def __init__(self, samples):
        self.samples = samples

    def chunks(self):
        for first in range(0, N, 700):
            rows = self.samples.features[first : first + 700]
            yield Chunk(rows, self.samples.labels[first : first + 700], row_norms(rows))


@pytest.fixture
def samples(rng):
    features = rng.standard_normal((N, P)) * rng.gamma(1.0, 1.0, N)[:, None]
    # Absent records, and values on an edge.
    features[:3], features[3] = 0.0, EDGES[5] * np.eye(P)[0]
    return ArraySamples(features, features @ np.ones(P) + rng.standard_normal(N))


def sums(held, whitening, theta):
    clip = {"clip_norm": 1.1}
    caps = clip | {"cap": 4.0}
    at = (held, theta, whitening)
    return [
        huber_sums.length_histogram(held, whitening, EDGES),
        huber_sums.gram_sum(held, whitening, cap=4.0),
        huber_sums.gram_sum(held, whitening, cap=1e9),
        huber_sums.residual_histogram(*at, EDGES),
        huber_sums.gradient_sum(*at, **clip),
        huber_sums.curvature_sum(*at, **caps),
        np.array(huber_sums.traces(*at, **caps)),
        huber_sums.second_moment_sum(*at, **clip),
        least_squares_sums.product_histogram(*at, EDGES, cap=4.0),
        least_squares_sums.product_gradient_sum(*at, **caps),
        *least_squares_sums.first_sums(*at, **caps, short_cap=2.0),
        *least_squares_sums.last_sums(*at, **caps, short_cap=2.0),
    ]


@pytest.mark.parametrize("kept_bytes", [0, 1 << 27])
@pytest.mark.parametrize("common_width", [False, True])
def test_sums_over_kept_rows_are_those_of_a_stream(
    samples, rng, monkeypatch, kept_bytes, common_width
):
    """Sums of 12,000 terms in two orders differ by roundings: far less than 1e-12 of them."""
    monkeypatch.setattr(records, "KEPT_BYTES", kept_bytes)
    held = Records(samples, 9.0, 9.0, common_width=common_width)
    stream = Records(Streamed(samples), 9.0, 9.0, common_width=common_width)
    for _ in range(2):
        # The rows kept for one map are not taken for another.
        whitening, theta = np.eye(P) + 0.2 * rng.standard_normal((P, P)), rng.standard_normal(P)
        for found, expected in zip(
            sums(held, whitening, theta), sums(stream, whitening, theta), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * N)


@pytest.mark.parametrize("persons", [None, 1500])
@pytest.mark.parametrize("common_width", [False, True])
def test_one_pass_has_the_sums_of_every_clip(samples, rng, common_width, persons):
    """Clips below, among and above the lengths, and one that is the length of a record."""
    groups = None if persons is None else rng.integers(0, persons, N)
    records = Records(samples, 9.0, 9.0, groups, common_width=common_width)
    at = (records, rng.standard_normal(P), np.eye(P) + 0.2 * rng.standard_normal((P, P)))
    lengths = []
    records.white_total(
        lambda *given: (
            lengths.append(record_gradients.record_gradients(records, *given, at[1]).lengths)
            or np.zeros(1)
        ),
        at[2],
        (1,),
    )
    clips = np.sort(np.r_[1e-9, np.geomspace(0.1, 20.0, 9), lengths[0][5:7], 1e9])
    found = huber_sums.residual_sums(*at, EDGES, clip_norms=clips)
    np.testing.assert_array_equal(found.counts, huber_sums.residual_histogram(*at, EDGES))
    for clip, gradient in zip(clips, found.gradients, strict=True):
        expected = huber_sums.gradient_sum(*at, clip_norm=clip)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-13 * N * min(clip, 20))


def test_a_map_that_is_changed_in_place_is_another_one(samples, rng):
    """And an identity leaves rows as they are."""
    held, whitening, theta = Records(samples, 9.0, 9.0), np.eye(P), rng.standard_normal(P)
    before = huber_sums.gradient_sum(held, theta, whitening, clip_norm=1.0)
    whitening *= 2.0
    after = huber_sums.gradient_sum(held, theta, whitening, clip_norm=1.0)
    other = huber_sums.gradient_sum(Records(samples, 9.0, 9.0), theta, whitening, clip_norm=1.0)
    np.testing.assert_array_equal(after, other)
    assert not np.allclose(before, after)
    rows = samples.features
    assert white_rows(rows, np.eye(P)).rows is rows
    assert white_rows(rows, 2 * np.eye(P)).rows is not rows


@pytest.mark.parametrize("common_width", [False, True])
def test_compiled_passes_give_the_numbers_of_numpy(samples, rng, monkeypatch, common_width):
    held = Records(samples, 9.0, 9.0, common_width=common_width)
    at = np.eye(P) + 0.2 * rng.standard_normal((P, P)), rng.standard_normal(P)
    found = sums(held, *at)
    monkeypatch.setattr(record_gradients, "MANY", N)
    for each, expected in zip(found, sums(held, *at), strict=True):
        np.testing.assert_array_equal(each, expected)


@pytest.mark.parametrize("persons", [None, 1500])
def test_rows_are_whitened_once_and_have_their_own_norms(samples, rng, monkeypatch, persons):
    """The guarantee is one about the numbers that are summed: their lengths, not others'."""
    calls = []
    whiten = records.white_rows
    monkeypatch.setattr(records, "white_rows", lambda *given: calls.append(given) or whiten(*given))
    groups = None if persons is None else rng.integers(0, persons, N)
    held, whitening = Records(samples, 9.0, 9.0, groups), rng.standard_normal((P, P))
    seen = []

    def part(white, features, labels, starts):
        seen.append(len(labels))
        np.testing.assert_array_equal(
            white.norms, np.sqrt(np.einsum("ij,ij->i", white.rows, white.rows))
        )
        np.testing.assert_allclose(white.rows, features @ whitening, rtol=1e-12, atol=1e-12)
        assert not white.rows.flags.writeable
        assert not white.norms.flags.writeable
        assert (starts is None) == (persons is None)
        return np.zeros(1)

    for _ in range(3):
        held.white_total(part, whitening, (1,))
    assert sum(seen) == 3 * N
    assert len(calls) == 1


@pytest.mark.parametrize("count", [0, 1, MANY, MANY + 1, 5000])
def test_counts_of_many_values_are_those_of_a_search(rng, count):
    values = np.exp(rng.normal(-1.0, 3.0, count))
    # Values at an edge, and next to it, belong below and above.
    near = np.concatenate([EDGES, np.nextafter(EDGES, 0.0), np.nextafter(EDGES, 99.0)])[:count]
    values[: len(near)] = near
    expected = [np.sum(values <= EDGES[0])]
    for low, high in pairwise(EDGES):
        expected.append(np.sum((values > low) & (values <= high)))
    expected.append(np.sum(values > EDGES[-1]))
    np.testing.assert_array_equal(bin_counts(values, EDGES), expected)
