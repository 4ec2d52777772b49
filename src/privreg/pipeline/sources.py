"""Where each table comes from: decided when the run is planned, and written down beside the table.

A prepared real table stays what it is, in a shell or on a node that could not prepare it. Only a
stand-in gives way, to real files.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from privreg import data
from privreg.pipeline.layout import Layout

LOCAL = "PRIVREG_DATA"
DOWNLOAD = "download"


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
    origin = origin_of(name, layout) if Path(layout.data(name)).is_file() else {}
    if origin:
        if not origin["stand_in"]:
            options.append("--real")
        if not (origin["stand_in"] and at_hand):
            looked_for_in = str(origin["looked_for_in"])
    return TableSource(at_hand, looked_for_in, (*options, "--looked-for-in", looked_for_in))


def origin_of(name: str, layout: Layout) -> dict[str, str | bool]:
    """What the job that prepared a table wrote down; empty if there is no such record."""
    try:
        found = json.loads(Path(layout.origin(name)).read_bytes())
        return {key: found[key] for key in ("looked_for_in", "stand_in")}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
