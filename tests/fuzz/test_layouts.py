"""Numbers answer alike in whatever container they come, and impostors of numbers are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layouts import impostors, same
from made import fresh
from outcomes import anything_goes, found_numbers
from targets import Target, targets

FUZZED, _ = targets()


# A mechanism that answers yes or no is audited as it is.
ON_PURPOSE = {
    ("auditing.audit", parameter, "truth values") for parameter in ("outputs", "neighbour_outputs")
}
# Whatever can be ordered names a person, and a command takes text.
NAMES = {("records.Persons", "groups")}
# scikit-learn makes numbers of these, and its own checks ask that an estimator takes them.
SCIKIT_LEARN = {"objects", "text", "truth values", "times", "structured", "records", "complex"}

ESTIMATORS = ("linear_regression.PrivateLinearRegression", "fitted_regression.FittedRegression")


def answer(target: Target, changes: dict[str, Any]) -> list[np.ndarray] | str:
    """Numbers of the answer, or the words of the refusal."""
    try:
        return list(found_numbers(target.call(**changes)))
    except (TypeError, ValueError) as error:
        return str(error)


def alike(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return len(first) == len(second) and all(
        one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=1e-12)
        for one, other in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("target", FUZZED, ids=lambda target: target.name)
def test_containers_of_the_same_numbers_answer_alike(target: Target):
    plain = answer(target, {})
    # Secure bits and streams that go on do not repeat themselves.
    repeats = alike(answer(target, {}), plain)
    for parameter, valid in target.arguments.items():
        for name, value in same(fresh(valid)):
            where = f"{parameter} as {name}"
            found = answer(target, {parameter: value})
            if isinstance(found, str):
                assert " must " in found, where
            else:
                assert alike(found, plain) or not repeats, where


@pytest.mark.parametrize("target", FUZZED, ids=lambda target: target.name)
def test_impostors_are_refused(target: Target):
    for parameter, valid in target.arguments.items():
        if anything_goes(target, parameter) or target.name.startswith("command_line."):
            continue
        for name, value in impostors(fresh(valid)):
            if (target.name, parameter, name) in ON_PURPOSE:
                continue
            if (target.name, parameter) in NAMES and not name.startswith("masked"):
                continue
            if target.name.startswith(ESTIMATORS) and name in SCIKIT_LEARN:
                continue
            found = answer(target, {parameter: value})
            assert isinstance(found, str), f"{parameter} was taken as {name}"
            assert " must " in found, f"{parameter} as {name}"
