"""What the repository says of the ledgers: counts, findings, coverage; held in step with them."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduction.claims import coverage as covered
from reproduction.claims.ledger import Ledger, parse_topic
from reproduction.claims.places import places, problems, unfound
from reproduction.claims.summary import COUNTS, counts_table, render, with_counts, with_pictures
from reproduction.experiment.parameters import ConfigError
from reproduction.pipeline.ledgers import read_ledger

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
    head, _, row = counts_table([small_ledger()])
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


def test_pictures_stand_where_they_are_drawn_and_words_elsewhere() -> None:
    text = render([small_ledger()], titles={}, drawings=DRAWINGS)
    assert with_pictures(text, set(), "figures") == text
    shown = with_pictures(text, {"bombari2025/fig1", "bombari2025/fig9"}, "figures")
    assert (
        "![Two curves that fall.](figures/bombari2025/fig1.png)\n\n**bombari2025/fig1.** " in shown
    )
    assert shown.count("![") == 1
    assert "What is seen" not in shown
    assert "*Beside the paper's figure.* Same axes;" in shown


def test_pages_say_of_each_figure_what_is_seen() -> None:
    """In the form that the site knows, and without a picture, which a clone does not have."""
    figures = {
        f"{key}/{name}"
        for key in KEYS
        for name in yaml.safe_load(configuration(key).read_text(encoding="utf-8"))[key]["figures"]
    }
    told = {
        "results": figures,
        "prediction": {"studies/prediction"},
        "comparison": {"peers/comparison"},
    }
    for page, names in told.items():
        text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
        shown = with_pictures(text, figures | {"peers/comparison"}, "figures")
        assert set(re.findall(r"\]\(figures/(.*)\.png\)", shown)) == names
        assert "What is seen" not in shown
        assert "![" not in text


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("Theorem 4, equation (6.4)", [("theorem", "4"), ("equation", "6.4")]),
        ("Lemmas C.1-C.3", [("lemma", "C.1"), ("lemma", "C.3")]),
        ("Figures 5, 6 and 10", [("figure", "5"), ("figure", "6"), ("figure", "10")]),
        ("Figure 1(b)", [("figure", "1")]),
        ("Appendix C.2; Section 4.1", [("appendix", "C.2"), ("section", "4.1")]),
        ("After the proof", []),
    ],
)
def test_places_of_a_where(where: str, expected: list[tuple[str, str]]) -> None:
    assert list(places(where)) == expected


PAPER_TEXT = """4.1 Setting
Theorem 4.2 (Risk). We have (6.4). Lemmas 2.5 and 2.6 give it.
Figure 3: Risk. See Appendix C.
C.2 Proofs
Lemma 2.5. It holds.
the value 0.925 is printed
"""


def test_what_a_text_has_not_is_said() -> None:
    for where in ("Theorem 4.2", "Equation (6.4)", "Lemma 2.6", "Section 4.1", "Appendix C.2"):
        assert unfound(where, PAPER_TEXT) == []
    assert unfound("Theorem 4; Lemma 2.7", PAPER_TEXT) == ["theorem 4", "lemma 2.7"]
    assert unfound("Equation (6.5)", PAPER_TEXT) == ["equation 6.5"]
    assert unfound("Somewhere", PAPER_TEXT) == ["Somewhere"]


def test_printed_numbers_are_looked_for() -> None:
    entry = topics()["statements"][0] | {
        "where": "Theorem 4.2", "kind": "printed number", "printed": ["0.925", "0.926"],
    }  # fmt: skip
    found = problems(small_ledger(statements=[entry], findings=[]), PAPER_TEXT)
    assert found == ["holds: '0.926' is not printed"]


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


@pytest.mark.parametrize("field", ["narrower", "reason"])
def test_coverage_tells_what_is_judged_as_stated_from_what_is_narrower(
    tmp_path: Path, field: str
) -> None:
    found = listed(tmp_path, items(**{field: "isotropic data alone"}))
    text = covered.render(found, small_ledger(), title="T")
    assert "2 items: 0 judged as stated, 1 narrower, 0 untested, 1 not judged; 0 %" in text
    assert "isotropic data alone" in text


def test_coverage_counts_what_is_untested_apart(tmp_path: Path) -> None:
    found = listed(tmp_path, items())
    found = found.model_copy(update={"untested": frozenset(found.items[0].entries)})
    text = covered.render(found, small_ledger(), title="T")
    assert "2 items: 0 judged as stated, 0 narrower, 1 untested, 1 not judged; 0 %" in text


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


def test_numbered_results_of_a_text_and_those_that_are_not_listed(tmp_path: Path) -> None:
    assert list(covered.numbered(PAPER_TEXT)) == [
        ("theorem", "4.2"), ("figure", "3"), ("lemma", "2.5"),
    ]  # fmt: skip
    found = listed(tmp_path, items(item="Theorem 4.2"))
    assert covered.unlisted(found, PAPER_TEXT) == ["figure 3", "lemma 2.5"]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_papers_coverage(paper: str) -> None:
    ledger = whole_ledger(paper)
    path = ROOT / f"config/coverage/{paper}.yaml"
    found = covered.load_coverage(path, ledger)
    text = TEXTS / f"{paper}.txt"
    if text.is_file():
        assert covered.unlisted(found, text.read_text(encoding="utf-8")) == []


def test_the_repository_says_what_the_ledgers_say() -> None:
    found = [whole_ledger(key) for key in KEYS]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_counts(readme, found) == readme, "run `snakemake docs`"
    results = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    for line in counts_table(found):
        assert line in results, "run `snakemake docs`"


def configuration(key: str) -> Path:
    return ROOT / ("config" if key == "studies" else "config/papers") / f"{key}.yaml"


@pytest.mark.parametrize("paper", KEYS)
def test_every_figure_says_what_is_seen_and_the_papers_own_how_they_compare(paper: str) -> None:
    block = yaml.safe_load(configuration(paper).read_text(encoding="utf-8"))[paper]
    for name, figure in block["figures"].items():
        assert len(figure["alt"].split()) > 10, name
        own = name.startswith("fig")
        assert own == ("beside" in figure), name
        assert not own or len(figure["beside"].split()) > 10, name


def test_findings_in_the_repository_are_the_ledgers() -> None:
    results = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    number = sum(len(whole_ledger(paper).findings) for paper in KEYS)
    assert results.count("\n    - What it changes: ") == number
