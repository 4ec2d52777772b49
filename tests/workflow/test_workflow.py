"""The workflow: what a run makes and says, what reruns, what is said when it cannot run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .checkout import ROOT, small_checkout, snakemake

LEDGER = {"judge", "ledger", "page", "gate"}
RULES = {"data", "theory", "simulation", "simulate", "summarise", "intervals", "figure"} | LEDGER
RESULTS = "results/quick"
FIGURE = f"{RESULTS}/figures/bombari2025/fig9.png"
CLAIM = f"{RESULTS}/claims/bombari2025/housing-large-clip-is-worse-at-800.json"
pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A small checkout."""
    return small_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def first_run(source, tmp_path_factory):
    """Another folder after a whole run there, and what the run printed."""
    folder = tmp_path_factory.mktemp("elsewhere")
    directory = ("--directory", str(folder))
    return folder, snakemake(ROOT, "all", *directory, source=source)


@pytest.fixture
def built(first_run):
    return first_run[0]


def jobs(output):
    """Rules in the job table of a run."""
    table = re.search(r"^Job stats:\n.*\n-.*\n((?:\w+ +\d+\n)+)", output, re.MULTILINE)
    assert table or "Nothing to be done" in output, output
    return set(re.findall(r"^\w+", table[1], re.MULTILINE)) - {"all", "total"} if table else set()


def would_run(folder, *arguments, **options):
    return jobs(snakemake(folder, "all", "--dry-run", *arguments, **options))


# A whole run, from data to gate


def test_one_run_goes_from_data_to_gate_in_any_folder(source, first_run):
    folder, output = first_run
    assert jobs(output) == RULES
    for path in (FIGURE, f"{RESULTS}/index.html", f"{RESULTS}/gate.txt"):
        assert (folder / path).stat().st_size > 0, path
    assert not (source / "results").exists()
    # It ends with what it found.
    said = {line.partition(":")[0]: line for line in output.splitlines()}
    assert re.search(r"^bombari2025 +\d+ ", output, re.MULTILINE)
    assert "studies " not in output
    assert said["Stand-ins, not the real tables"].endswith(": california_housing")
    assert said["Page to open"].endswith(f"{RESULTS}/index.html")
    assert re.search(r"^Took [\d.]+ minutes$", output, re.MULTILINE)


@pytest.mark.long
def test_the_studies_have_a_gate_and_a_page_of_their_own(source, built):
    output = snakemake(built, "studies", source=source)
    assert re.search(r"^studies +\d+ ", output, re.MULTILINE)
    assert "bombari2025 " not in output
    assert f"Page to open: {RESULTS}/studies/index.html" in output
    assert (built / RESULTS / "studies/gate.txt").stat().st_size > 0
    assert "studies" not in (built / RESULTS / "claims.csv").read_text()
    assert would_run(built, source=source) == set()


def test_one_claim_is_written_on_demand_and_a_stand_in_decides_nothing(source, built):
    snakemake(built, CLAIM, source=source)
    assert json.loads((built / CLAIM).read_text())["verdict"] == "untested"


def test_the_report_holds_figures_and_page(source, built):
    snakemake(built, "all", "--report", "report.html", source=source)
    report = (built / "report.html").read_text()
    for part in ("fig6.png", "index.html", "bombari2025"):
        assert part in report, part


# From elsewhere

MODULE = """
configfile: "{source}/config/quick.yaml"
module privreg:
    snakefile: "{source}/Snakefile"
    config: config
use rule * from privreg {names}
"""


@pytest.mark.parametrize("way", ["Snakefile", "workflow/Snakefile", "module", "module as"])
def test_a_figure_is_made_from_elsewhere(source, built, tmp_path, way):
    """And of another place of the same files nothing else is made again."""
    (built / FIGURE).unlink()
    arguments = [str(source / way), "--configfile", str(source / "config/quick.yaml")]
    if "module" in way:
        names = "as privreg_*" if way == "module as" else ""
        arguments = [str(tmp_path / "Snakefile")]
        (tmp_path / "Snakefile").write_text(MODULE.format(source=source, names=names))
    output = snakemake(built, FIGURE, "--snakefile", *arguments)
    assert jobs(output) == {"privreg_figure" if way == "module as" else "figure"}
    assert (built / FIGURE).stat().st_size > 5000


def test_no_path_leaves_a_modules_prefix(source, built, tmp_path):
    """The checkout lies below the working directory, and its ledgers in no prefix."""
    (tmp_path / "checkout").symlink_to(source)
    shutil.copytree(built / RESULTS, tmp_path / "sub" / RESULTS)
    module = MODULE.format(source="checkout", names="")
    prefixed = module.replace("    config:", "    prefix: 'sub'\n    config:")
    (tmp_path / "Snakefile").write_text(prefixed)
    page = tmp_path / "sub" / RESULTS / "index.html"
    page.unlink()
    assert jobs(snakemake(tmp_path, f"sub/{RESULTS}/index.html")) == {"page"}
    assert re.search(r"\d+ jobs, .* in sequence", page.read_text())
    # A real table, as its origin says, gives way to no stand-in.
    table = tmp_path / "sub" / RESULTS / "data/california_housing.nc"
    table.unlink()
    about = {"looked_for_in": "PRIVREG_DATA", "stand_in": False}
    table.with_suffix(".json").write_text(json.dumps(about))
    snakemake(tmp_path, str(table.relative_to(tmp_path)), check=False)
    assert not table.exists()


# What reruns


def test_what_is_moved_and_touched_reruns_nothing(source, built, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(built, moved)
    for path in (*moved.rglob("*"), *source.rglob("*")):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()
    assert would_run(moved, source=source) == set()


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("src/reproduction/engine/plotting.py", {"figure", "page"}),
        (
            "src/privreg/theory/one_pass_dpgd/deterministic_equivalent.py",
            {"theory", "figure"} | LEDGER,
        ),
        ("src/privreg/theory/noisy_sgd/diffusion.py", set()),
        ("config/claims/brown2024/10-section-3-figures-5-6-10.yaml", LEDGER),
    ],
)
def test_an_edit_reruns_what_depends_on_it(source, built, file, expected):
    before = (source / file).read_text()
    try:
        (source / file).write_text(before + "\n# An edit.\n")
        assert would_run(built, source=source) == expected
    finally:
        (source / file).write_text(before)


SIMULATED = {"simulate", "simulation", "summarise", "intervals", "figure"} | LEDGER
EXPERIMENTS = "bombari2025 experiments"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("seed", 7, SIMULATED),
        (f"{EXPERIMENTS} clipping_factors parameters points", 50, {"theory", "figure"} | LEDGER),
        (f"{EXPERIMENTS} housing_heat_maps quick shards", 1, {"simulation", "figure"} | LEDGER),
        ("bombari2025 figures fig6 caption", "Another.", {"figure", "page"}),
    ],
)
def test_a_key_reruns_what_depends_on_it(source, built, tmp_path, key, value, expected):
    for each in reversed(key.split()):
        value = {each: value}
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(yaml.safe_dump({"scale": "quick", **value}))
    snakefile = str(source / "Snakefile")
    found = would_run(built, "--snakefile", snakefile, "--configfile", str(overlay))
    assert found == expected


# What is said when it cannot run


@pytest.mark.parametrize(
    ("overlay", "said"),
    [
        ({"scael": "quick"}, "a key of config must be .*; did you mean 'scale'\\?"),
        (
            {"brown2024": {"experiments": {"coverag": {"trials": 3}}}},
            ".* did you mean 'coverage'\\?",
        ),
        ({"seed": -1}, "config.seed must be at least 0, got -1"),
    ],
)
def test_a_wrong_configuration_is_one_line_before_any_job(tmp_path, overlay, said):
    file = tmp_path / "overlay.json"
    file.write_text(json.dumps(overlay))
    arguments = ("--snakefile", str(ROOT / "Snakefile"), "--configfile", str(file))
    output = snakemake(tmp_path, "all", *arguments, check=False)
    assert re.fullmatch(f"error: {said}", output.splitlines()[-1])
    assert "Job stats" not in output
    assert "Traceback" not in output


def test_a_failed_job_leaves_a_traceback_in_its_log_and_no_artifact(source, built):
    recipe = source / "src/reproduction/papers/bombari2025/experiments/clipping_factors.py"
    before, call = recipe.read_text(), "def factors("
    assert call in before
    recipe.write_text(before.replace(call, "def factors(*none): raise KeyError\n\n\ndef unused("))
    artifact = "theory/bombari2025/clipping_factors"
    kept = (built / RESULTS / f"{artifact}.nc").read_bytes()
    try:
        output = snakemake(built, f"{RESULTS}/{artifact}.nc", source=source, check=False)
        assert "KeyError" in output
        assert "Traceback" in (built / RESULTS / f"logs/{artifact}.log").read_text()
        assert not (built / RESULTS / f"{artifact}.nc").exists()
    finally:
        recipe.write_text(before)
    snakemake(built, f"{RESULTS}/{artifact}.nc", source=source)
    assert (built / RESULTS / f"{artifact}.nc").read_bytes() == kept


def test_an_environment_without_the_packages_is_named_in_one_line():
    """As the catalogue's `snakemake --lint`, in an environment of Snakemake alone."""
    code = "import sys; sys.modules['numpy'] = None; "
    code += "from snakemake.cli import main; main(['--lint'])"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith("error: numpy is missing in this environment")
    assert "Traceback" not in ran.stderr


# The whole configuration, without running it


def test_a_dry_run_of_everything_holds(tmp_path):
    output = snakemake(
        *(tmp_path, "all", "studies", "falsify", "peers", "--dry-run", "--quiet", "reason"),
        *("--snakefile", str(ROOT / "Snakefile")),
    )
    assert jobs(output) >= RULES | {"table", "falsifier", "caught", "peers"}


def test_every_rule_has_a_description():
    listed = snakemake(ROOT, "--list-rules")
    assert len(re.findall(r"^\w+ \(.+\.\)$", listed, re.MULTILINE)) > len(RULES)
    assert re.findall(r"^\w+$", listed, re.MULTILINE) == []


def test_only_public_interfaces_of_snakemake_are_used():
    rules = [ROOT / "Snakefile", *filter(Path.is_file, (ROOT / "workflow").rglob("*"))]
    for path in (*rules, *(ROOT / "src").rglob("*.py")):
        code = re.sub(r"#.*|\"[^\"\n]*\"", "", path.read_text())
        imported = re.findall(r"^\s*(?:from|import) (snakemake\b[\w.]*)", code, re.MULTILINE)
        assert {*imported} <= {"snakemake.utils"}, path
        if path in rules:
            used = {*re.findall(r"\bworkflow\.(\w+)", code)}
            assert used <= {"basedir", "current_basedir", "source_path"}, path
