"""The page: each entry is there, nothing of it is markup, nothing comes from elsewhere."""

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import TypeAdapter

from reproduction.claims.checks import Check
from reproduction.claims.page import render
from reproduction.claims.picture import picture
from reproduction.claims.verdicts import CheckResult
from reproduction.claims.wording import describe

from .book import DRAWINGS, PAPERS, book, image, statement

IMAGES = {("bombari2025", "fig1"): image()}


def drawn(**changes: Any) -> str:
    return render(book(**changes), papers=PAPERS, drawings=DRAWINGS, images=IMAGES)


class Page(HTMLParser):
    """Collects entries, identifiers and addresses."""

    void = ("meta", "br", "img", "input")

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
        if tag == "details" and found.get("id"):
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


def test_every_entry_is_there_once_and_every_link_has_a_target() -> None:
    page = Page(drawn())
    assert list(page.entries) == [record.key for record in book().records]
    assert len(set(page.identifiers)) == len(page.identifiers)
    inner = [link[1:] for link in page.links if link.startswith("#") and link[1:2] != "?"]
    assert set(inner) <= set(page.identifiers)
    assert "bombari2025-slip" in page.identifiers
    assert "bombari2025-figure-fig2" in page.identifiers  # the figure that no entry looks at


def test_counts_are_of_statements_by_paper() -> None:
    text = drawn()
    row = text[text.index('<th scope="row"><a href="#bombari2025">') :]
    cells = re.findall(r"<td>(?:<a[^>]*>)?([^<]*)", row[: row.index("</tr>")])
    assert cells == ["2", "2", "1", "1", "0", "1 of 1"]


def test_the_numbers_the_choices_and_the_command_are_there() -> None:
    text = drawn()
    for shown in (
        "1.00 ± 0.10", "at least 0", "the norm", "the window", "ab" * 32, "would decide",
        "snakemake results/claims/bombari2025/holds.json", "label_noise_std: 0.3",
        "What they share.", "Few trials.", "not measured in this build",
    ):  # fmt: skip
        assert shown in text


def test_what_comes_from_outside_is_escaped() -> None:
    nasty = '<script>alert("x")</script>&'
    entry = statement("holds", statement=nasty, where=nasty, note=nasty, ours=[nasty])
    papers = {"bombari2025": {"title": nasty, "authors": nasty, "url": "javascript:alert(1)"}}
    drawings = {"bombari2025": {"fig1": DRAWINGS["bombari2025"]["fig1"] | {"caption": nasty}}}
    page = render(
        book(topic=nasty, about=nasty, statements=[entry], findings=[]),
        papers=papers,
        drawings=drawings,
        images=IMAGES,
    )
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;") >= 8
    assert not any(link.startswith("javascript") for link in Page(page).links)


def test_the_page_is_self_contained_and_deterministic() -> None:
    text = drawn()
    page = Page(text)
    assert not page.tags & {"link", "iframe", "object"}
    assert not re.search(r"url\(|@import|fetch\(", text)
    outside = [
        link for link in page.links if not link.startswith(("#", "data:image/png", "entries/"))
    ]
    assert sorted(outside) == [
        "figures/bombari2025/fig1.pdf",
        "https://arxiv.org/abs/2505.16329",
        "studies/index.html",
    ]
    assert drawn() == text
    # An image is there once, wherever its figure is looked at.
    assert text.count("data:image/png") == 1


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
    ElementTree.fromstring(text)
    assert "nan" not in re.sub(r'aria-label="[^"]*"|<title>[^<]*', "", text)
    assert "inf" not in re.sub(r'aria-label="[^"]*"|<title>[^<]*', "", text)
    assert text.count("<circle") <= 60
    for place in re.findall(r'c?[xy][12]?="(-?[\d.]+)"', text):
        assert -5 <= float(place) <= 345


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
    found = book()
    small = found.records[0].model_copy(update={"scale": "quick"})
    text = render(
        found.model_copy(update={"records": (small, *found.records[1:])}),
        papers=PAPERS,
        drawings=DRAWINGS,
        images=IMAGES,
        made_by="1.0, commit abc",
    )
    assert text.index('class="banner"') < text.index("What the papers state")
    assert "<title>Made small: " in text
    assert "privreg 1.0, commit abc" in text
