"""`privreg bounds`: a template of the bounds that a fit of a table needs."""

from __future__ import annotations

import argparse
from math import inf
from typing import Any

import yaml

from privreg.command_line.options import add_table, open_stated
from privreg.validation import require_choice

SUMMARY = "write a template of bounds from the header and the column types of a table alone"
RANGE = "[LOW, HIGH]"


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

    from privreg.command_line.bounds_file import BLANK
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
