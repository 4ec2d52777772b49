"""Where a table comes from: what a shell without files and network may and may not change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netCDF4 import Dataset
from reproduction.pipeline.layout import Layout
from reproduction.pipeline.sources import put_back, real_tables_kept, table_source

from privreg import data

NAME = "california_housing"
LAYOUT = Layout("paper")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIVREG_DATA", raising=False)
    Path(LAYOUT.data(NAME)).parent.mkdir(parents=True)


@pytest.fixture
def files(tmp_path, monkeypatch):
    for path in data.files_of(NAME):
        (tmp_path / "files" / path).parent.mkdir(parents=True)
        (tmp_path / "files" / path).write_text("rows")
    monkeypatch.setenv("PRIVREG_DATA", str(tmp_path / "files"))


def prepared(*, stand_in, looked_for_in):
    Path(LAYOUT.data(NAME)).write_text("table")
    about = {"looked_for_in": looked_for_in, "stand_in": stand_in}
    Path(LAYOUT.origin(NAME)).write_text(json.dumps(about))


def source():
    found = table_source(NAME, LAYOUT)
    return found.looked_for_in, "--real" in found.options


def test_without_a_table_the_shell_decides(request):
    assert source() == ("download", False)
    request.getfixturevalue("files")
    assert source() == ("PRIVREG_DATA", False)


@pytest.mark.parametrize("made_with", ["PRIVREG_DATA", "download"])
def test_a_real_table_stays_in_every_shell(request, made_with):
    prepared(stand_in=False, looked_for_in=made_with)
    assert source() == (made_with, True)
    request.getfixturevalue("files")
    assert source() == (made_with, True)


def test_a_stand_in_stays_until_there_are_real_files(request):
    prepared(stand_in=True, looked_for_in="download")
    assert source() == ("download", False)
    request.getfixturevalue("files")
    assert source() == ("PRIVREG_DATA", False)


@pytest.mark.parametrize("record", ["", "{", "[]", '{"stand_in": true}'])
def test_without_a_readable_record_the_table_is_asked(record):
    prepared(stand_in=True, looked_for_in="download")
    Path(LAYOUT.origin(NAME)).write_text(record)
    assert source() == ("download", True), "a table that cannot be read may be real"
    with Dataset(LAYOUT.data(NAME), "w") as file:
        file.setncattr("stand_in", 1)
    assert source() == ("download", False)


@pytest.mark.parametrize("dies", [False, True])
def test_a_real_table_comes_back_when_its_job_fails_or_dies(dies):
    prepared(stand_in=False, looked_for_in="PRIVREG_DATA")
    told = []
    kept = real_tables_kept(LAYOUT, told.append)
    kept.__enter__()
    for path in (LAYOUT.data(NAME), LAYOUT.origin(NAME)):
        Path(path).unlink()
    # Even before it is back, the next run knows of it.
    assert source() == ("PRIVREG_DATA", True)
    if dies:
        put_back(LAYOUT)
    else:
        kept.__exit__(None, None, None)
        assert told == [Path(LAYOUT.origin(NAME)), Path(LAYOUT.data(NAME))]
    assert Path(LAYOUT.data(NAME)).read_text() == "table"
    assert len(list(Path(LAYOUT.data(NAME)).parent.iterdir())) == 2
