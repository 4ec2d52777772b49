"""What the site is made of follows from sources: names, parameters, coverage, docstrings."""

from __future__ import annotations

import re
from pathlib import Path
from types import FunctionType, ModuleType

import yaml

import privreg
from privreg.data.sources import SOURCES
from reproduction.engine.registry import Recipe, known_keys, recipes
from reproduction.engine.site import (
    as_markdown,
    data_page,
    parameters_page,
    reference_page,
)

ROOT = Path(__file__).parents[3]


def test_the_reference_documents_every_public_name_once():
    page = reference_page((ROOT / "docs/names.md").read_text(encoding="utf-8"))
    listed = re.findall(r"^::: ([\w.]+)", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    modules = {
        name: getattr(privreg, name)
        for name in privreg._HOMES
        if isinstance(getattr(privreg, name), ModuleType)
    }
    wanted = {
        f"privreg.{name}" for name in privreg._HOMES.keys() - modules.keys() - {"__version__"}
    }
    wanted |= {each.__name__ for each in modules.values() if not hasattr(each, "__path__")}
    assert wanted == set(listed)
    members = re.findall(r"members: \[(.*)\]", page)
    assert len(members) == page.count("options:")
    names = ", ".join(members).split(", ")
    assert {"audit_mechanism", "solve", "step_shape"} <= set(names)
    # Neither what is private nor what a module imports.
    assert not [name for name in names if name[0] == "_" or name in {"Budget", "require_array"}]


def test_the_reference_shows_every_method_of_the_estimator():
    """mkdocstrings shows members of a class that have a docstring and pass its filters."""
    page = reference_page((ROOT / "docs/names.md").read_text(encoding="utf-8"))
    assert "::: privreg.PrivateLinearRegression\n\n" in page
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
    for key in known_keys():
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
