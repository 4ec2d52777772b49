"""Verdicts: noise, the power rule, trials that would decide, stand-ins, JSON and the gate."""

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pytest
import xarray as xr

from privreg.claims.decision import trials_to_decide
from privreg.claims.entries import Entry
from privreg.claims.gate import gate, summary
from privreg.claims.verdicts import Verdict, collect, from_json, judge, to_csv, to_json

ABOVE = {"kind": "above", "low": 0.0}


def dataset(value: Any, error: Any = None, **attributes: Any) -> xr.Dataset:
    dims = ("clip",) * np.ndim(value)
    variables: dict[str, Any] = {"risk": (dims, value)}
    if error is not None:
        variables["risk"] += ({"ancillary_variables": "risk_standard_error"},)
        variables["risk_standard_error"] = (dims, error)
    coords = {"clip": np.arange(1.0, 1 + len(value))} if dims else {}
    return xr.Dataset(variables, coords=coords, attrs=attributes)


def verdict(
    check: dict[str, Any],
    rejects: list[Any],
    evidence: xr.Dataset,
    *,
    scale: Any = "paper",
    **fields: Any,
) -> Verdict:
    entry = Entry.model_validate(
        {
            "id": "the-claim",
            "where": "Theorem 1",
            "statement": "It holds.",
            "evidence": {"artifact": "simulation/trajectories", "variable": "risk"},
            "check": check,
            "rejects": rejects,
        }
        | fields
    )
    return judge(
        entry,
        evidence,
        paper="bombari2025",
        digest="ab" * 32,
        command="snakemake results/claims/bombari2025/the-claim.json",
        scale=scale,
    )


def test_a_deterministic_claim_is_reproduced_or_contradicted() -> None:
    good = verdict(ABOVE, [-1.0], dataset(0.5))
    assert (good.verdict, good.margin, good.reason) == ("reproduced", 0.5, "")
    bad = verdict(ABOVE, [-1.0], dataset(-0.5))
    assert (bad.verdict, bad.margin) == ("contradicted", -0.5)
    assert bad.reason == "out of bounds by 0.5"
    assert verdict(ABOVE, [-1.0], dataset(0.0)).verdict == "reproduced"


def test_noise_across_the_bound_is_inconclusive_and_says_what_would_decide() -> None:
    found = verdict(ABOVE, [-100.0], dataset(0.5, 0.5, trials=10))
    assert found.verdict == "inconclusive"
    assert found.trials_needed == math.ceil(10 * (2 * 0.5 / 0.5) ** 2) == 40
    assert found.reason == ("the noise straddles the bound (1 s.e.); 40 trials would decide")
    assert verdict(ABOVE, [-100.0], dataset(-0.5, 0.5, trials=10)).trials_needed == 40
    decided = verdict(ABOVE, [-100.0], dataset(0.5, 0.25, trials=40))
    assert (decided.verdict, decided.trials_needed) == ("reproduced", None)
    assert verdict(ABOVE, [-100.0], dataset(-0.5, 0.25, trials=40)).verdict == "contradicted"


@pytest.mark.parametrize(("trials", "sigmas"), [(7, 1.3), (100, 0.01), (3, 1.999)])
def test_the_number_of_trials_is_the_smallest_that_decides(trials: int, sigmas: float) -> None:
    def decided(shrink: float) -> bool:
        return sigmas >= 2 * shrink

    assert trials_to_decide(decided, trials) == math.ceil(trials * (2 / sigmas) ** 2)


def test_what_never_decides_has_no_number_of_trials() -> None:
    assert trials_to_decide(lambda shrink: False, 10) is None


def test_no_number_of_trials_decides_a_value_on_its_bound() -> None:
    found = verdict(ABOVE, [-100.0], dataset(0.0, 0.5, trials=10))
    assert (found.verdict, found.trials_needed) == ("inconclusive", None)
    assert found.reason.endswith("no number of trials would decide")


def test_without_a_count_of_trials_the_factor_is_said() -> None:
    found = verdict(ABOVE, [-100.0], dataset(0.5, 0.5))
    assert found.trials_needed is None
    assert found.reason.endswith("about 4 times the number of trials would decide")


def test_power_rule_a_reject_within_the_noise_is_inconclusive() -> None:
    check = {"kind": "close", "expected": 0.5, "sigmas": 4.0}
    noisy = verdict(check, [0.0], dataset(0.4, 0.25, trials=10))
    assert noisy.verdict == "inconclusive"
    # 4 s = 0.5 at 40 trials would still reach the reject; one more trial leaves it outside, and by
    # then the observation itself, 0.1 away, is still within 4 s.
    assert noisy.trials_needed == 41
    assert noisy.reason == ("too noisy to tell what is claimed from 0; 41 trials would decide")
    assert verdict(check, [0.0], dataset(0.4, 0.1, trials=63)).verdict == "reproduced"


def test_power_rule_for_bounds_asks_for_two_standard_errors_beyond() -> None:
    check = {"kind": "between", "low": -4.0, "high": 4.0}
    assert verdict(check, [5.0], dataset(0.0, 0.5, trials=10)).verdict == "reproduced"
    noisy = verdict(check, [5.0], dataset(0.0, 1.0, trials=10))
    assert noisy.verdict == "inconclusive"
    assert noisy.trials_needed == 40


def test_noise_that_hides_a_reject_does_not_undo_a_contradiction() -> None:
    check = {"kind": "between", "low": -4.0, "high": 4.0}
    assert verdict(check, [5.0], dataset(50.0, 1.0, trials=10)).verdict == "contradicted"


def test_a_fixed_tolerance_minds_the_noise() -> None:
    check = {"kind": "close", "expected": 0.0, "absolute": 1.0}
    assert verdict(check, [9.0], dataset(0.5, 0.25)).verdict == "reproduced"
    assert verdict(check, [9.0], dataset(0.5, 0.3)).verdict == "inconclusive"


def test_a_tolerance_in_standard_errors_needs_one() -> None:
    check = {"kind": "close", "expected": 0.5, "sigmas": 4.0}
    found = verdict(check, [0.0], dataset(0.5))
    assert found.verdict == "inconclusive"
    assert "counts standard errors" in found.reason
    assert verdict(check | {"absolute": 0.01}, [0.0], dataset(0.5)).verdict == "reproduced"


def test_a_curve_names_the_step_that_decides() -> None:
    check = {"kind": "monotone", "direction": "decreasing"}
    found = verdict(check, [[0.0, 1.0]], dataset([3.0, 1.0, 2.0]))
    assert found.verdict == "contradicted"
    assert found.at == "from clip=2 to clip=3"
    assert found.reason == "out of bounds by 1 from clip=2 to clip=3"
    assert found.observed == (3.0, 1.0, 2.0)


def test_an_array_names_the_element_that_decides() -> None:
    check = {"kind": "all", "of": ABOVE}
    found = verdict(check, [-1.0], dataset([3.0, -2.0, 2.0], [0.1, 0.1, 0.1], trials=9))
    assert (found.verdict, found.at, found.margin) == ("contradicted", "clip=2", -2.0)


def test_nan_is_visible_and_infinity_is_a_value() -> None:
    check = {"kind": "all", "of": ABOVE}
    found = verdict(check, [-1.0], dataset([1.0, math.nan, math.nan]))
    assert found.verdict == "inconclusive"
    assert found.reason == "the evidence is not a number at clip=2 and 1 more"
    assert verdict(ABOVE, [-1.0], dataset(math.nan)).reason.endswith("not a number at risk")
    assert verdict(ABOVE, [-1.0], dataset(math.inf)).verdict == "reproduced"
    assert verdict(ABOVE, [-1.0], dataset(-math.inf)).verdict == "contradicted"


def test_a_shape_that_does_not_fit_names_the_evidence() -> None:
    with pytest.raises(ValueError, match=r"simulation/trajectories\.risk: check 'above' takes"):
        verdict(ABOVE, [-1.0], dataset([1.0, 2.0]))


def test_stand_in_data_tests_nothing() -> None:
    stand_in = dataset(5.0, stand_in=np.int64(1), stand_in_reason="diabetes stands in")
    found = verdict(ABOVE, [-1.0], stand_in)
    assert (found.verdict, found.reason, found.observed) == ("untested", "diabetes stands in", None)
    assert verdict(ABOVE, [-1.0], dataset(5.0, stand_in=0)).verdict == "reproduced"


def test_a_paper_that_is_wrong_is_contradicted_as_expected_and_its_pair_holds() -> None:
    evidence = dataset(0.25, 0.01, trials=100)
    printed = verdict(
        {"kind": "close", "expected": 0.5, "sigmas": 4.0},
        [0.25],
        evidence,
        expect="contradicted",
        pair="what-holds",
    )
    holds = verdict(
        {"kind": "close", "expected": 0.25, "sigmas": 4.0}, [0.5], evidence, id="what-holds"
    )
    assert (printed.verdict, printed.as_expected) == ("contradicted", True)
    assert (holds.verdict, holds.as_expected) == ("reproduced", True)
    assert gate([printed, holds]) == []
    assert summary([printed, holds]) == (
        "2 claims: 1 reproduced, 1 contradicted; 1 of the contradictions as expected"
    )


def mixed(scale: str = "paper") -> list[Verdict]:
    check = {"kind": "all", "of": ABOVE}
    stand_in = dataset(1.0, stand_in=1, stand_in_reason="diabetes stands in")
    return [
        verdict(ABOVE, [-1.0], dataset(1.0), scale=scale),
        verdict(ABOVE, [-1.0], dataset(-1.0), scale=scale, id="wrong"),
        verdict(ABOVE, [-1.0], dataset(0.1, 1.0, trials=3), scale=scale, id="noisy"),
        verdict(ABOVE, [-1.0], stand_in, scale=scale, id="stand-in"),
        verdict(check, [-1.0], dataset([1.0, math.inf, math.nan]), scale=scale, id="mixed"),
        verdict(ABOVE, [-1.0], dataset(1.0), scale=scale, id="cured", expect="contradicted",
                note="n"),
    ]  # fmt: skip


def test_the_gate_lists_what_differs_and_forgives_stand_ins() -> None:
    lines = gate(mixed())
    assert [line.split(":")[0] for line in lines] == [
        f"bombari2025/{name}" for name in ("wrong", "noisy", "mixed", "cured")
    ]
    assert all("\n" not in line for line in lines)
    assert "contradicted, expected reproduced; observed -1, asked at least 0" in lines[0]
    assert "rebuild: snakemake results/claims/bombari2025/the-claim.json" in lines[0]
    assert "4 not as expected" in summary(mixed())
    assert "1 untested because bundled data stands in" in summary(mixed())


def test_at_reduced_scale_nothing_fails_and_the_summary_says_so() -> None:
    assert gate(mixed("quick")) == []
    assert summary(mixed("quick")).endswith("6 at reduced scale, which decides nothing")


def test_json_is_valid_sorted_deterministic_and_complete() -> None:
    verdicts = mixed()
    text = to_json(verdicts)
    plain = json.loads(text, parse_constant=pytest.fail)  # no bare NaN or Infinity
    assert [list(item) for item in plain] == [sorted(item) for item in plain]
    assert to_json(from_json(text)) == text == to_json(mixed())
    for found in verdicts:
        one = found.model_dump_json(indent=2)
        assert list(json.loads(one)) == sorted(Verdict.model_fields)
        assert Verdict.model_validate_json(one).model_dump_json(indent=2) == one
    assert from_json(text)[0] == verdicts[0]
    assert plain[4]["observed"] == [1.0, "Infinity", "NaN"]


def test_the_table_has_a_row_a_verdict() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(mixed()))))
    assert rows == collect(mixed())
    assert [row["verdict"] for row in rows][:4] == [
        "reproduced",
        "contradicted",
        "inconclusive",
        "untested",
    ]
    assert rows[2]["trials_needed"] == "1200"
    assert rows[1]["as_expected"] == "no"


def test_a_setting_left_out_of_the_reduced_scale_is_untested():
    dataset = xr.Dataset(
        {"slope": ("dimension", [0.1, 0.2])}, coords={"dimension": ("dimension", [10, 100])}
    )
    values = {
        "id": "left-out",
        "where": "Figure 1",
        "statement": "A statement.",
        "evidence": {
            "artifact": "theory/trajectories",
            "variable": "slope",
            "select": {"dimension": 1000},
        },
        "check": {"kind": "below", "high": 1.0},
        "rejects": [2.0],
    }
    entry = Entry.model_validate(values)
    about = {"paper": "bombari2025", "digest": "0" * 64, "command": "snakemake x"}
    verdict = judge(entry, dataset, **about, scale="quick")
    assert verdict.verdict == "untested"
    assert "left out of the reduced scale" in verdict.reason
    with pytest.raises(ValueError, match="1000"):
        judge(entry, dataset, **about, scale="paper")
