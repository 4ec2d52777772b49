"""Artifacts: what was written comes back or is called damaged; whole files or none."""

from __future__ import annotations

import contextlib
import resource

import numpy as np
import pytest
import xarray as xr

from reproduction.engine import artifacts as store

KINDS = {"truth": [True, False], "whole": [1, -2], "real": [np.pi, -np.inf], "text": ["a", "ü", ""]}
SHAPES = {"one": (), "none": (0,), "few": (3,), "many": (2, 600)}


def dataset():
    """Variables of every kind and shape, attributes of text and number."""
    held = {
        f"{kind}_{size}": store.variable(
            [f"{size}_{axis}" for axis in range(len(shape))],
            np.resize(np.array(values), shape),
            "what it is",
            standard_error=f"whole_{size}",
        )
        for kind, values in KINDS.items()
        for size, shape in SHAPES.items()
    }
    return xr.Dataset(held, attrs={"title": "Ünits", "seed": 3})


@pytest.fixture
def artifact(tmp_path):
    path = tmp_path / "first.nc"
    store.write(dataset(), path)
    return path


def test_what_is_written_comes_back_with_the_same_bytes(artifact):
    found = store.read(artifact)
    assert found.attrs.pop(store.DIGEST)
    xr.testing.assert_identical(found, dataset())
    assert {name: each.dtype.kind for name, each in found.items()} == {
        name: each.dtype.kind for name, each in dataset().items()
    }
    again = artifact.with_name("second.nc")
    store.write(dataset(), again)
    assert again.read_bytes() == artifact.read_bytes()
    assert sorted(artifact.parent.iterdir()) == [artifact, again]


def flipped(content, places):
    """The content with one bit flipped, at each of these bytes."""
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        yield bytes(changed)


def replace(path, content):
    """Another file of this name: HDF5 may hold what it failed to read."""
    path.unlink()
    path.write_bytes(content)


def cut(content):
    return [content[:-1], content[: len(content) // 2], b""]


def test_a_damaged_dataset_is_refused_or_what_it_was(artifact):
    # Of text HDF5 keeps a heap, in which a flipped bit may make it search without end.
    store.write(dataset().drop_vars([name for name in dataset() if "text" in name]), artifact)
    right, content = store.read(artifact), artifact.read_bytes()
    for damaged in flipped(content, range(0, len(content), 97)):
        replace(artifact, damaged)
        with contextlib.suppress(store.DamagedError):
            xr.testing.assert_identical(store.read(artifact), right)
    # A scalar has no checksum of the format's.
    value = content.index(np.float64(np.pi).tobytes())
    for damaged in (*flipped(content, range(value, value + 8)), *cut(content)):
        replace(artifact, damaged)
        with pytest.raises(store.DamagedError, match=r"first\.nc is damaged \([^\n]*$"):
            store.read(artifact)
    artifact.unlink()
    with pytest.raises(FileNotFoundError):
        store.read(artifact)


def test_a_damaged_mapping_is_refused_or_what_it_was(tmp_path):
    path, held = tmp_path / "verdicts.json", {"records": [{"observed": 1.25, "id": "ü"}]}
    store.write_json(held, path)
    content = path.read_bytes()
    assert store.read_json(path) == held
    for damaged in flipped(content, range(len(content))):
        path.write_bytes(damaged)
        with contextlib.suppress(store.DamagedError):
            assert store.read_json(path) == held
    value = content.index(b"1.25")
    for damaged in (*flipped(content, [value, value + 2]), *cut(content[:-1]), b"[]", b"{}"):
        path.write_bytes(damaged)
        with pytest.raises(store.DamagedError, match="type the same command again"):
            store.read_json(path)


def without(attribute):
    def change(held):
        del held.real_few.attrs[attribute]
        return held

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("long_name"), "'real_few': attribute 'long_name' is required"),
        (without("units"), "'real_few': attribute 'units' is required"),
        (lambda held: held.drop_vars("whole_few"), "no ancillary variable 'whole_few'"),
        (lambda held: held.rename_vars(text_few="clip"), "'clip' must not be an attribute"),
        (lambda held: held.rename_dims(few_0="rank"), "'rank' must not be an attribute"),
        (lambda held: held.where(held.real_few > 0), "a NaN needs the attribute 'reason_missing'"),
    ],
)
def test_an_incomplete_dataset_is_refused(tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        store.write(change(dataset()), tmp_path / "x.nc")
    assert not list(tmp_path.iterdir())


def test_a_nan_with_its_reason_is_written(tmp_path):
    held = xr.Dataset({"gap": store.variable("row", [1.0, np.nan], "gap", missing="no run")})
    store.write(held, tmp_path / "x.nc")
    assert store.read(tmp_path / "x.nc").gap.identical(held.gap)


@pytest.mark.parametrize("write", [store.write, lambda _, path: store.write_text("x" * 9999, path)])
def test_a_full_disk_leaves_what_was_there(tmp_path, write):
    path = tmp_path / "x.nc"
    path.write_text("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large|disk full"):
            write(dataset(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
