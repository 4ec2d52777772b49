"""Real data sets: downloads, checks, parsers, stand-ins, splits and standardisation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from privreg.checks import require_choice
from privreg.data import fetch, tables
from privreg.data.sources import SOURCES, Source
from privreg.data.tables import DataError, StandInWarning, Table

__all__ = [
    "NAMES",
    "DataError",
    "StandInWarning",
    "Table",
    "check",
    "files_of",
    "is_complete",
    "load",
    "require_split",
]

NAMES = tuple(SOURCES)


def load(
    name: str,
    *,
    directory: str | Path | None = None,
    cache: str | Path | None = None,
    mirrors: Sequence[str] | None = None,
    allow_stand_in: bool = True,
) -> Table:
    """Load a data set from a local folder, else from a mirror, else from a bundled stand-in.

    The SHA-256 of every file is checked before the file is read. A wrong file in `directory` is an
    error; a missing file is downloaded.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    directory : path, optional
        Folder with ``mnist/*.gz``, ``california_housing/cal_housing.data`` and
        ``cifar10/cifar-10-binary.tar.gz``.
    cache : path, optional
        Folder for downloads; the user's cache folder by default.
    mirrors : sequence of str, optional
        Base addresses of the files; the public mirrors by default.
    allow_stand_in : bool
        If true, a table bundled with scikit-learn may replace a data set that no mirror delivers.
        The table's `stand_in` is then true, and `stand_in_reason` says why.

    Returns
    -------
    Table
        Features (n, p) and labels (n,), with the source and the checksums.

    Warns
    -----
    StandInWarning
        If a stand-in is used; the message is one line with the reason.

    Raises
    ------
    DataError
        If a local file is wrong or the cache cannot be written. A file that no mirror delivers is
        an error if `allow_stand_in` is false or `directory` holds another file of the data set.
    """
    source = _source(name)
    try:
        contents = fetch.obtain(
            source.files,
            directory=directory,
            cache=cache,
            mirrors=source.mirrors if mirrors is None else mirrors,
        )
    except fetch.DownloadError as error:
        if not allow_stand_in:
            raise
        missing = [] if directory is None else _missing(name, directory)
        if 0 < len(missing) < len(source.files):
            raise DataError(
                f"{directory}: {', '.join(missing)} not found beside the other files of {name}, "
                f"and the download failed: {error}"
            ) from error
        table = source.stand_in(error.reason)
        warnings.warn(f"{name}: {table.source}, because of {error}", StandInWarning, stacklevel=2)
        return table
    return source.parse(source, contents)


def check(directory: str | Path) -> None:
    """Check the SHA-256 of each data set's files below `directory`; files may be missing.

    Raises
    ------
    DataError
        If the folder is missing or a file is not the original.
    """
    # Some data sets are made from the same files.
    files = {file.path: file for name in NAMES for file in _source(name).files}
    for file in files.values():
        fetch.read_local(file, directory)


def require_split(name: str, *, train: int, normalisation: int, validation: int) -> None:
    """Refuse a split that needs more rows than the data set has; no file is read."""
    sizes = {"train": train, "normalisation": normalisation, "validation": validation}
    tables.require_rows(name, _source(name).rows, sizes)


def is_complete(name: str, directory: str | Path) -> bool:
    """True if every file of a data set lies below `directory`; no file is read."""
    return not _missing(name, directory)


def files_of(name: str) -> tuple[str, ...]:
    """Paths of a data set's files, relative to the folder that holds the data."""
    return tuple(file.path for file in _source(name).files)


def _missing(name: str, directory: str | Path) -> list[str]:
    return [path for path in files_of(name) if not (Path(directory) / path).is_file()]


def _source(name: str) -> Source:
    return SOURCES[require_choice("name", name, NAMES)]
