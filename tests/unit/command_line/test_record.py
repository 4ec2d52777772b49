"""What a fit or a score spends is in its file, whatever happens to the command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privreg.algorithms.whitened_descent import SplitBudget
from privreg.command_line.main import main
from privreg.command_line.tables import read_bounds
from privreg.estimators.odometer import read_statement


@pytest.fixture
def words(tmp_path, rng, monkeypatch):
    """A fit, and a score of another one, without their outputs."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{x},{y}" for x, y in rng.uniform(-1, 1, (2000, 2))]
    Path("t.csv").write_text("\n".join(["x,y", *lines]))
    Path("b.yaml").write_text("x: [-1, 1]\ny: [-1, 1]\n")
    fit = ["fit", "t.csv", "--label=y", "--bounds=b.yaml", "--rho=0.5"]
    assert main([*fit, "--output=first"]) == 0
    return {"fit": fit, "score": ["score", "t.csv", "--fit=first", "--rho=0.5"]}


@pytest.mark.parametrize("command", ["fit", "score"])
class TestRecord:
    def test_a_killed_run_counts_in_full(self, words, command, monkeypatch, capsys):
        monkeypatch.setattr(SplitBudget, "noise_std", killed)
        with pytest.raises(KeyboardInterrupt) as ended:
            main([*words[command], "--output=out"])
        assert "rho = 0.5 is spent, and recorded in 'out'" in ended.value.__notes__
        assert read_statement("out").rho == 0.5
        with pytest.raises(KeyboardInterrupt):
            main([*words[command], "--output=other"])
        monkeypatch.setattr(SplitBudget, "noise_std", lambda *_: Path("gone").unlink() or killed())
        with pytest.raises(KeyboardInterrupt) as ended:
            main([*words[command], "--output=gone"])
        assert (
            "rho = 0.5 is spent, and recorded nowhere: there is no 'gone'" in ended.value.__notes__
        )
        monkeypatch.setattr(SplitBudget, "noise_std", killed)
        capsys.readouterr()
        with pytest.raises(KeyboardInterrupt):
            main(words[command])
        assert "warning: rho = 0.5 is spent and recorded nowhere" in capsys.readouterr().err
        assert main(["odometer", "first", "out", "other"]) == 0
        assert "together  rho = 1.5," in capsys.readouterr().out
        assert main(["score", "t.csv", "--fit=out", "--rho=1"]) == 1
        assert "got 'out' of a fit that did not finish\n" in capsys.readouterr().err

    def test_a_result_that_cannot_be_written_is_printed(self, words, command, monkeypatch, capsys):
        monkeypatch.setattr(Path, "replace", full)
        capsys.readouterr()
        assert main([*words[command], "--output=out"]) == 1
        said = capsys.readouterr()
        assert "differentially private" in said.out.lower()
        assert "--output could not be written to 'out': No space left on device; rho = 0.5 is " in (
            said.err
        )
        assert read_statement("out").rho == 0.5
        assert {each.name for each in Path().iterdir()} == {"t.csv", "b.yaml", "first", "out"}

    def test_no_noise_is_drawn_without_a_new_file(self, words, command, monkeypatch, capsys):
        monkeypatch.setattr(SplitBudget, "noise_std", killed)
        Path("link").symlink_to("nothing")
        before = left()
        for path in ("t.csv", "b.yaml", "first", ".", "link", "none/out", "/dev/full"):
            assert main([*words[command], f"--output={path}"]) == 1
            assert "--output must be a new file that can be written" in capsys.readouterr().err
        monkeypatch.setattr(os, "fsync", full)
        assert main([*words[command], "--output=out"]) == 1
        assert capsys.readouterr().err.endswith("got 'out': No space left on device\n")
        assert left() == before


def left() -> dict[Path, list[float]]:
    """Files with all but the time at which each was read."""
    found = {each: list(each.lstat()) for each in Path().iterdir()}
    return {each: stat[:7] + stat[8:] for each, stat in found.items()}


def test_a_fit_that_fails_says_what_it_spent_and_looks_at_its_options_before(
    words, monkeypatch, capsys
):
    monkeypatch.setattr(SplitBudget, "noise_std", broken)
    capsys.readouterr()
    for option in ("--level=nan", "--level=1.5"):
        assert main([*words["fit"], option]) == 1
        assert capsys.readouterr().err.startswith("privreg fit: --level must be")
    assert main(words["fit"]) == 1
    spent = "noise failed; the failed fit counts as spent, with rho = 0.5 (replace-one)\n"
    assert capsys.readouterr().err.endswith(f"privreg fit: {spent}")


def broken(*_):
    raise ValueError("noise failed")


def killed(*_):
    raise KeyboardInterrupt


def full(*_):
    raise OSError(28, "No space left on device")


def test_the_report_is_a_file_of_its_own(words, capsys):
    for path, found in (("first", "a new file"), ("./new", "a file other than --output")):
        assert main([*words["fit"], f"--report={path}", "--output=new"]) == 1
        assert f"--report must be {found}" in capsys.readouterr().err
    assert not Path("new").exists()


def test_a_template_holds_names_as_they_are_and_nothing_that_is_valid(tmp_path, capsys):
    names = ["y", "no", "a: b", "# c", "e\n\x1b[31m\u202e", '"', "{f}", "é ", "-1"]
    table, bounds = tmp_path / "t.parquet", tmp_path / "b.yaml"
    columns = dict.fromkeys(names, np.zeros(2)) | {"town": ["a", "b"], "new": [True, False]}
    day = pa.array([1, 2], pa.date32())
    parquet.write_table(pa.table({**columns, "day": day}), table)
    assert main(["bounds", str(table), "--label", "y"]) == 0
    bounds.write_text(written := capsys.readouterr().out)
    with pytest.raises(ValueError, match="bounds of 'y' must be"):
        read_bounds(bounds)
    bounds.write_text(written.replace("LOW, HIGH", "0, 1").replace("FIRST", "a"))
    assert read_bounds(bounds) == {
        **{name: [0, 1] for name in names},
        "town": {"categories": ["a", "SECOND"]},
        "new": {"categories": ["false", "true"]},
    }


def test_a_first_record_is_not_quoted_as_a_header(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text("812.73,61,3a\n4,5,6\n")
    for label in ("rent", "61"):
        assert main(["bounds", str(table), "--label", label]) == 1
        said = capsys.readouterr()
        assert "header" in said.err
        assert "812" not in said.err + said.out
        assert "3a" not in said.err + said.out


def test_a_label_has_codes_for_missing_in_fit_and_score(words, capsys):
    table = Path("t.csv")
    spoilt = table.read_text().splitlines()
    spoilt[1:400] = ["0.5,-9"] * 399
    table.write_text("\n".join(spoilt))
    Path("b.yaml").write_text("x: [-1, 1]\ny: {bounds: [-1, 1], missing: [-9]}\n")
    assert main([*words["fit"][:-1], "--rho=500", "--output=out"]) == 0
    found = json.loads(Path("out").read_text())
    assert found["records"]["incomplete"]["y"] == pytest.approx(399 / 2000, abs=0.01)
    assert main(["score", "t.csv", "--fit=out", "--rho=500", "--output=scored"]) == 0
    assert json.loads(Path("scored").read_text())["score"]["records"] == pytest.approx(1601, abs=5)


def test_a_formula_is_fitted_and_scored(words, capsys):
    fit = [*words["fit"][:2], "--bounds=b.yaml", "--rho=500", "--formula=y ~ np.exp(x)"]
    assert main([*fit, "--output=out"]) == 0
    assert "np.exp(x) within [0.367879, 2.71828]" in capsys.readouterr().out
    assert main(["score", "t.csv", "--fit=out", "--rho=1"]) == 0
    assert main([*fit[:-1], "--formula=y ~ scale(x)"]) == 1
    assert "'scale', which learns from the table" in capsys.readouterr().err


def test_names_command_no_terminal(words, capsys):
    table = Path("t.csv")
    table.write_text(table.read_text().replace("x,", "\x1b[2J\u202e,", 1))
    Path("b.json").write_text(json.dumps({"\x1b[2J\u202e": [-1, 1], "y": [-1, 1]}))
    assert main([*words["fit"], "--bounds=b.json", "--output=\x1b[2J"]) == 0
    assert main(["odometer", "\x1b[2J"]) == 0
    said = capsys.readouterr()
    assert r"\x1b[2J\u202e" in said.out
    assert not {"\x1b", "\u202e"} & {*said.out, *said.err}
