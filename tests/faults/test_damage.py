"""Flipped bits, foreign and stale artifacts: the right bytes, or one line that says what to do."""

from __future__ import annotations

import os
import shutil

import chain
import pytest

from reproduction.experiment import checksums

pytestmark = pytest.mark.long
RESULTS = "results"
KINDS = [
    "theory/chain2026/slope.nc",
    "simulation/chain2026/slope/1.nc",
    "verdicts/chain2026.json",
    "claims.json",
    "claims.csv",
    "tables/chain2026/table1.csv",
    "figures/chain2026/fig1.png",
    "figures/chain2026/fig1.pdf",
    "data/california_housing.nc",
    "index.html",
    "gate.txt",
    "ro-crate-metadata.json",
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


def test_a_bit_that_flips_while_a_run_lasts_stops_its_reader_in_one_line(built, expected):
    """Without the look at the start: the job itself compares."""
    (built / RESULTS / "theory/chain2026/slope.nc").unlink()
    (built / RESULTS / "intervals/chain2026/slope.nc").unlink()
    (built / RESULTS / "tables/chain2026/table1.csv").unlink()
    started = chain.start(built, built / "log")
    assert started.wait_for("Theory")
    flip(built / RESULTS / "simulation/chain2026/slope.nc")
    ended = started.end()
    assert ended.status == 1
    said = [line for line in ended.lines if line.strip().startswith("intervals: ")]
    assert said, ended.output
    assert "simulation/chain2026/slope.nc: damaged" in said[0]
    assert "Traceback" not in ended.output
    again = chain.run(built)
    assert again.status == 0, again.output
    found = chain.artifacts(built)
    assert {path: expected[path] for path in found} == found


def place(source, target):
    """Put a file in the place of another, its checksum with it."""
    shutil.copy(source, target)
    shutil.copy(checksums.record_of(source), checksums.record_of(target))


@pytest.mark.parametrize(
    ("options", "made_in", "shard"),
    [
        pytest.param(["--config", "seed=7"], "results", "0.nc", id="other draws"),
        pytest.param(
            ["--config", "chain2026={experiments: {slope: {parameters: {rows: 50}}}}"],
            "results/own",
            "1.nc",
            id="other parameters",
        ),
    ],
)
def test_a_foreign_shard_is_refused(built, undisturbed, tmp_path, options, made_in, shard):
    inside = "simulation/chain2026/slope"
    foreign = tmp_path / "foreign"
    shutil.copytree(undisturbed, foreign)
    made = chain.run(foreign, f"{made_in}/{inside}/{shard}", *options)
    assert made.status == 0, made.output
    place(foreign / made_in / inside / shard, built / RESULTS / inside / shard)
    summary = f"{RESULTS}/{inside}.nc"
    (built / summary).unlink()
    ran = chain.run(built, summary)
    said = [line.strip() for line in ran.lines if line.strip().startswith("summarise: ")]
    assert ran.status == 1
    assert "made by simulate of other parameters, code or draws" in said[0]
    assert "Traceback" not in ran.output
    assert not (built / summary).exists()


def test_an_artifact_of_another_stage_is_refused(built):
    simulation = built / RESULTS / "simulation/chain2026/slope.nc"
    place(built / RESULTS / "theory/chain2026/slope.nc", simulation)
    (built / RESULTS / "figures/chain2026/fig1.png").unlink()
    ran = chain.run(built, f"{RESULTS}/figures/chain2026/fig1.png")
    said = [line.strip() for line in ran.lines if line.strip().startswith("figure: ")]
    assert ran.status == 1
    assert "holds chain2026/slope as made by theory of other" in said[0]


def test_an_artifact_of_other_rows_is_refused(built):
    """A table that was changed behind Snakemake's back."""
    table = built / RESULTS / "data/california_housing.nc"
    record, before = checksums.record_of(table), table.stat()
    table.write_bytes(table.read_bytes() + b"\0")
    record.write_text(f"{checksums.file_digest(table)}  {table.name}\n")
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))
    (built / RESULTS / "figures/chain2026/fig1.png").unlink()
    ran = chain.run(built, f"{RESULTS}/figures/chain2026/fig1.png")
    said = [line.strip() for line in ran.lines if line.strip().startswith("figure: ")]
    assert ran.status == 1
    assert "made with other rows than those of results/data/california_housing.nc" in said[0]
