"""Noise is secret unless a seed is given, and a seeded fit says that it is not private."""

from __future__ import annotations

import json
import pickle
from math import inf

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor

from privreg import AdaSSP, Bounds, Budget, OnePassDPGD, PrivateLinearRegression
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.whitened_descent import private_count
from privreg.estimators.odometer import as_json
from privreg.estimators.report import fit_as_json
from privreg.methods.method import Declared
from privreg.privacy.release import SECRET_STREAM, USUAL, Secret, Seeded
from privreg.schedules import Polynomial

BUDGET = Budget.approximate(1.0, 1e-6)
BOUNDS = {"feature_bounds": (-1, 1), "label_bounds": (-4, 4)}
DRAWS = np.random.Generator(np.random.SFC64(3))
X = DRAWS.uniform(-1, 1, (2000, 2))
Y = X @ [1.0, -1.0] + 0.3 * DRAWS.standard_normal(2000)


def fitted(**settings) -> PrivateLinearRegression:
    frame = pandas.DataFrame(X, columns=["a", "b"])
    return PrivateLinearRegression(BUDGET, **BOUNDS, **settings).fit(frame, Y)


def test_a_seeded_fit_is_not_private_and_says_so():
    with pytest.warns(UserWarning, match="not private: seeded") as warned:
        model = fitted(random_state=4)
    # The line that the warning names is the caller's.
    assert warned[0].filename == __file__
    privacy = model.privacy_
    assert privacy.seeded
    assert privacy.epsilon() == privacy.rho == privacy.mu == privacy.budget.rho == inf
    assert privacy.with_secret_noise == BUDGET.gaussian()
    assert "random_state=4" in repr(model)
    for shown in (model.report(), model.report("html"), privacy.sentence.capitalize()):
        assert "Not private: seeded" in shown
    assert "zCDP with rho = inf" in model.report()
    assert any(text.startswith("not private: seeded") for text in privacy.assumptions)
    plain = json.loads(as_json(fit_as_json(model, level=0.9), 1))
    assert plain["privacy"]["seeded"]
    assert plain["privacy"]["epsilon"] is None


def test_a_fit_with_secret_noise_is_private_and_carries_nothing_that_makes_noise():
    model = fitted()
    privacy = model.privacy_
    assert privacy.budget == privacy.with_secret_noise == BUDGET.gaussian()
    assert privacy.epsilon() == pytest.approx(1.0)
    assert "seeded" not in model.report()
    assert b"random" not in pickle.dumps(model).replace(b"random_state", b"")
    plain = fit_as_json(model, level=0.9)["privacy"]
    assert not plain["seeded"]
    assert plain["epsilon"] == pytest.approx(1.0)


def test_no_two_fits_share_secret_noise():
    """Neither of one object, nor of clones, copies and pickles before the fit."""
    model = PrivateLinearRegression(BUDGET, **BOUNDS)
    others = [model, clone(model), clone(clone(model)), pickle.loads(pickle.dumps(model))]
    # Of one object, the second fit replaces the first one's array.
    with pytest.warns(UserWarning, match="or its clones are fitted repeatedly"):
        found = [model.fit(X, Y).coef_, *(each.fit(X, Y).coef_ for each in others)]
    assert np.unique(np.array(found)).size == 2 * len(found)


def test_an_ensemble_that_seeds_its_members_is_not_private():
    """scikit-learn's ensembles set every `random_state` that they find."""
    ensemble = BaggingRegressor(
        PrivateLinearRegression(BUDGET, **BOUNDS, weight_bound=2), n_estimators=2, random_state=0
    )
    with pytest.warns(UserWarning, match="not private: seeded.*bagging and AdaBoost set it"):
        members = ensemble.fit(X, Y)
    assert all(each.privacy_.epsilon() == inf for each in members.estimators_)


def test_every_release_of_seeded_noise_says_so():
    """Who seeded a caller's generator cannot be seen: its release says what it assumes."""
    rows = ArraySamples(X, Y)
    known = Declared(Bounds(2.0, 4.0))
    for noise, said in ((Seeded(1), True), (Secret(), False)):
        sums = AdaSSP().run(rows, BUDGET, declared=known, noise=noise)
        path = OnePassDPGD(Polynomial(2.0, 0.5), 1.0).run(rows, BUDGET, noise=noise)
        for release in (sums, path):
            found = [text.startswith("not private: seeded") for text in release.assumptions]
            assert any(found) is said
    counted = private_count(10, budget=BUDGET, rng=np.random.Generator(np.random.SFC64(1)))
    assert SECRET_STREAM in counted.assumptions
    assert SECRET_STREAM in USUAL
