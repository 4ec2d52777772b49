"""Lets the reference read the docstrings of numpydoc as Markdown."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

from griffe import Docstring, Extension, Object

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
from reproduction.engine.site import as_markdown

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCES = PROJECT["urls"]["Repository"] + "/blob/HEAD"
# Sections of the page of examples, by the names that they use.
EXAMPLES = {
    name: re.sub(r"\W+", "-", title.lower())
    for title, text in re.findall(
        r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", (ROOT / "docs/names.md").read_text("utf-8"), re.M | re.S
    )
    for name in re.findall(r"\w+", re.sub(r"from privreg import .*?\n>>>", "", text, flags=re.S))
}


class Docstrings(Extension):
    """Rewrites each docstring as it is read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite an object's docstring; link classes, functions and methods to their source."""
        if obj.is_attribute and obj.parent.is_class and obj.docstring is None:
            # Properties made by a call, which griffe takes for values.
            owner = getattr(import_module(obj.module.path), obj.parent.name, None)
            made = getattr(owner, "__dict__", {}).get(obj.name)
            if isinstance(made, property) and made.__doc__:
                obj.docstring, obj.value = Docstring(made.__doc__, parent=obj), None
                obj.labels = {"property"}
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
            if obj.is_class or obj.is_function:
                place = f"{obj.filepath.relative_to(ROOT).as_posix()}#L{obj.lineno}"
                first, *rest = obj.docstring.value.split("\n")
                link = f"[source]({SOURCES}/{place}){{ .source }}"
                if obj.parent.is_module and obj.name in EXAMPLES and ">>>" not in "".join(rest):
                    link = f"[example](../names.md#{EXAMPLES[obj.name]}){{ .source }} {link}"
                # A class lists its methods with the first lines of their docstrings.
                obj.docstring.value = "\n".join([first, link, *rest])
