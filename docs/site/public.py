"""Public names of the library: those that it exports, and those that these mention."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

# Modules whose names with sections in their docstrings are public; one line documents a spectrum.
HOMES = "algorithms.one_pass_dpgd|auditing|models|noise|planning|privacy|schedules|spectra|theory"
MENTION = re.compile(r"(?<![`\w])`([a-z_.]*\w+)`")


def public_names() -> dict[str, str]:
    """Path from which each public name is imported, by the path of its definition.

    Names that `privreg` or a package's `__all__` exports, those of `HOMES`, what the docstrings of
    these mention, and each class in a signature.
    """
    library = import_module("privreg")
    modules = [import_module(each.name) for each in walk_packages(library.__path__, "privreg.")]
    every = {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
        if callable(value)
    }
    named = {f"privreg.{name}": getattr(library, name) for name in dir(library) if name[0] != "_"}
    for module in modules:
        for name in vars(module).get("__all__", ()):
            named[f"{module.__name__}.{name}"] = getattr(module, name)
    for path, value in every.items():
        told = "\n    ---" in (value.__doc__ or "") or path.startswith("privreg.spectra")
        if told and re.match(rf"privreg\.({HOMES})\.", path):
            named[path] = value
    left = [(path, value) for path, value in named.items() if not isinstance(value, ModuleType)]
    found: dict[str, str] = {}
    for path, value in left:
        module, _, own = path.rpartition(".")
        home = f"{getattr(value, '__module__', module)}.{own}"
        if home in found:
            continue
        found[home] = path
        for name in _named_by(value, mentions=path in named):
            # A function is mentioned in its own module; of classes with one name, take the nearest.
            anywhere = re.search(r"[A-Z.]", name)
            same = [
                e
                for e in every
                if e.endswith(f".{name}" if anywhere else f"{home.rpartition('.')[0]}.{name}")
            ]
            same.sort(key=lambda each: len({*each.split(".")} & {*home.split(".")}))
            left += [(each, every[each]) for each in same[-1:]]
    return found


def _named_by(value: Any, *, mentions: bool) -> set[str]:
    """Classes in the signatures of a class or function and, if asked, names in its docstrings."""
    own = vars(value).items() if isinstance(value, type) else ()
    found: set[str] = set()
    for each in (value, *(each for name, each in own if name[0] != "_")):
        each = getattr(each, "fget", None) or getattr(each, "__func__", each)
        hints = getattr(each, "__annotations__", {}).items()
        found.update(*(re.findall(r"[A-Z]\w+", str(e)) for name, e in hints if name[0] != "_"))
        found.update(MENTION.findall(getattr(each, "__doc__", None) or "") if mentions else ())
    return found
