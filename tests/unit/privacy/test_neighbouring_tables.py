"""Pairs of tables: what each relation changes, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.privacy.neighbouring_tables import neighbouring_tables
from privreg.privacy.neighbours import Neighbours, shared_sample_size

ROWS, LABELS = np.arange(1.0, 11.0).reshape(5, 2), np.arange(1.0, 6.0)
GROUPS = np.array(["b", "a", "b", "c", "a"])


def test_one_row_is_replaced_removed_or_blank_in_its_place():
    replaced = neighbouring_tables(
        ROWS, LABELS, record=1, neighbours="replace-one", replacement=([[-1.0, -2.0]], [-3.0])
    )
    assert replaced.second.features.tolist() == [[1, 2], [-1, -2], [5, 6], [7, 8], [9, 10]]
    assert replaced.second.labels.tolist() == [1, -3, 3, 4, 5]
    removed = neighbouring_tables(ROWS, LABELS, record=1, neighbours="add-remove")
    np.testing.assert_array_equal(removed.second.features, np.delete(ROWS, 1, axis=0))
    assert removed.second.labels.tolist() == [1, 3, 4, 5]
    blank = neighbouring_tables(ROWS, LABELS, record=1, neighbours="zero-out")
    assert blank.second.features.tolist() == [[1, 2], [0, 0], [5, 6], [7, 8], [9, 10]]
    assert blank.second.labels.tolist() == [1, 0, 3, 4, 5]
    for pair in (replaced, removed, blank):
        np.testing.assert_array_equal(pair.first.features, ROWS)
        np.testing.assert_array_equal(pair.first.labels, LABELS)
        assert pair.first.groups is pair.second.groups is None
        assert pair.not_private is True


@pytest.mark.parametrize("record", [1, 4])
def test_all_rows_of_a_person_are(record):
    options = {"record": record, "groups": GROUPS}
    removed = neighbouring_tables(ROWS, LABELS, neighbours="add-remove", **options).second
    assert (removed.labels.tolist(), removed.groups.tolist()) == ([1, 3, 4], ["b", "b", "c"])
    blank = neighbouring_tables(ROWS, LABELS, neighbours="zero-out", **options).second
    assert blank.labels.tolist() == [1, 0, 3, 4, 0]
    assert not np.any(blank.features[[1, 4]])
    assert blank.groups.tolist() == GROUPS.tolist()
    replaced = neighbouring_tables(
        ROWS, LABELS, neighbours="replace-one", replacement=(ROWS[:3], -LABELS[:3]), **options
    ).second
    assert sorted(replaced.labels.tolist()) == [-3, -2, -1, 1, 3, 4]
    assert np.count_nonzero(replaced.groups == "a") == 3
    place = replaced.labels.tolist().index(-1)
    np.testing.assert_array_equal(replaced.features[place : place + 3], ROWS[:3])


def test_a_number_of_records_is_shared_or_declared():
    for relation in Neighbours:
        assert shared_sample_size(7.5, records=3, neighbours=relation) == 7.5
    assert shared_sample_size(None, records=3, neighbours="zero-out") == 3
    assert shared_sample_size(None, records=3, neighbours="replace-one") == 3
    assert shared_sample_size(1e15, records=3, neighbours="zero-out") == 1e15
