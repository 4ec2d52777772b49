"""California housing: block groups of the 1990 census, with scikit-learn's eight features."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

import numpy as np

from privreg.data.fetch import DataFile
from privreg.data.tables import DataError, Table

NAME = "california_housing"
# Rows for training, and official test rows.
ROWS = (20_640, 0)
SOURCE = (
    "California housing, block groups of the 1990 US census (Pace and Barry 1997, StatLib), "
    "with the eight features that scikit-learn derives"
)
FIGSHARE = "https://ndownloader.figshare.com/files/"
MIRRORS = (FIGSHARE, "https://www.dcc.fc.up.pt/~ltorgo/Regression/")
MEMBER = "CaliforniaHousing/cal_housing.data"
FEATURE_NAMES = (
    "MedInc",
    "HouseAge",
    "AveRooms",
    "AveBedrms",
    "Population",
    "AveOccup",
    "Latitude",
    "Longitude",
)
COLUMNS = 9
DOLLARS_PER_UNIT = 1e5


def canonical(content: bytes) -> bytes:
    """The text with LF line ends and no final newline; copies in use differ in these."""
    return content.replace(b"\r\n", b"\n").rstrip(b"\n")


def extract(archive: bytes) -> bytes:
    """The table out of the archive, in memory."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            member = tar.extractfile(MEMBER)
            if member is None:
                raise KeyError(MEMBER)
            return member.read()
    except (KeyError, tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{REMOTE_NAME}: no readable {MEMBER}, expected it inside") from error


REMOTE_NAME = "cal_housing.tgz"
FILES = (
    DataFile(
        path=f"{NAME}/cal_housing.data",
        sha256="23a7eecd83e5d57857691849577cdf9318097411a88e59c3c6e1fd79f62ba266",
        remote_name=REMOTE_NAME,
        remote_sha256="aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
        remote_aliases={FIGSHARE: "5976036"},
        canonical=canonical,
        extract=extract,
    ),
)


def table(contents: Mapping[str, bytes]) -> Table:
    r"""Table of all block groups.

    .. math::

        x = (\text{income}, \text{age}, \tfrac{\text{rooms}}{\text{households}},
             \tfrac{\text{bedrooms}}{\text{households}}, \text{population},
             \tfrac{\text{population}}{\text{households}}, \text{latitude}, \text{longitude}),
        \qquad y = \text{value} / 10^5

    Source
    ------
    Pace and Barry (1997); the features are those of scikit-learn's `fetch_california_housing`;
    bombari2025, Section 7.
    """
    (file,) = FILES
    try:
        raw = np.loadtxt(io.BytesIO(contents[file.path]), delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(f"{file.name}: {error}, expected numbers with commas") from error
    if raw.shape[1] != COLUMNS:
        raise DataError(f"{file.name}: {raw.shape[1]} columns, expected {COLUMNS}")
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
        name=NAME,
        features=features,
        labels=value / DOLLARS_PER_UNIT,
        feature_names=FEATURE_NAMES,
        official_test=np.zeros(len(raw), dtype=bool),
        source=SOURCE,
        checksums={file.name: file.sha256},
    )
