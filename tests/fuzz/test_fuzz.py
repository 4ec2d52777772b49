"""No public function answers a hostile value wrongly or in silence.

Hypothesis draws an argument and a hostile value for it, and two at once; the whole fixed list of
`campaign.py` takes minutes and is left to `make test-all`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from functions import call, campaign
from hostile import hostile
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from runner import GOOD, defects
from targets import Target, targets

FUZZED, MISSING = targets()
WITH_ARGUMENTS = [target for target in FUZZED if target.arguments]
drawn = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    # What fails is one call with one or two values: there is nothing to make smaller.
    phases=[Phase.generate],
    database=None,
    suppress_health_check=list(HealthCheck),
)


@cache
def values(name: str, parameter: str) -> st.SearchStrategy[Any]:
    """Hostile values for a parameter: building the list takes longer than most calls."""
    (target,) = (each for each in FUZZED if each.name == name)
    return hostile(target.arguments[parameter])


def test_every_public_function_is_fuzzed():
    """A function with a word that has no valid value is named here."""
    assert not MISSING


@pytest.mark.parametrize("target", FUZZED, ids=lambda target: target.name)
def test_valid_calls_are_answered(target: Target):
    target.call()


@pytest.mark.parametrize("target", WITH_ARGUMENTS, ids=lambda target: target.name)
@drawn
@given(data=st.data())
def test_hostile_values(target: Target, data: st.DataObject):
    parameter = data.draw(st.sampled_from(sorted(target.arguments)))
    value = data.draw(values(target.name, parameter))
    found = call(target, {parameter: value})
    assert found.outcome in GOOD, str(found)


@pytest.mark.parametrize(
    "target",
    [target for target in FUZZED if len(target.arguments) > 1],
    ids=lambda target: target.name,
)
@drawn
@given(data=st.data())
def test_two_hostile_values(target: Target, data: st.DataObject):
    """What each value alone may pass, both together must not: shapes, ranges, overflow."""
    names = st.lists(st.sampled_from(sorted(target.arguments)), min_size=2, max_size=2, unique=True)
    changes = {name: data.draw(values(target.name, name)) for name in data.draw(names)}
    found = call(target, changes)
    assert found.outcome in GOOD, str(found)


@pytest.mark.long
@pytest.mark.parametrize("target", WITH_ARGUMENTS, ids=lambda target: target.name)
def test_the_whole_campaign(target: Target):
    """Every fixed hostile value for every parameter, then those that were answered together."""
    assert not (found := defects(campaign(target))), "\n".join(found)
