"""Pages of one entry: what they say, and that their links lead somewhere."""

import re

from reproduction.claims import entry_pages, page
from reproduction.claims.records import Book

from .book import DRAWINGS, PAPERS, book, image, statement, topics

IMAGES = {("bombari2025", "fig1"): image()}


def pages(found: Book) -> dict[str, str]:
    return dict(
        entry_pages.render(
            found, papers=PAPERS, drawings=DRAWINGS, images=IMAGES, made_by="1.0, commit abc"
        )
    )


def test_every_entry_and_finding_has_a_page_that_the_ledgers_page_links_to() -> None:
    found = book()
    made = pages(found)
    whole = page.render(found, papers=PAPERS, drawings=DRAWINGS, images=IMAGES)
    assert set(re.findall(r'href="entries/([^"]+)"', whole)) == set(made)
    assert len(made) == len(found.records) + len(found.findings)
    anchors = set(re.findall(r'id="([^"]+)"', whole))
    for address, text in made.items():
        for back in re.findall(r'href="../../index.html#([^"]+)"', text):
            assert back in anchors
        folder = address.partition("/")[0]
        for other in re.findall(r'href="([a-z-]+\.html)"', text):
            assert f"{folder}/{other}" in made


def test_a_page_says_what_was_seen_asked_and_refused_and_how_to_rebuild_it() -> None:
    text = pages(book())["bombari2025/holds.html"]
    for said in (
        "It holds: holds.", "reproduced", "Theorem 1", "Rates &amp; regression",
        "Observed over 10 trials: 1.00 ± 0.10", "Asked: at least 0.",
        "It holds with 1 to spare, 10 standard errors.", "The check refuses -5.",
        "snakemake results/claims/bombari2025/holds.json", "privreg 1.0, commit abc",
        'alt="Two curves that fall."', "../../figures/bombari2025/fig1.pdf",
    ):  # fmt: skip
        assert said in text
    assert "data:image/png" in text
    assert "<script" not in text


def test_a_findings_page_has_all_that_an_author_needs() -> None:
    text = pages(book())["bombari2025/slip.html"]
    for said in ("Equation (1)", "Two.", "One.", "Derived.", "Nothing.", "a number changes"):
        assert said in text
    assert "results/claims/bombari2025/route.json" in text
    assert "results/claims/bombari2025/printed-wrong.json" in text
    assert "Observed over 10 trials: " in text


def test_what_comes_from_outside_is_escaped() -> None:
    nasty = '<script>alert("x")</script>&'
    entry = statement("holds", statement=nasty, where=nasty, note=nasty, ours=[nasty])
    finding = topics()["findings"][0] | {"printed": nasty, "shown_by": ["holds"]}
    found = book(statements=[entry], cross_checks=[], findings=[finding])
    assert all("<script" not in text for text in pages(found).values())
