"""The workflow: what a run makes and says, what reruns, what is said when it cannot run."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import yaml

from .checkout import QUICK, small_checkout, snakemake, whole_checkout

LEDGER = {"judge", "ledger", "page", "gate"}
# At the quick scale the trials of an experiment are one shard.
QUICK_RULES = {"data", "theory", "simulation", "intervals", "figure"} | LEDGER
RULES = QUICK_RULES | {"simulate", "summarise"}
QUICK_RESULTS = "results/quick"
FIGURE = f"{QUICK_RESULTS}/figures/bombari2025/fig6.pdf"
CLAIM = f"{QUICK_RESULTS}/claims/bombari2025/housing-large-clip-is-worse-at-800.json"
ARTIFACTS = [
    f"{QUICK_RESULTS}/{path}"
    for path in (
        "theory/bombari2025/clipping_factors.nc",
        "simulation/bombari2025/housing_heat_maps.nc",
        "figures/bombari2025/fig6.pdf",
        "figures/bombari2025/fig6.png",
    )
]
pytestmark = pytest.mark.workflow


@pytest.fixture(scope="session")
def first_run(tmp_path_factory):
    """A small checkout after a whole run at the quick scale, and what the run printed."""
    folder = small_checkout(tmp_path_factory.mktemp("checkout"))
    return folder, snakemake(folder, "all", *QUICK)


@pytest.fixture(scope="session")
def built(first_run):
    return first_run[0]


def jobs(output):
    """Rules in the job table of a dry run."""
    if "Nothing to be done" in output:
        return set()
    lines = output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Job stats"))
    names = set()
    for line in lines[start + 3 :]:
        if not line or line.startswith("total"):
            break
        names.add(line.split()[0])
    return names


def would_run(folder, *arguments):
    return jobs(snakemake(folder, "all", "--dry-run", *QUICK, *arguments)) - {"all"}


# A whole run, from data to gate


def test_one_run_goes_from_data_to_gate(first_run):
    folder, output = first_run
    assert jobs(output) - {"all"} == QUICK_RULES
    for path in (*ARTIFACTS, f"{QUICK_RESULTS}/index.html", f"{QUICK_RESULTS}/gate.txt"):
        assert (folder / path).stat().st_size > 0, path
    assert [path.name for path in (folder / "results").iterdir()] == ["quick"]
    # It ends with what it found.
    said = {line.partition(":")[0]: line for line in output.splitlines()}
    assert "Gate of the papers" in said
    assert "Gate of the studies" not in said
    assert said["Stand-ins, not the real tables"].endswith("bombari2025/fig6")
    assert said["Page to open"].endswith(f"{QUICK_RESULTS}/index.html")
    assert re.search(r"^Took \d+ (s|min)", output, re.MULTILINE)


@pytest.mark.long
def test_the_studies_have_a_gate_and_a_page_of_their_own(built):
    output = snakemake(built, "studies", *QUICK)
    assert set(re.findall(r"\[ *\d+/\d+\] (?:Simulation|Figure|Claims): (\w+)", output)) == {
        "studies"
    }
    said = {line.partition(":")[0]: line for line in output.splitlines()}
    assert said["Gate of the studies"].count("cross-check")
    assert "Gate of the papers" not in said
    assert said["Page to open"].endswith(f"{QUICK_RESULTS}/studies/index.html")
    assert (built / QUICK_RESULTS / "studies/gate.txt").stat().st_size > 0
    assert "studies" not in (built / QUICK_RESULTS / "claims.csv").read_text()
    assert would_run(built) == set()


def test_one_claim_is_written_on_demand_and_a_stand_in_decides_nothing(built):
    snakemake(built, CLAIM, *QUICK)
    assert json.loads((built / CLAIM).read_text())["outcome"] == "untested"


# What reruns


def test_neither_a_second_run_nor_a_touched_or_moved_file_reruns_anything(built, tmp_path):
    assert would_run(built) == set()
    moved = tmp_path / "moved"
    shutil.copytree(built, moved)
    assert would_run(moved) == set()
    for path in built.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()
    assert would_run(built) == set()


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("reproduction/engine/plotting.py", {"figure", "page"}),
        ("privreg/theory/one_pass_dpgd/clipping.py", {"theory", "figure"} | LEDGER),
        (
            "privreg/algorithms/one_pass_dpgd_kernels.py",
            {"simulation", "figure"} | LEDGER,
        ),
        ("reproduction/engine/checks.py", LEDGER),
        ("privreg/theory/noisy_sgd/volterra.py", set()),
    ],
)
def test_an_edit_reruns_what_depends_on_it(built, file, expected):
    path = built / "src" / file
    before = path.read_text()
    try:
        path.write_text(before + "\n# An edit.\n")
        assert would_run(built) == expected
    finally:
        path.write_text(before)


BOMBARI = "papers/bombari2025.yaml: bombari2025"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("config.yaml: seed", 7, {"simulation", "intervals", "figure"} | LEDGER),
        (
            f"{BOMBARI} experiments clipping_factors parameters points",
            50,
            {"theory", "figure"} | LEDGER,
        ),
        (
            f"{BOMBARI} experiments housing_heat_maps quick shards",
            2,
            {"simulate", "summarise", "figure"} | LEDGER,
        ),
        (f"{BOMBARI} figures fig6 caption", "Another.", {"figure", "page"}),
    ],
)
def test_a_key_reruns_what_depends_on_it(built, key, value, expected):
    name, keys = key.split(": ")
    path = built / "config" / name
    before = path.read_text()
    block = whole = yaml.safe_load(before)
    *parents, last = keys.split()
    for parent in parents:
        block = block[parent]
    assert block.get(last) != value
    block[last] = value
    try:
        path.write_text(yaml.safe_dump(whole, sort_keys=False))
        assert would_run(built) == expected
    finally:
        path.write_text(before)


# What is said when it cannot run


def test_a_misspelt_key_stops_before_any_job(built):
    block = "bombari2025={experiments: {houses: {trials: 3}}}"
    output = snakemake(built, "all", "--config", block, check=False)
    assert "error: bombari2025.experiments must be" in output
    assert "Job stats" not in output
    assert "Traceback" not in output
    output = snakemake(built, "all", "--config", "papers=[brown2042]", check=False)
    assert "did you mean 'brown2024'" in output
    assert "Job stats" not in output


def test_a_corrupt_data_file_stops_before_any_job(built, tmp_path):
    file = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    file.parent.mkdir()
    file.write_bytes(b"not an image")
    output = snakemake(built, "all", *QUICK, check=False, PRIVREG_DATA=str(tmp_path))
    assert "train-images-idx3-ubyte.gz" in output
    assert "Job stats" not in output


def test_a_failed_job_leaves_a_traceback_in_its_log_and_no_artifact(built, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(built, folder)
    recipe = folder / "src/reproduction/papers/bombari2025/experiments/clipping_factors.py"
    text, call = recipe.read_text(), "def factors("
    assert call in text
    recipe.write_text(text.replace(call, "def factors(*none): raise KeyError\n\n\ndef unused("))
    artifact = folder / QUICK_RESULTS / "theory/bombari2025/clipping_factors.nc"
    output = snakemake(folder, str(artifact.relative_to(folder)), *QUICK, check=False)
    assert "KeyError" in output
    log = folder / QUICK_RESULTS / "logs/theory/bombari2025/clipping_factors.log"
    assert "Traceback" in log.read_text()
    assert not artifact.exists()


# The whole configuration, without running it


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return whole_checkout(tmp_path_factory.mktemp("whole"))


def test_a_dry_run_of_everything_holds(whole):
    assert jobs(snakemake(whole, "all", "--dry-run", "--quiet", "reason")) >= RULES


def test_the_linter_is_content(whole):
    assert "in a good condition" in snakemake(whole, "--lint")


def test_every_rule_for_people_and_jobs_has_a_description(whole):
    listed = snakemake(whole, "--list-rules")
    for rule in RULES | {"all", "studies", "claims", "claim", "table", "peers"}:
        assert re.search(rf"^{rule} \(.+\.\)$", listed, re.MULTILINE), rule
    assert re.findall(r"^\w+$", listed, re.MULTILINE) == []


def test_the_report_holds_figures_and_page(built):
    snakemake(built, "all", "--report", "report.html", *QUICK)
    report = (built / "report.html").read_text()
    for part in ("fig6.png", "index.html", "bombari2025"):
        assert part in report, part
