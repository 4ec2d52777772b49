"""What is refused of a check before its evidence is there."""

from __future__ import annotations

from typing import Any

import pytest

from reproduction.claims.entries import Probe
from reproduction.claims.known import Coordinate, Known, require_possible

KNOWN = Known(
    variables={"risk": ("spectrum", "time"), "slope": ("spectrum",), "total": ()},
    coordinates={
        "spectrum": Coordinate("spectrum", ("isotropic", "uniform")),
        "time": Coordinate("time", (0.1, 0.5, 1.0)),
        "step": Coordinate("time"),
    },
    sizes={"spectrum": 2, "time": 3},
)
BETWEEN = {"kind": "between", "low": 0.0, "high": 1.0}


def probe(variable: str, check: dict[str, Any] | None = None, **select: Any) -> Probe:
    evidence = {"artifact": "theory/one", "variable": variable, "select": select}
    rejects = [[2.0, 1.0, 0.0]] if check and check["kind"] in ("monotone", "ordered") else [2.0]
    return Probe.model_validate(
        {"evidence": evidence, "check": check or BETWEEN, "rejects": rejects}
    )


@pytest.mark.parametrize(
    "possible",
    [
        probe("total"),
        probe("slope", spectrum="uniform"),
        probe("risk", spectrum="uniform", time=0.5),
        probe("risk", {"kind": "all", "of": BETWEEN}),
        probe("risk", {"kind": "monotone", "direction": "increasing"}, spectrum="uniform"),
        # What a coordinate's labels are is not known: nothing is refused.
        probe("risk", spectrum="uniform", step=3),
    ],
)
def test_what_could_be_judged_is_let_through(possible):
    require_possible(possible, {"theory/one": KNOWN})


@pytest.mark.parametrize(
    ("impossible", "words"),
    [
        (probe("risks"), "evidence.variable must be one of 'risk', .* did you mean 'risk'"),
        (probe("slope", time=0.5), "evidence.select: a key must be one of 'spectrum', got 'time'"),
        (probe("slope", spectrum="unifrm"), "did you mean 'uniform'"),
        (probe("risk", spectrum="uniform", time=0.7), "nearest is 0.5"),
        (probe("risk", spectrum="uniform"), r"takes one number, got an array of shape \(3,\)"),
        (
            probe("total", {"kind": "monotone", "direction": "increasing"}),
            "takes a list of at least two, got one number",
        ),
        (
            probe("slope", {"kind": "ordered", "dimension": "spectrum", "labels": ["a", "b", "c"]}),
            "evidence.select.spectrum = 'a'",
        ),
    ],
)
def test_what_could_not_be_judged_is_refused(impossible, words):
    with pytest.raises(ValueError, match=words) as caught:
        require_possible(impossible, {"theory/one": KNOWN})
    assert "\n" not in str(caught.value)


def test_a_bound_that_an_artifact_holds_is_looked_at_too():
    bound = {"artifact": "theory/two", "variable": "rsik"}
    check = {"kind": "close", "expected": bound, "absolute": 0.1}
    with pytest.raises(ValueError, match=r"check\.expected\.variable must be one of"):
        require_possible(probe("total", check), {"theory/two": KNOWN})


def test_of_an_artifact_that_is_not_known_nothing_is_refused():
    require_possible(probe("anything", at=1), {})
