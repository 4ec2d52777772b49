"""Public names of the library: those that it exports, and those that their docstrings mention."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

# Modules whose names are public if their docstrings have sections; in `spectra`, all are.
WHOLE = "algorithms.one_pass_dpgd|auditing|models|noise|planning|privacy|schedules|spectra|theory"
# Modules without public names, except for those that are exported.
INNER = "checks|command_line|data.(fetch|sources)|estimators.(columns|formulas|linear_regression)"


def public_names() -> dict[str, str]:
    """Path from which each public name is imported, by the path of its definition.

    Public are names that `privreg` or a package's `__all__` exports, those of `WHOLE`, names that
    the docstrings of these mention, and each class in a signature.
    """
    library = import_module("privreg")
    modules = [import_module(each.name) for each in walk_packages(library.__path__, "privreg.")]
    named = [f"privreg.{name}" for name in dir(library) if name[0] != "_"]
    every = []
    for module in modules:
        home = module.__name__
        named += [f"{home}.{name}" for name in getattr(module, "__all__", ())]
        for name, value in vars(module).items():
            if callable(value) and getattr(value, "__module__", "") == home and name[0] != "_":
                every += [] if re.match(rf"privreg\.({INNER})\b", home) else [f"{home}.{name}"]
                if "\n    ---" in (value.__doc__ or "") or home == "privreg.spectra":
                    named += re.findall(rf"^privreg\.(?:{WHOLE})\..*", f"{home}.{name}")
    found: dict[str, str] = {}
    left = list(named)
    for path in left:
        module, _, own = path.rpartition(".")
        value = getattr(import_module(module), own)
        home = getattr(value, "__module__", module)
        if isinstance(value, ModuleType) or f"{home}.{own}" in found:
            continue
        found[f"{home}.{own}"] = path
        members = vars(value).items() if isinstance(value, type) else ()
        told = ""
        for each in (value, *(each for name, each in members if name[0] != "_")):
            each = getattr(each, "fget", None) or getattr(each, "__func__", each)
            told += re.sub(r"([A-Z]\w+)", r" `\1` ", f"{getattr(each, '__annotations__', '')}")
            told += (each.__doc__ or "") if path in named else ""
        for word in set(re.findall(r"(?<![`\w])`([a-z_.]*\w+)`", told)):
            # A function's short name refers to its own module.
            end = f".{word}" if re.search("[A-Z.]", word) else f"{home}.{word}"
            left += [each for each in every if each.endswith(end)]
    return found
