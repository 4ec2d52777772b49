"""The commands of a user: answers, and errors of one line."""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from privreg import Budget, FullBatchDPGD, Problem
from privreg.command_line.main import COMMANDS, main
from privreg.command_line.options import as_json
from privreg.version import __version__

PROBLEM = ["--sample-size", "5000", "--dimension", "5"]
FULL_BATCH = ["predict", *PROBLEM, "--rho", "1", "--method", "full_batch"]


def asked(capsys, *words):
    status = main(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_predict_prints_the_error_and_the_theory(capsys):
    words = ["--method", "full_batch", "--set", "steps=20", "step_size=0.5", "clip_norm=8"]
    status, out, _ = asked(capsys, "predict", *PROBLEM, "--rho", "0.2", *words)
    assert status == 0
    assert "excess risk" in out
    assert "theory" in out


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"privreg {__version__}\n"


def test_predict_over_a_range_as_json(capsys):
    words = ["--signal", "0.5:2", "--epsilon", "1", "--method", "adassp", "--json"]
    status, out, _ = asked(capsys, "predict", *PROBLEM, *words)
    assert status == 0
    found = json.loads(out)
    assert len(found) == 2
    assert found[0]["null_risk"] == pytest.approx(0.125)
    assert found[1]["null_risk"] == pytest.approx(2.0)


def test_predict_over_laws_of_the_label_noise(capsys):
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


def test_what_is_infinite_is_null_in_json():
    assert json.loads(as_json({"a": [1.5, float("inf")], "b": ("c", None, True)})) == {
        "a": [1.5, None],
        "b": ["c", None, True],
    }


def test_predict_takes_a_schedule(capsys):
    words = ["--method", "one_pass", "--set", "numerator=2", "offset=0.05", "clip_constant=1"]
    status, out, _ = asked(capsys, "predict", *PROBLEM, "--rho", "0.2", *words)
    assert status == 0
    assert "deterministic equivalent" in out


def test_plan_prints_a_table_and_a_verdict(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plan.png"
    words = ["--rho", "0.2", "--methods", "full_batch", "adassp", "--figure", str(picture)]
    status, out, _ = asked(capsys, "plan", *PROBLEM, *words)
    assert status == 0
    assert "full_batch" in out
    assert "the fit leaves at most" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_fit_takes_a_target_and_says_why_intervals_are_infinite(capsys, tmp_path):
    rng = np.random.default_rng(1)
    lines = [f"{a:.3f},{b:.3f},{a - b:.3f}" for a, b in rng.uniform(-1, 1, (400, 2))]
    table, bounds = tmp_path / "t.csv", tmp_path / "b.yaml"
    table.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    bounds.write_text("a: [-1, 1]\nb: [-1, 1]\ny: [-3, 3]\n")
    words = ["fit", str(table), "--label", "y", "--bounds", str(bounds), "--output"]
    output = tmp_path / "fit.json"
    status, out, err = asked(capsys, *words, str(output), "--epsilon", "0.1")
    assert err.startswith("privreg fit: warning: the fit is not predicted to be better")
    assert err.count("\n") == 1
    found = json.loads(output.read_text())
    assert status == 0
    assert found["estimates"] == "least_squares"
    for each in found["coefficients"]:
        assert each["lower"] is None
        assert (
            each["reason"]
            == "the rows are too few for this budget to show the tail of the residuals"
        )
    assert "Target: least squares" in out
    for rho in ("1e4", "1e5"):
        output = tmp_path / rho
        status, out, _ = asked(capsys, *words, str(output), "--rho", rho, "--target", "robust")
        found = json.loads(output.read_text())
        assert status == 0
        assert "Target: a robust fit" in out
        assert found["estimates"] == "robust"
        assert {each["reason"] for each in found["coefficients"]} == {None}
    status, _, err = asked(capsys, *words, "new", "--rho", "1", "--target", "median")
    assert status == 1
    assert "--target must be one of 'least_squares', 'robust'" in err


def test_fit_writes_a_table_for_statisticians_and_a_page(capsys, tmp_path):
    rng = np.random.default_rng(1)
    features = rng.uniform(-1, 1, (5000, 2))
    labels = features @ [1.0, 0.0] + 0.5 * rng.standard_normal(5000)
    table, bounds, output, page = (
        tmp_path / name for name in ("t.csv", "b.yaml", "fit.json", "fit.html")
    )
    rows = np.column_stack([features, labels])
    np.savetxt(table, rows, delimiter=",", header="a,b,y", comments="")
    bounds.write_text("a: [-1, 1]\nb: [-1, 1]\ny: [-3, 3]\n")
    words = ["--label", "y", "--bounds", str(bounds), "--output", str(output)]
    status, out, _ = asked(
        capsys, "fit", str(table), *words, "--report", str(page), "--epsilon", "8"
    )
    assert status == 0
    assert "P>|z|" in out
    first = json.loads(output.read_text())["coefficients"][0]
    assert first["name"] == "a"
    # Two standard deviations of 100 from 0, and noise that halves none of them.
    assert first["p_value"] < 1e-6 < first["privacy_error"] < first["standard_error"]
    whole = json.loads(output.read_text())["covariance"]
    total = np.add(whole["sampling"], whole["privacy"])
    assert np.sqrt(total[0, 0]) == pytest.approx(first["standard_error"])
    assert "share of variance" in page.read_text()


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


def test_plan_finds_a_budget(capsys):
    words = ["--target-risk", "0.01", "--methods", "adassp"]
    status, out, _ = asked(capsys, "plan", *PROBLEM, *words)
    assert status == 0
    assert out.startswith("rho = ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", *PROBLEM], "one of --rho, --epsilon"),
        (["plan", *PROBLEM, "--rho", "1", "--target-risk", "1"], "a budget and a target"),
        (["predict", *PROBLEM, "--rho", "-1", "--method", "adassp"], "rho must be"),
        (
            ["predict", *PROBLEM, "--rho", "1", "--method", "full_batch", "--set", "steps"],
            "NAME=VALUE",
        ),
        (
            ["predict", *PROBLEM, "--rho", "1", "--method", "full_batch", "--set", "clip=2"],
            "must name one of steps, step_size, clip_norm",
        ),
        (
            ["predict", *PROBLEM, "--rho", "1", "--method", "full_batch", "--set", "steps=2"],
            "got no step_size",
        ),
        (
            ["predict", *PROBLEM, "--signal", "2:1", "--rho", "1", "--method", "adassp"],
            "LOW:HIGH",
        ),
        (
            ["predict", *PROBLEM[:2], "--eigenvalues", "1,x", "--rho", "1", "--method", "adassp"],
            "--eigenvalues must be numbers",
        ),
        (["plan", *PROBLEM, "--rho", "1", "--label-noise-law", "cauchy"], "student_t3 or one"),
        (["plan", *PROBLEM, "--rho", "1", "--label-noise-law", "gaussian:x"], "LAW:MISFIT"),
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


@pytest.mark.parametrize("module", ["privreg", "reproduction"])
def test_a_shells_odd_date_and_back_end_stop_no_command(module, tmp_path):
    words = {
        "privreg": ["plan", *PROBLEM, "--rho", "1", "--methods", "adassp", "--figure", "plan.png"],
        "reproduction": ["schema", "--output", "schema.json"],
    }[module]
    odd = {"SOURCE_DATE_EPOCH": "yes", "MPLBACKEND": "module://of_a_notebook"}
    command = [sys.executable, "-m", module, *words]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **odd}, check=True)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_users_command_loads_nothing_of_the_reproduction():
    words = ["predict", *PROBLEM, "--rho", "1", "--method", "adassp"]
    script = (
        "import sys; from privreg.command_line.main import COMMANDS, main\n"
        f"assert main({words}) == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.splitlines()[-1].split())
    assert not loaded & {"snakemake", "xarray", "matplotlib", "pydantic", "netCDF4", "jinja2"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_is_for(command):
    parser = argparse.ArgumentParser()
    importlib.import_module(f"privreg.command_line.{command}").add_arguments(parser)
    assert len(parser._actions) > 2
    assert not [action.dest for action in parser._actions if not (action.help or "").strip()]
    # What is taken where nothing is given is in the help.
    for action in parser._actions:
        if type(action.default) in (str, float, int) and action.default != argparse.SUPPRESS:
            stated = re.search(r"default ([^),]+)", action.help)
            assert stated, action.dest
            assert type(action.default)(stated[1]) == action.default
