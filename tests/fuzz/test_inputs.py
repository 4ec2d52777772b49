"""Wrong configurations, ledgers and commands are refused in one line each, and nothing is run."""

from __future__ import annotations

import pytest
from inputs import campaign
from runner import defects

SAMPLE = 60
LONG_SAMPLE = 1750


def test_a_sample_of_wrong_input_is_refused():
    check(SAMPLE)


@pytest.mark.long
def test_thousands_of_wrong_inputs_are_refused():
    assert check(LONG_SAMPLE) >= 5000


def check(sample: int) -> int:
    found = list(campaign(sample))
    bad = defects(found)
    assert not bad, "\n".join([f"{len(bad)} of {len(found)}", *bad[:20]])
    assert {each.case.kind for each in found} == {"configuration", "ledger", "command"}
    return len(found)
