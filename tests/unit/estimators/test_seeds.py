"""Noise is secret unless a seed is given, and a seeded fit says that it is not private."""

from __future__ import annotations

import io
import json
import pickle
import pickletools
from math import inf

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms import adassp, one_pass_dpgd
from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.split_budget import private_count
from privreg.command_line.fit import as_json
from privreg.noise.source import Secret, Seeded
from privreg.privacy.assumptions import SECRET_STREAM, USUAL
from privreg.schedules import Polynomial

BUDGET = Budget.approximate(1.0, 1e-6)
BOUNDS = {"feature_bounds": (-1, 1), "label_bounds": (-4, 4)}
DRAWS = np.random.Generator(np.random.SFC64(3))
X = DRAWS.uniform(-1, 1, (2000, 2))
Y = X @ [1.0, -1.0] + 0.3 * DRAWS.standard_normal(2000)


def fitted(**settings) -> PrivateLinearRegression:
    return PrivateLinearRegression(BUDGET, **BOUNDS, **settings).fit(X, Y)


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
    plain = json.loads(json.dumps(as_json(named(model), level=0.9, delta=1e-6), allow_nan=False))
    assert plain["privacy"]["seeded"]
    assert plain["privacy"]["epsilon"] is None


def test_a_fit_with_secret_noise_is_private():
    privacy = fitted().privacy_
    assert not privacy.seeded
    assert privacy.budget == privacy.with_secret_noise == BUDGET.gaussian()
    assert privacy.epsilon() == pytest.approx(1.0)
    assert "seeded" not in fitted().report()
    plain = as_json(named(fitted()), level=0.9, delta=1e-6)["privacy"]
    assert not plain["seeded"]
    assert plain["epsilon"] == pytest.approx(1.0)


def test_no_two_fits_share_secret_noise():
    """Neither of one object, nor of clones, copies and pickles before the fit."""
    model = PrivateLinearRegression(BUDGET, **BOUNDS)
    others = [model, clone(model), clone(clone(model)), pickle.loads(pickle.dumps(model))]
    # Of one object, the second fit replaces the first one's array.
    found = [model.fit(X, Y).coef_, *(each.fit(X, Y).coef_ for each in others)]
    assert np.unique(np.array(found)).size == 2 * len(found)


def test_generators_are_refused():
    """A clone would repeat a generator's stream, and its state would be part of the object."""
    for source in (np.random.default_rng(1), np.random.RandomState(1), Seeded(1)):
        with pytest.raises(ValueError, match="random_state must be a whole number, at least 0"):
            fitted(random_state=source)


def test_the_object_carries_nothing_that_makes_noise():
    stream = io.StringIO()
    pickletools.dis(pickle.dumps(fitted()), out=stream)
    assert "random" not in stream.getvalue().replace("random_state", "")
    assert "numpy.random" not in repr(vars(fitted()))


def test_an_ensemble_that_seeds_its_members_is_not_private():
    """scikit-learn's ensembles set every `random_state` that they find."""
    ensemble = BaggingRegressor(
        PrivateLinearRegression(BUDGET, **BOUNDS, weight_bound=2), n_estimators=2, random_state=0
    )
    with pytest.warns(UserWarning, match="not private: seeded.*, as bagging and AdaBoost do"):
        members = ensemble.fit(X, Y)
    assert all(each.privacy_.epsilon() == inf for each in members.estimators_)


def test_every_release_of_seeded_noise_says_so():
    rows = ArraySamples(X, Y)
    schedule = Polynomial(2.0, 0.5)
    mechanism = one_pass_dpgd.Mechanism.from_schedule(
        schedule, sample_size=len(X), dimension=2, budget=Budget.zcdp(0.5), clip_constant=1.0
    )
    for noise, said in ((Seeded(1), True), (Secret(), False)):
        sums = adassp.release(rows, bounds=adassp.Bounds(2.0, 4.0), budget=BUDGET, noise=noise)
        path = one_pass_dpgd.release(mechanism, X, Y, noise=noise)
        for release in (sums, path):
            found = [text.startswith("not private: seeded") for text in release.assumptions]
            assert any(found) is said


def test_every_release_of_the_callers_generator_names_the_stream():
    """Who seeded a generator cannot be seen: the release says what it assumes of the stream."""
    rows = ArraySamples(X, Y)
    rng = np.random.Generator(np.random.SFC64(1))
    counted = private_count(10, budget=BUDGET, rng=rng)
    fit = huber_descent(
        rows,
        feature_norm=2.0,
        label_bound=4.0,
        budget=BUDGET,
        settings=HuberSettings(),
        rng=rng,
    )
    for release in (counted, fit):
        assert SECRET_STREAM in release.assumptions
    assert SECRET_STREAM in USUAL


def named(model: PrivateLinearRegression) -> PrivateLinearRegression:
    """With names of columns, as a table in a file has."""
    model.feature_names_in_ = np.array(["a", "b"], dtype=object)
    return model
