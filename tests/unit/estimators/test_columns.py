"""What a column's cells are encoded as, against Python's own numbers."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from privreg.estimators.columns import Categories, Numbers, declared, table_columns


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [-128, 0, None, 127]),
        (pa.int64(), [2**53 + 1, -(2**63), None, 3]),
        (pa.uint64(), [2**64 - 1, None, 0]),
        (pa.float64(), [0.1, None, -1e308, 5e-324]),
        (pa.float32(), [float(np.float32(0.1)), None, -3.0]),
        (pa.string_view(), ["0.1", None, "1_0"]),
        (pa.decimal128(38, 2), [Decimal("1.25"), None, Decimal("-9e30")]),
        (pa.string(), ["0.1", None, "", "1e-5", "0" * 120 + "1.5", "1_0", "+7"]),
    ],
)
def test_numbers_are_those_of_python_in_double_precision(kind, values):
    cells = Numbers("x", -1.0, 1.0).encode(pa.array(values, kind))
    wanted = [np.nan if each in (None, "", "1_0") else float(each) for each in values]
    assert cells.features[0].dtype == np.float64
    np.testing.assert_array_equal(cells.features[0], wanted)
    np.testing.assert_array_equal(cells.missing, np.isnan(wanted))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.decimal128(9, 1), pa.string()])
def test_a_code_for_missing_is_missing_in_every_type(kind):
    """Rounded as the column rounds; what is near a code is a number."""
    cells = [str(each) for each in (9999, -9.9, 1, -9.5, 9998)]
    own = {pa.string(): str, pa.float32(): float}.get(kind, Decimal)
    cells = pa.array([own(each) for each in cells]).cast(kind, safe=False)
    (column,) = table_columns({"x": {"bounds": (0, 5), "missing": [9999, -9.9]}}, "y", NAMES)
    found = column.encode(cells)
    whole = kind == pa.int64()
    assert found.missing.tolist() == [True, not whole, False, False, False]
    assert column.clipped(found) == 2 + whole


def test_a_number_on_its_bound_is_not_clipped():
    column = Numbers("x", -1.0, 2.0)
    cells = column.encode(pa.array([-1.0, 2.0, 0.0, -1.1, 2.1, np.inf]))
    assert column.clipped(cells) == 3
    assert column.clips
    texts = Categories("c", ("a", "b"))
    assert texts.clipped(texts.encode(pa.array(["a", "z"]))) == 0
    assert not texts.clips


def test_categories_are_found_in_their_order():
    cells = Categories("c", ("a", "b", "c")).encode(pa.array(["c", None, "a", "b", "B"]))
    assert [each.tolist() for each in cells.features] == [[0, 0, 0, 1, 0], [1, 0, 0, 0, 0]]
    assert cells.missing.tolist() == [False, True, False, False, True]


NAMES = ("x", "x=b", "y", "size")


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ({"x": {"categories": ["a", 1.0]}}, "must be texts, integers or truth values, got a float"),
        ({"x": {"categories": "ab"}}, "must be two numbers .*, got a dict of 1"),
        ({"x": {"categories": [1, 2], "more": 1}}, "got a dict of 2"),
        ({"x": {"low": 10, "high": 300}}, "got a dict of 2"),
        ({"x": [date(2020, 1, 1), "a"]}, "got a list of 2: date and str"),
        ({"x": [1, 2, 3]}, r"must be two numbers \(low, high\), or .*, got a list of 3"),
        ({"x": ["10", "300"]}, "got a list of 2: str and str"),
        ({"x": [10, None]}, "got a list of 2: int and NoneType"),
        ({"x": [False, True]}, "got a list of 2: bool and bool"),
        ({"x": ([0, 1], [2, 3])}, "must"),
        ({"x": np.array(["10", "300"])}, r"got a ndarray of shape \(2,\)"),
        ({"x": {"categories": ["town"]}}, "categories of 'x' must be 2 or more"),
        ({"x": {"categories": ["a", "a", "b"]}}, "categories of 'x' must be 2 or more"),
        (
            {"size": (0, 1), "x": {"categories": ["a", "b"]}, "x=b": (0, 1)},
            "features must have different names, got 'x=b' twice",
        ),
        ({"x": (1, 0)}, "must have low below high"),
        ({"x": {"bounds": (1, 0), "missing": [9]}}, "must have low below high"),
        ({"x": {"bounds": {"categories": ["a", "b"]}, "missing": [9]}}, "must be two numbers"),
        ({"x": {"bounds": (0, 1), "missing": ["NA"]}}, "missing of 'x' must be real numbers"),
        ({"siz": (0, 1)}, r"a name must be a column of the table \(4 columns\), got 'siz'$"),
        ({"y": (0, 1)}, "label must not be one of the features"),
        ((0, 1), "feature_bounds must be a mapping"),
    ],
)
def test_a_wrong_declaration_is_refused(declaration, message):
    with pytest.raises(ValueError, match=message):
        table_columns(declaration, "y", NAMES)


def test_integers_are_categories_where_they_are_called_so():
    for cells, texts in (([0, 1], ("0", "1")), ([False, True], ("false", "true"))):
        (column,) = table_columns({"x": {"categories": cells}}, "y", NAMES)
        assert column.categories == texts


@pytest.mark.parametrize("p", [1, 2, 3])
def test_pairs_and_ends_are_told_apart_whatever_their_number(p):
    lows, highs = np.arange(p) - 1.0, np.arange(p) + 2.0
    wanted = np.column_stack([lows, highs])
    pairs = list(zip(lows.tolist(), highs.tolist(), strict=True))
    assert np.array_equal(declared("bounds", pairs, p), wanted)
    assert np.array_equal(declared("bounds", (lows.tolist(), highs.tolist()), p), wanted)
    assert np.array_equal(declared("bounds", (lows, highs), p), wanted)
    expected = rf"a list of {p} pairs .*, or a tuple of" if p > 1 else r"must be \(low, high\), got"
    for either in (wanted.tolist(), tuple(pairs), wanted, [lows, highs]):
        with pytest.raises(ValueError, match=expected):
            declared("bounds", either, p)
    with pytest.raises(ValueError, match=expected):
        declared("bounds", [*pairs, (0.0, 1.0)], p)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 0), r"got \(1, 0\): write the low end first$"),
        ((1, 1), r"got \(1, 1\)$"),
        ([(0, 1), (1, 0), (2, 2)], "got other pairs in columns 1, 2: write the low end first$"),
    ],
)
def test_a_mistake_in_bounds_is_answered_with_what_to_write(bounds, message):
    with pytest.raises(ValueError, match=message):
        declared("bounds", bounds, 3)


def test_a_mapping_of_a_whole_schema_names_columns_that_are_not_used():
    schema = {"x": (0, 1), "y": (0, 2), "other": {"categories": ["a", "b"]}}
    assert declared("bounds", schema, 2, ["y", "x"]).tolist() == [[0, 2], [0, 1]]
    with pytest.raises(
        ValueError, match=r"every column, got none for 'others' but bounds for 'other'$"
    ):
        declared("bounds", schema, 1, ["others"])
