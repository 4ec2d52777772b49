"""Flipped bits, foreign shards, tables: the right bytes, or one line that says what to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

import chain
import pytest

from reproduction.engine import artifacts as store

pytestmark = pytest.mark.long
RESULTS = "results"
KINDS = [
    "theory/chain2026/slope.nc",
    "simulation/chain2026/slope/1.nc",
    "verdicts/chain2026.json",
    "claims.csv",
    "tables/chain2026/table1.csv",
    "figures/chain2026/fig1.png",
    "figures/chain2026/fig1.pdf",
    "data/california_housing.nc",
    "index.html",
]


def flip(path, share=0.5):
    """Flip a bit; the time of the file stays what it was, as when a disk fails."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[int(share * (len(content) - 1))] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_flipped_bit_in_every_kind_of_artifact_is_said_and_made_good(built, expected):
    for place, kind in enumerate(KINDS):
        flip(built / RESULTS / kind, share=(place + 1) / (len(KINDS) + 1))
    ran = chain.run(built)
    assert ran.status == 0, ran.output
    for kind in KINDS:
        assert f"{RESULTS}/{kind}: damaged, removed; made again where it is needed" in ran.lines
    found = chain.artifacts(built)
    # What nothing asked for is not there, instead of wrong.
    assert found.keys() <= expected.keys()
    assert {path: expected[path] for path in found} == found
    assert {"gate.txt", "claims.csv", "figures/chain2026/fig1.png"} <= found.keys()


def test_a_foreign_shard_is_refused(built, undisturbed, tmp_path):
    shard = "results/simulation/chain2026/slope/0.nc"
    foreign = tmp_path / "foreign"
    shutil.copytree(undisturbed, foreign)
    made = chain.run(foreign, shard, "--config", "seed=7")
    assert made.status == 0, made.output
    for path in (foreign / shard, store.record_of(foreign / shard)):
        shutil.copy(path, (built / shard).with_name(path.name))
    summary = f"{RESULTS}/simulation/chain2026/slope.nc"
    (built / summary).unlink()
    ran = chain.run(built, summary)
    said = [line.strip() for line in ran.lines if line.strip().startswith("summarise: ")]
    assert ran.status == 1
    assert "made by simulate of other parameters, code or draws" in said[0]
    assert "Traceback" not in ran.output
    assert not (built / summary).exists()


TABLE = "results/data/california_housing.nc"


def test_a_real_table_is_never_replaced_by_a_stand_in(built, tmp_path):
    """From a stand-in to real files, and on in shells that have none."""

    def stands_in():
        about = (built / TABLE).with_suffix(".json")
        return json.loads(about.read_text())["stand_in"]

    files = str(chain.real_files(tmp_path / "files"))
    assert stands_in()
    ran = chain.run(built, TABLE, PRIVREG_DATA=files)
    assert ran.status == 0, ran.output
    assert not stands_in()
    real = (built / TABLE).read_bytes()

    source = built / "src/privreg/data/tables.py"
    source.write_text(source.read_text() + "\n# An edit.\n")
    ran = chain.run(built, TABLE)
    assert ran.status == 1
    assert f"{TABLE} is real and no stand-in takes its place: set PRIVREG_DATA" in ran.output
    assert (built / TABLE).read_bytes() == real

    started = chain.start(built, built / "log", TABLE)
    assert started.wait_for_launches()
    time.sleep(1)
    started.hit(signal.SIGKILL)
    started.end()
    ran = chain.run(built, TABLE)
    assert ran.status == 1
    assert "no stand-in takes its place" in ran.output
    assert (built / TABLE).read_bytes() == real

    flip(built / TABLE)
    ran = chain.run(built, TABLE)
    assert ran.lines[-1].startswith(f"error: {TABLE}: damaged; set PRIVREG_DATA")
    ran = chain.run(built, TABLE, PRIVREG_DATA=files)
    assert ran.status == 0, ran.output
    assert not stands_in()
