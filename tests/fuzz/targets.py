"""What is fuzzed: every public function, constructor and method, found by walking the library.

A parameter's valid value comes from its name, since one word is one quantity throughout,
or from the table `exceptions`. A new function whose words are known is fuzzed
without another line; one with an unknown word fails `test_every_public_function_is_fuzzed`.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import baselines
import made_commands
import made_runs
from exceptions import EXCEPTIONS
from made import fresh
from made_results import RESULTS

import privreg

NOT_CALLED = {"command_line", "__main__", "version"}
# Files on disk, the checks themselves, and parts of an audit: they have tests of their own.
NOT_NUMBERS = {"data", "validation", "ranges", "immutable", "audit_statistics"}
KINDS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Target:
    """A public callable, a valid value for each of its parameters, and where it is documented."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    positional: tuple[str, ...]
    docstring: str

    def call(self, **changes: Any) -> Any:
        values = {name: fresh(value) for name, value in self.arguments.items()}
        values.update(changes)
        first = [values.pop(name) for name in self.positional]
        return self.function(*first, **values)


def targets() -> tuple[list[Target], list[str]]:
    """All targets, and the names of public callables for which a baseline is missing."""
    found, missing = [], []
    for name, function, docstring in _callables():
        if name in RESULTS | baselines.INTERNALS or name.split(".")[-1].startswith("require"):
            continue
        try:
            arguments, positional = _arguments(name, function)
        except LookupError as error:
            missing.append(f"{name}: {error}")
            continue
        found.append(Target(name, function, arguments, positional, docstring))
    return found, missing


def _callables() -> Iterator[tuple[str, Callable[..., Any], str]]:
    for module in pkgutil.walk_packages(privreg.__path__, "privreg."):
        if module.name.split(".")[1] in NOT_CALLED | NOT_NUMBERS:
            continue
        loaded = importlib.import_module(module.name)
        for name, value in sorted(vars(loaded).items()):
            if name.startswith("_") or getattr(value, "__module__", None) != loaded.__name__:
                continue
            label = f"{module.name.removeprefix('privreg.').split('.')[-1]}.{name}"
            if inspect.isfunction(value):
                yield label, value, inspect.getdoc(value) or ""
            elif inspect.isclass(value) and not _is_bare(value):
                yield from _class(label, value)
    yield from made_commands.callables()


def _class(label: str, value: type) -> Iterator[tuple[str, Callable[..., Any], str]]:
    docstring = inspect.getdoc(value) or ""
    if not inspect.isabstract(value):
        yield label, made_runs.IN_PLACE.get(label, value), docstring
    for name, member in sorted(vars(value).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            of = type(made_runs.INSTANCES[label]()) if inspect.isabstract(value) else value
            bound = getattr(of, name)
            yield f"{label}.{name}", bound, f"{inspect.getdoc(bound) or ''}\n\n{docstring}"
        elif inspect.isfunction(member) and label in baselines.INSTANCES:
            make = baselines.INSTANCES.get(f"{label}.{name}", baselines.INSTANCES[label])
            bound = getattr(make(), name)
            yield f"{label}.{name}", bound, f"{inspect.getdoc(bound) or ''}\n\n{docstring}"
        elif inspect.isfunction(member):
            # Left without an object, so that it is reported as missing.
            yield f"{label}.{name}", member, ""


def _is_bare(value: type) -> bool:
    """Whether a class only names things: a protocol, an enumeration, an error, a named tuple."""
    return (
        getattr(value, "_is_protocol", False)
        or issubclass(value, (enum.Enum, Exception))
        or (issubclass(value, tuple) and hasattr(value, "_fields"))
    )


def _arguments(name: str, function: Callable[..., Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    own = (EXCEPTIONS | made_commands.EXCEPTIONS).get(name, {})
    arguments: dict[str, Any] = {}
    positional = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in KINDS or parameter.name.startswith("_"):
            continue
        if parameter.name in own:
            value = own[parameter.name]
        elif parameter.name in baselines.WORDS:
            value = baselines.WORDS[parameter.name]
        elif parameter.default is not inspect.Parameter.empty:
            value = parameter.default
        else:
            raise LookupError(f"no valid value for {parameter.name}")
        arguments[parameter.name] = value
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(parameter.name)
    return arguments, tuple(positional)
