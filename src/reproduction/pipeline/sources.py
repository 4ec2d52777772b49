"""Where each table comes from: decided when the run is planned, and written down beside the table.

A prepared real table stays what it is, in a shell or on a node that could not prepare it. Only a
stand-in gives way, to real files.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from privreg import data
from reproduction.pipeline.layout import Layout

LOCAL = "PRIVREG_DATA"
DOWNLOAD = "download"
# Ends the name of a real table's second entry in its folder, for as long as a run lasts.
KEPT = ".kept"


@dataclass(frozen=True)
class TableSource:
    """Where a job looks for a table.

    Parameters
    ----------
    at_hand : bool
        Whether all files lie in the folder that `PRIVREG_DATA` names.
    looked_for_in : str
        `LOCAL` or `DOWNLOAD`. Another one than in the run before prepares the table anew; a table
        that may stay keeps the one that it was prepared with.
    options : tuple of str
        What the stage `data` is told.
    """

    at_hand: bool
    looked_for_in: str
    options: tuple[str, ...]


def table_source(name: str, layout: Layout) -> TableSource:
    """Where the table of a data set comes from, by this shell and by what lies there."""
    directory = os.environ.get(LOCAL)
    at_hand = bool(directory) and data.is_complete(name, str(directory))
    looked_for_in = LOCAL if at_hand else DOWNLOAD
    options = ["--directory", str(Path(directory).absolute())] if directory else []
    origin = origin_of(name, layout)
    if origin:
        if not origin["stand_in"]:
            options.append("--real")
        if not (origin["stand_in"] and at_hand):
            looked_for_in = str(origin.get("looked_for_in", looked_for_in))
    return TableSource(at_hand, looked_for_in, (*options, "--looked-for-in", looked_for_in))


def origin_of(name: str, layout: Layout) -> dict[str, str | bool]:
    """What the job that prepared a table wrote down; empty if there is no table.

    Without a readable record the table itself says whether it is a stand-in.
    """
    table = _found(Path(layout.data(name)))
    if not table.is_file():
        return {}
    try:
        found = json.loads(_found(Path(layout.origin(name))).read_bytes())
        return {"looked_for_in": str(found["looked_for_in"]), "stand_in": bool(found["stand_in"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"stand_in": _says_stand_in(table)}


def _says_stand_in(table: Path) -> bool:
    from netCDF4 import Dataset

    try:
        with Dataset(table) as file:
            return bool(file.getncattr("stand_in"))
    except (OSError, AttributeError):
        # It is unknown, so nothing may take its place.
        return False


@contextmanager
def real_tables_kept(layout: Layout, unfinished: Callable[[Path], None]) -> Iterator[None]:
    """Real tables come back if the jobs that were to make them anew do not.

    Snakemake removes what a job makes before the job starts. `unfinished` is told of each file that
    came back.
    """
    for path in _tables(layout, ".nc"):
        if origin_of(path.stem, layout).get("stand_in") is False:
            for file in filter(Path.exists, (path, Path(layout.origin(path.stem)))):
                _kept(file).unlink(missing_ok=True)
                try:
                    os.link(file, _kept(file))
                except OSError:
                    # A file system without links.
                    shutil.copy2(file, _kept(file))
    try:
        yield
    finally:
        for path in put_back(layout):
            unfinished(path)


def put_back(layout: Layout) -> list[Path]:
    """Give tables that are gone their place again, after a run or after one that died."""
    came_back = []
    for kept in _tables(layout, KEPT):
        path = kept.with_name(kept.name[1:].removesuffix(KEPT))
        if path.exists():
            kept.unlink()
        else:
            kept.replace(path)
            came_back.append(path)
    return came_back


def _tables(layout: Layout, suffix: str) -> list[Path]:
    folder = Path(layout.data()).parent
    return sorted(path for path in folder.glob("*") if path.name.endswith(suffix))


def _found(path: Path) -> Path:
    """A file, or its second entry if a run that died has removed it."""
    return _kept(path) if _kept(path).exists() and not path.exists() else path


def _kept(path: Path) -> Path:
    return path.with_name(f".{path.name}{KEPT}")
