"""No public function answers a hostile value wrongly or in silence.

Hypothesis draws an argument and a hostile value for it; `campaign.py` runs the whole fixed list.
"""

from __future__ import annotations

import pytest
from campaign import call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outcomes import GOOD
from targets import Target, targets

from hostile import hostile

FUZZED, MISSING = targets()


def test_every_public_function_is_fuzzed():
    """A function with a word that has no valid value is named here."""
    assert not MISSING


@pytest.mark.parametrize("target", FUZZED, ids=lambda target: target.name)
def test_valid_calls_are_answered(target: Target):
    target.call()


@pytest.mark.parametrize(
    "target",
    [target for target in FUZZED if target.arguments],
    ids=lambda target: target.name,
)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_hostile_values(target: Target, data: st.DataObject):
    parameter = data.draw(st.sampled_from(sorted(target.arguments)))
    value = data.draw(hostile(target.arguments[parameter]))
    found = call(target, {parameter: value})
    assert found.outcome in GOOD, str(found)


@pytest.mark.parametrize(
    "target",
    [target for target in FUZZED if len(target.arguments) > 1],
    ids=lambda target: target.name,
)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_two_hostile_values(target: Target, data: st.DataObject):
    """What each value alone may pass, both together must not: shapes, ranges, overflow."""
    names = st.lists(st.sampled_from(sorted(target.arguments)), min_size=2, max_size=2, unique=True)
    changes = {name: data.draw(hostile(target.arguments[name])) for name in data.draw(names)}
    found = call(target, changes)
    assert found.outcome in GOOD, str(found)
