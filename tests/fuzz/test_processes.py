"""The same as whole runs of Snakemake: status, one line, no job, in seconds."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from inputs import ROOT, SEED

pytestmark = [pytest.mark.workflow, pytest.mark.long]
# Of what Snakemake takes to say its version, a second of a core that nobody shares.
MOST_STARTS = 3.0
LEFT_OUT = (".*", "results", "tests", "docs", "*.egg-info", "build", "benchmarks")
SHARED = Path("config/config.yaml")
PAPER = Path("config/papers/brown2024.yaml")
TOPIC = Path("config/claims/brown2024")
COVERAGE = "brown2024={experiments: {coverage: {%s}}}"


def edited(path: Path, old: str, new: str) -> Callable[[Path], None]:
    """A change of one place in a file; of a folder, in its first file that has it."""

    def edit(folder: Path) -> None:
        files = sorted((folder / path).glob("*.yaml")) if (folder / path).is_dir() else [path]
        for file in (folder / each for each in files):
            text = file.read_text(encoding="utf-8")
            if old in text:
                file.write_text(text.replace(old, new, 1), encoding="utf-8")
                return
        raise AssertionError(f"{old!r} is in no file of {path}")

    return edit


def replaced(path: Path, content: bytes) -> Callable[[Path], None]:
    def replace(folder: Path) -> None:
        file = folder / path
        first = sorted(file.glob("*.yaml"))[0] if file.is_dir() else file
        first.write_bytes(content)

    return replace


TARGETS = {
    "an unknown figure": ("results/figures/brown2024/fig55.pdf", "brown2024/fig5.pdf"),
    "an unknown table": ("results/tables/anon2024/tabel1.csv", "table1.csv"),
    "an unknown data set": ("results/data/mnits.nc", "results/data/mnist.nc"),
    "an unknown claim": ("results/claims/brown2024/no-such-entry.json", "neither a rule nor"),
    "an unknown paper": ("brwn2024", "did you mean brown2024"),
    "an unknown experiment": ("results/theory/brown2024/coverge.nc", "coverage.nc"),
    "a shard too many": ("results/simulation/brown2024/coverage/7.nc", "the shards 0 to 1"),
    "a stage that is not there": ("results/intervals/brown2024/accounting.nc", "neither a rule"),
    "a folder": ("results/figures", "neither a rule"),
    "another scale": ("results/quick/figures/brown2024/fig5.pdf", "results/figures/brown2024"),
    "a path with a quote": ("results/figures/brown2024/fi'g5.pdf", "neither a rule"),
}
SETTINGS = {
    "a Rényi order of -1": (COVERAGE.replace("coverage", "accounting")
                            % "parameters: {orders: [-1.0]}", "orders.0 must be at least 1.001"),
    "a billion shards": (COVERAGE % "shards: 1000000000", "shards must be at most 10000"),
    "true for a number": (COVERAGE % "parameters: {step_size: true}", "step_size must be a number"),
    "an infinity": (COVERAGE % "parameters: {step_size: .inf}", "must be a finite number"),
    "a misspelt parameter": (COVERAGE % "parameters: {step_sise: 1.0}", "did you mean 'step_size'"),
    "an unknown experiment": ("brown2024={experiments: {coverge: {trials: 3}}}", "'coverge'"),
    "a negative seed": ("seed=-1", "config.seed must be at least 0"),
    "an unknown paper": ("papers=[brown2042]", "did you mean 'brown2024'"),
    "no mapping": ("brown2024=3", "brown2024 must be a mapping"),
    "a mirror that is none": ("data={mnist: {mirrors: [nowhere]}}", "must be an address"),
}  # fmt: skip
FILES = {
    "a tab": (replaced(SHARED, b"seed: 1\n\tpapers: 2\n"), "config.yaml, line 2"),
    "nothing": (replaced(SHARED, b""), "got nothing"),
    "a list": (replaced(PAPER, b"- 1\n"), "got a list"),
    "Latin 1": (replaced(PAPER, b"brown2024: caf\xe9\n"), "must be UTF-8"),
    "a key twice": (edited(PAPER, "  figures:", "  experiments: {}\n\n  figures:"), "twice"),
    "a misspelt argument": (
        edited(PAPER, "artifacts: {simulation: simulation/fixed_ratio}",
               "artifacts: {simulatoin: simulation/fixed_ratio}"), "did you mean 'simulation'"),
    "an artifact of another kind": (
        edited(PAPER, "artifacts: {simulation: simulation/fixed_ratio}",
               "artifacts: {simulation: simulation/coverage}"), "as its recipe makes it"),
    "a ledger with a list": (replaced(TOPIC, b"- 1\n"), "got a list"),
    "a ledger with a bracket": (replaced(TOPIC, b"topic: [\n"), "must be YAML"),
    "a misspelt variable": (edited(TOPIC, "variable: ", "variable: x"), "variable must be one of"),
    "an unknown kind of check": (edited(TOPIC, "kind: close", "kind: closer"), "did you mean"),
    "a misspelt key of a ledger": (edited(TOPIC, "statements:", "statments:"), "did you mean"),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "checkout"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return folder


@pytest.fixture
def checkout(whole, tmp_path):
    """A copy of the configuration beside the code of the whole one."""
    for path in whole.iterdir():
        if path.name == "config":
            shutil.copytree(path, tmp_path / "config")
        else:
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


@pytest.mark.parametrize(("target", "words"), TARGETS.values(), ids=TARGETS)
def test_a_target_that_nothing_makes(checkout, target, words):
    refused(checkout, words, target)


@pytest.mark.parametrize(("setting", "words"), SETTINGS.values(), ids=SETTINGS)
def test_a_wrong_setting_on_the_command_line(checkout, setting, words):
    refused(checkout, words, "all", "--config", setting)


@pytest.mark.parametrize(("change", "words"), FILES.values(), ids=FILES)
def test_a_wrong_file(checkout, change, words):
    change(checkout)
    refused(checkout, words, "all")


def refused(folder: Path, words: str, *arguments: str) -> None:
    variables = {**os.environ, "PRIVREG_DATA": "", "PYTHONHASHSEED": str(SEED % 2**32)}
    variables.pop("PYTHONPATH", None)
    # A core that others use takes up to twice the time for the same work: that of a start, too.
    start = run(folder, variables, ("--version",))[2]
    said, status, seconds = run(folder, variables, arguments)
    assert status != 0, said
    errors = re.findall(r"^error: .*$", said, re.MULTILINE)
    assert len(errors) == 1, said
    assert said.rstrip().endswith(errors[0]), said
    assert words in errors[0], said
    for sign in ("Traceback", "Job stats", "localrule", "jobid", "Error"):
        assert sign not in said, said
    assert not (folder / "results").exists() or not any((folder / "results").rglob("*.nc")), said
    assert seconds < MOST_STARTS * start, f"{seconds:.1f} s, a start takes {start:.1f} s"


def run(
    folder: Path, variables: dict[str, str], arguments: tuple[str, ...]
) -> tuple[str, int, float]:
    """What Snakemake says, its status, and the seconds of the processor that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments, "--cores", "1"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ran.stdout + ran.stderr, ran.returncode, seconds
