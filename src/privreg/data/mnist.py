"""MNIST, the digits 1 and 7: the four original IDX files."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privreg.data.fetch import DataFile
from privreg.data.tables import DataError, Table

NAME = "mnist"
# Rows for training, and official test rows.
ROWS = (13_007, 2_163)
SOURCE = "MNIST handwritten digits 1 and 7 (LeCun and Cortes), the four original IDX files"
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
# The label is +1 for the first of these digits and -1 for the second.
POSITIVE_DIGIT, NEGATIVE_DIGIT = 1, 7
LARGEST_GREY_VALUE = 255.0


def _file(name: str, sha256: str) -> DataFile:
    return DataFile(f"{NAME}/{name}", sha256, remote_name=name, remote_sha256=sha256)


# In the order in which `table` reads them.
FILES = (
    _file(
        "train-images-idx3-ubyte.gz",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    _file(
        "train-labels-idx1-ubyte.gz",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    _file(
        "t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    _file(
        "t10k-labels-idx1-ubyte.gz",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
)


def table(contents: Mapping[str, bytes]) -> Table:
    r"""Table of all images of a 1 or a 7: first the training images, then the official test ones.

    .. math:: y = +1 \text{ for the digit } 1,\qquad y = -1 \text{ for the digit } 7

    Source
    ------
    bombari2025, Section 7 (Figures 5, 6, 8); which digit is positive is our choice.
    """
    images, digits, test = read_images(contents)
    chosen = np.isin(digits, (POSITIVE_DIGIT, NEGATIVE_DIGIT))
    labels = np.where(digits[chosen] == POSITIVE_DIGIT, 1.0, -1.0)
    return image_table(NAME, SOURCE, images[chosen], labels, test[chosen])


def image_table(
    name: str,
    source: str,
    images: NDArray[np.uint8],
    labels: NDArray[np.float64],
    test: NDArray[np.bool_],
) -> Table:
    """Table of images (n, height, width), a feature for each pixel."""
    count, height, width = images.shape
    return Table(
        name=name,
        features=images.reshape(count, -1),
        labels=labels,
        feature_names=tuple(f"pixel_{row}_{col}" for row in range(height) for col in range(width)),
        official_test=test,
        source=source,
        checksums={file.name: file.sha256 for file in FILES},
        feature_scale=LARGEST_GREY_VALUE,
    )


def read_images(
    contents: Mapping[str, bytes],
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]]:
    """Images (n, 28, 28), their digits, and which are official test images, last of all."""
    train_images, train_digits, test_images, test_digits = (
        read_idx(contents[file.path], file.name) for file in FILES
    )
    for images, digits in ((train_images, train_digits), (test_images, test_digits)):
        if images.ndim != 3 or digits.shape != images.shape[:1]:
            found = f"images {images.shape}, labels {digits.shape}"
            raise DataError(f"MNIST: {found}, expected (n, 28, 28) and (n,)")
    digits = np.concatenate([train_digits, test_digits])
    images = np.concatenate([train_images, test_images])
    return images, digits, np.arange(digits.size) >= train_digits.size


def read_idx(content: bytes, name: str) -> NDArray[np.uint8]:
    """Array in a gzipped IDX file of unsigned bytes.

    The format: two zero bytes, the type (8 for unsigned bytes), the number of dimensions, each
    size as a big-endian 32-bit integer, then the values in C order.
    """
    try:
        raw = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: not a complete gzip file, expected a gzipped IDX file") from error
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise DataError(f"{name}: starts with {raw[:4]!r}, expected an IDX file of unsigned bytes")
    start = 4 + 4 * raw[3]
    shape = tuple(int(size) for size in np.frombuffer(raw[4:start], dtype=">u4"))
    if len(shape) != raw[3] or len(raw) - start != math.prod(shape):
        raise DataError(f"{name}: {len(raw)} bytes, expected {start} and one for each of {shape}")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)
