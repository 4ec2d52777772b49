"""CIFAR-10: the six batches of the binary version, which needs no unpickling."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privreg.data.fetch import DataFile
from privreg.data.tables import DataError, Table

NAME = "cifar10"
# Rows for training, and official test rows.
ROWS = (50_000, 10_000)
SOURCE = "CIFAR-10 (Krizhevsky 2009), the binary version"
MIRRORS = ("https://www.cs.toronto.edu/~kriz/",)
REMOTE_NAME = "cifar-10-binary.tar.gz"
FOLDER = "cifar-10-batches-bin"
BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
CLASSES, CHANNELS, SIDE = 10, 3, 32
LARGEST_GREY_VALUE = 255.0
_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
FILES = (
    DataFile(
        path=f"{NAME}/{REMOTE_NAME}",
        sha256=_SHA256,
        remote_name=REMOTE_NAME,
        remote_sha256=_SHA256,
    ),
)


def table(contents: Mapping[str, bytes]) -> Table:
    """Table of all images: the five training batches, then the official test batch.

    Source
    ------
    choquettechoo2024, Section 4 and Figure 4.
    """
    parts = [read_batch(content, name) for name, content in _members(contents[FILES[0].path])]
    test_rows = len(parts[-1][1])
    labels = np.concatenate([part for _, part in parts])
    return Table(
        name=NAME,
        features=np.concatenate([images for images, _ in parts]),
        labels=labels.astype(np.float64),
        feature_names=tuple(
            f"{colour}_{row}_{column}"
            for colour in ("red", "green", "blue")
            for row in range(SIDE)
            for column in range(SIDE)
        ),
        official_test=np.arange(labels.size) >= labels.size - test_rows,
        source=SOURCE,
        checksums={file.name: file.sha256 for file in FILES},
        feature_scale=LARGEST_GREY_VALUE,
    )


def read_batch(content: bytes, name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels in a file of records, each a byte of the label and 3072 of the image."""
    record = 1 + CHANNELS * SIDE**2
    if not content or len(content) % record:
        raise DataError(f"{name}: {len(content)} bytes, expected records of {record}")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, record)
    labels = rows[:, 0]
    if labels.max() >= CLASSES:
        raise DataError(f"{name}: label {labels.max()}, expected 0 to {CLASSES - 1}")
    return rows[:, 1:], labels


def _members(archive: bytes) -> list[tuple[str, bytes]]:
    found = []
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for name in BATCHES:
                member = tar.extractfile(f"{FOLDER}/{name}")
                if member is None:
                    raise KeyError(name)
                found.append((name, member.read()))
    except (KeyError, tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{REMOTE_NAME}: no readable batches, expected {BATCHES}") from error
    return found
