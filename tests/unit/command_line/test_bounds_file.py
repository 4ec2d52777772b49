"""Bounds in a file: numbers are numbers, and a category is the text that was written."""

from __future__ import annotations

import pytest

from privreg.command_line.bounds_file import read_bounds


def read(tmp_path, text, ending="yaml"):
    path = tmp_path / f"bounds.{ending}"
    path.write_text(text, encoding="utf-8")
    return read_bounds(path)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("[no, yes, maybe]", ["no", "yes", "maybe"]),
        ("[no, yes]", ["no", "yes"]),
        ("[on, off]", ["on", "off"]),
        ("[2020-01-01, 2021-01-01]", ["2020-01-01", "2021-01-01"]),
        ("[1.0, town]", ["1.0", "town"]),
        ("[~, null, n, é]", ["~", "null", "n", "é"]),
        ("[01, 02, 0x3]", ["01", "02", "0x3"]),
        ("[10:30, 12:45]", ["10:30", "12:45"]),
        ("['0', '1']", ["0", "1"]),
        ('["1.0", "2"]', ["1.0", "2"]),
        ("{categories: [0, 1.0]}", {"categories": ["0", "1.0"]}),
        ("{categories: [true, no]}", {"categories": ["true", "no"]}),
        ("[0, 1]", [0, 1]),
        ("[-1.5, 1e6]", [-1.5, 1e6]),
        ("[.5, +2.]", [0.5, 2.0]),
        ("[0, .inf]", [0, float("inf")]),
        ("\n  - 0\n  - 250\n", [0, 250]),
        ("private", "private"),
    ],
)
def test_what_yaml_writes(tmp_path, written, read_as):
    found = read(tmp_path, f"no: {written}\n")
    assert found == {"no": read_as}


def test_json_is_read_with_its_own_types(tmp_path):
    found = read(tmp_path, '{"a": [0, 1.5], "b": ["no", "1.0"], "c": {"categories": [1]}}', "json")
    assert found == {"a": [0, 1.5], "b": ["no", "1.0"], "c": {"categories": [1]}}


@pytest.mark.parametrize(
    ("text", "ending", "message"),
    [
        ("a: [0, 1]\na: [0, 2]\n", "yaml", "must name a column once, got 'a' twice"),
        ('{"a": [0, 1], "a": [0, 2]}', "json", "must name a column once, got 'a' twice"),
        ("- 1\n", "yaml", "bounds must be a mapping from columns"),
        ("[1]", "json", "bounds must be a mapping from columns, got list"),
        ("", "yaml", "bounds must be a mapping from columns"),
        ("a: [[0, 1], [1, 2]]\n", "yaml", "lists of numbers or texts"),
        ("a: [0, 1\n", "yaml", "bounds must be YAML, got"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, text, ending, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text, ending)
