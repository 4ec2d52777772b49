"""Which statements read a part of their evidence, and whether their words name it."""

from __future__ import annotations

from typing import Any

import pytest

from reproduction.claims.known import Coordinate, Known
from reproduction.claims.ledger import Ledger, parse_topic
from reproduction.claims.subsets import subsets
from reproduction.pipeline.ledger_stages import subsets as command
from reproduction.pipeline.registry import known_papers

KNOWN = {
    "theory/one": Known(
        variables={"risk": ("spectrum", "sample_size", "schedule", "transform")},
        coordinates={
            "spectrum": Coordinate("spectrum", ("isotropic", "uniform")),
            "sample_size": Coordinate("sample_size", (100, 1000, 10000)),
            "schedule": Coordinate("schedule", ("alpha=0", "alpha=0.5", "alpha=2", "harmonic")),
            "transform": Coordinate("transform", ("exp(+iwt)", "exp(-iwt)")),
        },
        sizes={"spectrum": 2, "sample_size": 3, "schedule": 4, "transform": 2},
    )
}


def found(*selections: dict[str, Any], statement: str = "It holds.", ours: Any = ()) -> list[Any]:
    checks = [
        {
            "evidence": {"artifact": "theory/one", "variable": "risk", "select": select},
            "check": {"kind": "all", "of": {"kind": "below", "high": 1.0}},
            "rejects": [2.0],
        }
        for select in selections
    ]
    entry = {
        "id": "it-holds",
        "kind": "prose",
        "where": "Section 1",
        "statement": statement,
        "ours": list(ours),
        "checks": checks,
    }
    topic = parse_topic({"topic": "A topic", "statements": [entry]}, "a-topic", "x")
    return [
        (part.dimension, part.read, part.reason)
        for part in subsets(Ledger("paper", (topic,)), KNOWN)
    ]


def test_what_is_read_as_a_whole_is_no_subset() -> None:
    assert found({}) == []
    # Of all checks together.
    assert found({"spectrum": "isotropic"}, {"spectrum": "uniform"}) == []


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ({"spectrum": "uniform"}, "For the uniform spectrum."),
        ({"sample_size": 10000}, "At n = 10^4 it holds."),
        ({"sample_size": 10000}, "At n = 10,000 it holds."),
        ({"sample_size": [1000, 10000]}, "For n from 1000 on."),
        ({"schedule": "alpha=0.5"}, "For alpha = 1/2."),
        ({"schedule": ["alpha=0", "alpha=0.5", "alpha=2"]}, "For alpha = 0, 1/2 and 2."),
        ({"schedule": "harmonic"}, "The harmonic schedule is best."),
        ({"transform": "exp(-iwt)"}, "With the kernel exp(-iwt)."),
    ],
)
def test_words_that_name_what_is_read_are_the_reason(select: dict[str, Any], words: str) -> None:
    ((_, _, reason),) = found(select, statement=words)
    assert reason == words
    ((_, _, reason),) = found(select, ours=[words])
    assert reason == words


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ({"spectrum": "uniform"}, "It holds."),
        # What names all that there is tells nothing of a part.
        ({"sample_size": 10000}, "For n = 100, 1000 and 10000."),
        ({"sample_size": 10000}, "At n = 1000."),
        ({"schedule": "alpha=2"}, "For two of them, at 2."),
    ],
)
def test_other_words_are_no_reason(select: dict[str, Any], words: str) -> None:
    ((_, _, reason),) = found(select, statement=words)
    assert reason is None


def test_several_texts_may_name_it_together() -> None:
    ((_, read, reason),) = found(
        {"schedule": ["alpha=0", "harmonic"]},
        statement="The harmonic schedule is better.",
        ours=["than alpha = 0"],
    )
    assert read == ("alpha=0", "harmonic")
    assert reason == "than alpha = 0; The harmonic schedule is better."


@pytest.mark.parametrize("paper", known_papers())
def test_the_ledgers_name_every_part_that_they_read(
    paper: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command([paper]) == []
    assert f"{paper}." in capsys.readouterr().out
