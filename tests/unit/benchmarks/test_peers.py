"""The comparison with other libraries: how it judges, and that its page says what was measured."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PEERS = ROOT / "benchmarks/peers"


def module(name):
    spec = importlib.util.spec_from_file_location(name, PEERS / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


judge = module("judge")


PAGE = (ROOT / "docs/comparison.md").read_text()


def part(page, name):
    return page.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end of {name} -->")[0]


def rows(table):
    """Cells of a Markdown table without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.fixture
def measured():
    """A summary of two tables at two budgets, in one of which a peer is better than ours."""
    tables = {}
    for table in ("first", "second"):
        budgets = {}
        for rho in ("0.005", "0.5"):
            entries = {
                name: {
                    "error": [1.0 + number, 0.1],
                    "median_error": 1.0 + number,
                    "seconds": 0.1,
                    "excess_over_ours": [float(number), 0.1],
                    "length_ratio": 1.4,
                    "infinite": 0.0,
                    "coverage": [0.95, 0.01],
                }
                for number, name in enumerate(judge.PEERS)
            }
            budgets[rho] = entries
        tables[table] = {
            "training_rows": 1000,
            "features": 4,
            "epsilons": {"0.005": 0.5, "0.5": 8.0},
            "budgets": budgets,
        }
    tables["second"]["budgets"]["0.5"]["AdaSSP"] |= {"error": [0.5, 0.1], "median_error": 2.0}
    return {"versions": {"opendp": {"opendp": "0.16.0"}}, "tables": tables}


def test_a_page_says_what_was_measured(measured):
    page = judge.page(PAGE, measured)
    assert judge.page(page, measured) == page
    tables = judge.all_tables(measured)
    for name in judge.PARTS:
        assert part(page, name) in tables + "\n"
        assert part(page, name) != part(PAGE, name)
    outside = [
        re.sub(r"<!-- (\w+) -->.*?<!-- end of \1 -->", "", each, flags=re.S)
        for each in (page, PAGE)
    ]
    assert outside[0] == outside[1]


def test_every_exception_is_listed(measured):
    listed = part(judge.page(PAGE, measured), "exceptions")
    assert [row[:3] for row in rows(listed)] == [["second", "0.5", "AdaSSP"]]
    assert "in 3 of 4 cells" in listed


def test_the_committed_exceptions_are_those_of_the_committed_errors():
    assert PAGE.index("<!-- exceptions -->") < PAGE.index("<!-- errors -->")
    listed = {tuple(row[:3]) for row in rows(part(PAGE, "exceptions"))}
    table, found = "", rows(part(PAGE, "errors"))
    for name, rho, _, *errors in found:
        table = name.partition(" (")[0] or table
        means = dict(
            zip(judge.PEERS, [float(each.partition(" ")[0]) for each in errors], strict=True)
        )
        for peer in set(judge.PEERS) - {judge.OURS, judge.LEAST_SQUARES}:
            if means[peer] < means[judge.OURS]:
                assert (table, rho, peer) in listed
    assert len(found) == 30


def test_the_locks_pin_what_was_measured():
    measured = dict(re.findall(r"^- (\w+): (.+)$", part(PAGE, "versions"), re.M))
    assert set(measured) == {"diffprivlib", "opendp", "privreg"}
    for name in ("diffprivlib", "opendp"):
        pinned = re.findall(r"^([a-z-]+)==(\S+)", (PEERS / f"{name}.txt").read_text(), re.M)
        versions = {tuple(each.split(" ")) for each in measured[name].split(", ")}
        assert versions <= set(pinned)
        assert name in dict(versions)


def test_held_out_errors_are_one_for_the_mean_and_zero_for_the_truth():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (400, 2))
    labels = rows @ [0.3, -0.2] + 0.1
    held_out = {"rows": rows, "labels": labels, "held": np.tile(np.arange(400), (3, 1))}
    found = judge.held_out_errors([[0.3, -0.2, 0.1], [0, 0, labels.mean()], [0, 0, 1e9]], held_out)
    assert found[0] < 1e-20
    assert found[1] == pytest.approx(1)
    assert found[2] == pytest.approx(np.mean((1 - labels) ** 2) / labels.var())


def test_an_infinite_interval_covers_and_is_counted():
    fit = {"half_widths": [[-1.0, 0.5], [1.0, 0.5]], "coefficients": [[0, 0, 0], [0, 3.0, 0]]}
    plain = {"half_widths": [[0.5, 0.5], [0.5, 0.5]]}
    found = judge.intervals(fit, plain, np.zeros(2))
    assert found["infinite"] == 0.25
    assert found["coverage"][0] == 0.75


def test_an_error_has_the_digits_that_its_own_error_leaves():
    assert judge.plus_minus([0.123456, 0.0123]) == "0.123 ± 0.012"
    assert judge.plus_minus([12.3456, 4.4]) == "12.3 ± 4.4"
    assert judge.plus_minus([123.456, 44.0]) == "123 ± 44"


def test_runners_import_nothing_of_this_library():
    for name in ("fit_diffprivlib", "fit_opendp"):
        assert "privreg" not in (PEERS / f"{name}.py").read_text()
