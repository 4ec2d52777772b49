"""Identities declare beside their function what a ledger's entry holds."""

from types import SimpleNamespace

import pytest

from reproduction.engine.ledger import declared_entries, load_ledger, read_ledger
from reproduction.engine.parameters import ConfigError
from reproduction.engine.recipe import (
    Axis,
    below,
    close,
    entries,
    every,
    identity,
    stage,
)

AXES = {"size": Axis("size", "sizes")}
PARAMETERS = SimpleNamespace(sizes=(1.0, 2.0))


@identity(
    where="Equation (1)",
    statement="One is one.",
    check=close(1.0, absolute=1e-9),
    finding="a-slip",
    expect="contradicted",
)
def one_over_one():
    """Ratio of one to itself."""
    return 1.0


@identity("size", compares="The square with itself.", check=every(below(1e-12)))
def square_error(size):
    """Largest distance of two routes to the square."""
    return size**2 - size * size


def test_the_quantity_is_the_function_s():
    found = stage(AXES, one_over_one, square_error)(PARAMETERS)
    assert found.one_over_one.item() == 1.0
    assert found.one_over_one.attrs["long_name"] == "ratio of one to itself"
    assert found.square_error.dims == ("size",)


def test_an_entry_is_what_a_file_would_hold():
    declared = entries(stage(AXES, one_over_one, square_error).blocks, "theory/proofs")
    (statement,), (check,) = declared["statements"], declared["cross_checks"]
    assert statement == {
        "id": "one-over-one",
        "kind": "proof step",
        "where": "Equation (1)",
        "statement": "One is one.",
        "checks": [
            {
                "evidence": {"artifact": "theory/proofs", "variable": "one_over_one"},
                "check": {"kind": "close", "expected": 1.0, "absolute": 1e-9},
            }
        ],
        "finding": "a-slip",
        "expect": "contradicted",
    }
    assert check["compares"] == "The square with itself."
    assert "where" not in check


def test_a_paper_s_ledger_holds_those_of_its_recipes(tmp_path):
    ledger = read_ledger("config/claims/lin2025", "lin2025")
    assert "exponent-threshold" in ledger.entries
    with pytest.raises(ConfigError, match="must declare identities, got none"):
        declared_entries("lin2025", "design")
    topic = "topic: T\nidentities: [nothing]\n"
    (tmp_path / "t.yaml").write_text(topic)
    with pytest.raises(ConfigError, match="identities must be a list"):
        load_ledger(tmp_path, "lin2025")
    with pytest.raises(ConfigError, match="nothing"):
        read_ledger(tmp_path, "lin2025")
