"""Routes of one-pass DP-GD, which a test of what they compute takes one after the other."""

import pytest

from privreg.algorithms import one_pass_dpgd


@pytest.fixture(params=[(1, False), (2, False), (2, True)], ids=["one", "rows", "blocks"])
def settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Number of settings: one alone, two of few columns, two in blocks of samples."""
    number, blocks = request.param
    if blocks:
        monkeypatch.setattr(one_pass_dpgd, "NARROW", 0)
    return number
