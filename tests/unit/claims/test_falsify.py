"""Falsifiers: mistakes are made and taken back, and what does not notice them is named."""

import math
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import yaml

from reproduction.engine.falsify import (
    Patch,
    WrongStatement,
    WrongVersion,
    applied,
    plus,
    power,
    times,
    turned,
    uncaught,
    wrong_versions,
)
from reproduction.engine.ledger import Statement, read_ledger
from reproduction.engine.parameters import choose
from reproduction.engine.verdicts import Record

ROOT = Path(__file__).parents[3]
PAPERS = yaml.safe_load((ROOT / "config/config.yaml").read_text())["papers"]


def version(**changes: Any) -> WrongVersion:
    return WrongVersion(
        **{
            "name": "twice",
            "says": "Twice too much.",
            "runs": {"trajectories": ("theory",)},
            "patches": (Patch("math:exp", lambda right: lambda x: 2 * right(x)),),
            "turns": ("notices",),
        }
        | changes
    )


def judged(**verdicts: Any) -> list[Record]:
    return [
        Record.model_construct(id=name, verdict=verdict, reason="")
        for name, verdict in verdicts.items()
    ]


def test_a_mistake_is_made_and_taken_back() -> None:
    with applied(version().patches):
        assert math.exp(0.0) == 2.0
    assert math.exp(0.0) == 1.0
    with pytest.raises(ZeroDivisionError), applied(version().patches):
        1 / 0  # noqa: B018
    assert math.exp(0.0) == 1.0


def test_a_mistake_that_patches_nothing_is_refused() -> None:
    patches = (*version().patches, Patch("math:expo", lambda right: right))
    with pytest.raises(ValueError, match="attribute of math, got 'expo'"), applied(patches):
        pass
    assert math.exp(0.0) == 1.0
    for wrong in ({"patches": ()}, {"runs": {}}, {"turns": ()}):
        with pytest.raises(ValueError, match="twice must"):
            version(**wrong)


def test_what_is_not_caught_is_named() -> None:
    right = judged(notices="reproduced", other="passed", known="failed", noisy="passed")
    wrong = judged(notices="contradicted", other="passed", known="passed", noisy="inconclusive")
    assert uncaught(version(), right, wrong) == []
    assert turned(right, wrong) == ["notices"]
    silent = judged(notices="reproduced", other="failed", known="failed", noisy="passed")
    assert uncaught(version(), right, silent) == [
        "twice: notices must fail, got reproduced",
        "twice: other fails and is not named ()",
    ]
    assert "does not judge gone" in uncaught(version(turns=("gone",)), right, wrong)[0]
    assert "is failed with the right code" in uncaught(version(turns=("known",)), right, wrong)[0]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_papers_mistakes_name_what_there_is(paper: str) -> None:
    ledger = read_ledger(ROOT / "config/claims" / paper, paper)
    for name, found in wrong_versions(paper).items():
        for entry in found.turns:
            choose(entry, ledger.entries, f"{paper}.{name}.turns")
        if isinstance(found, WrongVersion):
            with applied(found.patches):  # every target is there
                pass


def test_a_wrong_statement_changes_what_it_names_alone() -> None:
    held = xr.Dataset(
        {"ratio": ("n", [0.5, 0.9], {"units": "1"}), "gap": ("n", [0.0, 0.1])}, {"n": [1.0, 4.0]}
    )
    observes = {"theory/x": {"ratio": times(2.0)}, "theory/y": {"gap": plus(1.0)}}
    wrong = WrongStatement(name="half", says="Half.", observes=observes, turns=("bound",))
    found = wrong.evidence("theory/x", held)
    assert found.ratio.values.tolist() == [1.0, 1.8]
    assert found.ratio.attrs == {"units": "1"}
    assert found.gap.equals(held.gap)
    assert wrong.evidence("theory/y", held).gap.values.tolist() == [1.0, 1.1]
    assert wrong.evidence("theory/z", held).equals(held)
    assert power("n", 0.5)(held.ratio).values.tolist() == [0.5, 1.8]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_statement_that_holds_has_a_wrong_version(paper: str) -> None:
    ledger = read_ledger(ROOT / "config/claims" / paper, paper)
    turned = {name for version in wrong_versions(paper).values() for name in version.turns}
    bare = {
        entry.id
        for entry in ledger.entries.values()
        if isinstance(entry, Statement)
        and entry.expect == "reproduced"
        and not any(probe.wrong for probe in entry.probes)
    }
    assert bare, "some statements compare two routes, and need a wrong version of the code"
    assert bare <= turned
