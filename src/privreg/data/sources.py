"""Data sets: their files, mirrors and parsers, and bundled tables that can replace them."""

from __future__ import annotations

import gzip
import io
import math
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.data.fetch import DataFile, sha256
from privreg.data.tables import DataError, Table

# The label is +1 for the first of these digits and -1 for the second.
POSITIVE_DIGIT, NEGATIVE_DIGIT = 1, 7
LARGEST_GREY_VALUE = 255.0
CIFAR10_NAME, CIFAR10_FOLDER = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
CIFAR10_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
CLASSES, CHANNELS, SIDE = 10, 3, 32
HOUSING_NAME, HOUSING_MEMBER = "cal_housing.tgz", "CaliforniaHousing/cal_housing.data"
HOUSING_FEATURES = (
    "MedInc",
    "HouseAge",
    "AveRooms",
    "AveBedrms",
    "Population",
    "AveOccup",
    "Latitude",
    "Longitude",
)
HOUSING_COLUMNS = 9
DOLLARS_PER_UNIT = 1e5
FIGSHARE = "https://ndownloader.figshare.com/files/"
# scikit-learn's digits count the dark points of 4 x 4 blocks.
LARGEST_COUNT = 16.0
BUNDLED_DIGITS = "8 x 8 pixels (Alpaydin and Kaynak, UCI optical recognition of handwritten digits)"


@dataclass(frozen=True)
class Source:
    """A data set and its stand-in, a table from scikit-learn that has no official test rows.

    `parse` takes the source and its files' checked contents by path; `stand_in` takes its reason.
    """

    name: str
    about: str
    rows: tuple[int, int]  # training rows, official test rows
    mirrors: tuple[str, ...]  # base addresses
    files: tuple[DataFile, ...]
    parse: Callable[[Source, Mapping[str, bytes]], Table]
    stand_in: Callable[[str], Table]
    stand_in_rows: int

    @property
    def checksums(self) -> dict[str, str]:
        return {file.name: file.sha256 for file in self.files}


def mnist(source: Source, contents: Mapping[str, bytes]) -> Table:
    """Table of all images of 1 (label 1) or 7 (label -1): training images, then test images.

    Source: bombari2025, Section 7 (Figures 5, 6, 8); the sign of the labels is our choice.
    """
    images, digits, test = read_images(source, contents)
    chosen = np.isin(digits, (POSITIVE_DIGIT, NEGATIVE_DIGIT))
    labels = np.where(digits[chosen] == POSITIVE_DIGIT, 1.0, -1.0)
    return image_table(source, images[chosen], labels, test[chosen])


def mnist_digits(source: Source, contents: Mapping[str, bytes]) -> Table:
    """Table of all images of MNIST: first the training images, then the official test images."""
    images, digits, test = read_images(source, contents)
    return image_table(source, images, digits.astype(np.float64), test)


def image_table(
    source: Source,
    images: NDArray[np.uint8],
    labels: NDArray[np.float64],
    test: NDArray[np.bool_],
    channels: Sequence[str] = ("pixel",),
) -> Table:
    """Table of images (n, height, width) or (n, channels, height, width), a feature per value."""
    places = product(channels, *map(range, images.shape[-2:]))
    return Table(
        name=source.name,
        features=images.reshape(len(images), -1),
        labels=labels,
        feature_names=tuple(f"{channel}_{row}_{column}" for channel, row, column in places),
        official_test=test,
        source=source.about,
        checksums=source.checksums,
        feature_scale=LARGEST_GREY_VALUE,
    )


def read_images(
    source: Source, contents: Mapping[str, bytes]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]]:
    """Images (n, 28, 28), their digits, and flags of the official test images, which come last."""
    train_images, train_digits, test_images, test_digits = (
        read_idx(contents[file.path], file.name) for file in source.files
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
        raise DataError(f"{name}: {len(raw)} bytes, expected {start} and those of {shape}")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)


def cifar10(source: Source, contents: Mapping[str, bytes]) -> Table:
    """Table of all images of CIFAR-10: the five training batches, then the official test batch.

    Source: choquettechoo2024, Section 4 and Figure 4.
    """
    archive, paths = contents[source.files[0].path], [f"{CIFAR10_FOLDER}/{e}" for e in BATCHES]
    batches = _members(archive, paths, f"{CIFAR10_NAME}: no readable batches, expected {BATCHES}")
    parts = [read_batch(*each) for each in zip(batches, BATCHES, strict=True)]
    images, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    test = np.arange(labels.size) >= labels.size - len(parts[-1][1])
    images = images.reshape(-1, CHANNELS, SIDE, SIDE)
    return image_table(source, images, labels.astype(np.float64), test, ("red", "green", "blue"))


def read_batch(content: bytes, name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels from a file of records: 1 byte for the label, 3072 for the image."""
    record = 1 + CHANNELS * SIDE**2
    if not content or len(content) % record:
        raise DataError(f"{name}: {len(content)} bytes, expected {record} for each record")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, record)
    labels = rows[:, 0]
    if labels.max() >= CLASSES:
        raise DataError(f"{name}: label {labels.max()}, expected 0 to {CLASSES - 1}")
    return rows[:, 1:], labels


def _members(archive: bytes, paths: Sequence[str], refusal: str) -> list[bytes]:
    """Contents of files in an archive, extracted in memory."""
    found = []
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for path in paths:
                member = tar.extractfile(path)
                if member is None:
                    raise KeyError(path)
                found.append(member.read())
    except (KeyError, tarfile.TarError, EOFError, OSError) as error:
        raise DataError(refusal) from error
    return found


def canonical(content: bytes) -> bytes:
    """The text with LF line ends and no final newline, since copies in use differ in both."""
    return content.replace(b"\r\n", b"\n").rstrip(b"\n")


def extract(archive: bytes) -> bytes:
    """Content of the table's file, extracted from the archive in memory."""
    refusal = f"{HOUSING_NAME}: no readable {HOUSING_MEMBER}, expected in the archive"
    (content,) = _members(archive, [HOUSING_MEMBER], refusal)
    return content


def california_housing(source: Source, contents: Mapping[str, bytes]) -> Table:
    """Table of all block groups of California housing; labels are values in $100,000.

    Source: Pace and Barry (1997), with features as in scikit-learn; bombari2025, Section 7.
    """
    (file,) = source.files
    try:
        raw = np.loadtxt(io.BytesIO(contents[file.path]), delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(f"{file.name}: {error}, expected numbers separated by commas") from error
    if raw.shape[1] != HOUSING_COLUMNS:
        raise DataError(f"{file.name}: {raw.shape[1]} columns, expected {HOUSING_COLUMNS}")
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = raw.T
    features = np.column_stack(
        [
            income,
            age,
            rooms / households,
            bedrooms / households,
            population,
            population / households,
            latitude,
            longitude,
        ]
    )
    return Table(
        name=source.name,
        features=features,
        labels=value / DOLLARS_PER_UNIT,
        feature_names=HOUSING_FEATURES,
        official_test=np.zeros(len(raw), dtype=bool),
        source=source.about,
        checksums=source.checksums,
    )


def _diabetes(reason: str) -> Table:
    """Diabetes progression: 442 rows of 10 features in raw units."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    about = (
        "stand-in for California housing: scikit-learn's bundled diabetes table "
        "(Efron, Hastie, Johnstone and Tibshirani 2004)"
    )
    files = ("diabetes_data_raw.csv.gz", "diabetes_target.csv.gz")
    return _bundled("california_housing", bunch, bunch.target, about, reason, files)


def _digits(reason: str, *, name: str, about: str, pair: tuple[int, int] | None = None) -> Table:
    """64 pixels from 0 to 16; labels are the digits, or +1 and -1 for a `pair` of digits."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    labels = bunch.target
    if pair is not None:
        chosen = np.isin(labels, pair)
        bunch.data, labels = bunch.data[chosen], np.where(labels[chosen] == pair[0], 1.0, -1.0)
    about = f"stand-in for {about}, {BUNDLED_DIGITS}"
    return _bundled(name, bunch, labels, about, reason, ("digits.csv.gz",), LARGEST_COUNT)


def _bundled(
    name: str,
    bunch: Any,
    labels: ArrayLike,
    about: str,
    reason: str,
    files: tuple[str, ...],
    scale: float = 1.0,
) -> Table:
    folder = resources.files("sklearn.datasets.data")
    return Table(
        name=name,
        features=np.asarray(bunch.data, dtype=np.float64),
        labels=np.asarray(labels, dtype=np.float64),
        feature_names=tuple(str(column) for column in bunch.feature_names),
        official_test=np.zeros(len(bunch.data), dtype=bool),
        source=about,
        checksums={each: sha256(folder.joinpath(each).read_bytes()) for each in files},
        stand_in=True,
        stand_in_reason=reason,
        feature_scale=scale,
    )


def _mnist_file(name: str, sha256: str) -> DataFile:
    return DataFile(f"mnist/{name}", sha256, remote_name=name, remote_sha256=sha256)


MNIST_FILES = (
    _mnist_file(
        "train-images-idx3-ubyte.gz",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    _mnist_file(
        "train-labels-idx1-ubyte.gz",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    _mnist_file(
        "t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    _mnist_file(
        "t10k-labels-idx1-ubyte.gz",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
)
MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
SOURCES = {
    source.name: source
    for source in (
        Source(
            name="mnist",
            about=(
                "MNIST handwritten digits 1 and 7 (LeCun and Cortes), the four original IDX files"
            ),
            rows=(13_007, 2_163),
            mirrors=MNIST_MIRRORS,
            files=MNIST_FILES,
            parse=mnist,
            stand_in=partial(
                _digits,
                name="mnist",
                about="MNIST: scikit-learn's bundled digits 1 and 7",
                pair=(POSITIVE_DIGIT, NEGATIVE_DIGIT),
            ),
            stand_in_rows=361,
        ),
        Source(
            name="california_housing",
            about=(
                "California housing, block groups of the 1990 US census (Pace and Barry 1997, "
                "StatLib), with the eight features that scikit-learn derives"
            ),
            rows=(20_640, 0),
            mirrors=(FIGSHARE, "https://www.dcc.fc.up.pt/~ltorgo/Regression/"),
            files=(
                DataFile(
                    path="california_housing/cal_housing.data",
                    sha256="23a7eecd83e5d57857691849577cdf9318097411a88e59c3c6e1fd79f62ba266",
                    remote_name=HOUSING_NAME,
                    remote_sha256="aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
                    remote_aliases={FIGSHARE: "5976036"},
                    canonical=canonical,
                    extract=extract,
                ),
            ),
            parse=california_housing,
            stand_in=_diabetes,
            stand_in_rows=442,
        ),
        Source(
            name="mnist_digits",
            about="MNIST handwritten digits (LeCun and Cortes), the four original IDX files",
            rows=(60_000, 10_000),
            mirrors=MNIST_MIRRORS,
            files=MNIST_FILES,
            parse=mnist_digits,
            stand_in=partial(
                _digits, name="mnist_digits", about="MNIST: scikit-learn's ten bundled digits"
            ),
            stand_in_rows=1797,
        ),
        Source(
            name="cifar10",
            about="CIFAR-10 (Krizhevsky 2009), the binary version",
            rows=(50_000, 10_000),
            mirrors=("https://www.cs.toronto.edu/~kriz/",),
            files=(
                DataFile(
                    path=f"cifar10/{CIFAR10_NAME}",
                    sha256=CIFAR10_SHA256,
                    remote_name=CIFAR10_NAME,
                    remote_sha256=CIFAR10_SHA256,
                ),
            ),
            parse=cifar10,
            stand_in=partial(
                _digits, name="cifar10", about="CIFAR-10: scikit-learn's ten bundled digits"
            ),
            stand_in_rows=1797,
        ),
    )
}
