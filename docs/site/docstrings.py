"""Lets the reference read the docstrings of numpydoc as Markdown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from griffe import Extension, Object

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
from reproduction.engine.site import as_markdown


class Docstrings(Extension):
    """Rewrites each docstring as it is read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
