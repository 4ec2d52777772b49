"""Checksums beside artifacts: every flipped bit is noticed, in every kind of file."""

from __future__ import annotations

import subprocess

import pytest
import xarray as xr

from reproduction.engine import artifacts as store


@pytest.fixture
def artifact(tmp_path):
    path = tmp_path / "coverage.nc"
    values = store.variable("trial", [1.0, 2.0, 3.0], "a number")
    store.write(xr.Dataset({"number": values}), path)
    return path


def test_the_record_is_one_that_sha256sum_reads(artifact):
    command = ["sha256sum", "--check", ".coverage.nc.sha256"]
    subprocess.run(command, cwd=artifact.parent, check=True, capture_output=True)
    assert store.verify(artifact) == store.recorded(artifact)


def test_every_flipped_bit_of_a_dataset_is_one_line(artifact):
    content = artifact.read_bytes()
    for place in range(0, len(content), 97):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        artifact.write_bytes(flipped)
        with pytest.raises(store.DamagedError, match=r"coverage\.nc: damaged") as caught:
            store.read(artifact)
        assert "\n" not in str(caught.value)
    assert list(store.damaged(artifact.parent)) == [artifact]


@pytest.mark.parametrize("record", [None, "", "short  coverage.nc\n", "\xff"])
def test_a_file_without_a_readable_record_is_refused(artifact, record):
    store.record_of(artifact).unlink()
    if record is not None:
        store.record_of(artifact).write_text(record, encoding="utf-8")
    with pytest.raises(store.DamagedError, match="type the same command again"):
        store.read(artifact)


def test_a_missing_file_is_not_called_damaged(artifact):
    artifact.unlink()
    assert list(store.damaged(artifact.parent)) == []
    with pytest.raises(FileNotFoundError):
        store.read(artifact)
