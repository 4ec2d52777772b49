"""The README's counts and the site's pages of results, which follow from the ledgers."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduction.engine.ledger import Ledger, parse_topic, read_ledger
from reproduction.engine.page import CHANGE_MEANINGS
from reproduction.engine.results_docs import (
    counts_table,
    drawn_pages,
    overview,
    paper_page,
)

from .book import DRAWINGS, topics

ROOT = Path(__file__).parents[3]
PAPERS = yaml.safe_load((ROOT / "config/config.yaml").read_text())["papers"]
KEYS = (*PAPERS, "studies")


def small_ledger(**changes: Any) -> Ledger:
    return Ledger("bombari2025", (parse_topic(topics(**changes), "theorem-1", "x"),))


def whole_ledger(paper: str) -> Ledger:
    return read_ledger(ROOT / "config/claims" / paper, paper)


def test_counts_are_of_what_the_ledger_expects() -> None:
    *_, row, _, title = counts_table([small_ledger()]).splitlines()
    assert re.fullmatch(r"\| \[bombari2025\]\(\S+\) \| 3 \| 1 \| 1 \| 1 \| 2 \|", row)
    assert re.fullmatch(r"- bombari2025: \[High-Dim.*\. Bombari, S.* \(2025\)", title)


def test_pages_name_errors_and_figures_and_nothing_is_markup() -> None:
    slip = topics()["findings"][0] | {"printed": "a_b * c <d> | e^2.", "changes": "guarantee"}
    ledger = small_ledger(findings=[slip])
    text = paper_page(ledger, DRAWINGS["bombari2025"])
    assert r"a\_b \* c \<d\> \| e^2." in text
    assert "Equation (1)" in text
    assert "![" not in text
    assert "*guarantee*" in overview([ledger])
    assert "## Contradicted" in text
    assert "[fig1](../gallery.md#bombari2025-fig1), [fig2]" in text
    gallery = drawn_pages([ledger], DRAWINGS)["gallery.md"]
    assert '<a id="bombari2025-fig1"></a>' in gallery
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
    whole = [whole_ledger(paper) for paper in PAPERS]
    heads = [f for each in whole for f in each.findings.values() if f.foremost]
    orders = [(f.foremost.rank, [*CHANGE_MEANINGS].index(f.changes)) for f in heads if f.foremost]
    assert [rank for rank, _ in sorted(orders)] == list(range(1, 11))
    assert sorted(orders) == sorted(orders, key=lambda pair: (pair[1], pair[0]))


@pytest.mark.parametrize("key", KEYS)
def test_every_figure_says_what_is_seen_and_the_papers_own_how_they_compare(key: str) -> None:
    path = ROOT / ("config" if key == "studies" else "config/papers") / f"{key}.yaml"
    for name, figure in yaml.safe_load(path.read_text(encoding="utf-8"))[key]["figures"].items():
        assert len(figure["alt"].split()) > 10, name
        assert name.startswith("fig") == (len(figure.get("beside", "").split()) > 10), name


def test_the_readme_has_the_ledgers_counts() -> None:
    table = counts_table([whole_ledger(key) for key in KEYS])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert table in readme, f"README.md's table must be\n{table}"
    # Its example is the finding that matters most, in the same numbers.
    heads = [f for each in PAPERS for f in whole_ledger(each).findings.values() if f.foremost]
    (first,) = [f for f in heads if f.foremost and f.foremost.rank == 1]
    example = " ".join(readme[readme.index("**A contradicted") :].split()).partition("`snake")[0]
    assert first.foremost
    assert f'"{first.foremost.quote}"' in example
    holds = re.findall(r"\d+(?:\.\d+)?", first.holds)
    assert set(re.findall(r"(?<!\w)\d+(?:\.\d+)?(?![.\d])", example)) - {"4.2"} <= set(holds)
