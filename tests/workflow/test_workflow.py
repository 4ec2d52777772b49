"""The workflow on a small configuration: what runs, what reruns, what is said when it cannot."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PARTS = ("Snakefile", "workflow", "profiles", "config", "src", "environment.yml")
FIGURE = "results/figures/bombari2025/fig1.pdf"
pytestmark = pytest.mark.workflow


def snakemake(folder, *arguments, check=True, **environment):
    """Run Snakemake in a copy of the checkout and return what it printed."""
    variables = {"PYTHONDONTWRITEBYTECODE": "1", **os.environ, **environment}
    variables.pop("PYTHONPATH", None)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    ran = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    output = ran.stdout + ran.stderr
    if check:
        assert ran.returncode == 0, output
    else:
        assert ran.returncode != 0, output
    return output


def copy(folder):
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(
                source, folder / part, ignore=shutil.ignore_patterns("*.pyc", "*.egg-info")
            )
        else:
            shutil.copy(source, folder / part)
    return folder


QUICK = ("--configfile", "config/quick.yaml")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A checkout in which one figure, one claim and what they need are built."""
    folder = copy(tmp_path_factory.mktemp("checkout"))
    snakemake(folder, FIGURE, CLAIM, *QUICK)
    return folder


CLAIM = "results/claims/bombari2025/ode-tracks-one_pass_dpgd.json"


def jobs(output):
    """Rules that a dry run would run."""
    lines = output.splitlines()
    if any("Nothing to be done" in line for line in lines):
        return set()
    start = next(i for i, line in enumerate(lines) if line.startswith("Job stats"))
    rows = [line.split() for line in lines[start + 3 :]]
    names = set()
    for row in rows:
        if not row or row[0] == "total":
            break
        names.add("claims" if row[0].startswith("claims_") else row[0])
    return names


def would_run(folder):
    return jobs(snakemake(folder, "--dry-run", FIGURE, CLAIM, *QUICK))


def edit(path):
    path.write_text(path.read_text() + "\n# An edit.\n")


def test_a_second_run_does_nothing(built):
    assert would_run(built) == set()


def test_touching_any_file_reruns_nothing(built):
    for path in built.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()
    assert would_run(built) == set()


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("papers/bombari2025/figures.py", {"figure"}),
        ("plotting.py", {"figure"}),
        ("theory/dpgd_ode.py", {"theory", "gather", "figure", "claims"}),
        ("algorithms/dpgd_kernels.py", {"simulate", "gather", "figure", "claims"}),
        ("claims/checks.py", {"claims"}),
        ("theory/clipping.py", set()),
    ],
)
def test_an_edit_reruns_what_depends_on_it(built, file, expected):
    path = built / "src" / "privreg" / file
    before = path.read_text()
    try:
        edit(path)
        assert would_run(built) == expected
    finally:
        path.write_text(before)


def test_a_moved_copy_reruns_nothing(built, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(built, moved)
    assert would_run(moved) == set()


def test_artifacts_do_not_depend_on_cores_or_shards(built, tmp_path):
    folder = copy(tmp_path)
    overrides = folder / "config/quick.yaml"
    overrides.write_text(overrides.read_text().replace("shards: 2", "shards: 4", 1))
    snakemake(folder, FIGURE, CLAIM, *QUICK, "--cores", "1")
    for path in (
        FIGURE,
        FIGURE.replace(".pdf", ".png"),
        CLAIM,
        "results/theory/bombari2025/trajectories.nc",
        "results/simulation/bombari2025/trajectories.nc",
    ):
        assert (folder / path).read_bytes() == (built / path).read_bytes(), path


def test_a_misspelt_key_stops_before_any_job(built):
    output = snakemake(
        built,
        FIGURE,
        "--config",
        "bombari2025={experiments: {trajectory: {trials: 3}}}",
        check=False,
    )
    assert "bombari2025.experiments" in output
    assert "did you mean 'trajectories'" in output
    assert "Job stats" not in output


def test_an_unknown_paper_stops_before_any_job(built):
    output = snakemake(built, "all", "--config", "papers=[brown2042]", check=False)
    assert "config.papers: unknown name 'brown2042'" in output
    assert "Job stats" not in output


def test_a_corrupt_data_file_stops_before_any_job(built, tmp_path):
    file = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    file.parent.mkdir()
    file.write_bytes(b"not an image")
    output = snakemake(built, "all", *QUICK, check=False, PRIVREG_DATA=str(tmp_path))
    assert "train-images-idx3-ubyte.gz" in output
    assert "Job stats" not in output


def test_without_a_network_bundled_data_stand_in_and_say_so(built, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    dead = "['http://127.0.0.1:9']"
    claim = "results/claims/bombari2025/housing-large-clip-is-worse-at-800.json"
    output = snakemake(
        built,
        claim,
        *QUICK,
        "--config",
        f"data={{mnist: {{mirrors: {dead}}}, california_housing: {{mirrors: {dead}}}}}",
        PRIVREG_DATA=str(empty),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )
    said = [line for line in output.splitlines() if line.startswith("california_housing:")]
    assert len(said) == 1
    assert '"outcome": "untested"' in (built / claim).read_text()


def test_a_refuted_claim_is_written_all_the_same(built):
    (ledger,) = (built / "config/claims/bombari2025").glob("01-*.yaml")
    before = ledger.read_text()
    try:
        ledger.write_text(before.replace("expected: 0.192240, absolute", "expected: 0.3, absolute"))
        snakemake(built, "results/claims/bombari2025/ode-final-constant-isotropic.json", *QUICK)
        text = (built / "results/claims/bombari2025/ode-final-constant-isotropic.json").read_text()
        assert '"outcome": "failed"' in text
    finally:
        ledger.write_text(before)
