"""Bounds of columns in a YAML or JSON file, in which a category stays the text that was written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
# What a template has in place of categories.
BLANK = ["FIRST", "SECOND"]
KEY = ["categories"]


class _Number(str):
    """A number as it was written, without quotes."""


def read_bounds(path: Path) -> dict[str, Any]:
    """Bounds by column from a YAML or JSON file: [low, high] or {"categories": [...]}.

    A range is a list of two plain numbers. Each of the categories is the text that was written,
    `no`, `1.0` and `2020-01-01` as well.
    """
    kind, data = "JSON" if path.suffix == ".json" else "YAML", path.read_bytes()
    try:
        if kind == "JSON":
            as_written: Any = {"parse_int": _Number, "parse_float": _Number}
            found = json.loads(data, object_pairs_hook=_once, **as_written)
        else:
            # Aliases could make a short file endless.
            if any(isinstance(each, yaml.AliasToken) for each in yaml.scan(data)):
                raise ValueError("bounds must be written out, got a YAML alias")
            found = _plain(yaml.compose(data, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        # What the parsers say quotes the file, which may be a table by mistake.
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise ValueError(f"bounds must be {kind} in UTF-8, got a fault{where}") from None
    if not isinstance(found, dict):
        raise ValueError("bounds must be a mapping from columns to bounds, got none")
    return {name: _declaration(name, written) for name, written in found.items()}


def _declaration(name: str, written: Any) -> Any:
    if isinstance(written, list) and [type(each) for each in written] == [_Number] * 2:
        return [float(each) for each in written]
    listed = written["categories"] if isinstance(written, dict) and [*written] == KEY else None
    texts = listed if isinstance(listed, list) and listed != BLANK else [None]
    if all(isinstance(each, (str, bool)) for each in texts):
        # JSON has truth values: as in a column, `true` and `false`.
        return {"categories": [str(e).lower() if isinstance(e, bool) else str(e) for e in texts]}
    found = f"a list of {len(written)}" if isinstance(written, list) else "another"
    raise ValueError(
        f"bounds of {name!r} must be [low, high], two plain numbers such as 2030 and 0.5, or "
        "{categories: [first, second]} with the categories of the column, got "
        f"{'those of a template' if listed == BLANK else found}"
    )


def _plain(node: yaml.Node | None) -> Any:
    """Mappings, lists and texts, without any type that YAML guesses but that of numbers."""
    if isinstance(node, yaml.MappingNode):
        return _once((_plain(name), _plain(value)) for name, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    if not isinstance(node, yaml.ScalarNode):
        return None
    number = node.style is None and NUMBER.fullmatch(node.value)
    return (_Number if number else str)(node.value)


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """A mapping of names, each of which is there once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise ValueError("bounds must be a mapping from columns, got a list for a column")
        if name in found:
            raise ValueError(f"bounds must name a column once, got {name!r} twice")
        found[name] = value
    return found
