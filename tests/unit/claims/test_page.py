"""The page: each claim is there, nothing of it is markup, nothing comes from elsewhere."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from privreg.claims.checks import Check
from privreg.claims.page import render
from privreg.claims.verdicts import Verdict
from privreg.claims.wording import describe, series, with_error

PAPERS = {
    "bombari2025": {
        "title": "Rates & regression",
        "authors": "Bombari et al.",
        "url": "https://arxiv.org/abs/2505.16329",
    }
}


def verdict(**changes: Any) -> Verdict:
    return Verdict.model_validate(
        {
            "paper": "bombari2025",
            "id": "the-claim",
            "where": "Theorem 1",
            "statement": "It holds.",
            "note": None,
            "pair": None,
            "figure": None,
            "verdict": "reproduced",
            "expect": "reproduced",
            "as_expected": True,
            "reason": "",
            "observed": 0.1922,
            "standard_error": 0.0019,
            "expected": "0.19 ± 4 s.e.",
            "margin": 0.01,
            "at": None,
            "trials": 20,
            "trials_needed": None,
            "stand_in": False,
            "artifact": "simulation/trajectories",
            "variable": "risk",
            "select": "spectrum=isotropic",
            "digest": "ab" * 32,
            "command": "snakemake claims",
            "scale": "paper",
        }
        | changes
    )


class Page(HTMLParser):
    """Collects rows, identifiers and addresses."""

    void = ("meta", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: dict[str, dict[str, str | None]] = {}
        self.identifiers: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        found = dict(attrs)
        if tag not in self.void:
            self.open.append(tag)
        if tag == "tr" and found.get("id"):
            self.rows[str(found["id"])] = found
        if found.get("id"):
            self.identifiers.append(str(found["id"]))
        for key in ("href", "src"):
            if found.get(key):
                self.links.append(str(found[key]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


VERDICTS = [
    verdict(),
    verdict(id="printed", verdict="contradicted", expect="contradicted", pair="the-claim"),
    verdict(id="surprise", verdict="contradicted", as_expected=False),
    verdict(id="noisy", verdict="inconclusive", as_expected=False, trials_needed=1200),
    verdict(id="many", observed=tuple(np.linspace(0, 1, 25)), standard_error=(0.1,) * 25),
    verdict(paper="lin2025", id="bundled", verdict="untested", as_expected=False, stand_in=True,
            observed=None, standard_error=None, margin=None, figure="fig2"),
]  # fmt: skip


def test_every_claim_has_a_row_and_every_link_a_target() -> None:
    page = Page(render(VERDICTS, PAPERS))
    assert list(page.rows) == [f"{item.paper}-{item.id}" for item in VERDICTS]
    assert len(set(page.identifiers)) == len(page.identifiers)
    inner = [link.removeprefix("#") for link in page.links if link.startswith("#")]
    assert set(inner) <= set(page.identifiers)
    assert "figures/lin2025/fig2.png" in page.links


def test_only_a_verdict_that_fails_the_gate_is_marked() -> None:
    page = Page(render(VERDICTS, PAPERS))
    marked = [name for name, row in page.rows.items() if row.get("class") == "unexpected"]
    assert marked == ["bombari2025-surprise", "bombari2025-noisy"]
    quick = Page(render([item.model_copy(update={"scale": "quick"}) for item in VERDICTS], PAPERS))
    assert not [row for row in quick.rows.values() if row.get("class")]


def test_an_expected_contradiction_looks_different_and_links_to_what_holds() -> None:
    text = render(VERDICTS, PAPERS)
    printed = text[text.index('id="bombari2025-printed"') : text.index('id="bombari2025-surprise"')]
    surprise = text[text.index('id="bombari2025-surprise"') : text.index('id="bombari2025-noisy"')]
    assert "expected-no" in printed
    assert 'as expected: see <a href="#bombari2025-the-claim">' in printed
    assert "expected-no" not in surprise
    assert "the ledger expects reproduced" in surprise


def test_the_verdict_is_a_word_and_the_numbers_are_there() -> None:
    text = render(VERDICTS, PAPERS)
    for words in ("✓ reproduced", "✕ contradicted", "? inconclusive", "– untested"):
        assert words in text
    for shown in (
        "0.1922 ± 0.0019",
        "25 values from 0 to 1",
        "1200 trials would decide",
        "spectrum=isotropic",
        "ab" * 32,
    ):
        assert shown in text


def test_what_comes_from_outside_is_escaped() -> None:
    nasty = '<script>alert("x")</script>&'
    fields = [
        "where",
        "statement",
        "note",
        "reason",
        "expected",
        "at",
        "variable",
        "select",
        "command",
    ]
    papers = {"bombari2025": {"title": nasty, "authors": nasty, "url": "javascript:alert(1)"}}
    page = render([verdict(**dict.fromkeys(fields, nasty))], papers)
    assert nasty not in page
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;") >= len(fields)
    assert not any(link.startswith("javascript") for link in Page(page).links)


def test_the_page_is_self_contained_and_deterministic() -> None:
    text = render(VERDICTS, PAPERS)
    page = Page(text)
    assert not page.tags & {"link", "img", "iframe", "object"}
    assert not re.search(r"url\(|@import|\bsrc=", text)
    outside = [link for link in page.links if not link.startswith(("#", "figures/"))]
    assert outside == ["https://arxiv.org/abs/2505.16329"]
    assert render(VERDICTS, PAPERS) == text
    assert Page(render([], {})).rows == {}


def test_a_paper_without_bibliography_goes_by_its_key() -> None:
    assert '<h2 id="lin2025">lin2025</h2>' in render(VERDICTS, PAPERS)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"kind": "close", "expected": 0.5, "absolute": 0.01}, "0.5 ± 0.01"),
        (
            {"kind": "close", "expected": 0.5, "absolute": 0.01, "relative": 0.1, "sigmas": 4},
            "0.5 ± max(0.01, 10%, 4 s.e.)",
        ),
        ({"kind": "close", "expected": [1, 2], "absolute": 0}, "1, 2 ± 0"),
        ({"kind": "between", "low": -0.65, "high": -0.35}, "between -0.65 and -0.35"),
        ({"kind": "below", "high": 3}, "at most 3"),
        ({"kind": "above", "low": 3}, "at least 3"),
        ({"kind": "monotone", "direction": "increasing", "strict": True}, "strictly increasing"),
        (
            {"kind": "monotone", "direction": "decreasing", "slack": 0.1},
            "decreasing (slack 0.1)",
        ),
        ({"kind": "ordered", "dimension": "method", "labels": ["a", "b"]}, "method: a ≤ b"),
        ({"kind": "all", "of": {"kind": "below", "high": 3}}, "all at most 3"),
    ],
)
def test_a_check_in_words(check: dict[str, Any], words: str) -> None:
    assert describe(TypeAdapter(Check).validate_python(check)) == words


def test_numbers_are_rounded_where_the_noise_begins() -> None:
    assert with_error(0.192243, 0.00187) == "0.1922 ± 0.0019"
    assert with_error(1234.5, 20.0) == "1234 ± 20"
    assert with_error(1e-9, 1e-10) == "1e-09 ± 1e-10"
    assert with_error(float("inf"), 0.0) == "inf ± 0"
    assert with_error(0.5, None) == "0.5"
    assert with_error((1.0, 2.0), (0.1, 0.2)) == "1.00 ± 0.10, 2.00 ± 0.20"
    assert series((float("nan"),) * 5) == "5 values, 5 of them not a number"
