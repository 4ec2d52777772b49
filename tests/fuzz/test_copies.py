"""Copies, pickles and rebuilt objects of every public class keep what was checked.

Classes and objects are found by walking the library, so that a new class is held to this without
another line.
"""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
from copied import (
    REFUSALS,
    ROUTES,
    arrays,
    checks,
    classes,
    instance,
    is_closed,
    same,
)
from made import fresh
from outcomes import found_numbers
from targets import Target, targets

from privreg.algorithms.split_budget import SplitBudget
from privreg.data.tables import Table
from privreg.noise.streams import NoiseStream

# A real table is read from files, and is made by hand here.
TABLE = Table("t", np.ones((3, 2)), np.ones(3), ("a", "b"), np.zeros(3, dtype=bool), "nobody")
# What was computed, and enters no account: callers may change it.
RESULTS = (".iterates", ".iterate", ".times", ".non_private")
# What a cache hands out is closed; what a caller makes of it need not be.
CACHED = {"rows.Rows"}
ONCE = (NoiseStream, SplitBudget)


def known() -> tuple[dict[str, Any], list[tuple[str, type]]]:
    found, missing = {"tables.Table": TABLE}, []
    for label, kind in classes():
        if label not in found:
            try:
                found[label] = instance(label)
            except LookupError:
                missing.append((label, kind))
    return found, missing


OBJECTS, MISSING = known()
HOLDING = {label: value for label, value in OBJECTS.items() if arrays(value)}


def copied(value: Any, route: str) -> Any:
    try:
        return ROUTES[route](value)
    except REFUSALS as error:
        pytest.skip(f"refused: {error}")
    except ValueError as error:
        if "InitVar" in str(error):
            pytest.skip(f"refused: {error}")
        raise


def test_every_class_that_checks_has_an_object():
    assert not [label for label, kind in MISSING if checks(kind)]
    assert len(HOLDING) > 40


@pytest.mark.parametrize("label", sorted(HOLDING))
def test_what_was_checked_lies_in_memory_that_nobody_opens(label):
    value = HOLDING[label]
    if checks(type(value)):
        # Private arrays are never handed out but in views, which cannot be opened.
        open_ones = [
            path
            for path, array in arrays(value).items()
            if (array.flags.writeable if "._" in path else not is_closed(array))
        ]
        assert not [path for path in open_ones if not path.endswith(RESULTS)]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("label", sorted(HOLDING))
def test_a_copy_holds_the_same_as_closed(label, route):
    value = HOLDING[label]
    if isinstance(value, ONCE):
        with pytest.raises(TypeError, match="must be neither copied nor pickled"):
            ROUTES[route](value)
        return
    other = copied(value, route)
    assert same(value, other)
    if label in CACHED:
        return
    closed = {path for path, array in arrays(value).items() if is_closed(array)}
    assert {path for path, array in arrays(other).items() if is_closed(array)} >= closed


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("label", sorted(HOLDING))
def test_derived_fields_of_a_copy_are_those_of_its_constructor(label, route):
    value = HOLDING[label]
    if not (checks(type(value)) and all(part.init for part in _init_variables(value))):
        return
    other = copied(value, route)
    given = {
        part.name: copy.deepcopy(getattr(other, part.name))
        for part in dataclasses.fields(other)
        if part.init
    }
    assert same(other, type(value)(**given))


def _init_variables(value: Any) -> list[dataclasses.Field]:
    """Those of a class that computes from what it does not keep; `replace` refuses them."""
    missing = [
        part
        for part in type(value).__dataclass_fields__.values()
        if part._field_type is dataclasses._FIELD_INITVAR
    ]
    return [dataclasses.field(init=False)] if missing else []


TAKING_OBJECTS = [
    target
    for target in targets()[0]
    if any(
        arrays(fresh(value)) and not isinstance(fresh(value), np.ndarray)
        for value in target.arguments.values()
    )
]


@cache
def usual(name: str) -> list[np.ndarray] | None:
    """What a valid call answers; None where secret noise makes each answer another."""
    (target,) = (each for each in TAKING_OBJECTS if each.name == name)
    first, second = (list(found_numbers(target.call())) for _ in range(2))
    return None if any(map(differ, first, second)) else first


def differ(first: np.ndarray, second: np.ndarray) -> bool:
    return not np.array_equal(first, second, equal_nan=True)


@pytest.mark.parametrize("route", ["deepcopy", "pickle 4", "replace"])
@pytest.mark.parametrize("target", TAKING_OBJECTS, ids=lambda target: target.name)
def test_a_copy_that_was_written_to_is_answered_as_the_original(target: Target, route: str):
    """Whatever the caller could write to in copies of what a function takes, nothing changes."""
    before = usual(target.name)
    if before is None:
        return
    changes = {}
    for name, given in target.arguments.items():
        value = fresh(given)
        if not arrays(value) or isinstance(value, (np.ndarray, list, tuple, dict)):
            continue
        if isinstance(value, ONCE) or not checks(type(value)):
            continue
        other = copied(value, route)
        for path, array in arrays(other).items():
            if not path.endswith(RESULTS) and "._" not in path:
                overwrite(array)
        changes[name] = other
    after = list(found_numbers(target.call(**changes)))
    assert len(after) == len(before)
    assert not any(map(differ, before, after))


def overwrite(array: np.ndarray) -> None:
    """As callers do: through the array, through views, through the owner of its memory."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        for each in (owner, owner[...]):
            try:
                each.flags.writeable = True
                each[...] = 7
            except ValueError:
                continue
        owner = owner.base


def test_the_caller_cannot_open_what_was_given_read_only():
    """The owner of a read-only array may allow writing again."""
    for label, target in {each.name: each for each in targets()[0]}.items():
        if not (isinstance(target.function, type) and checks(target.function)):
            continue
        owners = {}
        given = {name: fresh(value) for name, value in target.arguments.items()}
        for name, value in given.items():
            if isinstance(value, np.ndarray):
                owners[name] = value
                value.flags.writeable = False
        value = target.function(**given)
        before = {path: array.copy() for path, array in arrays(value).items()}
        for owner in owners.values():
            owner.flags.writeable = True
            owner[...] = 7
        for path, array in arrays(value).items():
            np.testing.assert_array_equal(array, before[path], err_msg=f"{label}{path}")
