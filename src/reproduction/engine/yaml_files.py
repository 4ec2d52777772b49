"""Read a YAML file that people write; what is wrong with it is said in one line."""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from pathlib import Path
from typing import Any

import yaml

from reproduction.engine.parameters import ConfigError

# Aliases in aliases make few lines more values than any run would finish to read.
MOST_VALUES = 100_000
MERGE = "tag:yaml.org,2002:merge"
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_mapping(path: str | Path) -> dict[Any, Any]:
    """The mapping that a file holds, which has each of its keys once.

    Parameters
    ----------
    path : str or Path
        YAML in UTF-8.

    Raises
    ------
    ConfigError
        One line: the file, the line in it where there is one, and what is wrong.
    """
    path = Path(path)
    try:
        found = yaml.load(path.read_bytes().decode("utf-8"), Loader=_OneOfEachKey)
        size = _written_out(found, {})
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} must be UTF-8, got the byte 0x{error.object[error.start]:02x} at {error.start}"
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}{_problem(error)}") from None
    except RecursionError:
        raise ConfigError(f"{path} must be YAML, got brackets nested too deep") from None
    except ValueError as error:
        # A date or a number that has the form of one and is none.
        raise ConfigError(f"{path} must be YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        shown = "nothing" if found is None else f"a {type(found).__name__}"
        raise ConfigError(f"{path} must hold keys and their values, got {shown}")
    if size > MOST_VALUES:
        raise ConfigError(
            f"{path} must hold at most {MOST_VALUES:,} values, its aliases written out, got more"
        )
    return found


def _written_out(value: Any, known: dict[int, float]) -> float:
    """Number of values for a reader who follows each alias; infinite for one inside its anchor."""
    if id(value) not in known:
        known[id(value)] = inf
        inner = value.values() if isinstance(value, dict) else value
        parts = inner if isinstance(value, (dict, list)) else ()
        known[id(value)] = 1 + sum(_written_out(each, known) for each in parts)
    return known[id(value)]


def _problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    where = f", line {mark.line + 1}" if mark is not None else ""
    text = " ".join(str(said).split())
    return f"{where}: {text if isinstance(error, _TwiceError) else f'must be YAML, got {text}'}"


class _TwiceError(yaml.constructor.ConstructorError):
    """A key that is there twice."""


class _OneOfEachKey(Loader):
    """YAML in which a key that is there twice is an error: the first would be lost in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [
            "<<" if key.tag == MERGE else self.construct_object(key, deep=True)
            for key, _ in node.value
        ]
        for name in names:
            if names.count(name) > 1:
                raise _TwiceError(None, None, f"the key {name!r} is there twice", node.start_mark)
        return dict(super().construct_mapping(node, deep))
