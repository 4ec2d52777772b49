"""A ledger refuses what it does not know, and any check that cannot fail."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduction.claims.entries import Probe, Statement
from reproduction.claims.ledger import load_ledger, parse_topic
from reproduction.experiment.parameters import ConfigError
from reproduction.pipeline.ledgers import read_ledger

WHERE = "bombari2025.claims.theorem-1"


def probe(**changes: Any) -> dict[str, Any]:
    return {
        "evidence": {
            "artifact": "simulation/trajectories",
            "variable": "gap_slope",
            "select": {"spectrum": "isotropic", "dimension": [10, 100]},
        },
        "check": {"kind": "between", "low": -0.65, "high": -0.35},
        "rejects": [0.0, -1.0],
    } | changes


def statement(**changes: Any) -> dict[str, Any]:
    return {
        "id": "ode-tracks-dpgd",
        "kind": "theorem",
        "where": "Theorem 1, Figure 1",
        "statement": "The risk concentrates on the ODE at rate d^(-1/2).",
        "checks": [probe()],
    } | changes


def cross_check(**changes: Any) -> dict[str, Any]:
    return {"id": "two-routes", "compares": "Both routes agree.", "checks": [probe()]} | changes


def finding(**changes: Any) -> dict[str, Any]:
    return {
        "id": "drift-factor",
        "severity": "constant",
        "places": ["Equation (4.14)"],
        "printed": "Twice the drift.",
        "holds": "The drift once.",
        "how_we_know": "Derived, and simulated.",
        "downstream": "Nothing.",
    } | changes


def topic(**changes: Any) -> Any:
    return parse_topic({"topic": "Theorem 1"} | changes, "theorem-1", WHERE)


def write(folder: Path, **topics: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for name, value in topics.items():
        text = yaml.safe_dump({"topic": name, **value})
        (folder / f"{name.replace('_', '-')}.yaml").write_text(text)
    return folder


def test_a_good_topic_loads_and_survives_json() -> None:
    found = topic(statements=[statement()], cross_checks=[cross_check()])
    assert [entry.id for entry in found.entries] == ["ode-tracks-dpgd", "two-routes"]
    assert found.statements[0].expect == "reproduced"
    assert found.cross_checks[0].expect == "passed"
    assert found.statements[0].checks[0].evidence.select["dimension"] == (10, 100)
    text = json.dumps(found.statements[0].model_dump(mode="json"), sort_keys=True)
    assert Statement.model_validate(json.loads(text)) == found.statements[0]


def test_infinity_survives_json() -> None:
    found = Probe.model_validate(probe(check={"kind": "below", "high": 1.0}, rejects=[math.inf]))
    assert Probe.model_validate(json.loads(json.dumps(found.model_dump(mode="json")))) == found


@pytest.mark.parametrize(
    ("check", "rejects"),
    [
        ({"kind": "between", "low": -10.0, "high": 10.0}, [0.0]),
        ({"kind": "between", "low": 0.0, "high": 1.0}, [2.0, 1.0]),
        ({"kind": "below", "high": math.inf}, [1e300]),
        ({"kind": "above", "low": -math.inf}, [-math.inf]),
        ({"kind": "close", "expected": 1.0, "relative": 1.0}, [0.0]),
        ({"kind": "close", "expected": 1.0, "relative": 0.1}, [{"times": 1.05}]),
        ({"kind": "close", "expected": [1.0, 2.0], "absolute": 0.5}, [[1.5, 2.5]]),
        ({"kind": "monotone", "direction": "increasing", "slack": 1.0}, [[1.0, 0.0]]),
        ({"kind": "monotone", "direction": "increasing"}, [[1.0, 1.0]]),
        ({"kind": "ordered", "dimension": "method", "labels": ["a", "b"]}, [[0.0, 1.0]]),
        ({"kind": "all", "of": {"kind": "below", "high": 1.0}}, [1.0]),
    ],
)
def test_a_check_that_cannot_fail_is_refused_at_load(check: Any, rejects: Any) -> None:
    with pytest.raises(ConfigError, match="got one that cannot refuse"):
        topic(statements=[statement(checks=[probe(check=check, rejects=rejects)])])


@pytest.mark.parametrize(
    ("check", "rejects"),
    [
        ({"kind": "close", "expected": 1.0, "sigmas": 4.0}, [1.1]),
        ({"kind": "close", "expected": 2.0, "relative": 0.1}, [{"times": 1.5}, {"plus": -0.5}]),
        ({"kind": "close", "expected": math.inf, "absolute": 1.0}, [1e300]),
        ({"kind": "monotone", "direction": "increasing", "strict": True}, [[1.0, 1.0]]),
        ({"kind": "ordered", "dimension": "method", "labels": ["a", "b"]}, [[1.0, 0.0]]),
        ({"kind": "all", "of": {"kind": "below", "high": 1.0}}, [1.5, [0.0, 2.0]]),
        # Its power is shown where the bound is read.
        (
            {
                "kind": "close",
                "expected": {"artifact": "theory/trajectories", "variable": "risk"},
                "sigmas": 4,
            },
            [{"times": 1.5}],
        ),
    ],
)
def test_a_check_that_can_fail_is_taken(check: Any, rejects: Any) -> None:
    assert topic(statements=[statement(checks=[probe(check=check, rejects=rejects)])])


def test_what_no_data_can_be_had_for_needs_no_checks() -> None:
    untested = statement(checks=[], expect="untested", note="It needs the paper's network.")
    (entry,) = topic(statements=[untested]).statements
    assert entry.runs == ()


RUNS = [{"label": "narrow", "checks": [probe()]}, {"label": "wide", "checks": [probe()]}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checks": []}, "one of checks and depends_on_choice must be given"),
        ({"id": "Not_Kebab"}, "id must match.*'Not_Kebab'"),
        ({"expects": "reproduced"}, "got 'expects'; did you mean 'expect'"),
        ({"expect": "true"}, "expect must be 'reproduced'.*'true'"),
        ({"statement": ""}, "statement must have"),
        ({"kind": "theorm"}, "kind must be 'printed number'.*'theorm'"),
        ({"kind": "printed number"}, "printed must be given"),
        ({"expect": "contradicted"}, "finding must be given"),
        ({"expect": "untested"}, "note must say why"),
        ({"expect": "depends on our choice"}, "depends_on_choice must be given"),
        ({"depends_on_choice": {"choice": "x", "runs": RUNS}}, "one of checks"),
        (
            {"checks": [], "depends_on_choice": {"choice": "x", "runs": RUNS[:1]}},
            "at least 2 values",
        ),
        ({"checks": [probe(rejects=[])]}, "at least 1"),
        ({"checks": [probe(check={"kind": "betwen"})]}, "did you mean 'between'"),
        (
            {"checks": [probe(check={"kind": "between", "low": "x", "high": 1})]},
            "low.number must be a number",
        ),
        ({"checks": [probe(rejects=[[0.0, 1.0]])]}, "'between' takes one number"),
        ({"checks": [probe(rejects=[math.nan])]}, "got NaN"),
        ({"checks": [probe(rejects=[{"times": 2.0}])]}, "unless the check is of kind 'close'"),
        (
            {"checks": [probe(evidence={"artifact": "figures/fig1", "variable": "risk"})]},
            "artifact must match.*figures/fig1",
        ),
        (
            {
                "checks": [
                    probe(
                        check={"kind": "ordered", "dimension": "spectrum", "labels": ["a", "b"]},
                        rejects=[[1.0, 0.0]],
                    )
                ]
            },
            "select.spectrum",
        ),
    ],
)
def test_an_error_is_one_line_that_names_paper_topic_entry_and_key(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        topic(statements=[statement(**changes)])
    text = str(caught.value)
    assert text.startswith(f"{WHERE}.{changes.get('id', 'ode-tracks-dpgd')}")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (None, "must be a mapping"),
        ({"topic": "x"}, "one of statements, cross_checks and findings must"),
        ({"topic": "x", "statement": []}, "got 'statement'; did you mean 'statements'"),
        ({"topic": "x", "statements": {}}, "statements must be a list"),
        ({"topic": "x", "shared": {"figures": "fig1"}}, "did you mean 'figure'"),
    ],
)
def test_a_wrong_topic_is_one_line(raw: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_topic(raw, "theorem-1", WHERE)


def test_what_entries_share_is_said_once() -> None:
    bare = probe(evidence={"variable": "gap_slope", "select": {"dimension": 10}})
    found = topic(
        shared={
            "figure": "fig1",
            "ours": ["the norm"],
            "evidence": {"artifact": "simulation/trajectories", "select": {"spectrum": "uniform"}},
        },
        statements=[
            statement(checks=[bare], ours=["the grid"]),
            statement(id="other", figure="fig2", checks=[probe(evidence={"artifact": "theory/other",
                                                                         "variable": "x"})]),
        ],
        cross_checks=[cross_check(checks=[bare])],
    )  # fmt: skip
    first, other = found.statements
    assert first.figure == "fig1"
    assert other.figure == "fig2"
    assert first.ours == ("the norm", "the grid")
    assert first.checks[0].evidence.artifact == "simulation/trajectories"
    assert first.checks[0].evidence.select == {"spectrum": "uniform", "dimension": 10}
    assert other.checks[0].evidence.select == {}
    assert found.cross_checks[0].figure == "fig1"


def test_ids_are_unique_over_a_paper(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", one={"statements": [statement()]},
                   two={"cross_checks": [cross_check(id="ode-tracks-dpgd")]})  # fmt: skip
    with pytest.raises(
        ConfigError, match=r"two\.ode-tracks-dpgd must be there once, got it in one as well"
    ):
        load_ledger(folder, "bombari2025")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"finding": "drift-facter"}, r"finding must be one of.*did you mean 'drift-factor'"),
        ({"requires": ["two-route"]}, r"requires must be one of.*did you mean 'two-routes'"),
        ({"requires": ["ode-tracks-dpgd"]}, r"requires must be one of.*got 'ode-tracks-dpgd'"),
    ],
)
def test_names_that_an_entry_points_to_exist(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = write(
        tmp_path / "x",
        one={
            "statements": [statement(**changes)],
            "cross_checks": [cross_check()],
            "findings": [finding(shown_by=["two-routes"])],
        },
    )
    with pytest.raises(ConfigError, match=message):
        load_ledger(folder, "bombari2025")


def test_a_finding_is_shown_by_the_statements_that_name_it_and_by_more(tmp_path: Path) -> None:
    wrong = statement(expect="contradicted", finding="drift-factor")
    body = {"statements": [wrong], "cross_checks": [cross_check()]}
    folder = write(tmp_path / "x", one=body | {"findings": [finding(shown_by=["two-routes"])]})
    ledger = load_ledger(folder, "bombari2025")
    assert ledger.shown_by("drift-factor") == ("ode-tracks-dpgd", "two-routes")
    folder = write(tmp_path / "y", one={"cross_checks": [cross_check()], "findings": [finding()]})
    with pytest.raises(ConfigError, match="must name an entry that shows it"):
        load_ledger(folder, "bombari2025")


def test_a_circle_of_bases_is_refused(tmp_path: Path) -> None:
    entries = [statement(id="a", requires=["b"]), statement(id="b", requires=["a"])]
    folder = write(tmp_path / "x", one={"statements": entries})
    with pytest.raises(ConfigError, match="in a circle, got a -> b -> a"):
        load_ledger(folder, "bombari2025")


def test_files_that_are_not_ledgers_stop_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must hold the ledger"):
        load_ledger(tmp_path / "none", "bombari2025")
    (tmp_path / "one.yaml").write_text("topic: [")
    with pytest.raises(ConfigError, match=r"one\.yaml, line 2: must be YAML"):
        load_ledger(tmp_path, "bombari2025")
    (tmp_path / "one.yaml").write_text("topic: a\nstatements: []\nstatements: []\n")
    with pytest.raises(ConfigError, match="key 'statements' is there twice"):
        load_ledger(tmp_path, "bombari2025")


@pytest.mark.parametrize("paper", ["bombari2025", "brown2024", "lin2025"])
def test_the_papers_ledgers_load(paper: str) -> None:
    ledger = read_ledger(Path(__file__).parents[3] / "config/claims" / paper, paper)
    assert len(ledger.entries) >= 80
    assert ledger.findings


def test_a_wrong_version_must_differ_from_the_check() -> None:
    with pytest.raises(ValueError, match="one of evidence and check must be given"):
        Probe.model_validate(probe(wrong=[{"says": "The same."}]))
    found = Probe.model_validate(
        probe(wrong=[{"says": "At ten.", "evidence": {"select": {"dimension": 10}}}])
    )
    (falsifier,) = found.falsifiers
    assert falsifier.evidence.artifact == "simulation/trajectories"
    assert falsifier.evidence.select == {"dimension": 10}
    assert falsifier.check == found.check
