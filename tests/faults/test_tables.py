"""A real table is never replaced by a stand-in, whatever the shell that goes on."""

from __future__ import annotations

import json
import signal
import time

import chain
import pytest
from test_damage import flip

pytestmark = pytest.mark.long
TABLE = "results/data/california_housing.nc"
ORIGIN = "results/data/california_housing.json"
NOTHING = "Nothing to be done"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return str(chain.real_files(tmp_path_factory.mktemp("files")))


def stands_in(folder):
    return json.loads((folder / ORIGIN).read_text())["stand_in"]


def edit_the_preparation(folder):
    source = folder / "src/privreg/data/tables.py"
    source.write_text(source.read_text() + "\n# An edit.\n")


def test_a_table_on_its_way(built, files):
    """From a stand-in to real files, and on in shells that have none."""
    assert stands_in(built)
    ran = chain.run(built, TABLE, PRIVREG_DATA=files)
    assert ran.status == 0, ran.output
    assert not stands_in(built)
    for directory in (files, None):
        ran = chain.run(built, TABLE, "--dry-run", PRIVREG_DATA=directory)
        assert NOTHING in ran.output, ran.output
    real = (built / TABLE).read_bytes()

    edit_the_preparation(built)
    ran = chain.run(built, TABLE)
    assert ran.status == 1
    (said, *_) = [line.strip() for line in ran.lines if line.strip().startswith("data: ")]
    assert f"{TABLE} is real and no stand-in takes its place: set PRIVREG_DATA" in said
    assert said.endswith(f"or remove {TABLE} to go on with a stand-in")
    assert (built / TABLE).read_bytes() == real

    started = chain.start(built, built / "log", TABLE)
    assert started.wait_for_launches()
    time.sleep(1)
    started.hit(signal.SIGKILL)
    started.end()
    assert not (built / TABLE).exists()
    ran = chain.run(built, TABLE)
    assert ran.status == 1
    assert "ended without a word" in ran.output
    assert "no stand-in takes its place" in ran.output
    assert (built / TABLE).read_bytes() == real

    ran = chain.run(built, TABLE, PRIVREG_DATA=files)
    assert ran.status == 0, ran.output
    assert not stands_in(built)

    (built / TABLE).unlink()
    ran = chain.run(built, TABLE)
    assert ran.status == 0, ran.output
    assert stands_in(built)


def test_a_damaged_real_table(built, files):
    assert chain.run(built, TABLE, PRIVREG_DATA=files).status == 0
    real = (built / TABLE).read_bytes()
    flip(built / TABLE)
    ran = chain.run(built, TABLE)
    assert ran.status == 1
    assert ran.lines[-1].startswith(f"error: {TABLE}: damaged; set PRIVREG_DATA")
    assert (built / TABLE).exists()
    ran = chain.run(built, TABLE, PRIVREG_DATA=files)
    assert ran.status == 0, ran.output
    assert (built / TABLE).read_bytes() == real
