"""Digests of the source files of a job; an edit reruns the jobs that depend on it."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2]
IMPORT = re.compile(
    r"^[ \t]*(?:from ([\w.]+) import (?:\(([^)]*)\)|([^\n#]*))|import ([\w., ]+))", re.MULTILINE
)


@cache
def code_of(*modules: str) -> str:
    """Short digest of modules and of all modules of both packages that they import anywhere."""
    total = hashlib.sha256()
    for name in sorted(reached(modules)):
        total.update(f"{name} {_read(name)[0]} ".encode())
    return total.hexdigest()[:16]


def digest_of_folder(folder: Path) -> str:
    """Short digest of the files of a folder, such as templates."""
    texts = b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())
    return hashlib.sha256(texts).hexdigest()[:16]


def reached(modules: tuple[str, ...]) -> set[str]:
    """The given modules, and all modules that they import directly or indirectly."""
    pending, seen = {*modules}, set()
    while pending:
        name = pending.pop()
        if name not in seen and _file(name) is not None:
            seen.add(name)
            pending |= _read(name)[1]
    return seen


@cache
def _read(module: str) -> tuple[str, frozenset[str]]:
    """Digest of a module's text, and the names that it may import."""
    path = _file(module)
    assert path is not None
    text = path.read_text(encoding="utf-8")
    names = {module.rsplit(".", depth)[0] for depth in range(1, module.count(".") + 1)}
    for found in IMPORT.finditer(text):
        if found[4]:
            names.update(part.split(" as ")[0].strip() for part in found[4].split(","))
            continue
        parts = re.findall(r"(\w+)(?: as \w+)?,?\s*", found[2] or found[3])
        names.update({found[1]}, (f"{found[1]}.{part}" for part in parts))
    return hashlib.sha256(text.encode()).hexdigest(), frozenset(names)


@cache
def _file(module: str) -> Path | None:
    base = SOURCE.joinpath(*module.split("."))
    # The library's public names are resolved when they are asked for: no job runs its front.
    if module.partition(".")[0] not in ("privreg", "reproduction") or module == "privreg":
        return None
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None
