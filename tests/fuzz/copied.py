"""Every public class of the library, an object of it, and the ways in which objects are copied."""

from __future__ import annotations

import copy
import dataclasses
import enum
import importlib
import inspect
import io
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import baselines
import joblib
import numpy as np
from made import fresh
from targets import NOT_CALLED, targets

import privreg

CONSTRUCTORS = {target.name: target for target in targets()[0] if inspect.isclass(target.function)}


def through_joblib(value: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(value, file)
    file.seek(0)
    return joblib.load(file)


def replaced(value: Any) -> Any:
    return dataclasses.replace(value) if dataclasses.is_dataclass(value) else copy.copy(value)


ROUTES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle 2": lambda value: pickle.loads(pickle.dumps(value, 2)),
    "pickle 4": lambda value: pickle.loads(pickle.dumps(value, 4)),
    "pickle 5": lambda value: pickle.loads(pickle.dumps(value, 5)),
    "joblib": through_joblib,
    "replace": replaced,
}
# Of these a copy is refused, or Python itself cannot make one.
REFUSALS = (TypeError, pickle.PicklingError, AttributeError)


def classes() -> Iterator[tuple[str, type]]:
    """Public classes that can be made, found by walking the library."""
    for module in pkgutil.walk_packages(privreg.__path__, "privreg."):
        if module.name.split(".")[1] in NOT_CALLED | {"immutable"}:
            continue
        home = importlib.import_module(module.name)
        for name, value in sorted(vars(home).items()):
            own = inspect.isclass(value) and value.__module__ == home.__name__
            if own and not name.startswith("_") and not _is_bare(value):
                yield f"{module.name.split('.')[-1]}.{name}", value


def instance(label: str) -> Any:
    """An object of a class as a caller would have it; LookupError where none is known."""
    if label in baselines.INSTANCES:
        return baselines.INSTANCES[label]()
    if label in CONSTRUCTORS:
        target = CONSTRUCTORS[label]
        given = {name: fresh(value) for name, value in target.arguments.items()}
        return target.function(**given)
    raise LookupError(f"no object of {label} is known")


def checks(kind: type) -> bool:
    """Whether a dataclass looks at what it is given, so that what it holds is what was checked."""
    if not dataclasses.is_dataclass(kind):
        return False
    written = kind.__init__.__code__.co_filename != "<string>"
    return written or hasattr(kind, "__post_init__")


def parts(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Arrays, numbers and texts that an object of the library holds, with where they are."""
    if isinstance(value, (np.ndarray, np.generic, int, float, str, bytes, type(None))):
        yield path, value
    elif depth > 6:
        return
    elif isinstance(value, (tuple, list)):
        for at, part in enumerate(value):
            yield from parts(part, f"{path}[{at}]", depth + 1)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from parts(part, f"{path}[{key!r}]", depth + 1)
    elif type(value).__module__.startswith("privreg"):
        for name, part in getattr(value, "__dict__", {}).items():
            yield from parts(part, f"{path}.{name}", depth + 1)


def arrays(value: Any) -> dict[str, np.ndarray]:
    return {path: part for path, part in parts(value) if isinstance(part, np.ndarray)}


def is_closed(array: np.ndarray) -> bool:
    """Whether neither the array nor a view nor an owner of its memory lets itself be opened."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        for each in (owner, owner.view(), owner[...]):
            before = each.flags.writeable
            try:
                each.flags.writeable = True
            except ValueError:
                continue
            each.flags.writeable = before
            return False
        owner = owner.base
    return True


def same(first: Any, second: Any) -> bool:
    """Whether two objects hold the same arrays, numbers and texts in the same places."""
    left, right = dict(parts(first)), dict(parts(second))
    return left.keys() == right.keys() and all(
        np.array_equal(value, right[path], equal_nan=np.asarray(value).dtype.kind == "f")
        for path, value in left.items()
    )


def _is_bare(value: type) -> bool:
    return (
        getattr(value, "_is_protocol", False)
        or inspect.isabstract(value)
        or issubclass(value, (enum.Enum, Exception))
        or (issubclass(value, tuple) and hasattr(value, "_fields"))
    )
