"""Artifacts in and out: NetCDF with CF attributes, JSON and text, each written atomically."""

from __future__ import annotations

import errno
import hashlib
import json
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
DIGEST = "content_digest"
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
    """Variable in the form that `xarray.Dataset` takes, with the required attributes.

    Parameters
    ----------
    dims : str or sequence of str
        Dimension names.
    values : array_like
        Array with one axis for each dimension.
    long_name : str
        Meaning of the variable, in words.
    units : str
        Units; "1" for a number without units.
    standard_error : str, optional
        Name of the variable that holds the standard errors.
    release : {"private", "diagnostic"}, optional
        Status of values from real data: released under privacy, or not private.
    missing : str, optional
        Reason why some values are NaN; without a reason, `write` refuses NaN.
    """
    attributes = {"long_name": long_name, "units": units}
    if standard_error:
        attributes["ancillary_variables"] = standard_error
    if release:
        attributes["comment"] = RELEASES[release]
    if missing:
        attributes[MISSING] = missing
    return dims, np.asarray(values), attributes


class DamagedError(ValueError):
    """Error: an artifact differs from what was written."""

    def __init__(self, path: str | Path, found: object) -> None:
        super().__init__(f"{path} is damaged ({found}); remove it and type the same command again")


def read(path: str | Path) -> xr.Dataset:
    """Read a whole Dataset into memory and close the file; `DamagedError` if it is damaged."""
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="netcdf4", decode_times=False) as dataset:
            dataset.load()
    except FileNotFoundError:
        raise
    except Exception as error:
        # The format's own checksums, or whatever else it stumbles over.
        raise DamagedError(path, f"{type(error).__name__}: {error}") from error
    if dataset.attrs.get(DIGEST) != _digest(dataset):
        raise DamagedError(path, "its content has another digest than it states")
    return dataset


def write(dataset: xr.Dataset, path: str | Path) -> None:
    """Write a Dataset so that either the whole file appears or none of it.

    Raises
    ------
    ValueError
        A variable lacks `long_name` or `units`, names an ancillary variable that does not exist, or
        holds NaN without a reason; or the name of a variable or dimension is also an attribute of
        xarray objects, which `dataset.name` would return instead.
    """
    _check(dataset)
    encoding: dict[Hashable, dict[str, Any]] = {}
    for name, array in dataset.variables.items():
        encoding[name] = {"_FillValue": None} if array.dtype.kind == "f" else {}
        if array.dtype.kind in "iuf" and array.ndim:
            encoding[name] |= {"fletcher32": True}
        if array.dtype.kind in "iuf" and array.size > 1024:
            encoding[name] |= {"zlib": True, "complevel": 4, "shuffle": True}
    dataset = dataset.assign_attrs({DIGEST: _digest(dataset)})
    with atomic(path) as partial:
        try:
            dataset.to_netcdf(partial, engine="netcdf4", format="NETCDF4", encoding=encoding)
        except RuntimeError as error:
            # HDF5 does not say why.
            raise OSError(
                errno.ENOSPC, f"cannot be written ({error}); is the disk full?"
            ) from error


def write_json(content: Mapping[str, Any], path: str | Path) -> None:
    """Write a mapping as JSON that states its own digest."""
    write_text(json.dumps({**content, DIGEST: _digest_of_json(content)}, indent=1), path)


def read_json(path: str | Path) -> dict[str, Any]:
    """Mapping that `write_json` wrote; `DamagedError` if the file has another content."""
    try:
        found: dict[str, Any] = json.loads(Path(path).read_bytes())
        stated = found.pop(DIGEST)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedError(path, error) from error
    if stated != _digest_of_json(found):
        raise DamagedError(path, "its content has another digest than it states")
    return found


def write_text(text: str, path: str | Path) -> None:
    """Write a text that ends with one line break."""
    with atomic(path) as partial:
        partial.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Temporary file beside `path`; it replaces `path` if the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def describe(dataset: xr.Dataset, attributes: Mapping[str, str | int]) -> xr.Dataset:
    """The Dataset with global attributes in a fixed order, conventions included."""
    return dataset.assign_attrs(
        {"Conventions": CONVENTIONS} | dict(dataset.attrs) | dict(attributes)
    )


def digest_of(path: str | Path) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(dataset: xr.Dataset) -> str:
    """SHA-256 over names, dimensions, values and attributes, as a file keeps them."""
    total = hashlib.sha256()
    for name, array in sorted(dataset.variables.items(), key=lambda each: str(each[0])):
        numeric = array.dtype.kind in "biuf"
        values = array.values.tobytes() if numeric else repr(array.values.tolist()).encode()
        about = (name, array.dims, array.dtype.str if numeric else "", _texts(array.attrs))
        total.update(repr(about).encode() + values)
    total.update(repr(_texts(dataset.attrs)).encode())
    return total.hexdigest()


def _texts(attributes: Mapping[Any, Any]) -> list[tuple[str, str]]:
    return sorted((str(name), str(each)) for name, each in attributes.items() if name != DIGEST)


def _digest_of_json(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


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
