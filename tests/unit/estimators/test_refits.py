"""A fit that fails leaves the object as it was, and says what it spent."""

from __future__ import annotations

import pickle

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import parquet

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms.whitened_descent import SplitBudget
from privreg.methods.least_squares import PrivateLeastSquares

BUDGET = Budget.zcdp(0.5)
DRAWS = np.random.Generator(np.random.SFC64(8))
X = DRAWS.uniform(-1, 1, (2000, 2))
Y = X @ [1.0, -1.0] + 0.3 * DRAWS.standard_normal(2000)
OTHER = DRAWS.uniform(-1, 1, (1000, 3))
SPENT = "the failed fit counts as spent, with rho = 0.5"


class Broken(RuntimeError):
    """What a test makes happen."""


def model(**settings) -> PrivateLinearRegression:
    usual = {"budget": BUDGET, "feature_bounds": (-1, 1), "label_bounds": (-4, 4)}
    return PrivateLinearRegression(**(usual | settings))


def state(found: PrivateLinearRegression) -> bytes:
    """All of an object, bit for bit."""
    return pickle.dumps(found.__getstate__())


def broken_at(monkeypatch, number: int, error: type[BaseException] = Broken) -> None:
    """Let the noise of one private statistic of a fit fail."""
    plain, drawn = SplitBudget.noise_std, []

    def fails(self, *arguments):
        drawn.append(arguments)
        if len(drawn) > number:
            raise error("in between")
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


def test_an_interrupt_of_a_first_fit_leaves_nothing(monkeypatch):
    found = model()
    before = state(found)
    broken_at(monkeypatch, 4, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt) as refused:
        found.fit(X, Y)
    assert state(found) == before
    assert SPENT in refused.value.__notes__[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature_bounds": None}, "feature_bounds must be declared as"),
        ({"label_bounds": None}, "label_bounds must be declared as"),
        ({"feature_bounds": (1, 1)}, "feature_bounds must have low below high"),
        ({"feature_bounds": (0, 1e-13)}, "low below high by at least 1e-12"),
        ({"label_bounds": (0, 1e13)}, r"label_bounds must be .* at most 1e\+12"),
        ({"feature_bounds": ([0] * 2, [1] * 2)}, "feature_bounds must give one low"),
        ({"feature_bounds": (float("nan"), 1)}, "feature_bounds must be"),
        ({"feature_bounds": {"a": (0, 1)}}, "or 3 pairs for unnamed columns"),
        ({"feature_bounds": "private"}, "feature_bounds must be declared as"),
        ({"budget": None}, "either a budget, .*, or epsilon must be given"),
        ({"budget": 1.0}, r"or epsilon must be given.*got budget=1\.0"),
        ({"budget": Budget(float("inf"))}, "budget: rho must be at least 1e-12"),
        ({"epsilon": 1.0}, r"or epsilon must be given, got budget=.* and epsilon=1\.0"),
        ({"unit": "house"}, "unit must be one of 'person', 'row'"),
        ({"unit": "person"}, r"groups must be given.*set_fit_request\(groups=True\)"),
        ({"release": "first"}, "release must be one of"),
        ({"random_state": -1}, "random_state must be"),
        # A clone would repeat a generator's stream, and its state would be part of the object.
        ({"random_state": np.random.RandomState(1)}, "random_state must be a whole number"),
        ({"random_state": np.random.default_rng(1)}, "random_state must be a whole number"),
        ({"target": "median"}, "target must be one of 'huber', 'least_squares'"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False"),
        ({"odometer": 1}, "odometer must be"),
        ({"y": np.full(1000, np.nan)}, "NaN"),
        ({"groups": [1, 2]}, "groups must have shape"),
        ({"X": OTHER[:5]}, "X and y must be"),
    ],
)
def test_what_is_refused_before_any_noise_costs_and_changes_nothing(monkeypatch, change, message):
    data = {"X": OTHER, "y": OTHER[:, 0], "groups": None}
    given = data | {name: value for name, value in change.items() if name in data}
    found = model().fit(X, Y)
    found.set_params(**{name: value for name, value in change.items() if name not in data})
    before = dict(vars(found))
    monkeypatch.setattr(SplitBudget, "noise_std", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(ValueError, match=message) as refused:
        found.fit(**given)
    assert not hasattr(refused.value, "__notes__")
    assert vars(found).keys() == before.keys()
    assert all(vars(found)[name] is value for name, value in before.items())


def test_a_refit_keeps_nothing_of_the_first_fit():
    first = model(release="all", random_state=1).fit(pandas.DataFrame(X, columns=["a", "b"]), Y)
    assert hasattr(first, "iterates_")
    assert hasattr(first, "feature_names_in_")
    again = first.set_params(release="last").fit(OTHER, OTHER[:, 0])
    new = model(random_state=1).fit(OTHER, OTHER[:, 0])
    assert vars(again).keys() == vars(new).keys()
    assert state(again) == state(new)


def test_a_failed_fit_of_a_table_changes_nothing(tmp_path):
    table, damaged = tmp_path / "table.parquet", tmp_path / "damaged.parquet"
    parquet.write_table(pa.table({"a": X[:, 0], "y": Y}), table)
    found = model(feature_bounds={"a": (-1, 1)}).fit_table(table, label="y")
    before = state(found)
    data = table.read_bytes()
    damaged.write_bytes(data[:4] + bytes(60) + data[64:])
    with pytest.raises(ValueError, match="sound Parquet file"):
        found.fit_table(damaged, label="y")
    assert state(found) == before
