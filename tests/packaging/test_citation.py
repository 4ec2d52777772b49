"""CITATION.cff says what the code says: version, licence, and the papers that it names."""

import json
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
import yaml

import privreg
from reproduction import papers

ROOT = Path(__file__).parent.parent.parent
KEYS = [found.name for found in iter_modules(papers.__path__)]


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_it_is_of_this_version_and_licence(citation):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["version"] == privreg.__version__
    assert citation["license"] == project["license"]
    assert citation["message"]
    assert citation["authors"]
    assert citation["title"].startswith(f"{project['name']}:")
    assert citation["repository-code"] == project["urls"]["Repository"]
    assert f"git clone {project['urls']['Repository']}\n" in (ROOT / "README.md").read_text()


def test_codemeta_says_the_same(citation):
    said = json.loads((ROOT / "codemeta.json").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert said["description"] == project["description"]
    named = ("version", "license", "codeRepository", "datePublished")
    found = [said[name].removeprefix("https://spdx.org/licenses/") for name in named]
    asked = ("version", "license", "repository-code", "date-released")
    assert found == [citation[name] for name in asked]


def test_it_names_every_paper_as_the_code_does(citation):
    named = {reference["title"]: reference for reference in citation["references"]}
    assert len(named) == len(citation["references"]) == len(KEYS)
    bibliography = " ".join((ROOT / "paper/paper.bib").read_text().split())
    for key in KEYS:
        paper = import_module(f"reproduction.papers.{key}").CITATION
        reference = named[paper.title]
        entry = bibliography.partition(f"{{{key}, ")[2].partition("} }")[0]
        assert f" title = {{{paper.title}}}, year = {{{paper.year}}}" in entry
        assert reference["year"] == paper.year
        identifiers = [found["value"] for found in reference.get("identifiers", [])]
        assert identifiers == ([f"arXiv:{paper.arxiv}"] if paper.arxiv else [])
        for author in reference["authors"]:
            assert author.get("family-names", author.get("name")) in paper.authors
