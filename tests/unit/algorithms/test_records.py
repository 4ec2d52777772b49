"""Records: bounded rows, rows of persons together, whitened rows kept between passes, counts."""

from fractions import Fraction
from itertools import pairwise
from operator import mul

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from privreg.algorithms import records
from privreg.algorithms import records as record_sums
from privreg.algorithms.records import (
    Point,
    Records,
    bin_counts,
    require_groups,
    white_rows,
)
from privreg.algorithms.samples import ArraySamples, Chunk, WeightedSamples, row_norms
from privreg.noise.exact import UNITS, exact_factor

ROWS = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-6.0, 8.0], [1e300, 1e300]])
LABELS = np.array([1.0, 9.0, -9.0, -20.0, 1e300])


class Streamed:
    """Rows that are read in chunks, again in every pass."""

    def __init__(self, features, labels, size):
        self.features, self.labels, self.size = features, labels, size
        self.sample_size, self.dimension = features.shape

    def chunks(self, first=0, last=None):
        for at in range(first, last or self.sample_size, self.size):
            rows = slice(at, min(at + self.size, last or self.sample_size))
            yield Chunk(self.features[rows], self.labels[rows], row_norms(self.features[rows]))


class Parted(Streamed):
    def parts(self):
        return [lambda: self.chunks(0, 2), lambda: self.chunks(2)]


SAMPLES = [ArraySamples(ROWS, LABELS), Streamed(ROWS, LABELS, 2), Parted(ROWS, LABELS, 2)]


def bounded():
    """Long rows are 5 long, with their labels; then labels are at most 4."""
    features = ROWS.copy()
    features[3] = [-3.0, 4.0]
    features[4] = 5 / np.sqrt(2)
    return features, np.array([1.0, 4.0, -4.0, -4.0, 5 / np.sqrt(2)])


@pytest.mark.parametrize("samples", SAMPLES)
def test_rows_and_labels_are_bounded_one_by_one(samples):
    records = Records(samples, 5.0, 4.0)
    assert not records.common_width
    chunks, starts = zip(*records.chunks(), strict=True)
    assert set(starts) == {None}
    features, labels = (np.concatenate([each[k] for each in chunks]) for k in (0, 1))
    # Within half a unit of the grids of 8 and 4.
    assert_allclose(features, bounded()[0], rtol=0, atol=4 / UNITS)
    assert_allclose(labels, bounded()[1], rtol=0, atol=2 / UNITS)
    assert_array_equal(features[[0, 2]], ROWS[[0, 2]])
    if isinstance(samples, ArraySamples):
        # What one pass changed the next would see.
        assert not any(each.flags.writeable for chunk in chunks for each in chunk[:2])


def test_a_long_row_takes_its_label_along():
    records = Records(ArraySamples([[6.0, 8.0], [0.1, 0.0]], [3.0, 50.0]), 5.0, 100.0)
    (((features, labels, _), _),) = records.chunks()
    assert_array_equal(features[0], [3.0, 4.0])
    assert_array_equal(labels, [1.5, 50.0])
    with pytest.raises(TypeError):
        Records(ArraySamples(ROWS, LABELS), 5.0, 4.0, _starts=np.zeros(1, dtype=int))


@pytest.mark.parametrize("bound", [0.3, 4.0, 5.0])
def test_rows_and_labels_are_whole_multiples_of_units(rng, bound):
    """Of a power of two above the bound, 2²⁰ of them; the nearest, each by itself."""
    features, labels = bound / 9 * rng.uniform(-3, 3, (200, 9)), bound * rng.uniform(-1, 1, 200)
    unit = 2.0 ** np.ceil(np.log2(bound)) / UNITS
    (((rows, targets, _), _),) = Records(ArraySamples(features, labels), bound, bound).chunks()
    for found, given in ((rows, features), (targets, labels)):
        assert_array_equal(found, np.rint(given / unit) * unit)
    alone = [
        Records(ArraySamples(*each), bound, bound)
        for each in zip(features[:, None], labels[:, None], strict=True)
    ]
    for k in (0, 7):
        assert_array_equal(next(alone[k].chunks())[0].features, rows[[k]])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("samples", SAMPLES)
def test_totals_do_not_depend_on_how_samples_come(samples, threads):
    records = Records(samples, 5.0, 4.0, threads=threads)
    assert records.count == 5
    units, label_units = 8 / UNITS, 4 / UNITS
    features, labels = bounded()
    whole = np.rint(features / units).astype(int), np.rint(labels / label_units).astype(int)
    found = records.total(lambda rows, targets, _: rows.T / units @ (targets / label_units), (2,))
    assert found.tolist() == (whole[0].T @ whole[1]).tolist()


@pytest.mark.parametrize("persons", [1, 1024, 1025, 2500])
def test_rows_of_a_person_stay_together(rng, persons):
    groups = rng.permutation(np.append(np.arange(persons), rng.integers(0, persons, 700)))
    rows = len(groups)
    # Multiples of the grids' units, whose sums of products are exact.
    features = np.rint(rng.standard_normal((rows, 2)) * 2**12) / 2**15
    labels = np.rint(rng.standard_normal(rows) * 2**12) / 2**15
    records = Records(ArraySamples(features, labels), 5.0, 4.0, groups=groups)
    assert records.count == persons
    sums, sizes = [], []
    for (x, y, _), starts in records.chunks():
        assert starts is not None
        sums.append(np.add.reduceat(x * y[:, None], starts))
        sizes.append(len(starts))
    expected = np.column_stack(
        [np.bincount(groups, x * labels, minlength=persons) for x in features.T]
    )
    assert_array_equal(np.concatenate(sums), expected)
    # So few at a time that a matrix of each fits in memory.
    assert max(sizes) <= 1024
    total = records.total(lambda x, y, _: 2**30 * (x.T @ y), (2,))
    assert_array_equal(total, 2**30 * (features.T @ labels))


@pytest.mark.parametrize(
    ("samples", "change", "message"),
    [
        (ArraySamples(ROWS, LABELS), {"groups": [1, 2]}, r"groups must have shape \(5,\)"),
        (SAMPLES[1], {"groups": np.zeros(5)}, "groups must be None for data sets"),
        (ArraySamples(ROWS, LABELS), {"feature_norm": 0.0}, "feature_norm must be"),
        (ArraySamples(ROWS, LABELS), {"label_bound": np.inf}, "label_bound must be"),
        ([[1.0]], {}, "samples must"),
    ],
)
def test_refuses(samples, change, message):
    with pytest.raises(ValueError, match=message):
        Records(**{"samples": samples, "feature_norm": 5.0, "label_bound": 4.0, **change})


@pytest.mark.parametrize("bound", [1e-12, 1e12])
def test_takes_the_ends_of_its_ranges(bound):
    records = Records(ArraySamples(ROWS[:2], LABELS[:2]), bound, bound)
    (((features, labels, _), _),) = records.chunks()
    assert np.all(row_norms(features) <= bound * (1 + 2 / UNITS))
    assert np.all(np.abs(labels) <= bound * (1 + 1 / UNITS))


def test_persons_are_kept_as_they_were_looked_at():
    names = np.array(["b", "a", "b"])
    persons = require_groups(names, 3)
    names[:] = "c"
    assert (persons.codes.tolist(), persons.count) == ([1, 0, 1], 2)
    assert require_groups(persons, 3) is persons
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        persons.codes.flags.writeable = True
    with pytest.raises(ValueError, match=r"groups must have shape \(4,\), got \(3,\)"):
        require_groups(persons, 4)
    assert (require_groups([], 0).count, require_groups(["a"], 1).count) == (0, 1)


N, P = 12_000, 5
EDGES = np.geomspace(1e-2, 10.0, 12)


@pytest.fixture
def samples(rng):
    features = rng.standard_normal((N, P)) * rng.gamma(1.0, 1.0, N)[:, None]
    # Absent records, and values on an edge.
    features[:3], features[3] = 0.0, EDGES[5] * np.eye(P)[0]
    return ArraySamples(features, features @ np.ones(P) + rng.standard_normal(N))


def sums(held, whitening, theta):
    clip = {"clip_norm": 1.1}
    at, capped = Point(held, theta, whitening), Point(held, theta, whitening, 4.0)
    return [
        record_sums.length_histogram(held, whitening, EDGES),
        record_sums.gram_sum(held, whitening, cap=4.0),
        record_sums.gram_sum(held, whitening, cap=1e9),
        at.gradient_length_histogram(EDGES),
        at.gradient_sum(**clip),
        at.curvature_sum(**clip, cap=4.0),
        at.traces(**clip, cap=4.0),
        at.second_moment_sum(**clip),
        capped.gradient_length_histogram(EDGES),
        capped.gradient_length_histogram(EDGES, 1.1)[-1:],
        capped.gradient_sum(**clip),
        *capped.first_sums(**clip, short_cap=2.0),
        *capped.last_sums(**clip, short_cap=2.0),
    ]


@pytest.mark.parametrize(("kept_bytes", "block"), [(0, 1024), (1 << 27, 1024), (1 << 27, 77)])
@pytest.mark.parametrize("common_width", [False, True])
def test_sums_over_kept_rows_are_those_of_a_stream(
    samples, rng, monkeypatch, kept_bytes, block, common_width
):
    """To the last digit, whatever blocks rows come in."""
    monkeypatch.setattr(records, "KEPT_BYTES", kept_bytes)
    if block == 77:
        for name in ("ROWS_PER_CHUNK", "EXACT_ROWS", "WHOLE_ROWS"):
            monkeypatch.setattr(records, name, block)
    held = Records(samples, 9.0, 9.0, common_width=common_width)
    stream = Records(
        Streamed(samples.features, samples.labels, 700), 9.0, 9.0, common_width=common_width
    )
    for _ in range(2):
        # The rows kept for one map are not taken for another.
        whitening, theta = np.eye(P) + 0.2 * rng.standard_normal((P, P)), rng.standard_normal(P)
        for found, expected in zip(
            sums(held, whitening, theta), sums(stream, whitening, theta), strict=True
        ):
            assert_array_equal(found, expected)


# Squares of what a record adds to each of `sums`, at most.
REACHES = [1, *[UNITS**4] * 2, 1, UNITS**2, UNITS**4, 2 * UNITS**2, UNITS**4, 1]
REACHES += [UNITS**2, UNITS**2, *[UNITS**4] * 2, UNITS**2, UNITS**4, UNITS**2, UNITS**2]


def edges_of(rng, rows, p, bound):
    """Rows at the bound or beside it, along an axis, at ties of the grid, huge, tiny, and zeros."""
    unit = 2.0 ** np.ceil(np.log2(bound)) / UNITS
    axis = bound * np.eye(p)[rng.integers(0, p, rows)]
    equal = bound / np.sqrt(p) * rng.choice([-1.0, 1.0], (rows, p))
    near = [bound, np.nextafter(bound, 9), unit / 2, 1.5 * unit, -2.5 * unit, 5e-324, -1.7e308, 0.0]
    drawn = rng.standard_normal((rows, p))
    sphere = bound * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    kinds = [axis, -axis, equal, rng.choice(near, (rows, p)), drawn, sphere, 0 * drawn]
    return kinds[rng.integers(len(kinds))]


@pytest.mark.parametrize("kind", ["rows", "one width", "persons", "weights"])
def test_a_record_adds_what_it_adds_alone_and_no_more_than_is_said(rng, kind):
    """To the last unit; so two records are no further apart than the noise is for."""
    persons, largest = kind == "persons", np.zeros(len(REACHES))

    def added(table, whitening, theta):
        features, labels, roots, groups = table
        roots = roots if kind == "weights" else np.ones(len(roots))
        given = features * roots[:, None], labels * roots
        table = WeightedSamples(*given, roots) if kind == "weights" else ArraySamples(*given)
        options = {"common_width": kind != "rows", "groups": groups if persons else None}
        return [
            np.asarray(each).ravel()
            for each in sums(Records(table, 3.0, 2.0, **options), whitening, theta)
        ]

    for _ in range(25):
        p = int(rng.choice([1, 2, 9]))

        def drawn(rows, who, p=p):
            labels = rng.choice([0.0, 0.0, 2.0, -2.0, 1e300, rng.uniform(-2, 2)], rows)
            roots = np.sqrt(rng.choice([0.0, 1e-30, 0.3, 1.0], rows))
            return edges_of(rng, rows, p, 3.0), labels, roots, np.full(rows, who)

        whitening = (np.eye(p) + 0.3 * rng.standard_normal((p, p))) * rng.choice([0.5, 1.0, 9.0])
        at = whitening, rng.choice([0.0, 0.0, 0.7, 1e4]) * rng.choice([-1.0, 1.0], p)
        own, other, rest = (drawn(int(rng.integers(1, 4)) if persons else 1, k) for k in (0, 0, 1))
        whole = added([np.concatenate(pair) for pair in zip(own, rest, strict=True)], *at)
        alone, others, left = added(own, *at), added(other, *at), added(rest, *at)
        for k, reach in enumerate(REACHES):
            assert_array_equal(whole[k], alone[k] + left[k])
            # A person's curvature is rounded by a unit of a vector in each entry of a row.
            more = 2 * (int(np.sqrt(p)) + 1) * UNITS**3 * 1.01 if persons and k == 5 else 0
            largest[k] = max(largest[k], np.sum(alone[k] ** 2) / reach)
            assert np.sum(alone[k] ** 2) <= reach + more
            apart = np.sum((alone[k] - others[k]) ** 2)
            vector = len(alone[k]) == p and reach == UNITS**2
            assert apart <= (4 if vector else 2) * (reach + more)
    # Reached by some record; no row is long enough for the second cap of a Gram matrix.
    assert np.min(np.delete(largest, 2)) > (0.05 if kind == "weights" else 0.45)


def test_white_rows_and_residuals_are_exact(rng):
    """As rational numbers, up to one rounding of the residual, and of any size."""
    features, labels = rng.standard_normal((40, 16)), rng.standard_normal(40)
    whitening, theta = 1e9 * rng.standard_normal((16, 16)), 1e-5 * rng.standard_normal(16)
    held = Records(ArraySamples(features, labels), 9.0, 9.0)
    (((rows, targets, _), _),) = held.chunks()
    matrix, slopes = exact_factor(whitening), exact_factor(theta)
    assert_allclose(matrix, whitening, rtol=0, atol=1e-8 * 1e9)
    assert_allclose(slopes, theta, rtol=0, atol=1e-8 * 1e-5)

    def part(white, features, residuals, starts):
        for row, target, found, left in zip(rows, targets, white.rows, residuals, strict=True):
            listed = [Fraction(each) for each in row]
            for number, column in zip(found, matrix.T, strict=True):
                assert number == sum(map(mul, listed, map(Fraction, column)))
            fitted = sum(map(mul, listed, map(Fraction, slopes)))
            assert left == target - float(fitted)
            assert float(fitted) == fitted
        return np.zeros(1)

    held.total(part, (1,), whitening, theta)


def test_a_map_that_is_changed_in_place_is_another_one(samples, rng):
    """And an identity leaves rows as they are."""
    held, whitening, theta = Records(samples, 9.0, 9.0), np.eye(P), rng.standard_normal(P)
    before = Point(held, theta, whitening).gradient_sum(clip_norm=1.0)
    whitening *= 2.0
    after = Point(held, theta, whitening).gradient_sum(clip_norm=1.0)
    other = Point(Records(samples, 9.0, 9.0), theta, whitening).gradient_sum(clip_norm=1.0)
    assert_array_equal(after, other)
    assert np.all(before != after)
    rows = samples.features
    assert white_rows(rows, np.eye(P)).rows is rows
    assert white_rows(rows, 2 * np.eye(P)).rows is not rows


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
        squares = np.add.accumulate(white.rows**2, axis=1)[:, -1]
        assert_array_equal(white.norms, np.sqrt(squares))
        assert_array_equal(white.rows, features @ exact_factor(whitening))
        assert not white.rows.flags.writeable
        assert not white.norms.flags.writeable
        assert (starts is None) == (persons is None)
        return np.zeros(1)

    for _ in range(3):
        held.total(part, (1,), whitening)
    assert sum(seen) == 3 * N
    assert len(calls) == len(seen) / 3


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_counts_of_many_values_are_those_of_a_search(rng, count):
    values = np.exp(rng.normal(-1.0, 3.0, count))
    # Values at an edge, and next to it, belong below and above.
    near = np.concatenate([EDGES, np.nextafter(EDGES, 0.0), np.nextafter(EDGES, 99.0)])[:count]
    values[: len(near)] = near
    expected = [np.sum(values <= EDGES[0])]
    for low, high in pairwise(EDGES):
        expected.append(np.sum((values > low) & (values <= high)))
    expected.append(np.sum(values > EDGES[-1]))
    assert_array_equal(bin_counts(values, EDGES), expected)
