"""What the estimator chooses and foresees from public knowledge alone."""

import numpy as np
import pytest

from privreg import Budget, PrivateLinearRegression
from privreg.estimators.outlook import Outlook, advice, outlook
from privreg.methods.huber import PrivateHuber
from privreg.methods.least_squares import PrivateLeastSquares
from privreg.planning import WORTH

ENOUGH = Budget.zcdp(0.125)
BOUNDS = {"feature_bounds": (-4, 4), "label_bounds": (-4, 4)}


def drawn(rng, n, p):
    """Standard features that explain the share of the labels' variance in the middle."""
    features = rng.standard_normal((n, p))
    theta = np.full(p, np.sqrt(0.65 / p))
    return features, features @ theta + np.sqrt(0.35) * rng.standard_normal(n), theta


def test_the_default_is_kept_where_nothing_is_much_better():
    found = outlook(10_000, 11, ENOUGH, target="huber")
    assert found.settings == PrivateHuber.default(sample_size=10_000, dimension=11, budget=ENOUGH)
    assert all(each.holds for each in found.predictions)
    assert found.worthwhile
    assert found.doubt == ""
    given = PrivateHuber(clip_width=2.0)
    wide = outlook(10_000, 11, ENOUGH, settings=given)
    assert wide.settings is given
    assert wide.missed != found.missed


def test_another_choice_is_covered_by_theory_and_better():
    moved = []
    for n in (3000, 10_000, 30_000):
        for rho in np.geomspace(2e-5, 2e-3, 8):
            budget = Budget.zcdp(float(rho))
            chosen = outlook(n, 4, budget, target="huber")
            default = PrivateHuber.default(sample_size=n, dimension=4, budget=budget)
            if chosen.settings != default:
                moved.append(rho)
                assert chosen.settings.moment_share == default.moment_share
                given = outlook(n, 4, budget, settings=default)
                assert all(each.holds for each in chosen.predictions)
                gain = np.divide(given.missed, chosen.missed)
                doubted = not all(each.holds for each in given.predictions)
                assert doubted or gain.max() > 1 / WORTH
    assert moved


def test_the_prediction_is_what_a_fit_does(rng):
    """On a problem as it is stated by convention: within a quarter, of a mean of 30 runs."""
    n, p, budget = 4000, 5, ENOUGH
    model = PrivateLinearRegression(budget, **BOUNDS)
    missed = []
    for seed in range(30):
        features, labels, theta = drawn(rng, n, p)
        model.set_params(random_state=seed).fit(features, labels)
        missed.append((np.sum((model.coef_ - theta) ** 2) + model.intercept_**2) / 0.65)
    low, high = sorted(model.outlook_.missed)
    assert low < np.mean(missed) < high
    # Noise over signal, from the end of the range that is nearer, is all that differs.
    scaled = high * (0.35 / 0.65) / (0.6 / 0.4)
    assert np.mean(missed) == pytest.approx(scaled, rel=0.25)


def test_a_budget_that_is_too_small_warns_once_and_names_one_that_is_not(rng):
    features, labels, _ = drawn(rng, 400, 8)
    small = Budget.zcdp(1e-3)
    model = PrivateLinearRegression(small, **BOUNDS)
    with pytest.warns(UserWarning, match=r"not expected to beat.*use at least rho") as caught:
        model.fit(features, labels)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.outlook_.doubt in str(caught[0].message)
    assert "every interval is infinite" in str(caught[0].message)
    assert np.isinf(model.confidence_intervals().length).all()
    assert "Unreliable: " in model.report()
    named = float(str(caught[0].message).split("rho = ")[1].split(" ")[0])
    assert outlook(400, 9, Budget.zcdp(1.02 * named)).worthwhile
    features, labels, _ = drawn(rng, 10_000, 8)
    assert model.set_params(budget=ENOUGH).fit(features, labels).warnings_ == []


def test_doubts_tell_what_no_theory_covers_from_what_is_worthless():
    """At n = 1e5 and ε = .01 the scales' noise is beyond the theory, and the fit a few % off."""
    budget = Budget.approximate(0.01, 1e-6).gaussian()
    found = outlook(100_000, 6, budget)
    assert found.doubt.startswith("no theory says whether the fit beats")
    assert "use at least rho" in advice(100_000, 6, budget)
    hopeless = outlook(1000, 6, budget)
    assert hopeless.doubt.startswith("the fit is not expected to beat")
    assert advice(20, 10, Budget.zcdp(1e3)).startswith("use more records (about 160), fewer")
    default = PrivateHuber.default(sample_size=1, dimension=2, budget=budget)
    assert outlook(1, 2, budget, target="huber") == Outlook(default, ())
    assert Outlook(default, ()).sentences == []


def test_least_squares_takes_the_start_that_a_robust_fit_would_have():
    for budget in (Budget.zcdp(2e-3), ENOUGH, Budget.zcdp(1e-12)):
        robust = outlook(3000, 4, budget, target="huber")
        found = outlook(3000, 4, budget)
        started = PrivateLeastSquares.with_start_of(robust.settings, 3000, 4, budget)
        assert found.settings == started
        assert len(found.predictions) == len(robust.predictions)


@pytest.mark.filterwarnings("ignore:.*bounds clip|.*than predicting the mean")
@pytest.mark.parametrize(("rho", "said"), [(0.003, True), (100.0, False)])
def test_the_report_says_where_a_robust_fit_would_have_half_the_error(rho, said):
    rng = np.random.default_rng(3)
    features = rng.uniform(-1, 1, (6_000, 3))
    labels = features @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_t(2, 6_000)
    plain, robust = (
        PrivateLinearRegression(
            Budget.zcdp(rho),
            feature_bounds=(-1, 1),
            label_bounds=(-20, 20),
            target=target,
            random_state=1,
        ).fit(features, labels, quality_share=0)
        for target in ("least_squares", "huber")
    )
    sentence = 'target="huber" would have standard errors about'
    shown = [sentence in text for text in (plain.report(), str(plain.summary()), robust.report())]
    assert shown == [said, said, False]
    if said:
        shorter = plain.confidence_intervals().half_width / robust.confidence_intervals().half_width
        assert np.median(shorter) > 2
