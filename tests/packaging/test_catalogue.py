"""The Snakemake workflow catalogue's requirements, point by point.

Source: README of snakemake/snakemake-workflow-catalog, "All workflows" and `Standardized usage`.
"""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / ".snakemake-workflow-catalog.yml"


@pytest.fixture(scope="module")
def usage():
    return yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))["usage"]


@pytest.mark.parametrize("word", ["snakemake", "workflow"])
def test_the_readme_has_the_words_that_the_search_looks_for(word):
    assert word in (ROOT / "README.md").read_text(encoding="utf-8").lower()


def test_the_first_screen_has_the_commands_and_their_times():
    screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:24])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target, minutes in (("", "10 to 25"), (" test", "3 to 7"), (" quick", "2 to 6")):
        assert re.search(rf"^make{target} +# .*: {minutes} minutes", screen, re.MULTILINE)
        assert re.search(rf"^{target.strip() or 'all'}: ", makefile, re.MULTILINE)


def test_the_workflow_its_rules_and_its_configuration_lie_where_they_are_looked_for():
    assert (ROOT / "workflow/Snakefile").is_file()
    assert list((ROOT / "workflow/rules").glob("*.smk"))
    assert len((ROOT / "config/README.md").read_text(encoding="utf-8").split()) > 100


def test_usage_is_declared_with_the_catalogues_keys_alone(usage):
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    deployment = usage["software-stack-deployment"]
    assert set(deployment) <= {"conda", "apptainer", "apptainer+conda"}
    assert all(isinstance(value, bool) for value in deployment.values())
    assert any(deployment.values())


def test_what_usage_promises_is_there(usage):
    rules = "".join(path.read_text() for path in sorted((ROOT / "workflow").rglob("*.smk")))
    assert ("conda:" in rules) == usage["software-stack-deployment"]["conda"]
    assert ("container:" in rules) == usage["software-stack-deployment"]["apptainer"]
    assert ("report(" in rules) == usage["report"]


def test_no_large_file_is_cloned():
    for path in (*ROOT.glob("*"), *ROOT.glob("docs/**/*"), *ROOT.glob("config/**/*")):
        assert not path.is_file() or path.stat().st_size < 1_000_000, path
