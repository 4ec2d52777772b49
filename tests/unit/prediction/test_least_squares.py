"""Predicted error and length of private least squares: identities, limits, simulations."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import poisson

from privreg.algorithms.samples import ArraySamples
from privreg.inference.least_squares_intervals import least_squares_intervals
from privreg.methods.clipping import clipped_count_bias
from privreg.methods.least_squares import (
    ERROR_LAWS,
    PrivateLeastSquares,
    RecordProducts,
    _whole_labels,
    follow_wide,
    predicted_length,
)
from privreg.methods.method import Declared
from privreg.methods.problem import Problem, rows_of
from privreg.privacy.budget import Budget

ERRORS = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "laplace": lambda rng, n: rng.laplace(size=n) / np.sqrt(2),
    "student_t5": lambda rng, n: rng.standard_t(5, n) / np.sqrt(5 / 3),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "lognormal": lambda rng, n: (
        (np.exp(rng.standard_normal(n)) - np.exp(0.5)) / np.sqrt(np.exp(2) - np.exp(1))
    ),
}


def problem(n=10_000, p=10, **changes):
    return Problem(n, np.ones(p), **({"signal": 1.0, "label_noise_std": 1.0} | changes))


def approximate(epsilon):
    return Budget.approximate(epsilon, 1e-6).gaussian()


@pytest.mark.parametrize("width", [0.7, 1.5, 4.0])
def test_what_a_clip_leaves_is_that_of_gaussian_residuals(width):
    """Rows whose length is known: a share 2Φ(t/ℓ) - 1 of them is left, and Stein's lemma."""
    case, settings = problem(p=3, feature_norm=1e6, label_bound=1e6), PrivateLeastSquares()
    budget, rows = Budget.zcdp(1e6), rows_of(problem(p=3))
    start = follow_wide(case, rows, settings, budget).start
    found = RecordProducts(case, rows, start, settings, budget, errors="gaussian")
    kept = found.moments(width)
    assert np.all(found.leverage > 0.99)
    ratio = width / found.lengths
    share = 2 * ndtr(ratio) - 1
    inside = share - ratio * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    energies = found.energies[:, 0] * rows.weights
    # Points are as good as 65,536 independent ones at worst.
    assert kept.slope[0] == pytest.approx(energies @ share, abs=3 / np.sqrt(2**16))
    second = energies @ (inside + ratio**2 * (1 - share))
    assert kept.second[0] == pytest.approx(second, rel=0.01)


@pytest.fixture(scope="module")
def unbounded():
    """What `RecordProducts` takes before the law of the errors; no clip bites."""
    case, settings = problem(feature_norm=1e6, label_bound=1e9), PrivateLeastSquares()
    rows, budget = rows_of(case), Budget.zcdp(1e6)
    return case, rows, follow_wide(case, rows, settings, budget).start, settings, budget


@pytest.mark.parametrize("errors", ERROR_LAWS)
def test_errors_have_mean_0_and_variance_1(unbounded, errors):
    found = RecordProducts(*unbounded, errors=errors)
    # Equal probabilities leave out what lies beyond the last one, most of Student's t3.
    least = {"student_t3": 0.97, "lognormal": 0.985}.get(errors, 0.995)
    assert least < found.moments(1e9).second[0] < 1.02


@pytest.mark.parametrize("errors", ["gaussian", "laplace", "exponential"])
def test_with_a_large_budget_it_is_least_squares(errors):
    case = problem(n=100_000, label_bound=50.0)
    found = predicted_length(case, Budget.zcdp(1e5), errors=errors)
    assert (found.length, found.error) == pytest.approx((1, 1), abs=0.02)


@pytest.mark.parametrize("errors", ERRORS)
def test_length_is_that_of_simulated_fits(errors):
    """16 fits of 20 slopes know a length to 1 to 10 %, the longer the tail the worse."""
    n, p, budget = 2000, 20, approximate(4.0)
    case = problem(n, p)
    method = PrivateLeastSquares.default(sample_size=n, dimension=p, budget=budget)
    expected = predicted_length(case, budget, errors=errors, intercept=False)
    lengths, squares = [], []
    for number in range(16):
        rng = np.random.Generator(np.random.SFC64([20261123, number]))
        rows = rng.standard_normal((n, p))
        samples = ArraySamples(rows, rows @ case.signal + ERRORS[errors](rng, n))
        fit = method._prepare(samples, budget, Declared.of(case))(rng)
        plain = 1.96 * np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
        lengths.append(np.median(least_squares_intervals(fit).half_width / plain))
        squares.append(np.sum((fit.parameters - case.signal) ** 2) * (n - p) / p)
    spread = 1.25 * np.std(lengths) / np.sqrt(16)
    within = 0.1 * expected.length + 3 * spread
    assert np.median(lengths) == pytest.approx(expected.length, abs=within)
    assert within < 0.5 * expected.length
    error = np.std(squares) / np.sqrt(16)
    assert np.mean(squares) == pytest.approx(expected.error, abs=0.1 * expected.error + 3 * error)


@pytest.mark.parametrize(("law", "variance"), [("binary_0.4", 0.24 / 1.04), ("poisson_5", 5)])
def test_whole_labels_are_one_apart_about_their_own_means(rng, law, variance):
    means = 0.2 * rng.standard_normal(2**14)
    labels = _whole_labels(law, means)
    # Labels in all have the variance of the means and that of the errors, 1.
    assert labels.var() == pytest.approx(1.04, rel=0.05)
    assert means @ labels == pytest.approx(means @ means, rel=0.15)
    assert np.diff(np.unique(labels)).min() == pytest.approx(variance**-0.5, rel=0.01)


def test_the_longer_the_tail_the_longer_the_interval():
    budget = approximate(1.0)
    lengths = [
        predicted_length(problem(), budget, errors=each, intercept=False).length
        for each in ("gaussian", "laplace", "exponential", "lognormal")
    ]
    assert lengths == sorted(lengths)
    method = PrivateLeastSquares.default(sample_size=10_000, dimension=10, budget=budget)
    stated = method.predict(problem(label_noise_law="laplace"), budget)
    assert stated.interval_length / problem().least_squares_length == pytest.approx(lengths[1])
    assert 0.85 * lengths[0] < predicted_length(problem(), budget).length < 0.97 * lengths[0]


def test_it_says_where_noise_hides_the_tail():
    def reason(n, p, epsilon):
        budget = approximate(epsilon)
        method = PrivateLeastSquares.default(sample_size=n, dimension=p, budget=budget)
        found = method.predict(problem(n, p), budget)
        return " ".join(found.warnings) if found.holds else found.reason

    assert reason(50_000, 3, 1.5) == reason(10_000, 10, 1.0) == ""
    assert reason(500, 10, 0.3) != ""
    assert predicted_length(problem(300), approximate(0.1)).length == np.inf


def test_a_signal_that_noise_hides_is_missed_as_predicted():
    """One Gram matrix leaves thin directions unwhitened, and the steps do not arrive there."""
    values, budget = np.geomspace(1.0, 0.02, 19), Budget.zcdp(0.08)
    case = Problem(4000, values, signal=6.4 * np.eye(19)[-1], label_noise_std=1.0)
    settings = PrivateLeastSquares(gram_rounds=1, gram_share=0.14, warm_up_steps=2)
    found, risks = settings.predict(case, budget), []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((4000, 19)) * np.sqrt(values)
        samples = ArraySamples(x, x @ case.signal + rng.standard_normal(4000))
        end = settings.simulate(samples, budget, rng, declared=Declared.of(case))[0]
        risks.append(values @ (end - case.signal) ** 2 / 2)
    slack = 0.1 * np.mean(risks) + 3 * np.std(risks) / 12**0.5
    assert found.excess_risk == pytest.approx(np.mean(risks), abs=slack)


def test_labels_beyond_their_bound_are_refused():
    found = PrivateLeastSquares().predict(problem(100_000, 4, label_bound=4.0), approximate(4.0))
    assert "label_bound clips" in found.reason
    # A rare category of high counts passes a bound that is four deviations of all labels away.
    law = {"feature_law": "one_hot", "label_noise_law": "poisson_1.3", "label_noise_std": 1.3**0.5}
    case = Problem(60_000, [0.58, 0.4, 0.02], signal=[-0.1, 0.075, 1.4], label_bound=4.8, **law)
    lost = np.maximum(np.r_[:60] - 6.1, 0) @ poisson.pmf(np.c_[:60], 1.3 + case.signal)
    assert clipped_count_bias(case) == pytest.approx(case.eigenvalues @ lost**2 / 2)
    assert "label_bound clips" in PrivateLeastSquares().predict(case, approximate(8.0)).reason
