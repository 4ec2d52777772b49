"""Formulas of the ledger as HTML: what is drawn, and that the text as written can be had back."""

import html
import re

import pytest

from reproduction.claims.formulas import typeset

from .book import whole_book, whole_drawings

NOTED = re.compile(r'<span class="f" data-as="([^"]*)">')
TAG = re.compile(r"</?(?:var|sup|sub|span)(?: [^>]*)?>")


def shown(text: str) -> str:
    """What a reader sees, with `^{}` and `_{}` for what is raised and lowered."""
    marked = re.sub(r"<sup>", "^{", re.sub(r"<sub>", "_{", typeset(text)))
    return html.unescape(TAG.sub("", re.sub(r"</su[bp]>", "}", marked)))


def written(markup: str) -> str:
    """The text with each formula as its attribute says that it was written."""
    found, at = [], 0
    while noted := NOTED.search(markup, at):
        found.append(markup[at : noted.start()])
        depth, at = 1, noted.end()
        for span in re.finditer(r"<(/?)span", markup[at:]):
            depth += -1 if span[1] else 1
            if depth == 0:
                at += span.end() + 1
                break
        found.append(noted[1])
    return html.unescape("".join([*found, markup[at:]]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gamma^2 / rho^2", "γ^{2} / ρ^{2}"),
        ("at rate d^(-1/2).", "at rate d^{−1/2}."),
        ("lambda_min^2 and c_*", "λ_{min}^{2} and c_{*}"),
        ("sqrt(2 ln(1/delta))", "√2 ln(1/δ)"),
        ("N^max(1/(1+r), 1/2)", "N^{max(1/(1+r), 1/2)}"),
        ("|beta|_1^2", "|β|_{1}^{2}"),
        ("ln^(2/3)(1/gamma)", "ln^{2/3}(1/γ)"),
        ("lambda_i^-psi / 2", "λ_{i}^{−ψ} / 2"),
        ("g_{k:l} >= -1", "g_{k:l} ≥ −1"),
        ("1e-5 and 9.5e4", "10^{−5} and 9.5 × 10^{4}"),
        ("gamma^0.75.", "γ^{0.75}."),
        ("2 x 2 blocks", "2 × 2 blocks"),
        # No formulas: names of code, abbreviations, dates, places.
        ("tuned_risk of theory/finite_time_steps", "tuned_risk of theory/finite_time_steps"),
        ("i.e. the paper's, e.g. a well-known one", "i.e. the paper's, e.g. a well-known one"),
        ("2026-11-23, one-pass", "2026-11-23, one-pass"),
    ],
)
def test_a_formula_is_drawn(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize("text", ["n = 5 p", "log^2(n)", "the t-th", "c'^2", "E[r^2]"])
def test_a_letter_alone_is_a_variable(text: str) -> None:
    assert "<var>" in typeset(text)


@pytest.mark.parametrize(
    "text", ["Appendix C", "Figure 4(b)", "Lemma B.1", "parts (i)", "Rényi", "a I"]
)
def test_a_letter_of_a_place_is_not(text: str) -> None:
    assert "<var>" not in typeset(text)


def test_markup_in_a_text_is_escaped() -> None:
    text = 'x^2 < "y" & <script>'
    assert "<script" not in typeset(text)
    assert written(typeset(text)) == text


def test_every_text_of_the_ledger_can_be_had_back_as_it_is_written() -> None:
    book, drawings = whole_book(), whole_drawings()
    texts = [record.statement for record in book.records]
    texts += [record.note for record in book.records if record.note]
    texts += [finding.how_we_know for finding in book.findings]
    texts += [each["caption"] for found in drawings.values() for each in found.values()]
    for text in texts:
        assert written(typeset(text)) == text
        # Nothing that is written as a power is left as it is.
        assert not re.search(r"\^[\w(]", NOTED.sub("", typeset(text)))
