"""The tables: what the parsers and the stand-ins give, on the real files where they are there."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from privreg import data
from privreg.data import sources, tables
from privreg.data.sources import SOURCES

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def directory() -> Path:
    named = os.environ.get("PRIVREG_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real files are not here: set PRIVREG_DATA to their folder")
    return folder


def test_real_mnist(directory: Path) -> None:
    table = data.load("mnist", directory=directory)
    assert table.shape == (15170, 784)
    assert tables.available(table) == SOURCES["mnist"].rows
    assert table.features.dtype == np.uint8
    test = table.official_test
    # Ones and sevens in each part, from the published label counts.
    assert (int((table.labels[~test] == 1).sum()), int((table.labels[~test] == -1).sum())) == (
        6742,
        6265,
    )
    assert (int((table.labels[test] == 1).sum()), int((table.labels[test] == -1).sum())) == (
        1135,
        1028,
    )
    assert not np.any(test[:13007])
    # A one is a stroke, so it has less ink than a seven.
    ink = table.features.mean(axis=1)
    assert ink[table.labels == 1].mean() < 0.75 * ink[table.labels == -1].mean()
    assert (table.stand_in, table.stand_in_reason) == (False, "")
    assert table.features.max() == table.feature_scale == 255
    assert sorted(table.checksums) == sorted(file.name for file in SOURCES["mnist"].files)
    assert str(directory) not in repr((table.source, table.checksums))


def test_real_california_housing(directory: Path) -> None:
    table = data.load("california_housing", directory=directory)
    assert table.shape == (20640, 8)
    assert tables.available(table) == SOURCES["california_housing"].rows
    first = [8.3252, 41, 6.98412698, 1.02380952, 322, 2.55555556, 37.88, -122.23]
    np.testing.assert_allclose(table.features[0], first, rtol=0, atol=5e-9)
    assert table.labels[0] == pytest.approx(4.526, abs=1e-12)
    means = [3.870671, 28.639486, 5.429000, 1.096675, 1425.476744, 3.070655, 35.631861, -119.569704]
    np.testing.assert_allclose(table.features.mean(axis=0), means, rtol=0, atol=5.1e-7)
    assert table.labels.mean() == pytest.approx(2.0685581690891, abs=1e-12)
    assert table.feature_names == sources.HOUSING_FEATURES
    assert not table.official_test.any()
    assert not table.stand_in


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
@pytest.mark.parametrize("final", [True, False])
def test_the_housing_checksum_forgives_line_ends_and_nothing_else(
    directory: Path, tmp_path: Path, ends: bytes, final: bool
) -> None:
    (file,) = SOURCES["california_housing"].files
    lines = sources.canonical((directory / file.path).read_bytes()).split(b"\n")
    copy = tmp_path / file.path
    copy.parent.mkdir()
    copy.write_bytes(ends.join(lines) + (ends if final else b""))
    data.check(tmp_path)
    copy.write_bytes(ends.join([*lines[1:], lines[0]]))
    with pytest.raises(data.DataError, match=r"cal_housing\.data: SHA-256"):
        data.check(tmp_path)


def test_digits_stand_in() -> None:
    table = SOURCES["mnist"].stand_in("why")
    assert table.shape == (361, 64)
    assert (int((table.labels == 1).sum()), int((table.labels == -1).sum())) == (182, 179)
    assert table.features.max() == table.feature_scale == 16
    assert (table.name, table.stand_in, table.stand_in_reason) == ("mnist", True, "why")
    assert not table.official_test.any()
    assert [len(value) for value in table.checksums.values()] == [64]


def test_diabetes_stand_in() -> None:
    table = SOURCES["california_housing"].stand_in("why")
    assert table.shape == (442, 10)
    assert (table.labels.min(), table.labels.max()) == (25, 346)
    assert (table.name, table.stand_in) == ("california_housing", True)
    assert [len(value) for value in table.checksums.values()] == [64, 64]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"no gzip at all", id="no-gzip"),
        pytest.param(gzip.compress(b"\0\0\x08\x01\0\0\0\x02ab")[:-9], id="broken-gzip"),
        pytest.param(gzip.compress(b"\0\0\x0d\x01\0\0\0\x02ab"), id="floats"),
        pytest.param(gzip.compress(b"\0\0\x08\x01\0\0\0\x03ab"), id="too-short"),
        pytest.param(gzip.compress(b"\0\0\x08\x01\0\0\0\x01ab"), id="too-long"),
        pytest.param(gzip.compress(b"\0\0\x08\x03\0\0\0\x01"), id="half-a-header"),
        pytest.param(gzip.compress(b""), id="empty"),
    ],
)
def test_a_malformed_idx_file_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(data.DataError, match="images: "):
        sources.read_idx(content, "images")
