"""The closing lines: the ledger, stand-ins, the page, the time; and only what is there."""

import pytest

from privreg.data import stand_ins
from reproduction.experiment import datasets
from reproduction.experiment.tables import to_dataset
from reproduction.pipeline.closing import closing_lines
from reproduction.pipeline.layout import Layout

LAYOUT = Layout("quick")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "less than a second"),
        (59, "59 s"),
        (60, "1 min"),
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
    datasets.write(table, tmp_path / LAYOUT.data("mnist"))
    said = closing_lines(LAYOUT, seconds=1, stand_ins=figures)
    assert said == ["Stand-ins, not the paper's data: p/fig2, p/fig5", "Took 1 s"]
    datasets.write(table.assign_attrs(stand_in=0), tmp_path / LAYOUT.data("mnist"))
    assert closing_lines(LAYOUT, seconds=1, stand_ins=figures) == ["Took 1 s"]


def test_the_page_is_named_where_there_is_one(tmp_path):
    page = tmp_path / LAYOUT.page()
    page.parent.mkdir(parents=True)
    page.write_text("<html>")
    said = closing_lines(LAYOUT, seconds=1, stand_ins={})
    assert said == ["Page to open: results/quick/index.html", "Took 1 s"]
