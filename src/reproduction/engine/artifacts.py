"""Datasets in and out: NetCDF with CF attributes and provenance, written atomically."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Hashable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privreg.data.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr
    from numpy.typing import ArrayLike

CONVENTIONS = "CF-1.11"
MISSING = "reason_missing"
# What a process that died while it wrote leaves behind ends so.
PARTIAL = ".partial"
Release = Literal["private", "diagnostic"]
RELEASES: dict[Release, str] = {
    "private": "released under the stated privacy budget",
    "diagnostic": "non-private diagnostic",
}


def variable(
    dims: str | Sequence[str],
    values: ArrayLike,
    long_name: str,
    *,
    units: str = "1",
    standard_error: str | None = None,
    release: Release | None = None,
    missing: str | None = None,
) -> tuple[Any, ...]:
    """A variable in the form that `xarray.Dataset` takes, with the attributes that it must have.

    Parameters
    ----------
    dims : str or sequence of str
        Dimension names.
    values : array_like
        One axis a dimension.
    long_name : str
        What it is, in words.
    units : str
        "1" if it has none.
    standard_error : str, optional
        Name of the variable that holds its standard error.
    release : {"private", "diagnostic"}, optional
        For what a run on real data writes: released under privacy, or not private.
    missing : str, optional
        Why some of its values are NaN; without it a NaN is refused when the Dataset is written.
    """
    attributes = {"long_name": long_name, "units": units}
    if standard_error:
        attributes["ancillary_variables"] = standard_error
    if release:
        attributes["comment"] = RELEASES[release]
    if missing:
        attributes[MISSING] = missing
    return dims, np.asarray(values), attributes


def read(path: str | Path) -> xr.Dataset:
    """Read a whole Dataset into memory, after its checksum, and close the file."""
    import xarray as xr

    verify(path)
    with xr.open_dataset(path, engine="netcdf4", decode_times=False) as dataset:
        return dataset.load()


def write(dataset: xr.Dataset, path: str | Path) -> None:
    """Write a Dataset so that either the whole file appears or none of it.

    Raises
    ------
    ValueError
        A variable lacks `long_name` or `units`, names an ancillary variable that is not there, or
        holds a NaN without saying why; or a variable or dimension has the name of an attribute of
        xarray's objects, which `dataset.name` would give in its place.
    """
    _check(dataset)
    encoding: dict[Hashable, dict[str, Any]] = {
        name: {"zlib": True, "complevel": 4, "shuffle": True}
        for name, array in dataset.variables.items()
        if array.dtype.kind in "iuf" and array.size > 1024
    }
    for name, array in dataset.variables.items():
        if array.dtype.kind == "f":
            encoding.setdefault(name, {})["_FillValue"] = None
    with atomic(path) as partial:
        try:
            dataset.to_netcdf(partial, engine="netcdf4", format="NETCDF4", encoding=encoding)
        except RuntimeError as error:
            # HDF5 does not say why.
            raise OSError(
                errno.ENOSPC, f"cannot be written ({error}); is the disk full?"
            ) from error


def _check(dataset: xr.Dataset) -> None:
    import xarray as xr

    taken = {*dir(xr.Dataset), *dir(xr.DataArray)}
    names: set[Hashable] = set(dataset.variables)
    for name in sorted(names | set(dataset.dims), key=str):
        if name in taken:
            raise ValueError(f"{name!r} must not be an attribute of an xarray object")
    for name, array in dataset.variables.items():
        for attribute in ("long_name", "units"):
            if not array.attrs.get(attribute):
                raise ValueError(f"variable {name!r}: attribute {attribute!r} is required")
        for ancillary in str(array.attrs.get("ancillary_variables", "")).split():
            if ancillary not in names:
                raise ValueError(f"variable {name!r}: no ancillary variable {ancillary!r}")
        if array.dtype.kind == "f" and np.isnan(array.values).any() and MISSING not in array.attrs:
            raise ValueError(f"variable {name!r}: a NaN needs the attribute {MISSING!r}")


@contextmanager
def atomic(path: str | Path, *, checksum: bool = True) -> Iterator[Path]:
    """A temporary neighbour of `path` that takes its place if the block succeeds.

    Parameters
    ----------
    path : str or Path
    checksum : bool
        Whether the file's SHA-256 is written beside it, as beside every artifact.

    Raises
    ------
    OSError
        The disk is full, or the folder cannot be written to.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_of(path)
    record, partial_record = record_of(path), partial_of(record_of(path))
    try:
        yield partial
        if checksum:
            line = f"{file_digest(partial)}  {path.name}\n"
            partial_record.write_text(line, encoding="utf-8")
            # If the process dies between the two, the artifact does not agree with its checksum.
            partial_record.replace(record)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
        partial_record.unlink(missing_ok=True)


def write_text(text: str, path: str | Path, *, checksum: bool = True) -> None:
    """Write a text that ends with one line break; arguments as for `atomic`."""
    with atomic(path, checksum=checksum) as partial:
        partial.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def partial_of(path: Path) -> Path:
    """Where a process writes a file before it is whole."""
    return path.with_name(f".{path.name.removeprefix('.')}.{os.getpid()}{PARTIAL}")


def describe(dataset: xr.Dataset, attributes: Mapping[str, str | int]) -> xr.Dataset:
    """The Dataset with global attributes in a fixed order, conventions included."""
    return dataset.assign_attrs(
        {"Conventions": CONVENTIONS} | dict(dataset.attrs) | dict(attributes)
    )


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


def to_dataset(table: Table) -> xr.Dataset:
    """Dataset of a table: raw features, labels and the official split, with its provenance."""
    import xarray as xr

    return xr.Dataset(
        {
            "features": variable(("row", "feature"), table.features, "raw feature"),
            "label": variable("row", table.labels, "raw label"),
            "official_test": variable(
                "row", table.official_test.astype("int8"), "1 for a row of the official test split"
            ),
        },
        coords={"feature": variable("feature", list(table.feature_names), "feature name")},
        attrs={
            "title": f"{table.name}: {table.shape[0]} rows, {table.shape[1]} features",
            "name": table.name,
            "source": table.source,
            "checksums": json.dumps(dict(table.checksums), sort_keys=True),
            "feature_scale": table.feature_scale,
            "stand_in": int(table.stand_in),
            "stand_in_reason": f"{table.source}; {table.stand_in_reason}" if table.stand_in else "",
        },
    )


def from_dataset(dataset: xr.Dataset) -> Table:
    """The table that `to_dataset` wrote."""
    return Table(
        name=dataset.attrs["name"],
        features=dataset.features.values,
        labels=dataset.label.values,
        feature_names=tuple(dataset.feature.values.tolist()),
        official_test=dataset.official_test.values.astype(bool),
        source=dataset.attrs["source"],
        checksums=json.loads(dataset.attrs["checksums"]),
        stand_in=bool(dataset.attrs["stand_in"]),
        stand_in_reason=dataset.attrs["stand_in_reason"],
        feature_scale=float(dataset.attrs["feature_scale"]),
    )
