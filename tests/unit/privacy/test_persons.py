"""Names of persons: told apart as they are given, or refused."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from privreg.algorithms.records import Persons
from privreg.privacy.persons import require_names


@pytest.mark.parametrize(
    "groups",
    [
        ["a", float("nan")],
        [1, "1"],
        [2**53, 2**53 + 1, 0.5],
        [None],
        [1.0, float("nan")],
        [pd.NA],
        [pd.NaT],
        [[1.0], [1.0, 2.0]],
        [True, 2],
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", None]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([1.0, np.nan]),
        np.array(["a", np.nan], dtype=object),
    ],
    ids=repr,
)
def test_what_is_no_name_or_of_two_kinds_is_refused(groups):
    with pytest.raises(ValueError, match=r"^groups must "):
        Persons(groups, len(groups))


@pytest.mark.parametrize(
    "groups",
    [
        [2**53, 2**53 + 1],
        [2**63, -1],
        [2**70, 2**70 + 1],
        ["a", "a\0"],
        [b"a", b"a\0"],
        [0.5, np.inf],
        [dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
        [np.int64(1), 2],
        [np.str_("a"), "b"],
        [np.datetime64("2020"), np.datetime64("2021")],
        pd.Series(["a", "b"], dtype="category"),
        pd.Series([1, 2], dtype="Int64"),
        np.array(["a", "b"]),
    ],
    ids=repr,
)
def test_different_names_are_different_persons(groups):
    assert Persons(groups, 2).codes.tolist() in ([0, 1], [1, 0])


@pytest.mark.parametrize("more", [0.5, "c", None, 10**30, np.nan, (1,)], ids=repr)
def test_a_name_beside_others_changes_who_they_are_in_no_case(more):
    """It is refused, or the others are told apart as without it."""
    groups = [2**53, 2**53 + 1, 2**53]
    if isinstance(more, int):
        codes = Persons([*groups, more], 4).codes[:3]
        assert codes.tolist() == Persons(groups, 3).codes.tolist()
    else:
        with pytest.raises(ValueError, match="of one kind"):
            Persons([*groups, more], 4)


def test_numbers_in_lists_are_looked_up_as_arrays():
    """Sorting Python objects would take a table with a million rows seconds."""
    assert require_names([3, 1], 2).dtype.kind == "i"
    assert require_names([0.5, 1.5], 2).dtype.kind == "f"
    assert require_names([], 0).shape == (0,)
    with pytest.raises(ValueError, match=r"groups must have shape \(3,\), got \(2,\)"):
        require_names([1, 2], 3)
