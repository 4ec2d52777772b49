"""Functions of the theories that take a schedule, spectrum or kernel each have a second route.

A test module below this folder declares its property tests in a dictionary at its end,

    SECOND_ROUTES = {public_function: test_that_draws_its_arguments, ...}

where the test draws arguments at random, by hypothesis or with a parametrised `seed`, and compares
the function with an independent computation.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import privreg.theory

HERE = Path(__file__).parent
# Folders of the theories that are covered.
FOLDERS: tuple[str, ...] = (
    "correlated_noise",
    "full_batch_dpgd",
    "huber_descent",
    "noisy_sgd",
    "one_pass_dpgd",
    "shaped_noise",
)
# Names of parameters that hold a schedule, a spectrum or a kernel, or an object made of one.
TAKEN = {
    *("schedule", "schedule_of", "step_sizes", "rate"),
    *("spectrum", "eigenvalues", "decay", "curvature", "second_moment", "model", "problem", "law"),
    *("kernels", "decoder", "coefficients", "correlations", "noise", "power", "shrinkage"),
}


def public_objects() -> Iterator[tuple[str, Any]]:
    """Public functions, and public classes that compute, with the module that defines them."""
    for folder in FOLDERS:
        package = importlib.import_module(f"privreg.theory.{folder}")
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                    continue
                if inspect.isfunction(value) or (inspect.isclass(value) and _computes(value)):
                    yield f"{folder}.{found.name.rpartition('.')[2]}.{name}", value


def _computes(kind: type) -> bool:
    """Whether a class has public methods or properties of its own: else it holds results."""
    members = (property, staticmethod, classmethod, FunctionType)
    return any(
        isinstance(value, members) for name, value in vars(kind).items() if not name.startswith("_")
    )


def takes_structure(value: Any) -> bool:
    return bool(TAKEN & set(inspect.signature(value).parameters))


NEEDED = [
    pytest.param(value, id=name) for name, value in public_objects() if takes_structure(value)
]


@cache
def declared() -> dict[Any, Callable[..., None]]:
    """All declarations of the test modules below this folder."""
    found: dict[Any, Callable[..., None]] = {}
    for path in sorted(HERE.rglob("test_*.py")):
        if path != Path(__file__) and "SECOND_ROUTES" in path.read_text():
            found |= _load(path).SECOND_ROUTES
    return found


def _load(path: Path) -> ModuleType:
    name = "second_routes_" + "_".join(path.relative_to(HERE).with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look up their annotations.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def draws(test: Callable[..., None]) -> bool:
    """Whether a test draws its arguments: by hypothesis, or from a parametrised seed."""
    if hasattr(test, "hypothesis"):
        return True
    return any(
        mark.name == "parametrize" and "seed" in str(mark.args[0])
        for mark in getattr(test, "pytestmark", [])
    )


@pytest.mark.parametrize("value", NEEDED)
def test_every_function_of_a_schedule_spectrum_or_kernel_has_a_second_route(value: Any) -> None:
    assert value in declared(), "no test module declares a second route in SECOND_ROUTES"
    test = declared()[value]
    assert test.__name__.startswith("test_"), test
    assert draws(test), f"{test.__name__} draws no arguments"


def test_folders_exist() -> None:
    packages = {found.name for found in pkgutil.iter_modules(privreg.theory.__path__)}
    assert set(FOLDERS) <= packages
