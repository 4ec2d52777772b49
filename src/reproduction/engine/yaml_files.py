"""YAML files written by people, with errors of one line."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from reproduction.engine.parameters import ConfigError

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_mapping(path: str | Path) -> dict[Any, Any]:
    """The mapping that a file holds, each key once; a `ConfigError` names the file and the line."""
    try:
        found = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_OneOfEachKey)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line}: {error.problem}") from None
    except ValueError as error:
        # No UTF-8, or a date that has the form of one and is none.
        raise ConfigError(f"{path} must be YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        shown = "nothing" if found is None else f"a {type(found).__name__}"
        raise ConfigError(f"{path} must hold keys and their values, got {shown}")
    return found


class _OneOfEachKey(Loader):
    """YAML in which a key that is there twice is an error: the first would be lost in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key, _ in node.value:
            merged = key.tag == "tag:yaml.org,2002:merge"
            name = "<<" if merged else self.construct_object(key, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {name!r} is there twice", node.start_mark
                )
            seen.add(name)
        return dict(super().construct_mapping(node, deep))
