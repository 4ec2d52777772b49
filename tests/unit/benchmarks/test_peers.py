"""The comparison with other libraries: how it judges, and that its page says what was measured."""

from __future__ import annotations

import importlib.util
import json
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


@pytest.fixture(scope="module")
def measured():
    return json.loads((PEERS / "measured.json").read_text())


def test_the_page_says_what_was_measured(measured):
    page = (ROOT / "docs/comparison.md").read_text()
    assert judge.page(page, measured) == page, "run `make peers`"


def test_the_tables_by_themselves_are_those_of_the_page(measured):
    page, tables = (ROOT / "docs/comparison.md").read_text(), judge.all_tables(measured)
    for name in judge.PARTS:
        part = page.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end of {name} -->")[0]
        assert part in tables + "\n"


def test_exceptions_come_before_all_errors(measured):
    page = (ROOT / "docs/comparison.md").read_text()
    assert page.index("<!-- exceptions -->") < page.index("<!-- errors -->")
    listed = page.partition("<!-- exceptions -->")[2].partition("<!-- end of exceptions -->")[0]
    for table, block in measured["tables"].items():
        for rho, entries in block["budgets"].items():
            ours = entries[judge.OURS]
            for name, entry in entries.items():
                if name in (judge.OURS, judge.LEAST_SQUARES):
                    continue
                beaten = (
                    ours["error"][0] < entry["error"][0]
                    and ours["median_error"] < entry["median_error"]
                )
                assert beaten != (f"| {table} | {rho} | {name} |" in listed)


def test_what_was_measured_is_complete(measured):
    assert set(measured["versions"]) == {"diffprivlib", "opendp", "privreg"}
    assert measured["versions"]["diffprivlib"]["diffprivlib"] == "0.6.6"
    assert measured["versions"]["opendp"]["opendp"] == "0.16.0"
    assert len(measured["tables"]) == 6
    for block in measured["tables"].values():
        assert block["seeds"] >= 50
        assert len(block["budgets"]) == 5
        for entries in block["budgets"].values():
            assert set(entries) == set(judge.PEERS)
            for entry in entries.values():
                assert all(np.isfinite(entry["error"]))
                assert entry["seconds"] > 0


def test_the_locks_pin_what_was_measured(measured):
    for name in ("diffprivlib", "opendp"):
        pinned = dict(re.findall(r"^([a-z-]+)==(\S+)", (PEERS / f"{name}.txt").read_text(), re.M))
        assert measured["versions"][name].items() <= pinned.items()


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
