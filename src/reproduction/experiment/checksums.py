"""The SHA-256 beside every artifact: `.coverage.nc.sha256` beside `coverage.nc`.

It is written with the artifact and compared before the artifact is used, so that a flipped bit, a
half copied or a foreign file is an error and never a number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".sha256"


class FileFault(ValueError):
    """A file is not the one that is needed; its line says all, and a traceback nothing more."""


class DamagedError(FileFault):
    """An artifact is not what was written."""


def record_of(path: str | Path) -> Path:
    """Where the checksum of an artifact lies."""
    path = Path(path)
    return path.with_name(f".{path.name}{SUFFIX}")


def recorded(path: str | Path) -> str | None:
    """SHA-256 that an artifact was written with; None if there is no such record."""
    try:
        return record_of(path).read_text(encoding="ascii").split(maxsplit=1)[0]
    except (OSError, ValueError, IndexError):
        return None


def file_digest(path: str | Path) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify(path: str | Path) -> str:
    """SHA-256 of an artifact, which is the recorded one.

    Raises
    ------
    DamagedError
        There is no record, or another one.
    FileNotFoundError
        There is no such file.
    """
    found, expected = file_digest(path), recorded(path)
    if expected is None:
        raise DamagedError(
            f"{path}: no checksum lies beside it, so that its content cannot be verified; "
            "remove it and type the same command again"
        )
    if found != expected:
        raise DamagedError(
            f"{path}: damaged, SHA-256 {found[:16]}…, written as {expected[:16]}…; "
            "remove it and type the same command again"
        )
    return found


def read_bytes(path: str | Path) -> bytes:
    """Content of an artifact, verified."""
    verify(path)
    return Path(path).read_bytes()


def damaged(root: Path) -> Iterator[Path]:
    """Artifacts below a folder that are not what was written."""
    for record in sorted(root.rglob(f".*{SUFFIX}")):
        path = record.with_name(record.name[1:].removesuffix(SUFFIX))
        if path.is_file() and file_digest(path) != recorded(path):
            yield path
