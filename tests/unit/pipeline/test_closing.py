"""The closing lines: the ledger, stand-ins, the page, the time; and only what is there."""

import pytest

from privreg.data import stand_ins
from reproduction.engine import artifacts as store
from reproduction.engine.artifacts import to_dataset
from reproduction.pipeline.closing import books_of, closing_lines
from reproduction.pipeline.layout import PAPERS, STUDIES, Layout

LAYOUT = Layout("quick")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (59, "59 s"),
        (125.4, "2 min 5 s"),
        (7322, "2 h 2 min"),
        (90000, "1 day 1 h"),
    ],
)
def test_without_a_ledger_only_the_time_is_said(seconds, words):
    assert closing_lines(LAYOUT, seconds=seconds, stand_ins={}) == [f"Took {words}"]


def test_figures_of_a_stand_in_are_named(tmp_path):
    table = to_dataset(stand_ins.digits("no mirror answered"))
    figures = {"mnist": ["p/fig5", "p/fig2"], "california_housing": ["p/fig6"]}
    store.write(table, tmp_path / LAYOUT.data("mnist"))
    said = closing_lines(LAYOUT, seconds=1, stand_ins=figures)
    assert said == ["Stand-ins, not the real tables: p/fig2, p/fig5", "Took 1 s"]
    store.write(table.assign_attrs(stand_in=0), tmp_path / LAYOUT.data("mnist"))
    assert closing_lines(LAYOUT, seconds=1, stand_ins=figures) == ["Took 1 s"]


@pytest.mark.parametrize(
    ("targets", "books"),
    [
        ([], [PAPERS]),
        (["all"], [PAPERS]),
        (["studies"], [STUDIES]),
        (["results/figures/studies/audits.pdf"], [STUDIES]),
        (["results/quick/studies/gate.txt", "lin2025"], [PAPERS, STUDIES]),
    ],
)
def test_a_run_names_the_gate_and_the_page_of_what_it_built(tmp_path, targets, books):
    for book in (PAPERS, STUDIES):
        page = tmp_path / LAYOUT.page(book)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("<html>")
    assert books_of(targets) == books
    said = closing_lines(LAYOUT, seconds=1, stand_ins={}, books=books_of(targets))
    assert said == [*(f"Page to open: {LAYOUT.page(book)}" for book in books), "Took 1 s"]
