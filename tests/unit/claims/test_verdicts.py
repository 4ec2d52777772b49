"""Judgements: noise, the power rule, trials that would decide, stand-ins, runs, errors."""

import math
from typing import Any

import numpy as np
import pytest
import xarray as xr

from reproduction.engine.ledger import Ledger, parse_topic
from reproduction.engine.verdicts import (
    CheckResult,
    Record,
    judge,
    records_from_json,
    records_to_json,
)

SIMULATION, THEORY = "simulation/trajectories", "theory/trajectories"
ABOVE = {"kind": "above", "low": 0.0}
BETWEEN = {"kind": "between", "low": -4.0, "high": 4.0}
EVERY = {"kind": "all", "of": ABOVE}


def dataset(value: Any, error: Any = None, **attributes: Any) -> xr.Dataset:
    dims = ("clip",) * np.ndim(value)
    variables: dict[str, Any] = {"risk": (dims, value)}
    if error is not None:
        variables["risk"] += ({"ancillary_variables": "risk_standard_error"},)
        variables["risk_standard_error"] = (dims, error)
    coords = {"clip": np.arange(1.0, 1 + len(value))} if dims else {}
    return xr.Dataset(variables, coords=coords, attrs=attributes)


def judged(entry: dict[str, Any], datasets: dict[str, xr.Dataset], scale: Any = "paper") -> Record:
    about = {"id": "a", "kind": "theorem", "where": "1", "statement": "It holds."}
    topic = parse_topic({"topic": "T", "statements": [about | entry]}, "t", "x")
    digests = dict.fromkeys(datasets, "ab" * 32)
    (found,) = judge(Ledger("bombari2025", (topic,)), datasets, digests=digests, scale=scale)
    return found


def judgement(
    probes: list[dict[str, Any]], seen: xr.Dataset, scale: Any = "paper", **others: xr.Dataset
) -> Record:
    datasets = {SIMULATION: seen} | {f"{stage}/trajectories": of for stage, of in others.items()}
    return judged({"checks": probes}, datasets, scale)


def probe(check: dict[str, Any], rejects: list[Any], **evidence: Any) -> dict[str, Any]:
    found = {"artifact": SIMULATION, "variable": "risk"} | evidence
    return {"evidence": found, "check": check, "rejects": rejects}


def verdict(check: dict[str, Any], rejects: list[Any], evidence: xr.Dataset) -> CheckResult:
    found = judgement([probe(check, rejects)], evidence)
    (result,) = found.runs[0].checks
    words = {"passed": "reproduced", "failed": "contradicted"}
    assert found.verdict == words.get(result.outcome, result.outcome)
    assert found.reason == result.reason
    return result


def test_a_deterministic_claim_is_reproduced_or_contradicted() -> None:
    good, bad = verdict(ABOVE, [-1.0], dataset(0.5)), verdict(ABOVE, [-1.0], dataset(-0.5))
    assert (good.outcome, good.margin, good.reason) == ("passed", 0.5, "")
    assert (bad.outcome, bad.margin, bad.reason) == ("failed", -0.5, "out of bounds by 0.5")
    assert verdict(ABOVE, [-1.0], dataset(0.0)).outcome == "passed"


def test_evidence_that_takes_a_wrong_version_is_inconclusive() -> None:
    """A bound of 1 observed at 0.3: half of it would hold as well, a quarter would not."""
    bound = probe({"kind": "below", "high": 1.0}, [1.01])
    wrong = {"says": "Half the bound.", "check": {"kind": "below", "high": 0.5}}
    quarter = {"says": "A quarter of it.", "check": {"kind": "below", "high": 0.25}}
    loose = judgement([bound | {"wrong": [wrong]}], dataset(0.3))
    assert loose.verdict == "inconclusive"
    assert loose.reason == "the evidence does not refuse the wrong version: Half the bound."
    assert judgement([bound | {"wrong": [quarter]}], dataset(0.3)).verdict == "reproduced"
    assert judgement([bound | {"wrong": [quarter, wrong]}], dataset(0.3)).verdict == "inconclusive"
    # Noise that hides the difference refuses nothing.
    noisy = dataset(0.3, 0.04, trials=10)
    assert judgement([bound | {"wrong": [quarter]}], noisy).verdict == "inconclusive"


def test_a_wrong_version_may_read_another_quantity_or_more_of_it() -> None:
    found = dataset(0.3).assign(other=2.0)
    for variable, verdict in (("other", "reproduced"), ("risk", "inconclusive")):
        wrong = {"says": "Of the other quantity.", "evidence": {"variable": variable}}
        bound = probe({"kind": "below", "high": 1.0}, [1.01]) | {"wrong": [wrong]}
        assert judgement([bound], found).verdict == verdict
    everywhere = {
        "says": "Everywhere.",
        "evidence": {"select": {}},
        "check": {"kind": "all", "of": {"kind": "below", "high": 1.0}},
    }
    first = probe({"kind": "below", "high": 1.0}, [1.01], select={"clip": 1.0})
    assert judgement([first | {"wrong": [everywhere]}], dataset([0.5, 2.0])).verdict == "reproduced"


def test_noise_across_the_bound_is_inconclusive_and_says_what_would_decide() -> None:
    found = verdict(ABOVE, [-100.0], dataset(0.5, 0.5, trials=10))
    assert found.outcome == "inconclusive"
    assert found.trials_needed == math.ceil(10 * (2 * 0.5 / 0.5) ** 2) == 40
    assert found.reason == ("the noise straddles the bound (1 s.e.); 40 trials would decide")
    assert verdict(ABOVE, [-100.0], dataset(-0.5, 0.5, trials=10)).trials_needed == 40
    decided = verdict(ABOVE, [-100.0], dataset(0.5, 0.25, trials=40))
    assert (decided.outcome, decided.trials_needed) == ("passed", None)
    assert verdict(ABOVE, [-100.0], dataset(-0.5, 0.25, trials=40)).outcome == "failed"
    on_it = verdict(ABOVE, [-100.0], dataset(0.0, 0.5, trials=10))
    assert (on_it.outcome, on_it.trials_needed) == ("inconclusive", None)
    assert on_it.reason.endswith("no number of trials would decide")


def test_power_rule_a_reject_within_the_noise_is_inconclusive() -> None:
    check = {"kind": "close", "expected": 0.5, "sigmas": 4.0}
    noisy = verdict(check, [0.0], dataset(0.4, 0.25, trials=10))
    assert noisy.outcome == "inconclusive"
    # 4 s = 0.5 at 40 trials would still reach the reject; one more trial leaves it outside, and by
    # then the observation itself, 0.1 away, is still within 4 s.
    assert noisy.trials_needed == 41
    assert noisy.reason == ("the noise is too large to refuse 0; 41 trials would decide")
    assert verdict(check, [0.0], dataset(0.4, 0.1, trials=63)).outcome == "passed"
    assert "counts standard errors" in verdict(check, [0.0], dataset(0.5)).reason
    assert verdict(check | {"absolute": 0.01}, [0.0], dataset(0.5)).outcome == "passed"


def test_power_rule_for_bounds_asks_for_two_standard_errors_beyond() -> None:
    assert verdict(BETWEEN, [5.0], dataset(0.0, 0.5, trials=10)).outcome == "passed"
    noisy = verdict(BETWEEN, [5.0], dataset(0.0, 1.0, trials=10))
    assert (noisy.outcome, noisy.trials_needed) == ("inconclusive", 40)
    # Noise that hides a reject does not undo a contradiction.
    assert verdict(BETWEEN, [5.0], dataset(50.0, 1.0, trials=10)).outcome == "failed"


@pytest.mark.parametrize(
    ("check", "value"),
    [(ABOVE, 5.0), ({"kind": "below", "high": 0.0}, -5.0), (BETWEEN, 0.0), (EVERY, [5.0, 7.0])],
)
def test_power_rule_what_a_check_resolves_is_refused_wherever_it_lies(
    check: Any, value: Any
) -> None:
    """At 1 beyond a bound a standard error of 0.4 tells it, and one of 0.6 does not."""
    for error, verdict in ((0.4, "reproduced"), (0.6, "inconclusive")):
        noise = np.full(np.shape(value), error) if check is not EVERY else [0.1, error]
        made = probe(check, []) | {"resolves": 1.0}
        assert judgement([made], dataset(value, noise)).verdict == verdict


def test_noise_asks_what_it_must_not_hide() -> None:
    assert verdict(ABOVE, [], dataset(1.0)).outcome == "passed"
    assert "one of resolves, rejects and wrong" in verdict(ABOVE, [], dataset(1.0, 0.1)).reason


def test_a_fixed_tolerance_minds_the_noise() -> None:
    check = {"kind": "close", "expected": 0.0, "absolute": 1.0}
    assert verdict(check, [9.0], dataset(0.5, 0.25)).outcome == "passed"
    assert verdict(check, [9.0], dataset(0.5, 0.3)).outcome == "inconclusive"


def test_a_curve_and_an_array_name_the_place_that_decides() -> None:
    check = {"kind": "monotone", "direction": "decreasing"}
    found = verdict(check, [[0.0, 1.0]], dataset([3.0, 1.0, 2.0]))
    assert (found.outcome, found.at) == ("failed", "from clip=2 to clip=3")
    assert found.reason == "out of bounds by 1 from clip=2 to clip=3"
    assert found.observed == (3.0, 1.0, 2.0)
    found = verdict(EVERY, [-1.0], dataset([3.0, -2.0, 2.0], [0.1, 0.1, 0.1], trials=9))
    assert (found.outcome, found.at, found.margin) == ("failed", "clip=2", -2.0)


def test_nan_is_visible_and_infinity_is_a_value() -> None:
    found = verdict(EVERY, [-1.0], dataset([1.0, math.nan, math.nan]))
    assert found.outcome == "inconclusive"
    assert found.reason == "the evidence is not a number at clip=2 and 1 more"
    assert verdict(ABOVE, [-1.0], dataset(math.inf)).outcome == "passed"
    assert verdict(ABOVE, [-1.0], dataset(-math.inf)).outcome == "failed"
    made = [judgement([probe(ABOVE, [-math.inf])], dataset(value)) for value in (1.0, math.inf)]
    assert records_from_json(records_to_json(made)) == made


def test_what_cannot_be_judged_is_untested_and_says_why() -> None:
    found = verdict(ABOVE, [-1.0], dataset([1.0, 2.0]))
    assert found.outcome == "untested"
    assert found.reason.startswith("simulation/trajectories.risk: check 'above' takes")
    nothing = judged({"checks": [], "expect": "untested", "note": "No data."}, {})
    assert (nothing.verdict, nothing.reason) == ("untested", "there is no evidence to read")
    assert "KeyError" in judged({"checks": [probe(ABOVE, [-1.0])]}, {}).reason


def test_stand_in_data_tests_nothing() -> None:
    stand_in = dataset(5.0, stand_in=np.int64(1), stand_in_reason="diabetes stands in")
    found = judgement([probe(ABOVE, [-1.0])], stand_in)
    assert (found.verdict, found.reason, found.stand_in) == ("untested", "diabetes stands in", True)
    assert verdict(ABOVE, [-1.0], dataset(5.0, stand_in=0)).outcome == "passed"


def test_a_wrong_check_leaves_its_siblings_alone() -> None:
    wrong = probe(ABOVE, [-1.0], variable="risc")
    found = judgement([probe(ABOVE, [-1.0]), wrong], dataset(1.0))
    assert found.verdict == "untested"
    assert [check.outcome for check in found.runs[0].checks] == ["passed", "untested"]
    assert "did you mean 'risk'" in found.reason


@pytest.mark.parametrize(
    ("values", "of_checks", "of_runs"),
    [
        ((1.0, 1.0), "reproduced", "reproduced"),
        ((-1.0, -1.0), "contradicted", "contradicted"),
        ((1.0, -1.0), "contradicted", "depends on our choice"),
        ((math.nan, -1.0), "contradicted", "inconclusive"),
        ((math.nan, 1.0), "inconclusive", "inconclusive"),
    ],
)
def test_of_checks_the_worst_counts_and_runs_at_choices_must_agree(
    values: tuple[float, ...], of_checks: str, of_runs: str
) -> None:
    probes = [probe(ABOVE, [-1.0], select={"clip": clip}) for clip in (1.0, 2.0)]
    evidence = dataset(list(values))
    assert judgement(probes, evidence).verdict == of_checks
    runs = [{"label": f"{at}", "checks": [each]} for at, each in enumerate(probes)]
    choice = {"choice": "The clip.", "runs": runs}
    assert judged({"depends_on_choice": choice}, {SIMULATION: evidence}).verdict == of_runs


EXPECTED = {"artifact": THEORY, "variable": "risk"}


def test_what_is_expected_is_read_from_its_artifact_with_its_noise() -> None:
    check = {"kind": "close", "expected": EXPECTED, "sigmas": 4.0}
    probes = [probe(check, [{"times": 0.5}, {"times": 1.5}])]
    theory = dataset(1.0, 0.04)
    found = judgement(probes, dataset(1.2, 0.03, trials=10), theory=theory)
    (result,) = found.runs[0].checks
    # 0.03 and 0.04 are 0.05 together.
    assert result.z == pytest.approx(4.0)
    assert (result.low, result.high) == pytest.approx((0.8, 1.2))
    assert found.verdict == "reproduced"
    assert result.rejected == (0.5, 1.5)
    assert sorted(result.digests) == [SIMULATION, THEORY]
    assert judgement(probes, dataset(1.3, 0.03), theory=theory).verdict == "contradicted"
    # A tolerance that takes what it must refuse is noticed once the bound is read.
    loose = probe({"kind": "close", "expected": EXPECTED, "relative": 0.9}, [{"times": 1.5}])
    found = judgement([loose], dataset(1.0), theory=dataset(1.0))
    assert found.verdict == "untested"
    assert "cannot refuse 1.5" in found.reason


def test_a_list_is_read_as_a_list_and_a_bound_as_a_number() -> None:
    check = {"kind": "close", "expected": EXPECTED, "absolute": 0.5}
    seen, theory = dataset([1.0, 2.0]), dataset([1.2, 5.0])
    found = judgement([probe(check, [[1.2, 6.0]])], seen, theory=theory)
    assert (found.verdict, found.runs[0].checks[0].at) == ("contradicted", "clip=2")
    check = {"kind": "all", "of": {"kind": "below", "high": EXPECTED | {"select": {"clip": 2.0}}}}
    assert judgement([probe(check, [6.0])], seen, theory=theory).verdict == "reproduced"
    check = {"kind": "below", "high": EXPECTED}
    found = judgement([probe(check, [6.0], select={"clip": 1.0})], seen, theory=theory)
    assert found.reason == "high = theory/trajectories.risk: expected one number, found 2"


def test_a_setting_left_out_of_the_reduced_scale_is_untested() -> None:
    probes, seen = [probe(ABOVE, [-1.0], select={"clip": 9.0})], dataset([1.0, 2.0])
    assert judgement(probes, seen, "quick").reason.startswith("left out of the reduced scale")
    assert "the nearest is 2" in judgement(probes, seen).reason
