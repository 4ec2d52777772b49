"""The pages: each entry is there, nothing of it is markup, nothing comes from elsewhere."""

import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from xml.etree import ElementTree

import numpy as np
import pytest
from pydantic import TypeAdapter

from reproduction.engine.checks import Check, describe
from reproduction.engine.page import picture, render
from reproduction.engine.verdicts import Book, CheckResult

from .book import DRAWINGS, PAPERS, book, image, statement, topics

IMAGES = {("bombari2025", "fig1"): image()}


def pages(found: Book | None = None, **changes: Any) -> dict[str, str]:
    shown = {"papers": PAPERS, "drawings": DRAWINGS, "images": IMAGES, "made_by": "1.0, commit abc"}
    return dict(render(found or book(), **(shown | changes)))


def drawn(found: Book | None = None, **changes: Any) -> str:
    return pages(found, **changes)["index.html"]


class Page(HTMLParser):
    """Collects entries, identifiers and addresses."""

    void = ("meta", "br", "img", "input", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.entries: dict[str, dict[str, str | None]] = {}
        self.identifiers: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        found = dict(attrs)
        if tag not in self.void:
            self.open.append(tag)
        if tag == "li" and found.get("data-kind"):
            self.entries[str(found["id"])] = found
        if found.get("id"):
            self.identifiers.append(str(found["id"]))
        for key in ("href", "src"):
            if found.get(key):
                self.links.append(str(found[key]))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] in ("option", "dd", "dt") and self.open[-1] != tag:
            self.open.pop()
        assert self.open.pop() == tag


def test_every_entry_is_there_once() -> None:
    found, page = book(), Page(drawn())
    keys = sorted(each.key for each in (*found.records, *found.findings))
    assert sorted(page.entries) == keys


def test_the_gallery_shows_every_figure_with_its_experiments_and_command() -> None:
    page = Page(pages()["gallery.html"])
    assert {"bombari2025-fig1", "bombari2025-fig2"} <= set(page.identifiers)
    assert {f"figures/bombari2025/fig1.{ending}" for ending in ("pdf", "png")} <= set(page.links)
    for asked in ("Risk along the pass.", "snakemake results/figures/bombari2025/fig1.pdf",
                  "<dt>experiments</dt><dd>numbers</dd>"):  # fmt: skip
        assert asked in pages()["gallery.html"]


def test_the_index_has_entries_findings_and_coverage_by_place_in_natural_order() -> None:
    item = {"item": "Lemmas 10 and 2", "says": "A bound.", "entries": ["route"]}
    coverage = {"bombari2025": [item | {"narrower": None, "reason": "Not needed."}]}
    text = pages(coverage=coverage)["entries/bombari2025/index.html"]
    rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</tr>', text, re.DOTALL)
    assert [place for place, _ in rows[:4]] == ["Theorem 1", "Lemma 2", "Lemma 10", "Equation (1)"]
    for (_, found), asked in zip(rows, ("surprise", "route", "Not needed.", "slip"), strict=False):
        assert asked in found


def test_counts_are_of_statements_by_paper() -> None:
    text = drawn()
    row = text[text.index('<th scope="row"><a href="#bombari2025">') :]
    cells = re.findall(r"<td>(?:<a[^>]*>)?([^<]*)", row[: row.index("</tr>")])
    assert cells == ["2", "1", "1", "2", "1 depend"]
    assert 'href="#?paper=bombari2025&amp;verdict=inconclusive">1 inconclusive</a>' in row


def test_what_a_reader_needs_is_on_the_page_and_on_that_of_the_entry() -> None:
    made = pages()
    entry, finding = (made[f"entries/bombari2025/{name}.html"] for name in ("holds", "slip"))
    seen = ["1.00 ± 0.10", "at least 0", "the norm", "ab" * 32, "Two curves that fall.",
            "snakemake results/claims/bombari2025/holds.json", "label_noise_std: 0.3", "{size: 2}",
            "Rates &amp; regression", "1.0, commit abc", "data:image/png", "at of 1.0"]  # fmt: skip
    told = ["Equation (1)", "Two.", "One.", "Derived.", "Nothing.",
            "results/claims/bombari2025/printed-wrong.json"]  # fmt: skip
    whole = ["What they share.", "Rates of descent.", "2025", "Two.", "One.", "the verdict changes"]
    for text, asked in ((made["index.html"], whole), (entry, seen), (finding, told)):
        assert [said for said in asked if said not in text] == []
    assert "<script" not in entry + finding


def test_every_link_of_every_page_leads_somewhere() -> None:
    found, made = book(), {address: Page(text) for address, text in pages().items()}
    assert len(made) == 2 + len(found.papers) + len(found.records) + len(found.findings)
    for address, page in made.items():
        assert len(set(page.identifiers)) == len(page.identifiers)
        for link in page.links:
            path, _, part = posixpath.normpath(urljoin(address, link)).partition("#")
            if not re.match("https?:|data:image/png|(figures|studies)/", path):
                assert not part or part[0] == "?" or part in made[path].identifiers, link
                assert path in made


def test_commands_name_the_folder_and_scale_of_the_results() -> None:
    text = pages(book(scale="quick"), results=Path("out"))["entries/bombari2025/holds.html"]
    command = "snakemake out/claims/bombari2025/holds.json --configfile config/quick.yaml"
    assert command in text


def test_minutes_and_memory_are_of_a_papers_own_jobs(tmp_path: Any) -> None:
    for name, row in {
        "theory/bombari2025/a": "60.0\t250.4", "simulation/bombari2025/a/1": "120.0\tNA",
        "theory/lin2025/a": "600.0\t9999",
    }.items():  # fmt: skip
        path = tmp_path / f"benchmarks/{name}.tsv"
        path.parent.mkdir(parents=True)
        path.write_text(f"s\tmax_rss\n{row}\n")
    assert "2 jobs, 3 min in sequence, at most 250 MB of memory" in drawn(results=tmp_path)
    assert " jobs took " not in drawn(results=tmp_path / "none")


def test_what_comes_from_outside_is_escaped() -> None:
    nasty = '<script>alert("x")</script>&'
    entry = statement("holds", statement=nasty, where=nasty, note=nasty, ours=[nasty])
    finding = topics()["findings"][0] | {"printed": nasty, "shown_by": ["holds"]}
    made = pages(
        book(topic=nasty, about=nasty, statements=[entry], cross_checks=[], findings=[finding]),
        papers={
            "bombari2025": dict.fromkeys(PAPERS["bombari2025"], nasty)
            | {"url": "javascript:alert(1)"}
        },
        drawings={"bombari2025": {"fig1": DRAWINGS["bombari2025"]["fig1"] | {"caption": nasty}}},
    )
    assert made["index.html"].count("&lt;script&gt;") >= 8
    for text in made.values():
        assert "<script>alert" not in text
        assert not any(link.startswith("javascript") for link in Page(text).links)


def test_the_pages_are_self_contained_and_deterministic() -> None:
    made = pages()
    assert pages() == made
    for text in made.values():
        page = Page(text)
        assert not page.tags & {"link", "iframe", "object"}
        assert not re.search(r"url\(|@import|fetch\(", text)
    entry = made["entries/bombari2025/holds.html"]
    assert entry.count("data:image/png") == 1
    assert "data:image/png" not in made["index.html"] + made["gallery.html"]


RESULT = {
    "label": None, "outcome": "passed", "reason": "", "expected": "near 1", "artifact": "theory/x",
    "variable": "v", "select": "", "digests": {},
}  # fmt: skip


@pytest.mark.parametrize(
    "seen",
    [
        {"observed": 1.0, "standard_error": 0.1, "low": 0.5, "high": 1.5, "rejected": [2.0, 99.0]},
        {"observed": 1e-16, "low": -float("inf"), "high": 1e-10, "rejected": [1.0]},
        {"observed": float("inf"), "low": 0.0, "high": float("inf")},
        {"observed": [1.0, float("nan"), 2.0], "labels": ["a<", "b", "c"], "rejected": [7.0]},
        {"observed": [float(i) for i in range(500)], "standard_error": [0.5] * 500},
        {"observed": 0.0, "standard_error": 0.0, "low": 0.0, "high": 0.0},
    ],
)
def test_a_picture_is_well_formed_and_has_no_number_out_of_its_frame(seen: dict[str, Any]) -> None:
    text = picture(CheckResult.model_validate(RESULT | seen))
    if not text:
        assert seen["observed"] == float("inf")
        return
    drawn = list(ElementTree.fromstring(text))
    values = np.ravel(seen["observed"])
    assert sum(each.tag == "circle" for each in drawn) == np.isfinite(values).sum()
    for each in drawn:
        assert not re.search("nan|inf", each.get("d", ""))
        if each.tag == "circle":
            assert 0 < float(each.attrib["cx"]) < 340
            assert 0 < float(each.attrib["cy"]) < (54 if values.size == 1 else 132)


@pytest.mark.parametrize("bound", [1.0, -1.0])
def test_a_value_is_drawn_within_what_is_allowed_if_and_only_if_it_is(bound: float) -> None:
    seen = {"observed": 0.0, "low": -float("inf"), "high": bound, "rejected": [2.0]}
    parts = {
        each.get("class", each.tag): each.attrib
        for each in ElementTree.fromstring(picture(CheckResult.model_validate(RESULT | seen)))
    }
    _, right = re.findall(r"[MH]([-\d.]+)", parts["allowed"]["d"])[:2]
    assert (float(parts["circle"]["cx"]) < float(right)) == (bound > 0)
    assert float(right) < float(re.findall(r"M([-\d.]+)", parts["refused"]["d"])[0])


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"kind": "close", "expected": 0.5, "absolute": 0.01, "relative": 0.1, "sigmas": 4},
         "0.5 ± max(0.01, 10%, 4 s.e.)"),
        ({"kind": "close", "expected": [1, 2], "absolute": 0}, "1, 2 ± 0"),
        ({"kind": "between", "low": -0.65, "high": -0.35}, "between -0.65 and -0.35"),
        ({"kind": "monotone", "direction": "decreasing", "slack": 0.1}, "decreasing (slack 0.1)"),
        ({"kind": "ordered", "dimension": "method", "labels": ["a", "b"]}, "method: a ≤ b"),
        ({"kind": "all", "of": {"kind": "below", "high": 3}}, "all at most 3"),
    ],
)  # fmt: skip
def test_a_check_in_words(check: dict[str, Any], said: str) -> None:
    assert describe(TypeAdapter(Check).validate_python(check)) == said


def test_a_page_that_decides_nothing_says_so_first() -> None:
    assert "banner" not in drawn().partition("<body>")[2]
    text = drawn(book(scale="quick"))
    assert text.index('class="banner"') < text.index("Statements of the papers")
    assert "<title>Made small: " in text
