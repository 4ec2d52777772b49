"""What a paper's figures and tables are functions of, read from the sources without running them.

Plotting takes longer to import than a wrong argument takes to find.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from reproduction.pipeline.closure import SOURCE
from reproduction.pipeline.registry import package


@cache
def functions(paper: str, kind: str) -> dict[str, tuple[str, ...]]:
    """Public functions of a paper's module `figures` or `tables`, with their arguments.

    Parameters
    ----------
    paper : str
        Citation key, or `studies`.
    kind : {"figures", "tables"}
    """
    path = _file(f"{package(paper)}.{kind}")
    return {name: args for name, args in _defined(path).items() if not name.startswith("_")}


@cache
def _defined(path: Path) -> dict[str, tuple[str, ...]]:
    if not path.is_file():
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            listed = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            found[node.name] = tuple(argument.arg for argument in listed)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("reproduction.papers.", "reproduction.studies.")
        ):
            other = _defined(_file(str(node.module)))
            names = {alias.name: alias.asname or alias.name for alias in node.names}
            found |= {names[name]: other[name] for name in names if name in other}
    return found


def _file(module: str) -> Path:
    base = SOURCE.joinpath(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
