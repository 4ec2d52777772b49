"""Releases add their budgets up under one relation; diagnostics cannot be released."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privreg.privacy.budget import Budget
from privreg.privacy.release import Diagnostic, Release, compose

SECRET = Diagnostic(np.array([0.123456]), "share of clipped rows")


class Pair(NamedTuple):
    first: object
    second: object


@dataclass
class Result:
    iterates: object
    clipped: object


def test_budgets_add_up_and_assumptions_are_kept_once():
    first = Release(1.0, Budget.zcdp(0.1), ("bounds are a priori",))
    second = Release(2.0, Budget.zcdp(0.2), ("bounds are a priori", "the seed is secret"))
    third = Release(3.0, Budget.zcdp(0.3))
    both = compose(first, second, third)
    assert both.value == (1.0, 2.0, 3.0)
    assert both.budget.rho == pytest.approx(0.6)
    assert both.assumptions == ("bounds are a priori", "the seed is secret")


def test_one_relation_only():
    budgets = Budget.zcdp(0.1), Budget.zcdp(0.1, neighbours="add-remove")
    with pytest.raises(ValueError, match="neighbours must be 'replace-one'"):
        compose(*(Release(1.0, budget) for budget in budgets))


def test_post_processing_costs_nothing():
    release = Release(np.array([-1.0, 2.0]), Budget.zcdp(0.1), ("clipped",))
    after = release.then(np.abs)
    assert_array_equal(after.value, [1.0, 2.0])
    assert after.budget == release.budget
    assert after.assumptions == release.assumptions


@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        [1.0, (2.0, SECRET)],
        {"clipped": SECRET},
        Pair(1.0, SECRET),
        Result(np.zeros(2), SECRET),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_diagnostic_is_never_released(value):
    with pytest.raises(ValueError, match="value must be private throughout"):
        Release(value, Budget.zcdp(0.1))
    with pytest.raises(ValueError, match="value must be private throughout"):
        Release(1.0, Budget.zcdp(0.1)).then(lambda _: value)


def test_a_diagnostic_neither_shows_nor_converts_itself():
    assert "NOT PRIVATE" in repr(SECRET)
    assert "0.12" not in f"{SECRET!r}{SECRET}"
    for attempt in (np.asarray, np.sum, lambda value: np.zeros(1) + value):
        with pytest.raises(TypeError, match="no privacy protection"):
            attempt(SECRET)
    with pytest.raises(AttributeError):
        _ = SECRET.value  # type: ignore[attr-defined]
    assert SECRET.non_private[0] == 0.123456


def test_a_release_hands_its_numbers_over_by_name():
    release = Release(np.zeros(2), Budget.zcdp(0.1))
    with pytest.raises(TypeError, match=r"\.value"):
        np.asarray(release)
    with pytest.raises(AttributeError):
        _ = release.non_private  # type: ignore[attr-defined]
