"""A ledger refuses what it does not know, and any check that cannot fail."""

import json
import math
from typing import Any

import pytest

from privreg.claims.entries import Entry, load_ledger
from privreg.experiment.parameters import ConfigError


def fields(**changes: Any) -> dict[str, Any]:
    return {
        "id": "ode-tracks-dpgd",
        "where": "Theorem 1, Figure 1",
        "statement": "The risk concentrates on the ODE at rate d^(-1/2).",
        "evidence": {
            "artifact": "simulation/trajectories",
            "variable": "gap_slope",
            "select": {"spectrum": "isotropic", "dimension": [10, 100]},
        },
        "check": {"kind": "between", "low": -0.65, "high": -0.35},
        "rejects": [0.0, -1.0],
    } | changes


def test_a_good_ledger_loads_as_a_list_or_under_its_key() -> None:
    listed = load_ledger([fields(), fields(id="other")], "bombari2025")
    assert [entry.id for entry in listed] == ["ode-tracks-dpgd", "other"]
    assert listed == load_ledger({"claims": [fields(), fields(id="other")]}, "bombari2025")
    assert listed[0].expect == "reproduced"
    assert listed[0].evidence.select["dimension"] == (10, 100)


def test_an_entry_survives_json() -> None:
    entry = Entry.model_validate(
        fields(check={"kind": "below", "high": 1.0}, rejects=[math.inf, 2.0])
    )
    text = json.dumps(entry.model_dump(mode="json"), sort_keys=True)
    assert Entry.model_validate(json.loads(text)) == entry
    assert Entry.model_validate_json(entry.model_dump_json()) == entry


@pytest.mark.parametrize(
    ("check", "rejects"),
    [
        ({"kind": "between", "low": -10.0, "high": 10.0}, [0.0]),
        ({"kind": "between", "low": 0.0, "high": 1.0}, [2.0, 1.0]),
        ({"kind": "below", "high": math.inf}, [1e300]),
        ({"kind": "above", "low": -math.inf}, [-math.inf]),
        ({"kind": "close", "expected": 1.0, "relative": 1.0}, [0.0]),
        ({"kind": "close", "expected": [1.0, 2.0], "absolute": 0.5}, [[1.5, 2.5]]),
        ({"kind": "monotone", "direction": "increasing", "slack": 1.0}, [[1.0, 0.0]]),
        ({"kind": "monotone", "direction": "increasing"}, [[1.0, 1.0]]),
        ({"kind": "ordered", "dimension": "method", "labels": ["a", "b"]}, [[0.0, 1.0]]),
        ({"kind": "all", "of": {"kind": "below", "high": 1.0}}, [1.0]),
    ],
)
def test_a_check_that_cannot_fail_is_refused_at_load(check: Any, rejects: Any) -> None:
    with pytest.raises(ConfigError, match="a check that cannot refuse"):
        load_ledger([fields(check=check, rejects=rejects)], "bombari2025")


@pytest.mark.parametrize(
    ("check", "rejects"),
    [
        ({"kind": "close", "expected": 1.0, "sigmas": 4.0}, [1.1]),
        ({"kind": "close", "expected": math.inf, "absolute": 1.0}, [1e300]),
        ({"kind": "monotone", "direction": "increasing", "strict": True}, [[1.0, 1.0]]),
        ({"kind": "ordered", "dimension": "method", "labels": ["a", "b"]}, [[1.0, 0.0]]),
        ({"kind": "all", "of": {"kind": "below", "high": 1.0}}, [1.5, [0.0, 2.0]]),
    ],
)
def test_a_check_that_can_fail_is_taken(check: Any, rejects: Any) -> None:
    assert load_ledger([fields(check=check, rejects=rejects)], "bombari2025")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rejects": []}, "at least 1"),
        ({"id": "Not_Kebab"}, "id must match.*'Not_Kebab'"),
        ({"expects": "reproduced"}, "got 'expects'; did you mean 'expect'"),
        ({"expect": "true"}, "expect must be 'reproduced'.*'true'"),
        ({"statement": ""}, "statement must have"),
        ({"check": {"kind": "betwen", "low": 0}}, "kind = 'betwen'.*did you mean 'between'"),
        ({"check": {"kind": "between", "low": "x", "high": 1}}, "low must be a valid number"),
        ({"rejects": [[0.0, 1.0]]}, "'between' takes one number"),
        ({"rejects": [math.nan]}, "found NaN"),
        ({"expect": "contradicted"}, "expected `pair` or `note`"),
        ({"pair": "other"}, "only on an entry that expects 'contradicted'"),
        (
            {"evidence": {"artifact": "figures/fig1", "variable": "risk"}},
            "artifact must match.*figures/fig1",
        ),
        (
            {
                "check": {"kind": "ordered", "dimension": "method", "labels": ["a", "b"]},
                "rejects": [[1.0, 0.0]],
                "evidence": {
                    "artifact": "theory/rates",
                    "variable": "risk",
                    "select": {"method": "a"},
                },
            },
            "select.method",
        ),
    ],
)
def test_an_error_is_one_line_that_names_paper_entry_and_key(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_ledger([fields(**changes)], "bombari2025")
    text = str(caught.value)
    assert text.startswith("bombari2025.claims.")
    assert "\n" not in text


@pytest.mark.parametrize("raw", [None, [], {}, {"claims": None}, "text", 3])
def test_an_empty_ledger_is_an_error(raw: Any) -> None:
    with pytest.raises(ConfigError, match=r"bombari2025\.claims: expected a list"):
        load_ledger(raw, "bombari2025")


def test_a_misspelt_top_level_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'claim'.*did you mean 'claims'"):
        load_ledger({"claim": [fields()]}, "bombari2025")


def test_ids_are_unique_and_pairs_exist() -> None:
    with pytest.raises(ConfigError, match="ode-tracks-dpgd: this id is there twice"):
        load_ledger([fields(), fields()], "bombari2025")
    wrong = fields(id="as-printed", expect="contradicted", pair="ode-tracks-dpgt")
    with pytest.raises(ConfigError, match=r"as-printed\.pair.*did you mean 'ode-tracks-dpgd'"):
        load_ledger([wrong, fields()], "bombari2025")
    assert load_ledger([wrong | {"pair": "ode-tracks-dpgd"}, fields()], "bombari2025")
    with pytest.raises(ConfigError, match="one of 'ode-tracks-dpgd'"):
        load_ledger([wrong | {"pair": "as-printed"}, fields()], "bombari2025")
