"""Records: words and verdicts joined, broken bases, tables, the gate."""

import csv
import io
import json

import pytest

from reproduction.engine.verdicts import (
    findings_to_csv,
    from_json,
    gate,
    summary,
    tally,
    to_csv,
    to_json,
)

from .book import book, probe, statement, topics


def test_only_statements_count_for_or_against_a_paper() -> None:
    assert {record.id: record.verdict for record in book().records} == {
        "holds": "reproduced",
        "printed-wrong": "contradicted",
        "same-slip": "contradicted",
        "misprint": "holds as corrected",
        "gap": "proof gap",
        "on-it": "reproduced",
        "surprise": "contradicted",
        "noisy": "inconclusive",
        "choice": "depends on our choice",
        "route": "passed",
        "other": "reproduced",
    }
    assert summary(book()) == (
        "10 statements of the papers: 3 reproduced, 1 holds as corrected, 1 proof gap,"
        " 2 contradicted, 1 depends on our choice, 1 inconclusive; 1 cross-check of ours: 1 passed;"
        " 3 findings by what changes: 1 number, 2 nothing; 1 not as expected;"
        " 1 with a failed premise"
    )


def test_a_correction_decides_only_what_is_refuted_as_printed() -> None:
    """Refuted as printed and as corrected is contradicted, and a slip counts as its gravest."""

    def verdict(printed: float, corrected: float) -> str:
        one = statement("x", printed, finding="slip", expect="holds as corrected")
        one["corrected"] = {"holds_with": "b", "checks": [probe(corrected)]}
        return book(statements=[one]).records[0].verdict

    values = ((-1.0, 2.0), (-1.0, -1.0), (1.0, -1.0), (-1.0, 0.1), (0.1, 1.0))
    assert [verdict(*each) for each in values] == [
        "holds as corrected", "contradicted", "reproduced", "inconclusive", "inconclusive",
    ]  # fmt: skip
    pairs = [("holds as corrected", 1), ("contradicted", 1), ("reproduced", 1), ("proof gap", 2)]
    assert tally(pairs) == {"contradicted": 1, "reproduced": 1, "proof gap": 1}


def test_a_broken_base_shows_upwards() -> None:
    statements = topics()["statements"]
    statements[0]["requires"] = ["on-it"]
    broken = {record.id: record.broken for record in book(statements=statements).records}
    assert broken["holds"] == broken["on-it"] == ("printed-wrong",)
    assert broken["noisy"] == broken["printed-wrong"] == ()


def test_the_gate_lists_what_differs_in_one_line_each() -> None:
    (line,) = gate(book().records)
    assert line.startswith("bombari2025/surprise: ")
    assert "contradicted, expected reproduced; observed -1.00 ± 0.10, required at least 0" in line
    assert "rebuild: snakemake results/claims/bombari2025/surprise.json" in line
    assert book("quick").records[0].command.endswith("/holds.json --configfile config/quick.yaml")


def test_reduced_scales_and_stand_ins_fail_nothing() -> None:
    assert gate(book("quick").records) == []
    assert summary(book("quick")).endswith("11 at reduced scale, which decides nothing")
    stand_in = book(attributes={"stand_in": 1, "stand_in_reason": "diabetes stands in"})
    assert gate(stand_in.records) == []
    assert "11 untested because bundled data stands in" in summary(stand_in)


def test_json_is_complete_and_deterministic() -> None:
    text = to_json(book())
    json.loads(text, parse_constant=pytest.fail)
    assert from_json(text) == book()
    assert to_json(from_json(text)) == text


def test_the_table_has_a_row_a_check_and_the_findings_their_own() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(book()))))
    assert [row["check"] for row in rows if row["id"] == "choice"] == ["1.0", "-1.0"]
    assert {row["verdict"] for row in rows if row["entry"] == "statement"} == {
        "reproduced", "holds as corrected", "proof gap", "contradicted", "depends on our choice",
        "inconclusive",
    }  # fmt: skip
    row, *_ = csv.DictReader(io.StringIO(findings_to_csv(book().findings)))
    shown = "printed-wrong; same-slip; route"
    assert (row["places"], row["shown_by"], row["changes"]) == ("Equation (1)", shown, "number")
