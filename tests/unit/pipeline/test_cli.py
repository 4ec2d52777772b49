"""The command line: what each command writes, and how it refuses: one line and a status."""

from __future__ import annotations

import json
import logging
import warnings

import pytest

from reproduction.engine import artifacts as store
from reproduction.pipeline.cli import main

FACTORS = json.dumps({"largest_ratio": 4.0, "points": 10})
COVERAGE = json.dumps(
    {
        "dimension": 2,
        "sample_size": 200,
        "budget": {"zcdp": 0.5},
        "gradients": [60],
        "step_size": 0.25,
        "clip_constant": 5.0,
        "replicates": 2,
        "runs": 2,
    }
)


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """`main` sends warnings and messages to its own log."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    loggers = [logging.getLogger(name) for name in ("privreg", "reproduction")]
    before = [each.handlers[:] for each in loggers]
    yield
    for each, handlers in zip(loggers, before, strict=True):
        for added in set(each.handlers) - set(handlers):
            added.close()
        each.handlers[:] = handlers


def run(*arguments):
    return main([str(argument) for argument in arguments])


def refused(capsys, *arguments):
    """The one line on which a command with a wrong option ends."""
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def failed(capsys, *arguments):
    """The one line of a command that fails."""
    assert run(*arguments) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


# Experiments


def test_theory_writes_a_dataset_with_its_provenance(tmp_path):
    output = tmp_path / "deep" / "theory.nc"
    assert (
        run("theory", "bombari2025/clipping_factors", "--parameters", FACTORS, "--output", output)
        == 0
    )
    found = store.read(output)
    assert found.sizes["ratio"] == 10
    assert json.loads(found.attrs["config"]) == json.loads(FACTORS)
    assert "arXiv:2505.16329" in found.attrs["references"]
    assert len(found.attrs["code_digest"]) == len(found.attrs["config_digest"]) == 64


def test_shards_are_joined_into_the_trials_of_one_run(tmp_path):
    path = "brown2024/coverage"
    common = ("--parameters", COVERAGE)
    draws = ("--seed", 3, "--trials", 3)
    for shard, output in (("0/1", "whole"), ("0/2", "first"), ("1/2", "second")):
        options = (*common, *draws, "--shard", shard, "--output", tmp_path / f"{output}.nc")
        assert run("simulate", path, *options) == 0
    for names, output in ((["whole"], "one"), (["second", "first"], "two")):
        shards = [tmp_path / f"{name}.nc" for name in names]
        options = (*common, "--shards", *shards, "--output", tmp_path / f"{output}.nc")
        assert run("summarise", path, *options) == 0
    assert (tmp_path / "one.nc").read_bytes() == (tmp_path / "two.nc").read_bytes()
    assert store.read(tmp_path / "one.nc").attrs["trials"] == 3
    artifacts = ("--artifacts", f"simulation={tmp_path / 'one.nc'}")
    assert run("intervals", path, *common, *artifacts, "--output", tmp_path / "intervals.nc") == 0
    found = store.read(tmp_path / "intervals.nc")
    assert found.attrs["simulation_digest"] == store.file_digest(tmp_path / "one.nc")


def test_wrong_parameters_are_refused_by_name(tmp_path, capsys):
    options = ("bombari2025/clipping_factors", "--output", tmp_path / "x.nc", "--parameters")
    said = failed(capsys, "theory", *options, json.dumps({"largest_ratio": 4.0, "point": 10}))
    assert "bombari2025.experiments.clipping_factors.parameters" in said
    assert "did you mean 'points'" in said
    said = failed(capsys, "theory", *options, json.dumps({"largest_ratio": -1, "points": 10}))
    assert "largest_ratio must be at least 1e-15, got -1" in said


def test_an_unknown_recipe_names_the_nearest(tmp_path, capsys):
    said = failed(capsys, "theory", "bombari2025/clipping_factor", "--output", tmp_path / "x.nc")
    assert "did you mean 'clipping_factors'" in said


# Drawings and tables of data


def test_a_figure_is_saved_in_each_format_with_the_same_bytes(tmp_path):
    theory = tmp_path / "theory.nc"
    run("theory", "bombari2025/clipping_factors", "--parameters", FACTORS, "--output", theory)
    for folder in ("first", "second"):
        files = [tmp_path / folder / f"fig9.{suffix}" for suffix in ("pdf", "png")]
        options = ("--artifacts", f"theory={theory}", "--scale", "quick", "--output", *files)
        assert run("figure", "bombari2025/fig9", *options) == 0
    for suffix in ("pdf", "png"):
        first, second = (tmp_path / folder / f"fig9.{suffix}" for folder in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.filterwarnings("default:california_housing. stand-in")
def test_data_that_no_mirror_delivers_are_stood_in_for(tmp_path, capsys, monkeypatch):
    from privreg.data import fetch

    monkeypatch.setenv("PRIVREG_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(fetch.time, "sleep", lambda seconds: None)
    output = tmp_path / "housing.nc"
    assert (
        run("data", "california_housing", "--mirrors", "http://127.0.0.1:9", "--output", output)
        == 0
    )
    assert store.read(output).attrs["stand_in"] == 1
    assert capsys.readouterr().err.startswith("california_housing: stand-in")


def test_an_unknown_table_is_refused(tmp_path, capsys):
    said = failed(capsys, "data", "mnits", "--output", tmp_path / "x.nc")
    assert "did you mean 'mnist'" in said


# Options


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["theorem"], "invalid choice: 'theorem'"),
        (["theory", "p/e", "--output", "x", "--parameters", "{"], "must be JSON, got '{'"),
        (["theory", "p/e", "--output", "x", "--artifacts", "data"], "ARGUMENT=FILE, got 'data'"),
        (["simulate", "p/e", "--output", "x", "--trials", "3"], "required: --seed"),
        (
            ["simulate", "p/e", "--output", "x", "--seed", "1", "--trials", "3", "--shard", "2/2"],
            "must be INDEX/COUNT with INDEX below COUNT, got '2/2'",
        ),
        (["schema", "--output", "x", "--colour"], ": --colour"),
    ],
)
def test_a_wrong_option_ends_in_one_line(capsys, arguments, words):
    assert words in refused(capsys, *arguments)


def test_the_log_takes_the_traceback_and_the_terminal_one_line(tmp_path, capsys):
    log = tmp_path / "logs" / "x.log"
    missing = tmp_path / "missing.nc"
    arguments = ("gate", missing, "--output", tmp_path / "gate.txt", "--log", log)
    said = failed(capsys, *arguments)
    assert said.startswith("gate: ")
    assert "missing.nc" in said
    assert log.read_text().startswith(said)
    assert "Traceback" in log.read_text()


def test_a_damaged_artifact_is_one_line_in_the_log_as_well(tmp_path, capsys):
    theory, log = tmp_path / "theory.nc", tmp_path / "log"
    run("theory", "bombari2025/clipping_factors", "--parameters", FACTORS, "--output", theory)
    with theory.open("ab") as stream:
        stream.write(b"x")
    options = ("--artifacts", f"theory={theory}", "--output", tmp_path / "fig9.png", "--log", log)
    said = failed(capsys, "figure", "bombari2025/fig9", *options)
    assert said.startswith(f"figure: {theory}: damaged")
    assert log.read_text() == f"{said}\n"


def test_an_artifact_that_its_reader_does_not_expect_is_refused(tmp_path, capsys):
    theory = tmp_path / "theory.nc"
    run("theory", "bombari2025/clipping_factors", "--parameters", FACTORS, "--output", theory)
    options = ("--artifacts", f"theory={theory}", "--output", tmp_path / "fig9.png", "--expected")
    identity = store.read(theory).attrs["identity"]
    assert run("figure", "bombari2025/fig9", *options, json.dumps({"theory": identity[:16]})) == 0
    said = failed(capsys, "figure", "bombari2025/fig9", *options, json.dumps({"theory": "0" * 16}))
    assert "holds bombari2025/clipping_factors as made by theory of other" in said
