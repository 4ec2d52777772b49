"""What the repository says of the ledgers: counts, findings, coverage; held in step with them."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduction.claims import coverage as covered
from reproduction.claims.ledger import Ledger, parse_topic
from reproduction.claims.places import problems
from reproduction.engine.ledgers import read_ledger
from reproduction.engine.parameters import ConfigError
from reproduction.engine.results_docs import COUNTS, counts_table, render, with_counts

from .book import DRAWINGS, topics

ROOT = Path(__file__).parents[3]
PAPERS = yaml.safe_load((ROOT / "config/config.yaml").read_text())["papers"]
KEYS = (*PAPERS, "studies")
TEXTS = Path(os.environ.get("PRIVREG_TEXTS", ROOT.parent / "shared/papers/text"))


def small_ledger(**changes: Any) -> Ledger:
    return Ledger("bombari2025", (parse_topic(topics(**changes), "theorem-1", "x"),))


def whole_ledger(paper: str) -> Ledger:
    return read_ledger(ROOT / "config/claims" / paper, paper)


def test_counts_are_of_what_the_ledger_expects() -> None:
    head, _, row = counts_table([small_ledger()]).splitlines()
    assert "depends on our choice" in head
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["bombari2025", "3", "1", "1", "1", "0", "1", "1 of 1"]


def test_the_page_names_findings_and_figures_and_nothing_is_markup() -> None:
    finding = topics()["findings"][0] | {"printed": "a_b * c <d> | e^2."}
    text = render(
        [small_ledger(findings=[finding])],
        titles={},
        drawings=DRAWINGS,
    )
    assert r"a\_b \* c \<d\> \| e^2." in text
    assert "\n\n*What is seen.* Two curves that fall.\n\n" in text
    assert "*Beside the paper's figure.* Same axes;" in text
    assert "![" not in text
    assert "Equation (1)" in text


def test_counts_stand_between_their_markers() -> None:
    text = f"before\n{COUNTS[0]}\nold\n{COUNTS[1]}\nafter\n"
    once = with_counts(text, [small_ledger()])
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("\nafter\n")
    assert with_counts(once, [small_ledger()]) == once
    with pytest.raises(ValueError, match="once each"):
        with_counts("no markers", [small_ledger()])


@pytest.mark.parametrize("paper", KEYS)
def test_every_place_is_in_the_papers_text(paper: str) -> None:
    path = TEXTS / f"{paper}.txt"
    if not path.is_file():
        pytest.skip("the papers' texts are not here")
    assert problems(whole_ledger(paper), path.read_text(encoding="utf-8")) == []


def items(**changes: Any) -> list[dict[str, Any]]:
    names = [entry["id"] for entry in topics()["statements"]]
    return [
        {"item": "Theorem 1", "says": "It holds.", "entries": names} | changes,
        {"item": "Figure 2", "says": "A curve.", "reason": "No numbers."},
    ]


def listed(tmp_path: Path, value: Any) -> covered.Coverage:
    path = tmp_path / "bombari2025.yaml"
    path.write_text(yaml.safe_dump(value))
    return covered.load_coverage(path, small_ledger())


def test_coverage_counts_what_is_judged(tmp_path: Path) -> None:
    found = listed(tmp_path, items())
    text = covered.render(found, small_ledger(), title="T")
    assert "2 items: 1 judged as stated, 0 narrower, 0 untested, 1 not judged; 50 %" in text
    assert "`printed-wrong` (contradicted)" in text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (items(entries=["hold"]), "did you mean 'holds'"),
        (items(entries=["holds"]), "none that names 'printed-wrong'"),
        ([*items(), items()[0]], "must be there once"),
        ([{"item": "Theorem 1", "says": "x"}], "one of entries and reason"),
        (
            [{"item": "Theorem 1", "says": "x", "reason": "y", "narrower": "z"}],
            "entries must be given where they judge something narrower",
        ),
        ([], "at least 1"),
    ],
)
def test_list_and_ledger_are_held_together(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        listed(tmp_path, value)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_papers_coverage(paper: str) -> None:
    found = covered.load_coverage(ROOT / f"config/coverage/{paper}.yaml", whole_ledger(paper))
    text = TEXTS / f"{paper}.txt"
    if text.is_file():
        assert covered.unlisted(found, text.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("key", KEYS)
def test_every_figure_says_what_is_seen_and_the_papers_own_how_they_compare(key: str) -> None:
    path = ROOT / ("config" if key == "studies" else "config/papers") / f"{key}.yaml"
    for name, figure in yaml.safe_load(path.read_text(encoding="utf-8"))[key]["figures"].items():
        assert len(figure["alt"].split()) > 10, name
        assert name.startswith("fig") == (len(figure.get("beside", "").split()) > 10), name


def test_the_repository_says_what_the_ledgers_say() -> None:
    found = [whole_ledger(key) for key in KEYS]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_counts(readme, found) == readme, "run `snakemake docs`"
    results = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    assert counts_table(found) in results, "run `snakemake docs`"
