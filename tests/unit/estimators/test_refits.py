"""A fit that fails leaves the object as it was, and says what it spent."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms import least_squares_descent as descent
from privreg.algorithms.split_budget import SplitBudget
from privreg.command_line import fit as command
from privreg.command_line.main import main
from privreg.methods.private_least_squares import PrivateLeastSquares

BUDGET = Budget.zcdp(0.5)
DRAWS = np.random.Generator(np.random.SFC64(8))
X = DRAWS.uniform(-1, 1, (2000, 2))
Y = X @ [1.0, -1.0] + 0.3 * DRAWS.standard_normal(2000)
OTHER = DRAWS.uniform(-1, 1, (1000, 3))
SPENT = "the failed fit counts as spent, all of its rho = 0.5"
TEXT = ["0.5,0.25,1", "0.1,-0.5,0"]


class Broken(RuntimeError):
    """What a test makes happen."""


def model(**settings) -> PrivateLinearRegression:
    usual = {"budget": BUDGET, "feature_bounds": (-1, 1), "label_bounds": (-4, 4)}
    return PrivateLinearRegression(**(usual | settings))


def state(found: PrivateLinearRegression) -> bytes:
    """All of an object, bit for bit."""
    return pickle.dumps(found.__getstate__())


def broken_at(monkeypatch, number: int) -> None:
    """Let the noise of one private statistic of a fit fail."""
    plain, drawn = SplitBudget.noise_std, []

    def fails(self, *arguments):
        drawn.append(arguments)
        if len(drawn) > number:
            raise Broken("in between")
        return plain(self, *arguments)

    monkeypatch.setattr(SplitBudget, "noise_std", fails)


@pytest.mark.parametrize("number", range(0, PrivateLeastSquares().steps + 9, 3))
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_refit_that_fails_changes_nothing_and_says_what_it_spent(monkeypatch, number, neighbours):
    found = model(release="all", budget=Budget.zcdp(0.5, neighbours=neighbours)).fit(X, Y)
    before = state(found)
    with monkeypatch.context() as patch:
        broken_at(patch, number)
        with pytest.raises(Broken) as refused:
            found.fit(OTHER, OTHER[:, 0])
    assert state(found) == before
    assert refused.value.__notes__ == [f"{SPENT} ({neighbours})"]
    assert found.predict(X[:3]).shape == (3,)


def test_a_first_fit_that_fails_leaves_nothing(monkeypatch):
    found = model()
    before = state(found)
    broken_at(monkeypatch, 4)
    with pytest.raises(Broken):
        found.fit(X, Y)
    assert state(found) == before
    assert not hasattr(found, "n_features_in_")


def test_an_interrupt_is_a_failure_too(monkeypatch):
    found = model().fit(X, Y)
    before = state(found)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(descent, "product_edges", interrupted)
    with pytest.raises(KeyboardInterrupt) as refused:
        found.fit(OTHER, OTHER[:, 0])
    assert state(found) == before
    assert SPENT in refused.value.__notes__[0]


@pytest.mark.parametrize(
    ("change", "data"),
    [
        ({"release": "first"}, {}),
        ({"settings": 1}, {}),
        ({"fit_intercept": 1}, {}),
        ({"label_bounds": (1, 1)}, {}),
        ({"feature_bounds": ([0] * 2, [1] * 2)}, {}),
        ({"random_state": -1}, {}),
        ({"budget": Budget(1e30)}, {}),
        ({}, {"y": np.full(1000, np.nan)}),
        ({}, {"groups": [1, 2]}),
        ({}, {"X": OTHER[:5]}),
    ],
    ids=str,
)
def test_what_is_refused_before_any_noise_costs_nothing(monkeypatch, change, data):
    found = model().fit(X, Y)
    before = state(found)
    changed = clone(found).set_params(**change)
    changed.__dict__ |= {name: value for name, value in vars(found).items() if name[-1] == "_"}
    fitted = {name: value for name, value in vars(changed).items() if name[-1] == "_"}
    monkeypatch.setattr(SplitBudget, "noise_std", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(ValueError, match="must") as refused:
        changed.fit(**({"X": OTHER, "y": OTHER[:, 0]} | data))
    assert not hasattr(refused.value, "__notes__")
    kept = {name: value for name, value in vars(changed).items() if name[-1] == "_"}
    assert all(kept[name] is value for name, value in fitted.items())
    assert kept.keys() == fitted.keys()
    assert state(found) == before


def test_a_refit_keeps_nothing_of_the_first_fit():
    pandas = pytest.importorskip("pandas")
    first = model(release="all", random_state=1).fit(pandas.DataFrame(X, columns=["a", "b"]), Y)
    assert hasattr(first, "iterates_")
    assert hasattr(first, "feature_names_in_")
    again = first.set_params(release="last").fit(OTHER, OTHER[:, 0])
    new = model(random_state=1).fit(OTHER, OTHER[:, 0])
    assert vars(again).keys() == vars(new).keys()
    assert state(again) == state(new)


def test_a_failed_fit_of_a_table_changes_nothing(tmp_path):
    table = tmp_path / "table.csv"
    rows = "\n".join(f"{a},{b},{y}" for (a, b), y in zip(X, Y, strict=True))
    table.write_text(f"a,b,y\n{rows}\n")
    found = model(feature_bounds={"a": (-1, 1), "b": (-1, 1)}).fit_table(table, label="y")
    before = state(found)
    found.set_params(feature_bounds={"a": (-1, 1)})
    damaged = tmp_path / "table.parquet"
    parquet.write_table(pa.table({"a": X[:, 0], "y": Y}), damaged)
    data = bytearray(damaged.read_bytes())
    data[4:64] = bytes(60)
    damaged.write_bytes(data)
    with pytest.raises(ValueError, match="sound Parquet file"):
        found.fit_table(damaged, label="y")
    found.set_params(feature_bounds={"a": (-1, 1), "b": (-1, 1)})
    assert state(found) == before


def written(tmp_path):
    table, bounds = tmp_path / "table.csv", tmp_path / "bounds.json"
    rows = "\n".join(f"{a},{b},{y}" for (a, b), y in zip(X, Y, strict=True))
    table.write_text(f"a,b,y\n{rows}\n")
    bounds.write_text(json.dumps({"a": [-1, 1], "b": [-1, 1], "y": [-4, 4]}))
    return ["fit", str(table), "--label=y", f"--bounds={bounds}", "--rho=0.5"]


def test_the_command_says_what_a_failed_fit_spent(tmp_path, capsys, monkeypatch):
    words = written(tmp_path)

    def fails(self, *_):
        raise ValueError("noise must be drawn")

    monkeypatch.setattr(SplitBudget, "noise_std", fails)
    assert main(words) == 1
    error = capsys.readouterr().err
    assert error.endswith(f"privreg fit: noise must be drawn; {SPENT} (replace-one)\n")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--level=nan", "--level"),
        ("--level=1.5", "--level"),
        ("--output={}/no/fit.json", "--output"),
        ("--report={}", "--report"),
    ],
)
def test_the_command_looks_at_its_options_before_it_spends(
    tmp_path, capsys, monkeypatch, option, name
):
    monkeypatch.setattr(SplitBudget, "noise_std", lambda *_: pytest.fail("noise was drawn"))
    assert main([*written(tmp_path), option.format(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"privreg fit: {name} must be")
    assert command.SUMMARY
