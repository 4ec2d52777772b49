"""What the site is made of follows from sources: names, parameters, coverage, docstrings."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
import yaml

import privreg
from privreg.data.sources import SOURCES
from reproduction.engine.registry import STUDIES, Recipe, known_papers, recipes
from reproduction.engine.site import (
    as_markdown,
    data_page,
    parameters_page,
    reference_pages,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def found():
    """Public names as the site finds them: paths of import by paths of definition."""
    path = ROOT / "docs/site/public.py"
    spec = importlib.util.spec_from_file_location("public", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.public_names()


def test_the_reference_documents_every_public_name_once(found):
    index, *pages = reference_pages(found).values()
    listed = re.findall(r"^::: ([\w.]+)", "\n".join(pages), re.MULTILINE)
    assert sorted(listed) == sorted(found.values())
    assert len(listed) == len(set(listed))
    exported = {
        f"privreg.{name}"
        for name in privreg._HOMES.keys() - {"__version__"}
        if not isinstance(getattr(privreg, name), ModuleType)
    }
    exported |= {f"privreg.data.{name}" for name in privreg.data.__all__}
    assert exported <= set(listed)
    # Each has a link, and the anchors of its import and of its definition.
    assert re.findall(r"\]\[([\w.]+)\]", index) == listed
    assert set(re.findall(r'<a id="([\w.]+)">', index)) == {*found, *listed}


def test_the_reference_documents_the_types_and_functions_that_public_names_mention(found):
    wanted = {
        "estimators.odometer.PrivacyStatement",
        "estimators.outlook.problem_in_bounds",
        # Two other modules have a class of this name.
        "estimators.tables.Table",
        "estimators.tables.TableQuality",
        "privacy.budget.to_approximate_tight",
        "theory.one_pass_dpgd.deterministic_equivalent.Solution",
    }
    assert {f"privreg.{name}" for name in wanted} <= set(found.values())
    # Neither private names, nor imports, nor functions without sections that no docstring mentions.
    for name in ("theory.one_pass_dpgd.volterra._checked", "planning.Problem", "planning.by_name"):
        assert f"privreg.{name}" not in found.values()


def test_the_site_has_each_page_of_the_reference(found):
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.findall(r"reference[\w/-]*\.md", site) == [*reference_pages(found)]


def test_the_reference_shows_every_method_of_the_estimator():
    """mkdocstrings shows members of a class that have a docstring and pass its filters."""
    site = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    (options,) = (each["mkdocstrings"] for each in site["plugins"] if "mkdocstrings" in each)
    options = options["handlers"]["python"]["options"]
    assert "members" not in options
    assert options["filters"] == ["!^_"]
    for of in (privreg.PrivateLinearRegression, privreg.Budget):
        kinds = (FunctionType, classmethod, property)
        members = {name: each for name, each in vars(of).items() if isinstance(each, kinds)}
        assert not [name for name, each in members.items() if name[0] != "_" and not each.__doc__]


def test_every_parameter_has_a_meaning_and_limits():
    page = parameters_page(ROOT / "config")
    for key in [*known_papers(), STUDIES]:
        for recipe in recipes(key):
            for field in Recipe(key, recipe).module.Parameters.model_fields:
                assert f"| `{field}` |" in page, f"{key}/{recipe}: {field}"
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| ", page, re.MULTILINE)
    assert not [name for name, meaning, accepted in rows if not (meaning and accepted)]


def test_docstrings_become_markdown():
    text = (
        "A sum.\n\n.. math:: a + b\n\nOf :math:`a`.\n\n.. math::\n    c\n    d\n\n"
        "Parameters\n----------\na : float\n    One.\n\nGuarantee\n---------\nPrivate."
    )
    assert as_markdown(text) == (
        "A sum.\n\n$$\na + b\n$$\n\nOf $a$.\n\n$$\nc\nd\n$$\n\n**Guarantee.** Private.\n\n"
        "Parameters\n----------\na : float\n    One."
    )


def test_each_file_of_a_data_set_has_its_digest():
    page = data_page((ROOT / "docs/workflow.md").read_text(encoding="utf-8"))
    assert "| MNIST, two digits and all ten | CC BY-SA 3.0 | 12 MB, " in page
    (file,) = SOURCES["california_housing"].files
    assert f"`california_housing/cal_housing.data` | `{file.sha256}`" in page
    assert page.count("\n## ") == len(SOURCES)
    assert "Used by `bombari2025/mnist_heat_maps`" in page
