"""`privreg bounds`: a template of the bounds that a fit needs, and the file that it becomes."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Any

import yaml

from privreg.checks import require_choice
from privreg.command_line.options import add_table, open_stated

SUMMARY = "write a template of bounds from the header and the column types of a table alone"
RANGE = "[LOW, HIGH]"
NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
# What a template has in place of categories.
BLANK = ["FIRST", "SECOND"]
KEY = ["categories"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_table(parser)
    parser.add_argument("--label", required=True, metavar="COLUMN", help="column of the label")


def run(options: argparse.Namespace) -> str:
    """The template as YAML, which is refused until it is filled in."""
    schema = open_stated(options).schema
    label = require_choice("--label", options.label, schema.names)
    # Where all are texts, as in CSV files, types say nothing.
    told = any(each.type != "string" for each in schema)
    lines = [_line(each.name, each.type, told=told) for each in schema if each.name != label]
    return "\n".join(
        [
            "# From public knowledge, never from a look at the table. Delete what is no feature.",
            f"{_key(label)}: {RANGE}  # the label: the least and the greatest that it can be",
            *dict.fromkeys(lines),
        ]
    )


def _line(name: str, kind: Any, *, told: bool) -> str:
    from pyarrow import types

    from privreg.estimators.columns import Numbers, value_type

    categories = f"{{categories: [{', '.join(BLANK)}]}}"
    value, key = value_type(kind), _key(name)
    if types.is_boolean(value):
        return f"{key}: {{categories: [false, true]}}  # the first is compared with"
    if told and value == "string":
        return f"{key}: {categories}  # all categories, or {RANGE} of texts that are numbers"
    try:
        Numbers(name, 0.0, 1.0).require_type(kind)
    except ValueError as error:
        return f"# {error}"
    other = f", or {categories}" if types.is_integer(value) or not told else ""
    return f"{key}: {RANGE}  # the least and the greatest that it can be{other}"


def _key(name: str) -> str:
    """A name that YAML reads back as it is, in one line."""
    quote = None if name.isidentifier() else '"'
    text: str = yaml.safe_dump(name, default_style=quote, allow_unicode=True, width=inf)
    return text.removesuffix("...\n").strip("\n")


class _Number(str):
    """A number as it was written, without quotes."""


def read_bounds(path: Path) -> dict[str, Any]:
    """Bounds by column from a YAML or JSON file: [low, high] or {"categories": [...]}.

    Each of the categories is the text that was written, `no`, `1.0` and `2020-01-01` as well.
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
