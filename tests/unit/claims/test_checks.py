"""Each kind of check at, inside and outside its bounds, with and without noise."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from reproduction.engine.checks import Check, assess, largest_z, refuses, region

INF = math.inf


def check(kind: str, **fields: Any) -> Any:
    return TypeAdapter(Check).validate_python({"kind": kind, **fields})


BETWEEN = check("between", low=-1.0, high=2.0)
RISING = check("monotone", direction="increasing")
FALLING = check("monotone", direction="decreasing")
RANKED = check("ordered", dimension="method", labels=["harmonic", "root", "constant"])
LISTED = check("close", expected=[1.0, 2.0], absolute=0.5)
EVERY = check("all", of={"kind": "below", "high": 1.0})


@pytest.mark.parametrize(
    ("rule", "observed", "passed", "margin"),
    [
        (check("close", expected=2.0, absolute=0.5), 2.5, True, 0.0),
        (check("close", expected=2.0, absolute=0.5), 1.75, True, 0.25),
        (check("close", expected=2.0, absolute=0.5), 3.0, False, -0.5),
        (check("close", expected=-2.0, relative=0.25), -2.25, True, 0.25),
        (check("close", expected=INF, absolute=1.0), INF, True, 0.0),
        (check("close", expected=INF, relative=1.0), 5.0, False, -INF),
        (LISTED, [1.5, 2.25], True, 0.0),
        (LISTED, [1.0, 3.0], False, -0.5),
        (BETWEEN, -1.0, True, 0.0),
        (BETWEEN, 3.0, False, -1.0),
        (BETWEEN, -INF, False, -INF),
        (check("below", high=1.0), 0.5, True, 0.5),
        (check("below", high=1.0), 1.5, False, -0.5),
        (check("above", low=1.0), INF, True, INF),
        (check("above", low=1.0), 0.5, False, -0.5),
        (RISING, [1.0, 1.0, 2.0], True, 0.0),
        (RISING, [1.0, 3.0, 2.0], False, -1.0),
        (RISING, [1.0, INF, INF], True, 0.0),
        (FALLING, [3.0, 3.5], False, -0.5),
        (check("monotone", direction="decreasing", slack=0.5), [3.0, 3.5, 3.0], True, 0.0),
        (check("monotone", direction="increasing", strict=True), [1.0, 1.0], False, 0.0),
        (RANKED, [0.5, 1.0, 3.0], True, 0.5),
        (RANKED, [1.0, 0.5, 3.0], False, -0.5),
        (EVERY, [[0.0, 1.0], [0.5, -1.0]], True, 0.0),
        (EVERY, [[0.0, 1.5], [0.5, -1.0]], False, -0.5),
    ],
)
def test_without_noise_the_sign_of_the_margin_decides(
    rule: Check, observed: Any, passed: bool, margin: float
) -> None:
    outcome = assess(rule, observed)
    assert outcome.passed is passed
    assert outcome.decision == ("passed" if passed else "refuted")
    assert outcome.margin == margin


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("rule", "at_bound", "inward"),
    [
        (check("close", expected=0.0, absolute=2.0), 2.0, -1.0),
        (check("between", low=-8.0, high=8.0), -8.0, 1.0),
        (check("below", high=1.0), 1.0, -1.0),
        (check("above", low=1.0), 1.0, 1.0),
    ],
)
def test_two_standard_errors_decide(
    rule: Check, at_bound: float, inward: float, sign: float
) -> None:
    error = 0.25
    decided = "passed" if sign > 0 else "refuted"
    exactly = assess(rule, at_bound + sign * inward * 2 * error, error)
    assert exactly.decision == decided
    assert exactly.standard_error == error
    assert assess(rule, at_bound + sign * inward * 1.9 * error, error).decision == "undecided"


def test_a_tolerance_in_standard_errors_has_the_noise_in_it() -> None:
    rule = check("close", expected=1.0, sigmas=4.0, absolute=0.25)
    assert assess(rule, 1.5, 0.125).decision == "passed"
    assert assess(rule, 1.5, 0.12).decision == "refuted"
    assert assess(rule, 1.25, 0.01).decision == "passed"


def test_a_step_of_a_curve_has_the_noise_of_both_its_ends() -> None:
    assert assess(RISING, [0.0, 10.0], [3.0, 4.0]).decision == "passed"
    assert assess(RISING, [0.0, 9.9], [3.0, 4.0]).decision == "undecided"
    assert assess(RISING, [0.0, -10.0], [3.0, 4.0]).standard_error == 5.0


def test_a_family_is_refuted_at_the_level_of_a_single_comparison() -> None:
    elements = 100
    sigmas = NormalDist().inv_cdf(1 - NormalDist().cdf(-2) / elements)
    observed = np.zeros(elements)
    errors = np.full(elements, 0.1)
    observed[7] = 1 + 0.99 * sigmas * 0.1
    assert assess(EVERY, observed, errors).decision == "undecided"
    observed[7] = 1 + 1.01 * sigmas * 0.1
    outcome = assess(EVERY, observed, errors)
    assert (outcome.decision, outcome.index) == ("refuted", 7)


def test_noise_alone_seldom_refutes_a_family_that_holds() -> None:
    rng = np.random.Generator(np.random.SFC64(7))
    draws, elements = 4000, 50
    observed = 1.0 + 0.1 * rng.standard_normal((draws, elements))  # each exactly on its bound
    errors = np.full(elements, 0.1)
    refuted = sum(assess(EVERY, row, errors).decision == "refuted" for row in observed)
    level = 1 - (1 - NormalDist().cdf(-2) / elements) ** elements
    assert abs(refuted / draws - level) < 4 * math.sqrt(level * (1 - level) / draws)
    alone = check("below", high=1.0)
    separately = sum(
        any(assess(alone, float(value), 0.1).decision == "refuted" for value in row)
        for row in observed[:200]
    )
    assert separately / 200 > 0.5  # what an uncorrected family would do


def test_an_unknown_error_decides_nothing_and_an_infinite_value_has_none() -> None:
    rule = check("above", low=0.0)
    assert assess(rule, 5.0, math.nan).decision == "undecided"
    assert assess(rule, 5.0, INF).decision == "undecided"
    assert assess(rule, INF, math.nan).decision == "passed"
    assert assess(RISING, [0.0, INF, INF], [0.0, math.nan, math.nan]).decision == "passed"


def test_one_number_against_all_stands_for_any_element() -> None:
    errors = np.array([0.01, 1.0])
    assert refuses(EVERY, 2.0, [0.01, 0.01])
    assert not refuses(EVERY, 2.0, errors)  # the second element could not tell
    assert refuses(EVERY, [2.0, 0.0], errors)
    assert not refuses(EVERY, [0.0, 2.0], errors)


@pytest.mark.parametrize(
    ("rule", "observed", "message"),
    [
        (BETWEEN, [1.0, 2.0], r"'between' takes one number, found an array of shape \(2,\)"),
        (LISTED, 1.0, "'close' takes a list of 2, found one number"),
        (RANKED, [1.0, 2.0], "a list of 3, one per label"),
        (BETWEEN, math.nan, "found NaN"),
    ],
)
def test_an_observation_of_the_wrong_shape_is_an_error(
    rule: Check, observed: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        assess(rule, observed)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "close", "expected": 1.0}, "one of absolute"),
        ({"kind": "close", "expected": 1.0, "absolute": -1.0}, "greater than or equal to 0"),
        ({"kind": "between", "low": 2.0, "high": 1.0}, "at most high = 1"),
        ({"kind": "below", "hihg": 1.0}, "did you mean 'high'"),
        ({"kind": "monotone", "direction": "up"}, "'increasing' or 'decreasing'"),
        ({"kind": "all", "of": {"kind": "monotone", "direction": "increasing"}}, "'below'"),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        check(**fields)


@pytest.mark.parametrize(
    "rule",
    [
        BETWEEN,
        check("above", low=-1.0),
        check("below", high=2.0),
        check("close", expected=0.5, absolute=0.25, sigmas=3.0),
    ],
)
def test_the_region_is_where_the_check_passes(rule: Any) -> None:
    for value in np.linspace(-3.0, 3.0, 61):
        low, high = region(rule, value, 0.1)
        assert assess(rule, value, 0.1).passed == (low <= value <= high)


def test_z_counts_standard_errors_where_the_check_does() -> None:
    rule = check("all", of={"kind": "close", "expected": 1.0, "sigmas": 4.0})
    assert largest_z(rule, [1.1, 0.7, 1.2], [0.1, 0.1, 0.0]) == pytest.approx(-3.0)
    assert largest_z(rule, [1.1], [0.0]) is None
    assert largest_z(check("close", expected=1.0, absolute=1.0), 1.5, 0.1) is None
