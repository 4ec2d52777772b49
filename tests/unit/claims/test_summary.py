"""The README's counts and the site's pages of results, which follow from the ledgers."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduction.engine.ledger import Ledger, parse_topic, read_ledger
from reproduction.engine.page import CHANGE_MEANINGS
from reproduction.engine.results_docs import counts_list, drawn_pages, overview, paper_page

from .book import DRAWINGS, topics

ROOT = Path(__file__).parents[3]
PAPERS = yaml.safe_load((ROOT / "config/config.yaml").read_text())["papers"]
KEYS = (*PAPERS, "studies")


def small_ledger(**changes: Any) -> Ledger:
    return Ledger("bombari2025", (parse_topic(topics(**changes), "theorem-1", "x"),))


def whole_ledger(paper: str) -> Ledger:
    return read_ledger(ROOT / "config/claims" / paper, paper)


def test_counts_are_of_what_the_ledger_expects() -> None:
    counts = "reproduced 3, holds as corrected 1, proof gap 1, contradicted 1, other 2"
    told = rf"- \*\*\[bombari2025\]\(\S+\)\*\*: {counts}\. \[High-Dim.*\. Bombari, S.* \(2025\)"
    assert re.fullmatch(told, counts_list([small_ledger()]))


def test_pages_name_errors_and_figures_and_nothing_is_markup() -> None:
    slip = topics()["findings"][0] | {"printed": "a_b * c <d> | e^2.", "changes": "guarantee"}
    ledger = small_ledger(findings=[slip])
    text = paper_page(ledger, DRAWINGS["bombari2025"])
    assert r"a\_b \* c &lt;d\> \| e^2." in text
    assert "1 do not hold, and 2 are open. Do not use [Equation (1)](#slip) without the" in text
    assert "![" not in text
    assert "*guarantee*" in overview([ledger])
    assert "## Contradicted" in text
    assert "[fig1](../gallery.md#bombari2025-fig1), [fig2]" in text
    gallery = drawn_pages([ledger], DRAWINGS)["gallery.md"]
    assert "### bombari2025: Figure 1 {: #bombari2025-fig1 }" in gallery
    assert "\n\n*What is seen.* Two curves that fall.\n\n" in gallery
    assert "*Compared with the paper's figure.* Same axes;" in gallery


def test_the_page_of_errors_is_ordered_by_what_changes_and_leads_to_evidence() -> None:
    slip = topics()["findings"][0]
    head = {"rank": 2, "quote": "It is a_b.", "figure": "fig1"}
    later = slip | {"changes": "guarantee", "foremost": head}
    ledger = small_ledger(findings=[slip, later | {"id": "second"}])
    text = drawn_pages([ledger], DRAWINGS)["wrong.md"]
    assert text.index("### 2. bombari2025, Equation (1)") < text.index("### 1. bombari2025")
    assert "> It is a\\_b." in text
    assert "[printed-wrong](coverage/bombari2025.md#printed-wrong)" in text
    assert "**bombari2025/fig1.** [Caption, data and command](gallery.md#bombari2025-fig1)" in text


@pytest.mark.parametrize("key", KEYS)
def test_every_figure_says_what_is_seen_and_the_papers_own_how_they_compare(key: str) -> None:
    path = ROOT / ("config" if key == "studies" else "config/papers") / f"{key}.yaml"
    for name, figure in yaml.safe_load(path.read_text(encoding="utf-8"))[key]["figures"].items():
        assert len(figure["alt"].split()) > 10, name
        assert name.startswith("fig") == (len(figure.get("beside", "").split()) > 10), name


def numbers(text: str) -> set[str]:
    return set(re.findall(r"(?<!\w)\d+(?:\.\d+)?", text))


def test_the_readme_and_the_paper_have_the_ledgers_numbers() -> None:
    ledgers = [whole_ledger(key) for key in KEYS]
    listed = counts_list(ledgers)
    readme, paper = ((ROOT / name).read_text() for name in ("README.md", "paper/paper.md"))
    assert listed in readme, f"README.md's list must be\n{listed}"
    for key, counts in re.findall(r"\[(\w+)\]\S+: (.*?)\.", listed):
        assert f"- @{key}: {counts}.\n" in paper
    heads = [(f.foremost.rank, f) for led in ledgers for f in led.findings.values() if f.foremost]
    findings = [f for _, f in sorted(heads, key=lambda pair: pair[0])]
    changes = [[*CHANGE_MEANINGS].index(each.changes) for each in findings]
    assert changes == sorted(changes)
    items = re.findall(r"^\d+\. (.*(?:\n   .*)*)", paper, re.MULTILINE)
    # The README's example is the first of them.
    example = " ".join(readme[readme.index("**A contradicted") :].split()).partition("`snake")[0]
    assert findings[0].foremost
    assert f'"{findings[0].foremost.quote}"' in example
    for finding, told in zip([findings[0], *findings], [example, *items], strict=True):
        stated = (finding.printed, finding.holds, finding.how_we_know, *finding.places)
        assert numbers(told) <= numbers(" ".join(stated)), told
