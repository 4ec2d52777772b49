"""Coverage: places and printed numbers are in the papers' texts, whose results are all listed."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduction.engine.ledger import (
    Ledger,
    Statement,
    load_coverage,
    parse_topic,
    read_ledger,
)
from reproduction.engine.parameters import ConfigError
from reproduction.engine.results_docs import coverage_page

from .book import topics

ROOT = Path(__file__).parents[3]
PAPERS = yaml.safe_load((ROOT / "config/config.yaml").read_text())["papers"]
TEXTS = Path(os.environ.get("PRIVREG_TEXTS", ROOT.parent / "shared/papers/text"))
# What a ledger writes, and how a paper's text may write it.
RESULTS = {
    "theorem": r"(?:theorems?|thm\.)",
    "lemma": r"lemmas?",
    "proposition": r"(?:propositions?|prop\.)",
    "corollary": r"corollar(?:y|ies)",
    "claim": r"claims?",
    "fact": r"facts?",
    "definition": r"definitions?",
    "condition": r"conditions?",
    "assumption": r"assumptions?",
    "remark": r"remarks?",
    "conjecture": r"conjectures?",
    "algorithm": r"algorithms?",
    "figure": r"(?:figures?|fig\.)",
    "table": r"tables?",
}
SECTIONS = {"section": r"(?:sections?|sec\.|§)", "appendix": r"(?:appendix|appendices|app\.)"}
FORMS = RESULTS | SECTIONS | {"equation": r"(?:equations?|eqs?\.)"}
ONE = r"\(?(?:[A-Z]\.)?\d+(?:\.\d+)*\)?(?:\([a-z]+\))?|\(?[A-Z](?:\.\d+)*\b\)?"
NAMED = re.compile(
    rf"\b({'|'.join(FORMS.values())})\s+((?:{ONE})(?:\s*(?:,|and|to|-|–)\s*(?:{ONE}))*)",
    re.IGNORECASE,
)
# A line that opens with the name and number states it: "Theorem 4.", "Figure 3: Risk".
STATED = re.compile(
    rf"(?m)^[#*\s]*((?=[A-Z])(?i:{'|'.join(RESULTS.values())}))\s*((?:[A-Z]\.)?\d+(?:\.\d+)*)"
    r"(?!\.?\d)\s*(?=[.:(]|$)"
)


def kind_of(word: str) -> str:
    return next(kind for kind, form in FORMS.items() if re.fullmatch(form, word.lower()))


def places(where: str) -> Iterator[tuple[str, str]]:
    """Kind and number of each place that a text names; of a range, its ends."""
    for found in NAMED.finditer(where):
        for number in re.findall(ONE, found[2]):
            yield kind_of(found[1]), re.sub(r"\([a-z]+\)$", "", number).strip("()")


def is_there(kind: str, number: str, text: str) -> bool:
    exact, after = re.escape(number), r"(?![\w]|\.\d)"
    if kind == "equation":
        return re.search(rf"\(\s*{exact}\s*\)", text) is not None
    # "Lemmas 2.5 and 2.6", "Theorems 4.3 to 4.5"
    forms = [
        rf"{FORMS[kind]}\s*~?\s*{exact}{after}",
        rf"{FORMS[kind]}\s+[\w.,()\s–-]{{1,24}}?(?<![\w.]){exact}{after}",
    ]
    if kind in SECTIONS:
        # A heading opens a line, or was run into one when the text was extracted.
        forms += [
            rf"(?m)^[#*\s]*{exact}\.?(?:\s|(?=[A-Z][a-z]))",
            rf"(?-i:(?<![\w.]){exact}(?=[A-Z][a-z]))",
        ]
    return any(re.search(form, text, re.IGNORECASE) for form in forms)


def whole_ledger(paper: str) -> Ledger:
    return read_ledger(ROOT / "config/claims" / paper, paper)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_place_and_printed_number_is_in_the_papers_text(paper: str) -> None:
    path = TEXTS / f"{paper}.txt"
    if not path.is_file():
        pytest.skip("the papers' texts are not here")
    text, ledger = path.read_text(encoding="utf-8"), whole_ledger(paper)
    flat = " ".join(text.split())
    statements = [each for each in ledger.entries.values() if isinstance(each, Statement)]
    named = [each.where for each in statements]
    named += [place for finding in ledger.findings.values() for place in finding.places]
    for where in named:
        found = list(places(where))
        assert found, where
        assert all(is_there(kind, number, text) for kind, number in found), where
    quoted = {each.id: each.printed for each in statements}
    heads = [each for each in ledger.findings.values() if each.foremost]
    for name, printed in (quoted | {each.id: (each.foremost.quote,) for each in heads}).items():
        assert all(" ".join(each.split()) in flat for each in printed), name
    items = load_coverage(ROOT / f"config/coverage/{paper}.yaml", ledger)
    named += [each.where or "" for each in ledger.entries.values()] + [item.item for item in items]
    covered = {place for where in named for place in places(where)}
    stated = {(kind_of(found[1]), found[2]) for found in STATED.finditer(text)}
    assert stated <= covered


def listed(tmp_path: Path, *items: dict[str, Any]) -> str:
    path = tmp_path / "bombari2025.yaml"
    path.write_text(
        yaml.safe_dump([{"item": "Lemma 3", "says": "A curve."} | each for each in items])
    )
    ledger = Ledger("bombari2025", (parse_topic(topics(), "theorem-1", "x"),))
    return coverage_page(ledger, load_coverage(path, ledger))


def test_coverage_is_by_place_and_says_what_is_left_out(tmp_path: Path) -> None:
    text = listed(tmp_path, {"reason": "No numbers."}, {"item": "Lemma 4", "entries": ["route"]})
    judged = "[holds](#holds) reproduced<br>[printed-wrong](#printed-wrong) contradicted<br>"
    assert f"| Theorem&nbsp;1 | {judged}" in text
    assert "| Equation&nbsp;(1) | [error](../results/bombari2025.md#slip) constant |" in text
    assert re.search(r"\| Lemma 3 \| A curve. \| +No numbers. \|", text)
    assert "| Lemma 4 | A curve. | [route](#route) passed" in text


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"reason": "x"}, {"reason": "y"}], "must be listed once"),
        ([{}], "one of entries, narrower and reason must be given"),
        ([{"entries": ["hold"]}], "did you mean 'holds'"),
    ],
)
def test_a_list_that_says_nothing_is_refused(tmp_path: Path, items: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        listed(tmp_path, *items)
