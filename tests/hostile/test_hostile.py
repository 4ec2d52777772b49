"""Wrong configurations, ledgers and calls are refused in one line each, and nothing is run."""

from __future__ import annotations

from collections import Counter

import pytest

from .campaign import GOOD, campaign

SAMPLE = 60
LONG_SAMPLE = 1750


def test_a_sample_of_wrong_input_is_refused():
    check(SAMPLE)


@pytest.mark.long
def test_thousands_of_wrong_inputs_are_refused():
    assert check(LONG_SAMPLE) >= 5000


def check(sample: int) -> int:
    found = list(campaign(sample))
    bad = [str(tried) for tried in found if tried.outcome != GOOD]
    assert not bad, "\n".join([f"{len(bad)} of {len(found)}", *bad[:20]])
    assert set(Counter(tried.kind for tried in found)) == {"configuration", "ledger", "call"}
    return len(found)
