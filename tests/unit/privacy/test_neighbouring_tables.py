"""Pairs of tables: what each relation changes, and what it leaves alone."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from privreg.algorithms.records import require_groups, require_names
from privreg.auditing import neighbouring_tables
from privreg.privacy.budget import Neighbours, shared_sample_size

ROWS, LABELS = np.arange(1.0, 11.0).reshape(5, 2), np.arange(1.0, 6.0)
GROUPS = np.array(["b", "a", "b", "c", "a"])


def test_one_row_is_replaced_removed_or_blank_in_its_place():
    replaced = neighbouring_tables(
        ROWS, LABELS, record=1, neighbours="replace-one", replacement=([[-1.0, -2.0]], [-3.0])
    )
    assert replaced.second.features.tolist() == [[1, 2], [-1, -2], [5, 6], [7, 8], [9, 10]]
    assert replaced.second.labels.tolist() == [1, -3, 3, 4, 5]
    removed = neighbouring_tables(ROWS, LABELS, record=1, neighbours="add-remove")
    assert_array_equal(removed.second.features, np.delete(ROWS, 1, axis=0))
    assert removed.second.labels.tolist() == [1, 3, 4, 5]
    blank = neighbouring_tables(ROWS, LABELS, record=1, neighbours="zero-out")
    assert blank.second.features.tolist() == [[1, 2], [0, 0], [5, 6], [7, 8], [9, 10]]
    assert blank.second.labels.tolist() == [1, 0, 3, 4, 5]
    for pair in (replaced, removed, blank):
        assert_array_equal(pair.first.features, ROWS)
        assert_array_equal(pair.first.labels, LABELS)
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
    assert_array_equal(replaced.features[place : place + 3], ROWS[:3])


def test_a_number_of_records_is_shared_or_declared():
    for relation in Neighbours:
        assert shared_sample_size(7.5, records=3, neighbours=relation) == 7.5
    assert shared_sample_size(None, records=3, neighbours="zero-out") == 3
    assert shared_sample_size(None, records=3, neighbours="replace-one") == 3
    assert shared_sample_size(1e15, records=3, neighbours="zero-out") == 1e15


@pytest.mark.parametrize(
    "groups",
    [
        ["a", float("nan")],
        [1, "1"],
        [2**53, 2**53 + 1, 0.5],
        [1.0, float("nan")],
        [pd.NaT],
        [[1.0], [1.0, 2.0]],
        [True, 2],
        pd.Series([1, None], dtype="Int64"),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array(["a", np.nan], dtype=object),
    ],
    ids=repr,
)
def test_what_is_no_name_or_of_two_kinds_is_refused(groups):
    with pytest.raises(ValueError, match=r"^groups must "):
        require_groups(groups, len(groups))


@pytest.mark.parametrize(
    "groups",
    [
        [2**53, 2**53 + 1],
        [2**70, 2**70 + 1],
        ["a", "a\0"],
        [b"a", b"a\0"],
        [0.5, np.inf],
        [dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
        [np.str_("a"), "b"],
        pd.Series(["a", "b"], dtype="category"),
        pd.Series([1, 2], dtype="Int64"),
    ],
    ids=repr,
)
def test_different_names_are_different_persons(groups):
    assert require_groups(groups, 2).codes.tolist() in ([0, 1], [1, 0])


@pytest.mark.parametrize("more", [0.5, "c", None, 10**30, np.nan, (1,)], ids=repr)
def test_a_name_beside_others_changes_who_they_are_in_no_case(more):
    """It is refused, or the others are told apart as without it."""
    groups = [2**53, 2**53 + 1, 2**53]
    if isinstance(more, int):
        codes = require_groups([*groups, more], 4).codes[:3]
        assert codes.tolist() == require_groups(groups, 3).codes.tolist()
    else:
        with pytest.raises(ValueError, match="of one type"):
            require_groups([*groups, more], 4)


@pytest.mark.parametrize("groups", [[None, None], [np.nan], [pd.NA], ["a", None], [[1.0], 2.0]])
def test_a_missing_name_is_refused(groups):
    with pytest.raises(ValueError, match="groups must "):
        require_groups(groups, len(groups))


def test_numbers_in_lists_are_looked_up_as_arrays():
    """Sorting Python objects would take a table with a million rows seconds."""
    assert require_names([3, 1], 2).dtype.kind == "i"
    assert require_names([0.5, 1.5], 2).dtype.kind == "f"
    assert require_names([], 0).shape == (0,)
    with pytest.raises(ValueError, match=r"groups must have shape \(3,\), got \(2,\)"):
        require_names([1, 2], 3)
