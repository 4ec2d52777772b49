"""The pages of docs/: links lead somewhere, names exist, what can be set is explained."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from reproduction.engine.code import SOURCE
from reproduction.engine.config import Config, Experiment
from reproduction.engine.registry import STUDIES, Recipe, known_papers, recipes

ROOT = Path(__file__).parents[3]
OWN = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "config/README.md")
PAGES = [*map(ROOT.joinpath, OWN), *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_links_lead_to_files(page):
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_links_of_the_readme_are_whole_and_lead_to_files_and_pages_of_the_site():
    # The package's metadata hold it without the files beside it.
    text = (ROOT / "README.md").read_text()
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    made = (ROOT / "docs/site/hooks.py").read_text()
    links = re.findall(r"(?:\]\(|src=\"|srcset=\")([^)\s#\"]+)", text)
    for link in links:
        assert link.startswith("https://"), link
        if link.startswith(urls["Documentation"]):
            name = link.removeprefix(urls["Documentation"]).replace(".html", ".md")
            known = {f"results/{paper}.md" for paper in known_papers()} | {"wrong.md", "gallery.md"}
            assert name in known or (ROOT / "docs" / name).exists() or f'"{name}"' in made
        if found := re.search(r"privreg/privreg/(?:blob/)?main/(.*)", link):
            assert (ROOT / found[1]).exists(), link


def test_notation_names_every_paper_and_only_names_that_are_used():
    page = (ROOT / "docs/notation.md").read_text()
    for paper in known_papers():
        assert paper in page
    source = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    first_cells = re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE)
    named = {name for cell in first_cells for name in re.findall(r"`([a-z_.]+)`", cell)}
    assert len(named) > 30
    for name in named:
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", source), name


def test_parameters_with_a_paper_s_letter_have_a_name_of_ours():
    # One letter says what it means in one paper only.
    for paper in [*known_papers(), STUDIES]:
        for recipe in recipes(paper):
            for field in Recipe(paper, recipe).module.Parameters.model_fields:
                assert len(field) > 2, f"{paper}.{recipe}.{field}"


def test_every_key_of_the_configuration_is_explained():
    page = (ROOT / "config/README.md").read_text()
    for key in {*Config.model_fields, *Experiment.model_fields}:
        assert re.search(rf"`[^`]*\b{key}\b", page), key


def test_make_has_every_command_that_a_page_names():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"`make ([a-z]+)`|^    make ([a-z]+)\b", page.read_text(), re.MULTILINE)
        assert {first or second for first, second in named} <= targets, page
