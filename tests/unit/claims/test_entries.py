"""A ledger refuses what it does not know, and any check that cannot fail."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduction.engine.checks import Probe
from reproduction.engine.ledger import load_ledger, parse_topic
from reproduction.engine.parameters import ConfigError

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
        "changes": "number",
        "places": ["Equation (4.14)"],
        "printed": "Twice the drift.",
        "holds": "The drift once.",
        "how_we_know": "Derived, and simulated.",
        "downstream": "Nothing.",
    } | changes


def topic(**changes: Any) -> Any:
    return parse_topic({"topic": "Theorem 1"} | changes, "theorem-1", WHERE)


def load(folder: Path, **topics: Any) -> Any:
    """The ledger of files with these contents."""
    for name, value in topics.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"topic": name, **value}))
    return load_ledger(folder, "bombari2025")


def test_a_good_topic_loads() -> None:
    found = topic(statements=[statement()], cross_checks=[cross_check()])
    assert [entry.id for entry in found.entries] == ["ode-tracks-dpgd", "two-routes"]
    assert found.statements[0].expect == "reproduced"
    assert found.cross_checks[0].expect == "passed"
    assert found.statements[0].checks[0].evidence.select["dimension"] == (10, 100)


@pytest.mark.parametrize(
    ("check", "rejects"),
    [
        ({"kind": "between", "low": -10.0, "high": 10.0}, [0.0]),
        ({"kind": "below", "high": math.inf}, [1e300]),
        ({"kind": "close", "expected": 1.0, "relative": 0.1}, [{"times": 1.05}]),
        ({"kind": "monotone", "direction": "increasing"}, [[1.0, 1.0]]),
        ({"kind": "ordered", "dimension": "method", "labels": ["a", "b"]}, [[0.0, 1.0]]),
        ({"kind": "all", "of": {"kind": "below", "high": 1.0}}, [1.0]),
    ],
)
def test_a_check_that_cannot_fail_is_refused_at_load(check: Any, rejects: Any) -> None:
    with pytest.raises(ConfigError, match="got one that cannot refuse"):
        topic(statements=[statement(checks=[probe(check=check, rejects=rejects)])])


RUNS = [{"label": "narrow", "checks": [probe()]}, {"label": "wide", "checks": [probe()]}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checks": []}, "one of checks and depends_on_choice must be given"),
        ({"expects": "reproduced"}, "got 'expects'; did you mean 'expect'"),
        ({"kind": "theorm"}, "kind must be 'printed number'.*'theorm'"),
        ({"kind": "printed number"}, "printed must be given"),
        ({"expect": "contradicted"}, "finding must be given"),
        ({"expect": "proof gap", "finding": "x"}, "corrected must be given for expect"),
        ({"corrected": {"holds_with": "a sign"}, "finding": "x"}, "corrected.checks.* at least 1"),
        ({"expect": "untested"}, "note must say why"),
        ({"expect": "depends on our choice"}, "depends_on_choice must be given"),
        ({"depends_on_choice": {"choice": "x", "runs": RUNS}}, "one of checks"),
        (
            {"checks": [], "depends_on_choice": {"choice": "x", "runs": RUNS[:1]}},
            "at least 2 values",
        ),
        ({"checks": [probe(check={"kind": "betwen"})]}, "did you mean 'between'"),
        ({"checks": [probe(rejects=[{"times": 2.0}])]}, "unless the check is of kind 'close'"),
        (
            {
                "checks": [
                    probe(check={"kind": "close", "expected": 0.0, "absolute": 1.0}, resolves=2.0)
                ]
            },
            "resolves is only for checks of kind between, below or above",
        ),
        ({"check": probe()["check"]}, "a key must be one of.*got 'check'"),
        (
            {"checks": [probe(evidence={"over": {"dimension": 10}})]},
            "over.dimension must be a list",
        ),
        (
            {"checks": [probe(evidence={"over": {"dimension": [10, 100]}}, resolves=[0.1])]},
            "resolves must hold 2, 1 per check, got 1",
        ),
        (
            {"checks": [probe(evidence={"artifact": "figures/fig1", "variable": "risk"})]},
            "artifact must match.*figures/fig1",
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


def test_a_wrong_topic_is_one_line() -> None:
    for raw, message in (
        ({"topic": "x", "shared": {"ours": ["a norm"]}}, "shared: a key must be .*got 'ours'"),
        (None, "must be a mapping"),
        ({"topic": "x"}, "one of statements, cross_checks and findings must"),
        ({"topic": "x", "statement": []}, "got 'statement'; did you mean 'statements'"),
    ):
        with pytest.raises(ConfigError, match=message):
            parse_topic(raw, "theorem-1", WHERE)


def test_what_entries_share_is_said_once() -> None:
    bare = probe(evidence={"variable": "gap_slope", "select": {"dimension": 10}})
    found = topic(
        shared={
            "figure": "fig1",
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
    assert first.checks[0].evidence.artifact == "simulation/trajectories"
    assert first.checks[0].evidence.select == {"spectrum": "uniform", "dimension": 10}
    assert other.checks[0].evidence.select == {}
    assert found.cross_checks[0].figure == "fig1"


def test_one_check_stands_for_a_check_at_each_combination() -> None:
    """Labels, bounds and what is resolved may be listed; the first key is the slowest."""
    (found,) = topic(
        shared={"evidence": {"artifact": "theory/a"}},
        statements=[
            {key: value for key, value in statement().items() if key != "checks"}
            | {
                "evidence": {"over": {"artifact": ["theory/a", "theory/b"], "epsilon": [1.0, 4.0]}},
                "check": {"kind": "all", "of": {"kind": "below", "high": [1.0, 2.0, 3.0, 4.0]}},
                "resolves": 0.5,
                "wrong": [
                    {"says": "Half.", "check": {"kind": "below", "high": [0.1, 0.2, 0.3, 0.4]}}
                ],
            }
        ],
    ).statements
    seen = [
        (each.evidence.artifact, each.evidence.select["epsilon"], each.check.of.high, each.resolves)
        for each in found.checks
    ]
    assert seen == [
        ("theory/a", 1.0, 1.0, 0.5), ("theory/a", 4.0, 2.0, 0.5),
        ("theory/b", 1.0, 3.0, 0.5), ("theory/b", 4.0, 4.0, 0.5),
    ]  # fmt: skip
    assert {each.evidence.variable for each in found.checks} == {"ode_tracks_dpgd"}
    assert [each.label for each in found.checks][1] == "theory/a, epsilon = 4.0"
    assert [each.falsifiers[0].check.high for each in found.checks] == [0.1, 0.2, 0.3, 0.4]
    assert found.checks[3].falsifiers[0].evidence == found.checks[3].evidence


def holding(**changes: Any) -> dict[str, Any]:
    """A file with a statement that is changed, a cross-check and a finding."""
    findings = [finding(shown_by=["two-routes"])]
    return {
        "statements": [statement(**changes)],
        "cross_checks": [cross_check()],
        "findings": findings,
    }


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ({"one": holding(), "two": {"statements": [statement()]}},
         r"two\.ode-tracks-dpgd must be defined once, got it in one as well"),
        ({"one": holding(finding="drift-facter")}, r"finding must.*did you mean 'drift-factor'"),
        ({"one": holding(requires=["two-route"])}, r"requires must.*did you mean 'two-routes'"),
        ({"one": {"statements": [statement(id="a", requires=["b"]),
                                 statement(id="b", requires=["a"])]}},
         "in a circle, got a -> b -> a"),
        ({"one": {"cross_checks": [cross_check()], "findings": [finding()]}},
         "must name an entry that shows it"),
    ],
)  # fmt: skip
def test_names_of_a_ledger_are_unique_and_lead_somewhere(
    tmp_path: Path, topics: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, **topics)


def test_a_finding_is_shown_by_the_statements_that_name_it_and_by_more(tmp_path: Path) -> None:
    ledger = load(tmp_path, one=holding(expect="contradicted", finding="drift-factor"))
    assert ledger.shown_by("drift-factor") == ("ode-tracks-dpgd", "two-routes")


def test_files_that_are_not_ledgers_stop_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must hold the ledger"):
        load_ledger(tmp_path / "none", "bombari2025")
    (tmp_path / "one.yaml").write_text("topic: [")
    with pytest.raises(ConfigError, match=r"one\.yaml, line 2: "):
        load_ledger(tmp_path, "bombari2025")
    (tmp_path / "one.yaml").write_text("topic: a\nstatements: []\nstatements: []\n")
    with pytest.raises(ConfigError, match="key 'statements' is there twice"):
        load_ledger(tmp_path, "bombari2025")


def test_a_wrong_version_must_differ_from_the_check() -> None:
    with pytest.raises(ValueError, match="evidence or check of a wrong version must be given"):
        Probe.model_validate(probe(wrong=[{"says": "The same."}]))
    found = Probe.model_validate(
        probe(wrong=[{"says": "At ten.", "evidence": {"select": {"dimension": 10}}}])
    )
    (falsifier,) = found.falsifiers
    assert falsifier.evidence.artifact == "simulation/trajectories"
    assert falsifier.evidence.select == {"dimension": 10}
    assert falsifier.check == found.check
