"""Bounds of columns in a YAML or JSON file, in which a category stays the text that was written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml


def read_bounds(path: Path) -> dict[str, Any]:
    """Bounds by column from a YAML or JSON file.

    A list of two plain numbers are bounds. In every other list, and below `categories`, each entry
    is a category: the text that was written, `no`, `1.0` and `2020-01-01` as well.

    Parameters
    ----------
    path : Path
        In UTF-8, ending in .json, .yaml or .yml.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        found = json.loads(text, object_pairs_hook=_once)
        if not isinstance(found, dict):
            raise ValueError(f"bounds must be a mapping from columns, got {type(found).__name__}")
        return found
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"bounds must be YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("bounds must be a mapping from columns, got none")
    return _once((_text(name), _declaration(value)) for name, value in root.value)


def _declaration(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _once((_text(name), _texts(value)) for name, value in node.value)
    if not isinstance(node, yaml.SequenceNode):
        return _text(node)
    ends = [_number(each) for each in node.value]
    return _texts(node) if len(ends) != 2 or None in ends else ends


def _texts(node: yaml.Node) -> Any:
    if not isinstance(node, yaml.SequenceNode):
        return _text(node)
    return [_text(each) for each in node.value]


def _text(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError(
            f"bounds must be lists of numbers or texts, got a list or mapping inside one in line "
            f"{node.start_mark.line + 1}"
        )
    return str(node.value)


def _number(node: yaml.Node) -> float | None:
    """The number that a scalar without quotes writes."""
    if not isinstance(node, yaml.ScalarNode) or node.style is not None:
        return None
    try:
        # `.inf` is YAML's infinity, which is refused as a bound and is no category.
        return float(node.value.replace(".inf", "inf"))
    except ValueError:
        return None


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping of names, each of which is there once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"bounds must name a column once, got {name!r} twice")
        found[name] = value
    return found
