"""What a constructor has checked stays what it was: nobody can write to the arrays it holds."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
from made import fresh
from targets import Target, targets

CONSTRUCTORS = [
    target
    for target in targets()[0]
    if inspect.isclass(target.function) and dataclasses.is_dataclass(target.function)
]


def held(instance: object) -> dict[str, np.ndarray]:
    values = {part.name: getattr(instance, part.name) for part in dataclasses.fields(instance)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("target", CONSTRUCTORS, ids=lambda target: target.name)
def test_what_was_checked_stays(target: Target):
    given = {name: fresh(value) for name, value in target.arguments.items()}
    instance = target.function(**given)
    before = {name: array.copy() for name, array in held(instance).items()}
    for value in given.values():
        if isinstance(value, np.ndarray):
            value[...] = np.nan if value.dtype.kind == "f" else -1
    for name, array in held(instance).items():
        np.testing.assert_array_equal(array, before[name])
        assert not array.flags.writeable, f"{target.name} holds a writable {name}"
