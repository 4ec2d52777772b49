"""Which source files a stage runs: a static walk over the imports of both packages.

The workflow gives these files to a rule as inputs, so that an edit reruns what depends on it and
nothing else.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("privreg", "reproduction")
SOURCE = Path(__file__).parent.parent.parent


def closure(*roots: str) -> tuple[Path, ...]:
    """Files of the packages that the roots import, directly or not, themselves included.

    Parameters
    ----------
    *roots : str
        `package.module`, or `package.module:function` to leave out what functions of the module
        that this one does not reach import inside their bodies.

    Returns
    -------
    tuple of Path
        Sorted, relative to the current directory where that is possible.
    """
    found: set[Path] = set()
    for root in roots:
        module, _, function = root.partition(":")
        found.update(_walk(module, function or None))
    return tuple(sorted(Path(os.path.relpath(path)) for path in found))


def digest(*roots: str) -> str:
    """SHA-256 over names and contents of the closure."""
    return _digest(closure(*roots))


def code_of(paths: Iterable[str]) -> str:
    """Short digest of source files, by which a rule's `params` tell that they were edited.

    As a rule's inputs they would do the same; but Snakemake looks at each input of each job that is
    ready whenever it chooses the next one, and a job has eighty source files.
    """
    return _code_of(tuple(paths))


def module_of(path: Path) -> str:
    """Dotted name of the module that a file of the packages holds."""
    parts = path.resolve().relative_to(SOURCE.resolve()).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def _code_of(paths: tuple[str, ...]) -> str:
    return _digest(map(Path, paths))[:16]


def _digest(files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(path.resolve() for path in files):
        total.update(path.relative_to(SOURCE).as_posix().encode())
        found = path.stat()
        total.update(_content(path, found.st_mtime_ns, found.st_size))
    return total.hexdigest()


@cache
def _content(path: Path, changed: int, size: int) -> bytes:
    """A file as it is; when it changed tells the cache whether that is as it was."""
    return path.read_bytes()


def _walk(module: str, function: str | None) -> set[Path]:
    pending = set(_imports(module, function))
    seen: set[str] = {module}
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending.update(_imports(name, None))
    return {path for name in seen if (path := _file(name)) is not None}


@cache
def _imports(module: str, function: str | None) -> tuple[str, ...]:
    path = _file(module)
    if path is None:
        return ()
    parents = [module.rsplit(".", depth)[0] for depth in range(1, module.count(".") + 1)]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple({*parents, *_imported_names(tree, function)})


def _imported_names(tree: ast.Module, function: str | None) -> Iterator[str]:
    for statement in _run_statements(tree, function):
        for node in _statements(statement):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if _ours(alias.name))
            elif isinstance(node, ast.ImportFrom) and node.module and _ours(node.module):
                yield node.module
                for alias in node.names:
                    if _file(f"{node.module}.{alias.name}") is not None:
                        yield f"{node.module}.{alias.name}"


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and those inside it: all that can import, a tenth of what `ast.walk` visits."""
    yield node
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inside in getattr(node, block, ()):
            yield from _statements(inside)


def _run_statements(tree: ast.Module, function: str | None) -> list[ast.stmt]:
    """Top-level statements that run; of functions only those that `function` may reach by name."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    others = [
        node
        for node in tree.body
        if not isinstance(node, ast.FunctionDef)
        and not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ]
    if function is None:
        return [*others, *functions.values()]
    # A name may stand for functions that it is made of: `theory = stage(AXES, path)`.
    named: dict[str, ast.stmt] = {**functions}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named[node.targets[0].id] = node
    reached: set[str] = set()
    pending = {function}
    while pending:
        name = pending.pop()
        if name in named and name not in reached:
            reached.add(name)
            nodes = ast.walk(named[name])
            used = {node.id for node in nodes if isinstance(node, ast.Name)}
            if "globals" in used:
                # `theory = stage(AXES, blocks_of=globals())` stands for every function above it.
                place = named[name].lineno
                used.update(each for each, node in functions.items() if node.lineno < place)
            pending.update(used)
    return [*others, *(functions[name] for name in sorted(reached & functions.keys()))]


def _ours(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES


@cache
def _file(module: str) -> Path | None:
    if module in PACKAGES:
        # The library's public names are resolved when they are asked for: no stage runs that file.
        return None
    base = SOURCE.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None
