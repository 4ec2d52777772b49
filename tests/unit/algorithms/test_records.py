"""Records: bounded rows, rows of persons kept together, and sums that parts and threads share."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.records import Persons, Records, require_groups
from privreg.algorithms.samples import ArraySamples, Chunk, row_norms

ROWS = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-6.0, 8.0], [1e300, 1e300]])
LABELS = np.array([1.0, 9.0, -9.0, -20.0, 1e300])


class Streamed:
    """Samples that are read in chunks of two, and in two parts."""

    sample_size, dimension = 5, 2

    def chunks(self):
        for first in (0, 2, 4):
            rows = ROWS[first : first + 2]
            yield Chunk(rows, LABELS[first : first + 2], row_norms(rows))


class Parted(Streamed):
    def parts(self):
        def reader(first, last):
            rows = ROWS[first:last]
            return lambda: iter([Chunk(rows, LABELS[first:last], row_norms(rows))])

        return [reader(0, 2), reader(2, 5)]


def bounded():
    """Long rows are 5 long, with their labels; then labels are at most 4."""
    features = ROWS.copy()
    features[3] = [-3.0, 4.0]
    features[4] = 5 / np.sqrt(2)
    return features, np.array([1.0, 4.0, -4.0, -4.0, 5 / np.sqrt(2)])


@pytest.mark.parametrize("samples", [ArraySamples(ROWS, LABELS), Streamed(), Parted()])
def test_rows_and_labels_are_bounded_one_by_one(samples):
    records = Records(samples, 5.0, 4.0)
    assert not records.common_width
    chunks = list(records.chunks())
    assert all(starts is None for _, _, starts in chunks)
    features, labels = (np.concatenate([each[k] for each in chunks]) for k in (0, 1))
    np.testing.assert_allclose(features, bounded()[0], rtol=1e-14)
    np.testing.assert_allclose(labels, bounded()[1], rtol=1e-14)
    np.testing.assert_array_equal(features[:3], ROWS[:3])
    if isinstance(samples, ArraySamples):
        # What one pass changed the next would see.
        assert not any(each.flags.writeable for chunk in chunks for each in chunk[:2])


def test_a_long_row_takes_its_label_along():
    records = Records(ArraySamples([[6.0, 8.0], [0.1, 0.0]], [3.0, 50.0]), 5.0, 100.0)
    ((features, labels, _),) = records.chunks()
    np.testing.assert_allclose(features[0], [3.0, 4.0], rtol=1e-14)
    np.testing.assert_allclose(labels, [1.5, 50.0], rtol=1e-14)
    with pytest.raises(TypeError):
        Records(ArraySamples(ROWS, LABELS), 5.0, 4.0, _starts=np.zeros(1, dtype=int))


def test_data_within_the_bounds_stay_the_same_object():
    samples = ArraySamples([[3.0, 4.0], [1.0, 0.0]], [4.0, -4.0])
    small = ArraySamples([[0.3, 0.0]], [0.2])
    for held, bounds, same in (
        (samples, (5.0, 4.0), True),
        (small, (0.3, 0.2), True),
        (samples, (4.99, 4.0), False),
        (samples, (5.0, 3.99), False),
    ):
        ((_, labels, _),) = Records(held, *bounds).chunks()
        assert np.shares_memory(labels, held.labels) == same
    for chunk in Streamed().chunks():
        kept = Records(Streamed(), 5.0, 4.0)._bounded(chunk)
        np.testing.assert_allclose(kept.norms, row_norms(kept.features), rtol=1e-14)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("samples", [ArraySamples(ROWS, LABELS), Streamed(), Parted()])
def test_totals_do_not_depend_on_how_samples_come(samples, threads):
    records = Records(samples, 5.0, 4.0, threads=threads)
    assert records.count == 5
    features, labels = bounded()
    found = records.total(lambda rows, targets, _: rows.T @ targets, (2,))
    np.testing.assert_allclose(found, features.T @ labels, rtol=1e-13)


@pytest.mark.parametrize("persons", [1, 1024, 1025, 2500])
def test_rows_of_a_person_stay_together(rng, persons):
    groups = rng.permutation(np.append(np.arange(persons), rng.integers(0, persons, 700)))
    rows = len(groups)
    features, labels = rng.standard_normal((rows, 2)) / 9, rng.standard_normal(rows) / 9
    records = Records(ArraySamples(features, labels), 5.0, 4.0, groups=groups)
    assert records.count == persons
    sums, sizes = [], []
    for x, y, starts in records.chunks():
        assert starts is not None
        sums.append(np.add.reduceat(x * y[:, None], starts))
        sizes.append(len(starts))
    expected = np.column_stack(
        [np.bincount(groups, x * labels, minlength=persons) for x in features.T]
    )
    np.testing.assert_allclose(np.concatenate(sums), expected, atol=1e-13)
    # So few at a time that a matrix of each fits in memory.
    assert max(sizes) <= 1024
    total = records.total(lambda x, y, _: x.T @ y, (2,))
    np.testing.assert_allclose(total, features.T @ labels, atol=1e-12)


@pytest.mark.parametrize(
    ("samples", "change", "message"),
    [
        (ArraySamples(ROWS, LABELS), {"groups": [1, 2]}, r"groups must have shape \(5,\)"),
        (Streamed(), {"groups": np.zeros(5)}, "groups must be None for data sets"),
        (ArraySamples(ROWS, LABELS), {"feature_norm": 9e-51}, "feature_norm must be"),
        (ArraySamples(ROWS, LABELS), {"label_bound": 1.1e50}, "label_bound must be"),
        ([[1.0]], {}, "samples must"),
    ],
)
def test_refuses(samples, change, message):
    with pytest.raises(ValueError, match=message):
        Records(**{"samples": samples, "feature_norm": 5.0, "label_bound": 4.0, **change})


@pytest.mark.parametrize("bound", [1e-50, 1e50])
def test_takes_the_ends_of_its_ranges(bound):
    records = Records(ArraySamples(ROWS[:2], LABELS[:2]), bound, bound)
    ((features, labels, _),) = records.chunks()
    assert np.all(row_norms(features) <= bound * (1 + 1e-14))
    assert np.all(np.abs(labels) <= bound)


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
    assert (Persons([], 0).count, Persons(["a"], 1).count) == (0, 1)
