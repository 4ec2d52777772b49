"""Formulas of the ledger as HTML: what is drawn, and that the text as written can be had back."""

import html
import re
from pathlib import Path

import pytest
import yaml

from reproduction.engine.ledger import read_ledger
from reproduction.engine.page import typeset
from reproduction.engine.registry import STUDIES, known_papers

CONFIG = Path(__file__).parents[3] / "config"
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


def test_markup_in_a_text_is_escaped() -> None:
    text = 'x^2 < "y" & <script>'
    assert "<script" not in typeset(text)
    assert written(typeset(text)) == text


@pytest.mark.parametrize("key", [*known_papers(), STUDIES])
def test_every_text_of_the_ledger_can_be_had_back_as_it_is_written(key: str) -> None:
    ledger = read_ledger(CONFIG / "claims" / key, key)
    block = CONFIG / ("studies.yaml" if key == "studies" else f"papers/{key}.yaml")
    texts = [finding.how_we_know for finding in ledger.findings.values()]
    texts += [entry.statement for topic in ledger.topics for entry in topic.statements]
    texts += [
        figure["caption"] for figure in yaml.safe_load(block.read_text())[key]["figures"].values()
    ]
    for text in texts:
        assert written(typeset(text)) == text
        # Nothing that is written as a power is left as it is.
        assert not re.search(r"\^[\w(]", NOTED.sub("", typeset(text)))
