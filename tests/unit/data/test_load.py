"""Tables from a local folder, a mirror or a bundled stand-in, and the checks of local files."""

from __future__ import annotations

import gzip
import io
import tarfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privreg import data
from privreg.data import fetch, sources
from privreg.data.sources import SOURCES

from .server import HTML_PAGE, Answer, Mirror, digest


@pytest.mark.parametrize("name", data.NAMES)
def test_without_network_a_bundled_table_stands_in_with_one_line(
    name: str, nothing_listens: str, tmp_path: Path
) -> None:
    with pytest.warns(data.StandInWarning) as caught:
        table = data.load(name, mirrors=[nothing_listens], cache=tmp_path)
    assert len(caught) == 1
    line = str(caught[0].message)
    assert line.startswith(f"{name}: stand-in for")
    assert fetch.UNREACHED in line
    assert "\n" not in line
    assert table.stand_in
    assert table.name == name
    assert table.stand_in_reason == fetch.UNREACHED


def test_a_stand_in_can_be_forbidden(nothing_listens: str, tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match="no mirror could be reached"):
        data.load("mnist", mirrors=[nothing_listens], cache=tmp_path, allow_stand_in=False)


def housing_archive(text: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(sources.HOUSING_MEMBER)
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    return buffer.getvalue()


HOUSING_TEXT = b"-122.23,37.88,41,880,129,322,126,8.3252,452600\n-120,38,10,90,20,30,10,2,100000"


def use_files(
    monkeypatch: pytest.MonkeyPatch, name: str, files: tuple[fetch.DataFile, ...]
) -> None:
    monkeypatch.setitem(SOURCES, name, replace(SOURCES[name], files=files))


def use_small_housing(
    monkeypatch: pytest.MonkeyPatch, archive: bytes, text: bytes = HOUSING_TEXT
) -> None:
    file = fetch.DataFile(
        path="california_housing/cal_housing.data",
        sha256=digest(text),
        remote_name="cal_housing.tgz",
        remote_sha256=digest(archive),
        canonical=sources.canonical,
        extract=sources.extract,
    )
    use_files(monkeypatch, "california_housing", (file,))


def test_housing_comes_out_of_the_archive(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = housing_archive(HOUSING_TEXT.replace(b"\n", b"\r\n") + b"\r\n")
    use_small_housing(monkeypatch, archive)
    mirror.serve("cal_housing.tgz", Answer(archive))
    table = data.load("california_housing", mirrors=[mirror.address], cache=tmp_path)
    assert not table.stand_in
    np.testing.assert_allclose(table.features[1], [2, 10, 9, 2, 30, 3, 38, -120])
    np.testing.assert_allclose(table.labels, [4.526, 1.0])
    # What is recorded does not depend on where the file came from.
    local = tmp_path / "local" / "california_housing"
    local.mkdir(parents=True)
    (local / "cal_housing.data").write_bytes(HOUSING_TEXT)
    other = data.load("california_housing", directory=tmp_path / "local")
    assert dict(other.checksums) == dict(table.checksums)
    assert other.source == table.source
    np.testing.assert_array_equal(other.features, table.features)


def test_an_archive_with_another_table_in_it_is_an_error_and_no_stand_in(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = housing_archive(b"1,2,3")
    use_small_housing(monkeypatch, archive)
    mirror.serve("cal_housing.tgz", Answer(archive))
    with pytest.raises(data.DataError, match=f"cal_housing.data in .*{digest(b'1,2,3')}"):
        data.load("california_housing", mirrors=[mirror.address], cache=tmp_path)


def idx(values: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    return gzip.compress(header + values.astype(np.uint8).tobytes(), mtime=0)


def small_mnist() -> tuple[tuple[fetch.DataFile, ...], dict[str, bytes]]:
    generator = np.random.default_rng(5)
    labels = {"train": np.array([1, 7, 3, 7]), "t10k": np.array([0, 7, 1])}
    contents = {}
    for part, digits in labels.items():
        images = generator.integers(0, 256, size=(digits.size, 2, 3))
        contents[f"{part}-images-idx3-ubyte.gz"] = idx(images)
        contents[f"{part}-labels-idx1-ubyte.gz"] = idx(digits)
    files = tuple(
        fetch.DataFile(f"mnist/{name}", digest(content), name, digest(content))
        for name, content in contents.items()
    )
    return files, contents


def all_but_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[fetch.DataFile, bytes]:
    """Put all files of a small data set but one into a folder; that one with its content."""
    files, contents = small_mnist()
    use_files(monkeypatch, "mnist", files)
    (folder / "mnist").mkdir()
    for file in files[:-1]:
        (folder / file.path).write_bytes(contents[file.name])
    return files[-1], contents[files[-1].name]


def test_files_missing_in_the_folder_are_downloaded_and_only_those(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing, content = all_but_one(tmp_path, monkeypatch)
    mirror.serve(missing.name, Answer(content))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = data.load(
            "mnist", directory=tmp_path, mirrors=[mirror.address], cache=tmp_path / "cache"
        )
    assert mirror.requests == [f"/files/{missing.name}"]
    assert table.shape == (5, 6)
    np.testing.assert_array_equal(table.labels, [1, -1, -1, -1, 1])
    np.testing.assert_array_equal(table.official_test, [False, False, False, True, True])
    with pytest.raises(ValueError, match="read-only"):
        table.features[0, 0] = 1


def test_a_wrong_local_file_is_an_error_before_any_download(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, contents = small_mnist()
    use_files(monkeypatch, "mnist", files)
    for file in files[:3]:
        mirror.serve(file.name, Answer(contents[file.name]))
    (tmp_path / "mnist").mkdir()
    (tmp_path / files[3].path).write_bytes(contents[files[3].name][:-1])
    with pytest.raises(data.DataError, match=files[3].name):
        data.load("mnist", directory=tmp_path, mirrors=[mirror.address], cache=tmp_path / "cache")
    assert mirror.requests == []


REAL_FILES = (*SOURCES["mnist"].files, *SOURCES["california_housing"].files)


@pytest.mark.parametrize("path", [file.path for file in REAL_FILES])
@pytest.mark.parametrize("content", [b"corrupted", HTML_PAGE])
def test_check_names_a_wrong_file_with_both_checksums_in_one_line(
    path: str, content: bytes, tmp_path: Path
) -> None:
    file = next(f for f in REAL_FILES if f.path == path)
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_bytes(content)
    with pytest.raises(data.DataError) as caught:
        data.check(tmp_path)
    message = str(caught.value)
    assert str(tmp_path / path) in message
    assert f"SHA-256 {digest(content)}, expected {file.sha256}" in message
    assert "\n" not in message


def test_part_of_a_data_set_is_refused_and_not_replaced_by_a_stand_in(
    nothing_listens: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing, _ = all_but_one(tmp_path, monkeypatch)
    with pytest.raises(data.DataError, match=rf"{missing.path} not found"):
        data.load("mnist", directory=tmp_path, mirrors=[nothing_listens], cache=tmp_path)
