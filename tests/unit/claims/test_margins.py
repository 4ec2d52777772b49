"""Margins: where growing noise undoes a verdict, and the trials that would keep it."""

import math
from typing import Any

import numpy as np
import pytest
import xarray as xr

from reproduction.claims.decision import decide
from reproduction.claims.entries import Statement
from reproduction.claims.margins import Margin, margins

ARTIFACT = "simulation/trajectories"


def dataset(value: Any, error: Any, **attributes: Any) -> xr.Dataset:
    dims = ("clip",) * np.ndim(value)
    variables = {
        "risk": (dims, value, {"ancillary_variables": "risk_standard_error"}),
        "risk_standard_error": (dims, error),
    }
    coords = {"clip": np.arange(1.0, 1 + len(value))} if dims else {}
    return xr.Dataset(variables, coords=coords, attrs=attributes)


def statement(check: dict[str, Any], rejects: list[Any], **more: Any) -> Statement:
    evidence = {"artifact": ARTIFACT, "variable": "risk"}
    probe = {"evidence": evidence, "check": check, "rejects": rejects} | more
    return Statement.model_validate(
        {"id": "rate", "kind": "theorem", "where": "1", "statement": "So.", "checks": [probe]}
    )


def only(entry: Statement, evidence: xr.Dataset) -> Margin:
    (found,) = margins(entry, {ARTIFACT: evidence})
    return found


BETWEEN = {"kind": "between", "low": 0.0, "high": 1.0}


@pytest.mark.parametrize(
    ("value", "error", "bound"),
    [(0.7, 0.1, 3.0), (0.2, 0.1, 2.0), (1.25, 0.05, 5.0), (0.9, 1, 0.1)],
)
def test_of_one_number_it_is_the_distance_to_the_nearest_bound(value, error, bound):
    found = only(statement(BETWEEN, [2.0]), dataset(value, error, trials=20))
    assert found.bound == pytest.approx(bound)
    assert found.refusal == (math.inf if value > 1 else pytest.approx(1.0 / error))
    assert (found.value, found.standard_error, found.trials) == (value, error, 20)


@pytest.mark.parametrize(
    ("check", "rejects", "values", "errors", "place"),
    [
        ({"kind": "all", "of": BETWEEN}, [3.0], [0.5, 0.3, 0.9], [0.1, 0.05, 0.04], "clip=3"),
        # The nearest of another bound in its own errors, though not in units of the risk.
        ({"kind": "all", "of": BETWEEN}, [3.0], [0.5, 0.3, 0.9], [0.24, 0.05, 0.04], "clip=1"),
        ({"kind": "all", "of": BETWEEN}, [3.0], [0.5, 1.4, 1.6], [0.1, 0.05, 0.04], "clip=3"),
        (
            {"kind": "monotone", "direction": "increasing"},
            [[2.0, 1.0, 3.0]],
            [1.0, 2.0, 2.5],
            [0.1, 0.1, 0.1],
            "from clip=2 to clip=3",
        ),
        ({"kind": "close", "expected": 0.5, "sigmas": 3}, [1.5], 0.6, 0.1, ""),
    ],
)
def test_the_verdict_stands_just_within_the_margin_and_falls_just_beyond(
    check, rejects, values, errors, place
):
    entry = statement(check, rejects)
    found = only(entry, dataset(values, errors))
    assert found.place == place
    outcome = decide(entry.checks[0], {ARTIFACT: dataset(values, errors)}).outcome
    for factor, decided in ((1 - 1e-6, True), (1 + 1e-6, False)):
        noisier = dataset(values, np.multiply(errors, factor * found.least / 2))
        again = decide(entry.checks[0], {ARTIFACT: noisier})
        assert (again.outcome == outcome) is decided


def test_a_tolerance_in_standard_errors_hangs_on_what_it_must_refuse():
    entry = statement({"kind": "close", "expected": 0.0, "sigmas": 3}, [1.0])
    found = only(entry, dataset(0.1, 0.1))
    # 1 is refused while 3 s < 1: ten standard errors away, where three and two would do.
    assert found.bound == math.inf
    assert found.refusal == pytest.approx(2 * 10 / 3)


def test_a_wrong_version_counts_as_what_must_be_refused():
    wrong = {"says": "twice as far", "check": {"kind": "above", "low": 1.3}}
    entry = statement({"kind": "above", "low": 0.0}, [-9.0], wrong=[wrong])
    found = only(entry, dataset(1.0, 0.1))
    assert (found.bound, found.refusal) == (pytest.approx(10.0), pytest.approx(3.0))


def test_trials_follow_from_the_inverse_square_root():
    found = only(statement({"kind": "above", "low": 0.0}, [-9.0]), dataset(1.0, 0.4, trials=100))
    assert found.bound == pytest.approx(2.5)
    needed = found.needed(4.0)
    assert needed == 256
    more = dataset(1.0, 0.4 * math.sqrt(100 / needed), trials=needed)
    assert only(statement({"kind": "above", "low": 0.0}, [-9.0]), more).bound == pytest.approx(4.0)


def test_a_number_on_its_bound_has_no_number_of_trials():
    found = only(statement({"kind": "above", "low": 1.0}, [-9.0]), dataset(1.0, 0.4, trials=100))
    assert found.bound < 1e-9
    assert found.needed() is None


def test_what_has_no_noise_has_no_margin():
    assert not list(margins(statement(BETWEEN, [2.0]), {ARTIFACT: dataset(0.5, 0.0)}))
