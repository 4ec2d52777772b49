"""Bounds in a file: numbers are numbers, and a category is the text that was written."""

from __future__ import annotations

import pytest

from privreg.command_line.tables import read_bounds


def read(tmp_path, text, ending="yaml"):
    path = tmp_path / f"bounds.{ending}"
    path.write_text(text, encoding="utf-8")
    return read_bounds(path)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("{categories: [no, yes, on]}", {"categories": ["no", "yes", "on"]}),
        ("{categories: [2020-01-01, 10:30]}", {"categories": ["2020-01-01", "10:30"]}),
        ("{categories: [~, null, n, é]}", {"categories": ["~", "null", "n", "é"]}),
        ("{categories: [01, 0x3, 1.0]}", {"categories": ["01", "0x3", "1.0"]}),
        ("\n  categories:\n  - a b\n  - '1'\n", {"categories": ["a b", "1"]}),
        ("[0, 1]", [0, 1]),
        ("[-1.5, 1e6]", [-1.5, 1e6]),
        ("[.5, +2.]", [0.5, 2.0]),
        ("\n  - 0\n  - 250\n", [0, 250]),
        ("{bounds: [0, 9], missing: [-999, 1e4]}", {"bounds": [0, 9], "missing": [-999, 1e4]}),
    ],
)
def test_what_yaml_writes(tmp_path, written, read_as):
    found = read(tmp_path, f"no: {written}\n")
    assert found == {"no": read_as}


def test_json_says_the_same(tmp_path):
    found = read(tmp_path, '\ufeff{"a": [0, 1.5], "c": {"categories": [1, 1.0, true]}}', "json")
    assert found == {"a": [0, 1.5], "c": {"categories": ["1", "1.0", "true"]}}


NEITHER = """["10", "300"]; [10, "300"]; [10, null]; [10, 100, 300]; [10]; []; 10; null; [[0, 1]]
["town", "coast"]; [true, false]; [NaN, 1]; {"low": 10, "high": 300}; {"categories": "a"}; {}
{"categories": [["a"]]}; {"categories": ["FIRST", "SECOND"]}; {"categories": ["a"], "low": 0}
{"bounds": [0, 1], "missing": 9}; {"bounds": [0, 1], "missing": ["NA"]}; {"bounds": [0, 1]}"""
NO_NUMBERS = """[1,900, 2,030]; [10 m2, 300 m2]; [10, 3OO]; [2020-01-01, 2021-01-01]; [0, .inf]
[LOW, 9]; [1_0, 9]; [0x20, 99]; [1:30, 2:30]"""


@pytest.mark.parametrize(
    ("written", "ending"),
    [
        *((each, "yaml") for each in f"{NEITHER}; {NO_NUMBERS}".replace("\n", "; ").split("; ")),
        *((each, "json") for each in NEITHER.replace("\n", "; ").split("; ")),
    ],
)
def test_what_says_neither_range_nor_categories_is_refused(tmp_path, ending, written):
    with pytest.raises(ValueError, match=r"bounds of 'size' must be .low, high. with plain"):
        read(tmp_path, f'{{"size": {written}}}', ending)


@pytest.mark.parametrize(
    ("text", "ending", "message"),
    [
        ("a: [0, 1]\na: [0, 2]\n", "yaml", "must name each column once, got 'a' twice"),
        ('{"a": [0, 1], "a": [0, 2]}', "json", "must name each column once, got 'a' twice"),
        ("? [a]\n: [0, 1]\n", "yaml", "bounds must have column names as keys"),
        ("[1]", "json", "bounds must be a mapping from columns"),
        ("a: &a [0, 1]\nb: *a\n", "yaml", "must be written out, got a YAML alias"),
        ("[" * 2000, "yaml", "bounds must be YAML in UTF-8, got a fault$"),
        ("[" * 100_000, "json", "bounds must be JSON in UTF-8, got a fault$"),
        ("name: secret: 3\n", "yaml", "bounds must be YAML in UTF-8, got a fault in line 1$"),
        ('{"a": secret}', "json", "bounds must be JSON in UTF-8, got a fault$"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, text, ending, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text, ending)
    with pytest.raises(ValueError, match=r"--bounds must be a file that exists, got '.*absent"):
        read_bounds(tmp_path / "absent.yaml")
