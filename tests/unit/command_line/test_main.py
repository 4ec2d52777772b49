"""The commands of a user: answers, and errors of one line."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privreg import Budget, FullBatchDPGD, Problem
from privreg.command_line.main import COMMANDS, main
from privreg.command_line.tables import as_json
from privreg.version import __version__

PROBLEM = ["--sample-size", "5000", "--dimension", "5"]
FULL_BATCH = ["predict", *PROBLEM, "--rho", "1", "--method", "full_batch"]
ADASSP = ["predict", *PROBLEM, "--rho", "1", "--method", "adassp"]


def asked(capsys, *words):
    status = main(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    ("method", "settings", "says"),
    [
        ("full_batch", ["steps=20", "step_size=0.5", "clip_norm=8"], "theory"),
        ("one_pass", ["numerator=2", "offset=0.05", "clip_constant=1"], "deterministic equivalent"),
    ],
)
def test_predict_prints_the_error_and_the_theory(capsys, method, settings, says):
    words = ["--rho", "0.2", "--method", method, "--set", *settings]
    status, out, _ = asked(capsys, "predict", *PROBLEM, *words)
    assert status == 0
    assert "excess risk" in out
    assert says in out


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"privreg {__version__}\n"


def test_predict_over_ranges_and_laws_as_json(capsys):
    words = ["--signal", "0.5:2", "--epsilon", "1", "--method", "adassp", "--json"]
    status, out, _ = asked(capsys, "predict", *PROBLEM, *words)
    assert status == 0
    assert [each["null_risk"] for each in json.loads(out)] == pytest.approx([0.125, 2.0])
    words = ["--method", "full_batch", "--set", "steps=20", "step_size=0.5", "clip_norm=3"]
    laws = ["--label-noise-law", "gaussian", "student_t3:0.3", "student_t5"]
    status, out, _ = asked(capsys, "predict", *PROBLEM, "--rho", "0.2", *laws, "--json", *words)
    assert status == 0
    problem = Problem(5000, np.ones(5), signal=1.0, label_noise_std=1.0)
    shapes = [("gaussian", 0.0), ("student_t3", 0.3), ("student_t5", 0.0)]
    method = FullBatchDPGD(steps=20, step_size=0.5, clip_norm=3.0)
    expected = [
        method.predict(each, Budget.zcdp(0.2)).excess_risk
        for each in problem.over(noise_shapes=shapes)
    ]
    assert [each["excess_risk"] for each in json.loads(out)] == pytest.approx(expected)
    assert len(set(expected)) == 3
    infinite = as_json({"a": [1.5, float("inf")], "b": ("c", None, True)}, 1)
    assert json.loads(infinite) == {"a": [1.5, None], "b": ["c", None, True]}


def test_plan_prints_a_table_and_a_verdict_or_a_budget(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plan.png"
    words = ["--rho=0.2", "--signal=9e3", "--methods", "full_batch", "--figure", str(picture)]
    status, out, _ = asked(capsys, "plan", *PROBLEM, *words, "--label-noise-std=9e3")
    assert status == 0
    assert "full_batch " in out
    assert "e+" not in out
    assert "the fit's excess risk is at most" in " ".join(out.split())
    assert picture.read_bytes().startswith(b"\x89PNG")
    status, out, _ = asked(capsys, "plan", *PROBLEM, "--target-risk=0.01", "--methods", "adassp")
    assert status == 0
    assert out.startswith("rho = ")
    words = ["--epsilon=1", "--methods", "adassp"]
    _, out, _ = asked(capsys, "plan", *PROBLEM, *words)
    assert out.startswith("rho = 0.02436 (replace-one), epsilon = 1 at delta = 1e-06\nprivreg fit ")
    assert "privreg fit adds only Gaussian noise: it can use rho = 0.028" in out


@pytest.fixture
def fit(capsys, rng, tmp_path, monkeypatch):
    """Fit so many rows: what is printed, and the file of the fit."""
    monkeypatch.chdir(tmp_path)
    Path("b.yaml").write_text("a: [-1, 1]\nb: [-1, 1]\ny: [-3, 3]\n")

    def run(rows, *options):
        features = rng.uniform(-1, 1, (rows, 2))
        labels = features @ [1.0, 0.0] + 0.5 * rng.standard_normal(rows)
        columns = np.column_stack([features, labels])
        np.savetxt("t.csv", columns, delimiter=",", header="a,b,y", comments="")
        output = f"fit{len(list(Path().iterdir()))}.json"
        words = ["fit", "t.csv", "--label=y", "--bounds=b.yaml", f"--output={output}"]
        status, out, err = asked(capsys, *words, *options)
        assert status == 0
        return out, err, json.loads(Path(output).read_text())

    return run


def test_bounds_without_the_label_are_refused(tmp_path, capsys):
    (tmp_path / "b.yaml").write_text("size: [1, 2]\n")
    words = ["fit", "t.csv", "--label=y", f"--bounds={tmp_path}/b.yaml", "--rho=1", "--output=f"]
    assert "--label, a column of the bounds, must be one of 'size'" in asked(capsys, *words)[2]


def test_fit_takes_a_target_and_says_why_intervals_are_infinite(fit):
    out, err, found = fit(400, "--epsilon=0.1")
    assert err.startswith("privreg fit: warning: the fit is not expected to beat")
    assert err.count("\n") == 1
    assert "Least squares: the best" in out
    assert found["estimates"] == "least_squares"
    for each in found["coefficients"]:
        assert each["lower"] is None
        assert each["reason"].startswith("too few rows for this budget to show the tail")
    out, _, found = fit(400, "--rho=1e5", "--target=huber")
    assert "Robust fit: the minimiser" in out
    assert found["estimates"] == "huber"
    assert {each["reason"] for each in found["coefficients"]} == {None}


def test_fit_writes_a_table_for_statisticians_and_a_page(fit):
    out, _, found = fit(5000, "--report=fit.html", "--epsilon=8")
    assert "P>|z|" in out
    assert [each["name"] for each in found["coefficients"]] == ["a", "b", "(intercept)"]
    assert found["privacy"]["epsilon"] == pytest.approx(8, rel=1e-6)
    spent = sum(each["rho"] for each in found["privacy"]["spent"])
    assert spent == pytest.approx(found["privacy"]["rho"])
    # Two standard deviations of 100 from 0, and noise that halves none of them.
    first = found["coefficients"][0]
    assert first["p_value"] < 1e-6 < first["privacy_error"] < first["standard_error"]
    total = np.add(found["covariance"]["sampling"], found["covariance"]["privacy"])
    assert np.sqrt(total[0, 0]) == pytest.approx(first["standard_error"])
    page = Path("fit.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "</svg>" in page


def test_a_target_length_is_not_met_by_doing_nothing(capsys):
    """A run that stays at 0 has no variance; its bias is what an interval would have to hold."""
    words = ["--sample-size", "10000", "--dimension", "4", "--target-length", "0.1"]
    status, out, _ = asked(capsys, "plan", *words, "--methods", "one_pass_harmonic", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["worthwhile"]
    assert found["rho"] > 1e-4
    (best,) = found["alternatives"][0]["predictions"]
    assert 4 * best["parameter_error"] < (0.1 / 1.96) ** 2 * 4
    assert best["interval_length"] <= 0.1 / 1.1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", *PROBLEM], "one of --rho, --epsilon"),
        (["plan", *PROBLEM, "--rho", "1", "--target-risk", "1"], "a budget and a target"),
        ([*ADASSP, "--rho", "-1"], "rho must be"),
        ([*FULL_BATCH, "--set", "steps"], "NAME=VALUE"),
        (
            [*FULL_BATCH, "--set", "clip=2"],
            "settings must be one of 'clip_norm', 'step_size', 'steps'",
        ),
        ([*FULL_BATCH, "--set", "steps=2"], "got no step_size"),
        ([*ADASSP, "--signal", "2:1"], "LOW:HIGH"),
        ([*ADASSP[:3], *ADASSP[5:], "--eigenvalues", "1,x"], "--eigenvalues must be numbers"),
        (["plan", *PROBLEM, "--rho", "1", "--label-noise-law", "cauchy"], "poisson, or one"),
        (
            ["plan", *PROBLEM, "--rho", "1", "--label-noise-law", "gaussian:x"],
            "one of these with :MISFIT",
        ),
        (["plan", *PROBLEM, "--rho", "1", "--label-noise-law", "gaussian:2"], "misfit must be"),
        *(
            (
                [*FULL_BATCH, "--set", f"steps={steps}", "step_size=1", "clip_norm=2"],
                "steps must be a whole number",
            )
            for steps in ("inf", "nan", "2.5", "1e300")
        ),
        (["plan", *PROBLEM, "--rho", "1", "--delta", "nan"], "--delta must be more than 0"),
        (
            ["plan", *PROBLEM[:2], "--dimension", "1" + "0" * 18, "--rho", "1"],
            "--dimension must be a whole number, at most 10000000",
        ),
        (["plann"], "did you mean 'plan'"),
    ],
)
def test_errors_take_one_line(capsys, words, message):
    status, out, error = asked(capsys, *words)
    assert status != 0
    assert out == ""
    assert message in error
    assert error.count("\n") == 1


def test_options_are_written_out(capsys):
    """In full, so that a new option changes no old command."""
    for words in (["plan", *PROBLEM, "--eps=1"], [*ADASSP, "--neigh", "zero-out", "--rho=1"]):
        with pytest.raises(SystemExit):
            main(words)
    assert "unrecognized arguments" in capsys.readouterr().err


def test_an_unknown_option_is_told_before_one_that_is_required(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--epsilom=1", "flats.csv"])
    assert "arguments: --epsilom; did you mean '--epsilon'?" in capsys.readouterr().err


def test_a_shells_odd_date_and_back_end_stop_no_command(tmp_path):
    words = ["plan", *PROBLEM, "--rho", "1", "--methods", "adassp", "--figure", "plan.png"]
    odd = {"SOURCE_DATE_EPOCH": "yes", "MPLBACKEND": "module://of_a_notebook"}
    command = [sys.executable, "-m", "privreg", *words]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **odd}, check=True)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_users_command_loads_nothing_of_the_reproduction():
    script = (
        "import sys; import privreg; assert 'sklearn' not in sys.modules\n"
        "from privreg.command_line.main import COMMANDS, main\n"
        f"assert main({ADASSP}) == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.splitlines()[-1].split())
    assert not loaded & {"snakemake", "xarray", "matplotlib", "pydantic", "netCDF4", "jinja2"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_is_for(command):
    parser = argparse.ArgumentParser()
    _, add_options, _ = COMMANDS[command]
    add_options(parser)
    assert len(parser._actions) > 2
    assert not [action.dest for action in parser._actions if not (action.help or "").strip()]
