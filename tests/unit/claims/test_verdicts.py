"""Judgements: noise, the power rule, trials that would decide, stand-ins, runs, errors."""

import math
from typing import Any, ClassVar

import numpy as np
import pytest
import xarray as xr

from reproduction.claims.decision import trials_to_decide
from reproduction.claims.entries import Statement
from reproduction.claims.verdicts import CheckResult, Judgement, case, from_json, judge, to_json

ABOVE = {"kind": "above", "low": 0.0}


def dataset(value: Any, error: Any = None, **attributes: Any) -> xr.Dataset:
    dims = ("clip",) * np.ndim(value)
    variables: dict[str, Any] = {"risk": (dims, value)}
    if error is not None:
        variables["risk"] += ({"ancillary_variables": "risk_standard_error"},)
        variables["risk_standard_error"] = (dims, error)
    coords = {"clip": np.arange(1.0, 1 + len(value))} if dims else {}
    return xr.Dataset(variables, coords=coords, attrs=attributes)


def judgement(
    probes: list[dict[str, Any]], datasets: dict[str, xr.Dataset], scale: Any = "paper"
) -> Judgement:
    entry = Statement.model_validate(
        {
            "id": "the-claim",
            "kind": "theorem",
            "where": "Theorem 1",
            "statement": "It holds.",
            "checks": probes,
        }
    )
    digests = dict.fromkeys(datasets, "ab" * 32)
    return judge(case(entry), datasets, paper="bombari2025", digests=digests, scale=scale)


def probe(check: dict[str, Any], rejects: list[Any], **evidence: Any) -> dict[str, Any]:
    found = {"artifact": "simulation/trajectories", "variable": "risk"} | evidence
    return {"evidence": found, "check": check, "rejects": rejects}


def verdict(check: dict[str, Any], rejects: list[Any], evidence: xr.Dataset) -> CheckResult:
    found = judgement([probe(check, rejects)], {"simulation/trajectories": evidence})
    assert len(found.runs) == 1
    (result,) = found.runs[0].checks
    assert found.outcome == result.outcome
    assert found.reason == result.reason
    return result


def test_a_deterministic_claim_is_reproduced_or_contradicted() -> None:
    good = verdict(ABOVE, [-1.0], dataset(0.5))
    assert (good.outcome, good.margin, good.reason) == ("passed", 0.5, "")
    bad = verdict(ABOVE, [-1.0], dataset(-0.5))
    assert (bad.outcome, bad.margin) == ("failed", -0.5)
    assert bad.reason == "out of bounds by 0.5"
    assert verdict(ABOVE, [-1.0], dataset(0.0)).outcome == "passed"


def test_evidence_that_takes_a_wrong_version_is_inconclusive() -> None:
    """A bound of 1 observed at 0.3: half of it would hold as well, a quarter would not."""
    bound = probe({"kind": "below", "high": 1.0}, [1.01])
    wrong = {"says": "Half the bound.", "check": {"kind": "below", "high": 0.5}}
    evidence = {"simulation/trajectories": dataset(0.3)}
    loose = judgement([bound | {"wrong": [wrong]}], evidence)
    assert loose.outcome == "inconclusive"
    assert loose.reason == "the evidence does not refuse the wrong version: Half the bound."
    quarter = {"says": "A quarter of it.", "check": {"kind": "below", "high": 0.25}}
    assert judgement([bound | {"wrong": [quarter]}], evidence).outcome == "passed"
    both = judgement([bound | {"wrong": [quarter, wrong]}], evidence)
    assert both.outcome == "inconclusive"
    # Noise that hides the difference refuses nothing.
    noisy = {"simulation/trajectories": dataset(0.3, 0.04, trials=10)}
    assert judgement([bound | {"wrong": [quarter]}], noisy).outcome == "inconclusive"


def test_a_wrong_version_may_read_another_quantity() -> None:
    found = dataset(0.3).assign(other=2.0)
    for variable, outcome in (("other", "passed"), ("risk", "inconclusive")):
        wrong = {"says": "Of the other quantity.", "evidence": {"variable": variable}}
        bound = probe({"kind": "below", "high": 1.0}, [1.01]) | {"wrong": [wrong]}
        assert judgement([bound], {"simulation/trajectories": found}).outcome == outcome


def test_noise_across_the_bound_is_inconclusive_and_says_what_would_decide() -> None:
    found = verdict(ABOVE, [-100.0], dataset(0.5, 0.5, trials=10))
    assert found.outcome == "inconclusive"
    assert found.trials_needed == math.ceil(10 * (2 * 0.5 / 0.5) ** 2) == 40
    assert found.reason == ("the noise straddles the bound (1 s.e.); 40 trials would decide")
    assert verdict(ABOVE, [-100.0], dataset(-0.5, 0.5, trials=10)).trials_needed == 40
    decided = verdict(ABOVE, [-100.0], dataset(0.5, 0.25, trials=40))
    assert (decided.outcome, decided.trials_needed) == ("passed", None)
    assert verdict(ABOVE, [-100.0], dataset(-0.5, 0.25, trials=40)).outcome == "failed"


@pytest.mark.parametrize(("trials", "sigmas"), [(7, 1.3), (100, 0.01), (3, 1.999)])
def test_the_number_of_trials_is_the_smallest_that_decides(trials: int, sigmas: float) -> None:
    def decided(shrink: float) -> bool:
        return sigmas >= 2 * shrink

    assert trials_to_decide(decided, trials) == math.ceil(trials * (2 / sigmas) ** 2)


def test_what_never_decides_has_no_number_of_trials() -> None:
    assert trials_to_decide(lambda shrink: False, 10) is None


def test_no_number_of_trials_decides_a_value_on_its_bound() -> None:
    found = verdict(ABOVE, [-100.0], dataset(0.0, 0.5, trials=10))
    assert (found.outcome, found.trials_needed) == ("inconclusive", None)
    assert found.reason.endswith("no number of trials would decide")


def test_without_a_count_of_trials_the_factor_is_said() -> None:
    found = verdict(ABOVE, [-100.0], dataset(0.5, 0.5))
    assert found.trials_needed is None
    assert found.reason.endswith("about 4 times the number of trials would decide")


def test_power_rule_a_reject_within_the_noise_is_inconclusive() -> None:
    check = {"kind": "close", "expected": 0.5, "sigmas": 4.0}
    noisy = verdict(check, [0.0], dataset(0.4, 0.25, trials=10))
    assert noisy.outcome == "inconclusive"
    # 4 s = 0.5 at 40 trials would still reach the reject; one more trial leaves it outside, and by
    # then the observation itself, 0.1 away, is still within 4 s.
    assert noisy.trials_needed == 41
    assert noisy.reason == ("too noisy to tell what is claimed from 0; 41 trials would decide")
    assert verdict(check, [0.0], dataset(0.4, 0.1, trials=63)).outcome == "passed"


def test_power_rule_for_bounds_asks_for_two_standard_errors_beyond() -> None:
    check = {"kind": "between", "low": -4.0, "high": 4.0}
    assert verdict(check, [5.0], dataset(0.0, 0.5, trials=10)).outcome == "passed"
    noisy = verdict(check, [5.0], dataset(0.0, 1.0, trials=10))
    assert noisy.outcome == "inconclusive"
    assert noisy.trials_needed == 40


def test_noise_that_hides_a_reject_does_not_undo_a_contradiction() -> None:
    check = {"kind": "between", "low": -4.0, "high": 4.0}
    assert verdict(check, [5.0], dataset(50.0, 1.0, trials=10)).outcome == "failed"


def test_a_fixed_tolerance_minds_the_noise() -> None:
    check = {"kind": "close", "expected": 0.0, "absolute": 1.0}
    assert verdict(check, [9.0], dataset(0.5, 0.25)).outcome == "passed"
    assert verdict(check, [9.0], dataset(0.5, 0.3)).outcome == "inconclusive"


def test_a_tolerance_in_standard_errors_needs_one() -> None:
    check = {"kind": "close", "expected": 0.5, "sigmas": 4.0}
    found = verdict(check, [0.0], dataset(0.5))
    assert found.outcome == "inconclusive"
    assert "counts standard errors" in found.reason
    assert verdict(check | {"absolute": 0.01}, [0.0], dataset(0.5)).outcome == "passed"


def test_a_curve_names_the_step_that_decides() -> None:
    check = {"kind": "monotone", "direction": "decreasing"}
    found = verdict(check, [[0.0, 1.0]], dataset([3.0, 1.0, 2.0]))
    assert found.outcome == "failed"
    assert found.at == "from clip=2 to clip=3"
    assert found.reason == "out of bounds by 1 from clip=2 to clip=3"
    assert found.observed == (3.0, 1.0, 2.0)


def test_an_array_names_the_element_that_decides() -> None:
    check = {"kind": "all", "of": ABOVE}
    found = verdict(check, [-1.0], dataset([3.0, -2.0, 2.0], [0.1, 0.1, 0.1], trials=9))
    assert (found.outcome, found.at, found.margin) == ("failed", "clip=2", -2.0)


def test_nan_is_visible_and_infinity_is_a_value() -> None:
    check = {"kind": "all", "of": ABOVE}
    found = verdict(check, [-1.0], dataset([1.0, math.nan, math.nan]))
    assert found.outcome == "inconclusive"
    assert found.reason == "the evidence is not a number at clip=2 and 1 more"
    assert verdict(ABOVE, [-1.0], dataset(math.nan)).reason.endswith("not a number at risk")
    assert verdict(ABOVE, [-1.0], dataset(math.inf)).outcome == "passed"
    assert verdict(ABOVE, [-1.0], dataset(-math.inf)).outcome == "failed"


def test_what_does_not_fit_is_untested_and_names_the_evidence() -> None:
    found = verdict(ABOVE, [-1.0], dataset([1.0, 2.0]))
    assert found.outcome == "untested"
    assert found.reason.startswith("simulation/trajectories.risk: check 'above' takes")


def test_an_entry_without_checks_is_untested_with_a_reason() -> None:
    found = judge({"id": "a", "runs": []}, {}, paper="bombari2025", digests={})
    assert (found.outcome, found.reason) == ("untested", "there is no evidence to read")


def test_stand_in_data_tests_nothing() -> None:
    stand_in = dataset(5.0, stand_in=np.int64(1), stand_in_reason="diabetes stands in")
    found = judgement([probe(ABOVE, [-1.0])], {"simulation/trajectories": stand_in})
    assert (found.outcome, found.reason, found.stand_in) == ("untested", "diabetes stands in", True)
    assert verdict(ABOVE, [-1.0], dataset(5.0, stand_in=0)).outcome == "passed"


def test_a_wrong_check_leaves_its_siblings_alone() -> None:
    wrong = probe(ABOVE, [-1.0], variable="risc")
    found = judgement([probe(ABOVE, [-1.0]), wrong], {"simulation/trajectories": dataset(1.0)})
    assert found.outcome == "untested"
    assert [check.outcome for check in found.runs[0].checks] == ["passed", "untested"]
    assert "did you mean 'risk'" in found.reason


def test_a_case_that_is_no_case_is_untested() -> None:
    for value in ({"id": "a"}, {"id": "a", "runs": [{}]}, {"id": "a", "runs": [3]}):
        found = judge(value, {}, paper="bombari2025", digests={})
        assert (found.id, found.outcome) == ("a", "untested")
        assert found.reason
    found = judgement([probe(ABOVE, [-1.0])], {})
    assert found.outcome == "untested"
    assert "simulation/trajectories" in found.reason


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ((1.0, 1.0), "passed"),
        ((1.0, -1.0), "failed"),
        ((math.nan, -1.0), "failed"),
        ((math.nan, 1.0), "inconclusive"),
    ],
)
def test_of_several_checks_the_worst_counts(values: tuple[float, ...], outcome: str) -> None:
    evidence = dataset(list(values))
    probes = [probe(ABOVE, [-1.0], select={"clip": clip}) for clip in (1.0, 2.0)]
    assert judgement(probes, {"simulation/trajectories": evidence}).outcome == outcome


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ((1.0, 1.0), "passed"),
        ((-1.0, -1.0), "failed"),
        ((1.0, -1.0), "depends on our choice"),
        ((1.0, math.nan), "inconclusive"),
        ((-1.0, math.nan), "inconclusive"),
    ],
)
def test_runs_at_several_choices(values: tuple[float, ...], outcome: str) -> None:
    runs = [
        {"label": f"clip {clip}", "checks": [probe(ABOVE, [-1.0], select={"clip": clip})]}
        for clip in (1.0, 2.0)
    ]
    value = {"id": "a", "runs": runs}
    evidence = {"simulation/trajectories": dataset(list(values))}
    assert judge(value, evidence, paper="bombari2025", digests={}).outcome == outcome


EXPECTED = {"artifact": "theory/trajectories", "variable": "risk"}


def test_what_is_expected_is_read_from_its_artifact_with_its_noise() -> None:
    check = {"kind": "close", "expected": EXPECTED, "sigmas": 4.0}
    probes = [probe(check, [{"times": 0.5}, {"times": 1.5}])]
    theory = dataset(1.0, 0.04)
    simulated = dataset(1.2, 0.03, trials=10)
    found = judgement(probes, {"simulation/trajectories": simulated, "theory/trajectories": theory})
    (result,) = found.runs[0].checks
    # 0.03 and 0.04 are 0.05 together.
    assert result.z == pytest.approx(4.0)
    assert (result.low, result.high) == pytest.approx((0.8, 1.2))
    assert found.outcome == "passed"
    assert result.rejected == (0.5, 1.5)
    assert sorted(result.digests) == ["simulation/trajectories", "theory/trajectories"]
    assert judgement(probes, {"simulation/trajectories": dataset(1.3, 0.03),
                              "theory/trajectories": theory}).outcome == "failed"  # fmt: skip


def test_a_list_is_read_as_a_list_and_a_bound_as_a_number() -> None:
    check = {"kind": "close", "expected": EXPECTED, "absolute": 0.5}
    both = {
        "simulation/trajectories": dataset([1.0, 2.0]),
        "theory/trajectories": dataset([1.2, 5.0]),
    }
    found = judgement([probe(check, [[1.2, 6.0]])], both)
    assert (found.outcome, found.runs[0].checks[0].at) == ("failed", "clip=2")
    check = {"kind": "all", "of": {"kind": "below", "high": EXPECTED | {"select": {"clip": 2.0}}}}
    assert judgement([probe(check, [6.0])], both).outcome == "passed"
    check = {"kind": "below", "high": EXPECTED}
    found = judgement([probe(check, [6.0], select={"clip": 1.0})], both)
    assert found.reason == "high = theory/trajectories.risk: expected one number, found 2"


def test_a_bound_that_is_read_must_still_refuse() -> None:
    check = {"kind": "close", "expected": EXPECTED, "relative": 0.9}
    both = {"simulation/trajectories": dataset(1.0), "theory/trajectories": dataset(1.0)}
    found = judgement([probe(check, [{"times": 1.5}])], both)
    assert found.outcome == "untested"
    assert "cannot refuse 1.5" in found.reason


def test_a_setting_left_out_of_the_reduced_scale_is_untested() -> None:
    probes = [probe(ABOVE, [-1.0], select={"clip": 9.0})]
    evidence = {"simulation/trajectories": dataset([1.0, 2.0])}
    assert judgement(probes, evidence, "quick").reason.startswith("left out of the reduced scale")
    assert judgement(probes, evidence, "own").reason.startswith("not at your own scale: ")
    assert "the nearest is 2" in judgement(probes, evidence).reason


def test_whatever_is_wrong_with_an_entry_it_alone_is_untested() -> None:
    class Broken:
        attrs: ClassVar[dict[str, Any]] = {}

    found = judgement([probe(ABOVE, [-1.0])], {"simulation/trajectories": Broken()})
    assert found.outcome == "untested"
    assert found.reason.startswith("AttributeError: ")


def test_judgements_survive_json_with_infinity() -> None:
    found = [
        judgement([probe(ABOVE, [-math.inf])], {"simulation/trajectories": dataset(value)})
        for value in (1.0, math.inf, math.nan)
    ]
    assert to_json(from_json(to_json(found))) == to_json(found)
    assert from_json(to_json(found))[:2] == found[:2]
    one = found[0].model_dump_json(indent=2)
    assert Judgement.model_validate_json(one) == found[0]


def test_a_wrong_version_may_look_at_all_that_its_check_looks_at_a_part_of() -> None:
    seen = xr.Dataset({"risk": ("time", [0.5, 2.0])}, coords={"time": [0.0, 1.0]})
    all_of_it = {
        "says": "At all times.",
        "evidence": {"select": {}},
        "check": {"kind": "all", "of": {"kind": "below", "high": 1.0}},
    }
    first = probe({"kind": "below", "high": 1.0}, [1.01], select={"time": 0.0})
    found = judgement([first | {"wrong": [all_of_it]}], {"simulation/trajectories": seen})
    assert found.outcome == "passed", found.reason
