"""CIFAR-10's binary version, on a tiny archive of the same format, and all digits of MNIST."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from privreg import data
from privreg.data import fetch, sources
from privreg.data.sources import SOURCES

SOURCE = SOURCES["cifar10"]
PATH = SOURCE.files[0].path


def archive(rows, labels, names=sources.BATCHES):
    """An archive whose batches hold two records each."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for at, name in enumerate(names):
            content = b"".join(
                bytes([labels[row]]) + rows[row].tobytes() for row in (2 * at, 2 * at + 1)
            )
            member = tarfile.TarInfo(f"{sources.CIFAR10_FOLDER}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def records(rng):
    rows = rng.integers(0, 256, (12, 3072), dtype=np.uint8)
    return rows, np.arange(12) % 10


def test_a_tiny_archive_comes_back(records):
    rows, labels = records
    table = sources.cifar10(SOURCE, {PATH: archive(rows, labels)})
    np.testing.assert_array_equal(table.features, rows)
    np.testing.assert_array_equal(table.labels, labels)
    np.testing.assert_array_equal(np.flatnonzero(table.official_test), [10, 11])
    assert table.features.dtype == np.uint8
    assert table.feature_scale == 255
    # The green picture's second row starts after the red one and 32 pixels.
    assert table.feature_names[1024 + 32] == "green_1_0"


def test_archives_that_are_wrong_are_refused(records):
    rows, labels = records
    good = archive(rows, labels)
    for wrong in (good[:200], b"<html>", archive(rows, labels, sources.BATCHES[:5])):
        with pytest.raises(data.DataError, match=r"cifar-10-binary\.tar\.gz: no readable"):
            sources.cifar10(SOURCE, {PATH: wrong})
    with pytest.raises(data.DataError, match="label 10, expected 0 to 9"):
        sources.cifar10(SOURCE, {PATH: archive(rows, labels + 1)})
    with pytest.raises(data.DataError, match="3072 bytes, expected 3073 for each record"):
        sources.read_batch(bytes(3072), "data_batch_1.bin")


def test_a_local_archive_is_checked_before_it_is_read(records, tmp_path, monkeypatch):
    content = archive(*records)
    (tmp_path / "cifar10").mkdir()
    (tmp_path / PATH).write_bytes(content)
    with pytest.raises(data.DataError, match="expected c4a38c50"):
        data.load("cifar10", directory=tmp_path)
    digest = hashlib.sha256(content).hexdigest()
    tiny = (fetch.DataFile(PATH, digest, sources.CIFAR10_NAME, digest, len(content)),)
    monkeypatch.setitem(SOURCES, "cifar10", replace(SOURCE, files=tiny))
    table = data.load("cifar10", directory=tmp_path)
    assert table.shape == (12, 3072)
    assert table.checksums == {sources.CIFAR10_NAME: digest}
    assert not table.stand_in


def test_all_digits_of_the_idx_files(rng):
    def idx(values):
        sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
        return gzip.compress(b"\0\0\x08" + bytes([values.ndim]) + sizes + values.tobytes())

    images = rng.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    labels = np.array([3, 1, 7, 0, 9], dtype=np.uint8)
    parts = (images[:3], labels[:3], images[3:], labels[3:])
    source = SOURCES["mnist_digits"]
    contents = {file.path: idx(part) for file, part in zip(source.files, parts, strict=True)}
    table = source.parse(source, contents)
    np.testing.assert_array_equal(table.labels, labels)
    np.testing.assert_array_equal(table.features, images.reshape(5, -1))
    np.testing.assert_array_equal(table.official_test, [False, False, False, True, True])
    contents[source.files[1].path] = idx(labels[:2])
    with pytest.raises(data.DataError, match="labels"):
        source.parse(source, contents)
