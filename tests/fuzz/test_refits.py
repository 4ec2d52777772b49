"""A second fit with hostile arguments: the object is as before, bit for bit, or wholly the new fit.

Settings, features, labels, persons and tables each take every fixed hostile value after a valid fit
of other data; a seed makes fits comparable.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import made_runs
import pytest
from hostile import fixed
from sklearn.base import clone

from privreg.algorithms.split_budget import SplitBudget
from privreg.estimators.linear_regression import PrivateLinearRegression

FIRST = made_runs.FEATURES[:120, :2]
SECOND = {"X": made_runs.FEATURES, "y": made_runs.LABELS, "groups": made_runs.GROUPS}
TABLE = {"table": made_runs.csv_file(), "label": "y", "threads": 1}
SETTINGS = {
    "budget": made_runs.BUDGET,
    "feature_bounds": [-1.0, 1.0],
    "label_bounds": [-2.0, 2.0],
    "fit_intercept": True,
    "settings": None,
    "release": "all",
    "random_state": 1,
}


def fitted() -> PrivateLinearRegression:
    return PrivateLinearRegression(**SETTINGS).fit(FIRST, made_runs.LABELS[:120])


def attributes(model: PrivateLinearRegression) -> bytes:
    """What a fit made, bit for bit."""
    names = sorted(vars(model).keys() - model.get_params().keys())
    return pickle.dumps([(name, pickle.dumps(getattr(model, name))) for name in names])


def hostile(valid: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in valid.items():
        for each in fixed(value):
            yield name, each


def refit(change: dict[str, Any], method: str, data: dict[str, Any]) -> bool:
    """Whether a second fit was answered; it is checked to be whole, or nothing."""
    model = fitted()
    before = attributes(model)
    model.set_params(**change)
    unfitted = clone(model, safe=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = getattr(model, method)(**data)
        except (TypeError, ValueError):
            assert attributes(model) == before, (change, data)
            return False
        assert found is model
        new = getattr(unfitted, method)(**data)
    if model.random_state is not None:
        assert attributes(model) == attributes(new), (change, data)
    assert vars(model).keys() == vars(new).keys(), (change, data)
    return True


@pytest.mark.parametrize("name", SECOND)
def test_hostile_data(name):
    answered = [
        refit({}, "fit", SECOND | {name: value}) for _, value in hostile({name: SECOND[name]})
    ]
    assert not all(answered)


@pytest.mark.parametrize("name", SETTINGS)
def test_hostile_settings(name):
    answered = [refit({name: value}, "fit", SECOND) for _, value in hostile({name: SETTINGS[name]})]
    assert not all(answered)


@pytest.mark.parametrize("name", [*TABLE, "label_bounds", "feature_bounds"])
def test_hostile_tables(name):
    bounds = {"feature_bounds": made_runs.FEATURE_BOUNDS}
    assert refit(bounds, "fit_table", TABLE)
    for value in fixed((TABLE | SETTINGS | bounds)[name]):
        if name in TABLE:
            refit(bounds, "fit_table", TABLE | {name: value})
        else:
            refit(bounds | {name: value}, "fit_table", TABLE)


@pytest.mark.parametrize("method", ["fit", "fit_table"])
def test_a_failure_at_every_draw_of_noise(monkeypatch, method):
    """Whatever share of the budget was spent before."""
    plain, model = SplitBudget.noise_std, fitted()
    model.set_params(feature_bounds=made_runs.FEATURE_BOUNDS if method == "fit_table" else (-1, 1))
    data = TABLE if method == "fit_table" else SECOND
    before, draws, allowed = attributes(model), [], list(range(1000))

    def counts(self, *arguments):
        draws.append(arguments)
        if len(draws) > len(allowed):
            raise ValueError("noise must be drawn")
        return plain(self, *arguments)

    monkeypatch.setattr(SplitBudget, "noise_std", counts)
    getattr(clone(model), method)(**data)
    total = len(draws)
    assert total > 10
    for most in range(total):
        draws.clear()
        allowed[:] = range(most)
        with pytest.raises(ValueError, match="noise must be drawn") as refused:
            getattr(model, method)(**data)
        assert attributes(model) == before
        assert refused.value.__notes__ == ["the failed fit was not private: seeded"]
