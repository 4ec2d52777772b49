"""What fits cost together: sums, limits, and fits of clones that nobody counts."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from privreg import (
    AdaSSP,
    Budget,
    FullBatchDPGD,
    Odometer,
    PrivateLinearRegression,
    Release,
    compose,
)
from privreg.command_line.main import main
from privreg.estimators.odometer import as_json
from privreg.estimators.report import fit_as_json
from privreg.methods.least_squares import PrivateLeastSquares
from privreg.privacy.budget import gaussian_epsilon

BOUNDS = {"feature_bounds": (-1, 1), "label_bounds": (-4, 4)}
DRAWS = np.random.Generator(np.random.SFC64(3))
X = DRAWS.uniform(-1, 1, (600, 2))
Y = X @ [1.0, -1.0] + 0.3 * DRAWS.standard_normal(600)
BUDGET = Budget.zcdp(0.5)


def regression(budget=BUDGET, **settings):
    return PrivateLinearRegression(budget, **BOUNDS, **settings)


def test_a_total_is_the_composition_by_three_routes():
    """Sums of ρ, of μ², and what composing the releases gives."""
    odometer = Odometer()
    fits = [regression(Budget.zcdp(rho)).fit(X, Y) for rho in (0.5, 0.25, 1.0)]
    for fit in fits:
        odometer.add(fit)
    total = odometer.total
    assert total.rho == 1.75
    assert total.mu == pytest.approx(sqrt(sum(fit.privacy_.mu**2 for fit in fits)))
    assert total.budget == compose(*(Release(0, fit.privacy_.budget) for fit in fits)).budget
    assert total.epsilon(1e-5) == pytest.approx(gaussian_epsilon(1.75, delta=1e-5))
    assert sum(part.rho for _, part in total.spending) == pytest.approx(1.75)
    assert set(total.assumptions) == {text for fit in fits for text in fit.privacy_.assumptions}
    # One method without Gaussian DP, and all are converted by zCDP.
    odometer.add(replace(fits[0].privacy_, gaussian_dp=False))
    assert odometer.total.mu == np.inf
    assert odometer.total.epsilon(1e-6) == Budget.zcdp(2.25).epsilon(delta=1e-6)


def test_a_limit_lets_through_what_it_holds_and_draws_no_noise_beyond():
    odometer = Odometer(limit=Budget.zcdp(1.2))
    model = regression(odometer=odometer)
    first = model.fit(X, Y).coef_.copy()
    second = model.fit(X, Y).coef_.copy()
    assert not np.any(first == second)
    with pytest.raises(ValueError, match=r"odometer must have rho = 0\.5 left .* got 0\.2") as no:
        model.fit(X, Y)
    # Nothing was spent: no note says so, and the object is that of the fit before.
    assert not getattr(no.value, "__notes__", [])
    np.testing.assert_array_equal(model.coef_, second)
    assert odometer.total.rho == 1.0
    assert odometer.left.rho == pytest.approx(0.2)
    model.set_params(budget=odometer.left).fit(X, Y)
    assert odometer.left is None
    # Shares fill a limit whatever their rounding.
    for parts in (3, 7, 10, 49):
        odometer = Odometer(limit=Budget.zcdp(0.1))
        for _ in range(parts):
            odometer.add(Release(0, Budget.zcdp(0.1).share(1 / parts)))
        assert odometer.left is None


@pytest.mark.parametrize("parts", [1, 3])
def test_a_stated_limit_is_met_exactly_by_gaussian_fits(parts):
    limit = Budget.approximate(2.0, 1e-6)
    odometer = Odometer(limit=limit)
    for _ in range(parts):
        regression(limit.gaussian().share(1 / parts), odometer=odometer).fit(X, Y)
    assert odometer.total.epsilon(1e-6) == pytest.approx(2.0, rel=1e-9)
    assert odometer.left is None
    # By any other mechanism the conversion of zCDP, and never first one, then the other.
    with pytest.raises(ValueError, match="fit must have Gaussian DP, like earlier fits"):
        odometer.add(Release(0, limit.share(1e-6)))
    other = Odometer(limit=limit)
    other.add(Release(0, limit))
    assert other.left is None
    assert other.total.epsilon(1e-6) == pytest.approx(2.0, rel=1e-9)


def test_a_failed_fit_is_counted_and_a_refused_one_is_not():
    odometer = Odometer()
    model = regression(odometer=odometer)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 2), np.nan), np.ones(5))
    wide = FullBatchDPGD(clip_norm=1e12, step_size=0.05, steps=200)
    with pytest.raises(ValueError, match="gradient_noise_std must be finite"):
        regression(Budget.zcdp(1e-6), settings=wide, odometer=odometer).fit(X, Y)
    with pytest.raises(ValueError, match="must have counted a fit"):
        _ = odometer.total

    class Broken(AdaSSP):
        def _prepare(self, *_):
            return lambda _: 1 / 0

    model.set_params(settings=Broken())
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    assert odometer.total.rho == 0.5


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_what_public_numbers_refuse_costs_nothing(monkeypatch, n):
    """The prediction is a function of them: it fails before the fit is counted."""
    odometer = Odometer()
    monkeypatch.setattr("privreg.estimators.outlook.outlook", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        regression(odometer=odometer).fit(X[:n], Y[:n])
    with pytest.raises(ValueError, match="budget: rho must be at least 1e-12"):
        regression(Budget(1e-20), odometer=odometer).fit(X, Y)
    assert odometer.left is None
    with pytest.raises(ValueError, match="must have counted a fit"):
        _ = odometer.total


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("rho", [1e-12, 0.1, 1e12])
def test_a_handful_of_rows_is_fitted(rho):
    """Where nothing is clipped, the root that a prediction looks for lies at the bracket's end."""
    for n, p in ((1, 1), (2, 1), (3, 2), (5, 3), (6, 4), (12, 5)):
        for target in ("least_squares", "huber"):
            rows = DRAWS.uniform(-1, 1, (n, p))
            regression(Budget.zcdp(rho), target=target).fit(rows, rows.sum(axis=1))


def test_what_cannot_be_added_is_refused():
    odometer = Odometer()
    odometer.add(regression().fit(X, Y))
    with pytest.raises(ValueError, match="neighbours must be 'replace-one' in all fits"):
        odometer.add(Release(0, Budget.zcdp(0.1, neighbours="add-remove")))
    with pytest.raises(ValueError, match="unit must be 'row' in all fits, got 'person'"):
        odometer.add(replace(odometer.total, unit="person"))
    seeded = regression(random_state=1, odometer=odometer)
    with pytest.raises(ValueError, match="got one that is not private: seeded"):
        seeded.fit(X, Y)
    with pytest.raises(ValueError, match="neighbours must be 'zero-out'"):
        Odometer(Budget.zcdp(1.0, neighbours="zero-out")).add(Release(0, BUDGET))
    for other in (3, None, BUDGET, "secret " * 50):
        with pytest.raises(ValueError, match="fit must be") as refused:
            odometer.add(other)
        assert len(str(refused.value)) < 150
    with pytest.raises(ValueError, match="limit: rho must be"):
        Odometer(Budget.zcdp(np.inf))
    assert odometer.total.rho == 0.5


def test_a_grid_is_counted_through_its_clones():
    odometer = Odometer()
    grid = GridSearchCV(
        regression(odometer=odometer, unit="row"), {"target": ["huber", "least_squares"]}, cv=3
    )
    grid.fit(X, Y)
    # Two settings on three folds, and the best on all rows.
    assert odometer.total.rho == 7 * 0.5
    assert grid.best_estimator_.odometer is odometer
    assert copy.deepcopy(odometer) is copy.copy(odometer) is clone(grid).estimator.odometer
    limited = Odometer(limit=Budget.zcdp(1.6))
    with pytest.warns(FitFailedWarning, match="2 fits failed"):
        scores = cross_val_score(regression(odometer=limited, unit="row"), X, Y, cv=5)
    assert np.isnan(scores).tolist() == [False] * 3 + [True] * 2
    assert limited.total.rho == 1.5


def test_threads_share_an_odometer_and_processes_are_refused():
    odometer = Odometer(limit=Budget.zcdp(4.0))
    release = Release(0, Budget.zcdp(0.25))

    def add(_):
        try:
            odometer.add(release)
        except ValueError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(64))) == 16
    assert odometer.left is None
    other = pickle.loads(pickle.dumps(odometer))
    assert other.total.rho == odometer.total.rho
    with pytest.raises(ValueError, match="got a copy from a pickle or another process"):
        Odometer.add(other, release)
    fresh = Odometer()
    with (
        parallel_config(backend="loky", n_jobs=2),
        pytest.raises(ValueError, match="another process"),
    ):
        cross_val_score(regression(odometer=fresh, unit="row"), X, Y, cv=2, error_score="raise")
    assert repr(fresh) == "<Odometer: 0 fits, rho = 0>"


CLONED = "an estimator or its clones are fitted repeatedly, as in cross-validation"


def test_cross_validation_and_grids_warn():
    model = regression(unit="row")
    grid = GridSearchCV(regression(unit="row"), {"target": ["huber"]}, cv=2, refit=False)
    with pytest.warns(UserWarning, match=CLONED):
        cross_val_score(model, X, Y, cv=2)
    with pytest.warns(UserWarning, match=CLONED):
        grid.fit(X, Y)
    # A process of its own gets a pickle, which knows how many clones there are.
    fresh = regression(unit="row")
    sent = pickle.loads(pickle.dumps([clone(fresh), clone(fresh)][1]))
    with pytest.warns(UserWarning, match=CLONED):
        sent.fit(X, Y)


@pytest.mark.filterwarnings("always")
def test_clones_warn_of_each_thing_once():
    narrow = regression().set_params(feature_bounds=(-0.1, 0.1))
    with warnings.catch_warnings(record=True) as said:
        cross_val_score(narrow, X, Y, cv=4)
    starts = [str(each.message)[:70] for each in said]
    assert len(starts) == len(set(starts)) > 1


@pytest.mark.filterwarnings("error:an estimator or its clones")
def test_one_fit_does_not_warn():
    """Nor does one through a meta-estimator, which makes a clone of its own."""
    regression().fit(X, Y)
    TransformedTargetRegressor(regression(), func=np.copy, inverse_func=np.copy).fit(X, Y)
    cross_val_score(regression(random_state=1), X, Y, cv=2)
    cross_val_score(regression(odometer=Odometer(), unit="row"), X, Y, cv=2)
    for settings in ({"random_state": 1}, {"odometer": Odometer(), "unit": "row"}):
        regression(**settings).fit(X, Y).fit(X, Y)


def test_a_second_fit_of_an_object_warns(monkeypatch):
    """Also where the first failed after its budget was counted."""
    model = regression()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 2), np.nan), np.ones(5))
    with monkeypatch.context() as patch, warnings.catch_warnings(action="error"):
        patch.setattr(PrivateLeastSquares, "_prepare", None)
        with pytest.raises(TypeError, match="callable"):
            model.fit(X, Y)
    with pytest.warns(UserWarning, match=CLONED) as said:
        model.fit(X, Y)
    assert any("without groups, so privacy covers rows alone" in str(each.message) for each in said)


@pytest.fixture
def files(tmp_path):
    paths = []
    for rho in (0.5, 0.25):
        model = regression(Budget.zcdp(rho)).fit(X, Y)
        model.feature_names_in_ = np.array(["a", "b"], dtype=object)
        paths.append(tmp_path / f"{rho}.json")
        paths[-1].write_text(as_json(fit_as_json(model, level=0.9), 1))
    return paths


def test_files_of_fits_add_up(files, capsys):
    found = json.loads(files[0].read_text())
    assert found["privacy"].pop("unit") == "row"
    # Old ones are of rows; with a mark, as some editors write it.
    files[0].write_text(json.dumps(found), encoding="utf-8-sig")
    odometer = Odometer()
    for path in files:
        odometer.add(path)
    assert odometer.total.unit == "row"
    assert odometer.total.rho == 0.75
    assert odometer.total.mu == pytest.approx(sqrt(1.5))
    assert main(["odometer", *map(str, files), "--delta", "1e-5"]) == 0
    last = capsys.readouterr().out.splitlines()[2]
    assert last.startswith("together")
    assert f"epsilon = {gaussian_epsilon(0.75, delta=1e-5):.4g} at delta = 1e-05" in last
    again = files[0].with_name("copy.json")
    again.write_bytes(files[0].read_bytes())
    says = (files[0], "must be different files"), (again, f"twice, also as {str(files[0])!r}")
    for other, message in says:
        assert main(["odometer", str(files[0]), str(other)]) == 1
        assert message in capsys.readouterr().err


SUMS = [[], [float("inf")], [1e308] * 2, [0.4], [0.5 + 1e-9]]
CHANGES = [{"spent": [{"on": "all", "rho": rho} for rho in sums]} for sums in SUMS]
CHANGES += [{"mu": mu} for mu in (0.0, 0.9, 1.1, "one")]
CHANGES += [{"seeded": True}, {"unit": "cell"}, {"rho": None}, {"rho": -1}, {"rho": float("inf")}]


@pytest.mark.parametrize("change", CHANGES)
def test_files_without_a_finite_cost_are_refused(files, change):
    found = json.loads(files[0].read_text())
    files[0].write_text(json.dumps({"privacy": {**found["privacy"], **change}}))
    with pytest.raises(ValueError, match=r"not private: seeded|must be a file "):
        Odometer().add(files[0])
    for text in ("[]", "[" * 100_000):
        files[0].write_text(text)
        with pytest.raises(ValueError, match="must be a file of"):
            Odometer().add(files[0])
