"""Margins and subsets: where growing noise undoes a verdict, and parts that no words name."""

import numpy as np
import pytest
import xarray as xr

from reproduction.claims.decision import decide
from reproduction.claims.entries import Statement
from reproduction.claims.margins import margins
from reproduction.pipeline.ledger_stages import subsets
from reproduction.pipeline.registry import known_papers

ARTIFACT = "simulation/trajectories"
EVERY = {"kind": "all", "of": {"kind": "between", "low": 0.0, "high": 1.0}}


@pytest.mark.parametrize(
    ("check", "rejects", "values", "errors", "place"),
    [
        (EVERY, [3.0], [0.5, 0.3, 0.9], [0.1, 0.05, 0.04], "clip=3"),
        # The nearest of another bound in its own errors, though not in units of the risk.
        (EVERY, [3.0], [0.5, 0.3, 0.9], [0.24, 0.05, 0.04], "clip=1"),
        ({"kind": "monotone", "direction": "increasing"}, [[2.0, 1.0, 3.0]], [1.0, 2.0, 2.5],
         [0.1, 0.1, 0.1], "from clip=2 to clip=3"),
    ],
)  # fmt: skip
def test_the_verdict_stands_just_within_the_margin_and_falls_just_beyond(
    check, rejects, values, errors, place
):
    def evidence(errors):
        linked = {"ancillary_variables": "risk_standard_error"}
        held = {"risk": ("clip", values, linked), "risk_standard_error": ("clip", errors)}
        return {ARTIFACT: xr.Dataset(held, {"clip": [1.0, 2.0, 3.0]}, {"trials": 20})}

    probe = {"evidence": {"artifact": ARTIFACT, "variable": "risk"}, "check": check}
    entry = Statement.model_validate(
        {"id": "rate", "kind": "theorem", "where": "1", "statement": "So.",
         "checks": [probe | {"rejects": rejects}]}
    )  # fmt: skip
    (found,) = margins(entry, evidence(errors))
    assert (found.place, found.trials) == (place, 20)
    outcome = decide(entry.checks[0], evidence(errors)).outcome
    for factor, decided in ((1 - 1e-6, True), (1 + 1e-6, False)):
        noisier = evidence(np.multiply(errors, factor * found.least / 2))
        assert (decide(entry.checks[0], noisier).outcome == outcome) is decided


@pytest.mark.parametrize("paper", known_papers())
def test_the_ledgers_name_every_part_that_they_read(paper, capsys):
    assert subsets([paper]) == []
    assert f"{paper}." in capsys.readouterr().out
