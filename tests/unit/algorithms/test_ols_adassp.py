"""Baselines: least squares with its interval, and AdaSSP with its budget and sensitivities."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, t

from privreg.algorithms.adassp import (
    RELEASES,
    Bounds,
    adassp,
    adassp_zcdp,
    bounds_from_data,
    clipped_sums,
)
from privreg.algorithms.ols import ols
from privreg.algorithms.samples import ArraySamples
from privreg.privacy import budget
from privreg.privacy.budget import Budget


def stream(seed=0):
    return np.random.default_rng(seed)


def make_data(n: int, p: int, *, seed: int = 0, noise: float = 1.0) -> ArraySamples:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    return ArraySamples(x, x @ np.linspace(-1, 1, p) + noise * rng.standard_normal(n))


def test_ols_is_least_squares():
    data = make_data(2100, 6)
    fit = ols(data)
    expected, residual, *_ = np.linalg.lstsq(data.features, data.labels, rcond=None)
    assert_allclose(fit.coefficients, expected, rtol=1e-11)
    scale = np.sqrt(residual[0] / (2100 - 6))
    inverse = np.linalg.inv(data.features.T @ data.features)
    assert_allclose(fit.standard_errors, scale * np.sqrt(np.diag(inverse)), rtol=1e-11)


def test_population_interval_covers_at_its_level_and_error_is_inverse_wishart():
    n, p, trials, level = 20, 5, 1500, 0.9
    target = np.linspace(-1, 1, p)
    squares, covered = np.empty(trials), np.empty(trials)
    for trial in range(trials):
        fit = ols(make_data(n, p, seed=trial))
        error = fit.coefficients - target
        squares[trial] = error @ error
        covered[trial] = abs(error[0]) <= fit.half_widths(level=level)[0]
    spread = squares.std(ddof=1) / np.sqrt(trials)
    assert abs(squares.mean() - p / (n - p - 1)) < 4 * spread
    assert abs(squares.mean() - p / n) > 4 * spread
    assert abs(covered.mean() - level) < 4 * np.sqrt(level * (1 - level) / trials)
    quantile = fit.half_widths(level=level)[0] / fit.standard_errors[0]
    assert quantile == pytest.approx(t(n - p).ppf(0.95), rel=1e-9)


def test_bounds_from_data_are_attained_and_enforced():
    data = make_data(3000, 3)
    bounds = bounds_from_data(data).non_private
    norms = np.linalg.norm(data.features, axis=1)
    assert bounds.feature_norm == pytest.approx(np.max(norms), rel=1e-14)
    assert bounds.label == np.max(np.abs(data.labels))
    # Without noise it is least squares.
    fitted = adassp_zcdp(data, bounds=bounds, budget=Budget(np.inf), rng=stream(0))
    assert_allclose(fitted, ols(data).coefficients, rtol=1e-9)
    scaled = data.features / np.maximum(1, data.norms)[:, None]
    within = ArraySamples(scaled, np.clip(data.labels, -0.5, 0.5))
    first, second = (
        adassp_zcdp(d, bounds=Bounds(1.0, 0.5), budget=Budget.zcdp(1.0), rng=stream(0))
        for d in (data, within)
    )
    assert_allclose(first, second, rtol=1e-11)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-10), (0.92546, 1e-6), (1.71226, 1e-6)])
def test_noise_of_the_approximate_form_meets_the_total_budget_but_not_a_third_each(epsilon, delta):
    multiplier = RELEASES * np.sqrt(np.log(6 / delta)) / epsilon
    rho = RELEASES * budget.gaussian_budget(sensitivity=1.0, noise_std=multiplier)
    assert rho == pytest.approx(epsilon**2 / (6 * np.log(6 / delta)), rel=1e-12)
    assert budget.to_approximate(rho, delta=delta) <= epsilon
    # Of one Gaussian mechanism whose noise is that many times its sensitivity.
    half, loss = 0.5 / multiplier, epsilon / 3 * multiplier
    exact = norm.cdf(half - loss) - np.exp(epsilon / 3) * norm.cdf(-half - loss)
    assert exact > delta / 3


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": 40.0}, "epsilon"),
        *(({"delta": out}, "delta must be more than 0 and less") for out in (0.0, 1.0, 1.5)),
        ({"bounds": Bounds(np.inf, 1.0)}, "feature_norm"),
        ({"bounds": Bounds(1.0, 0.0)}, "label"),
        ({"ridge_failure": 1.0}, "ridge_failure"),
    ],
)
def test_errors_name_the_argument(change, name):
    arguments = {"bounds": Bounds(3.0, 3.0), "epsilon": 1.0, "delta": 1e-6} | change
    with pytest.raises(ValueError, match=name):
        adassp(make_data(30, 3), **arguments, rng=np.random.default_rng(0))


def test_ols_needs_independent_features():
    with pytest.raises(ValueError, match="rows than features"):
        ols(make_data(3, 3))
    with pytest.raises(ValueError, match="independent"):
        ols(ArraySamples(np.ones((9, 2)), np.arange(9.0)))
    with pytest.raises(ValueError, match="level"):
        ols(make_data(9, 2)).half_widths(level=1.0)
    with pytest.raises(ValueError, match="samples must give"):
        ols(ArraySamples([[1e200], [2e200]], [1.0, 2.0]))
    for gap in (0.0, 1e-9):
        features = make_data(40, 2).features.copy()
        features[:, 1] = features[:, 0] + gap * features[:, 1]
        with pytest.raises(ValueError, match="samples must have linearly independent features"):
            ols(ArraySamples(features, np.ones(40)))


def plain_adassp(data, bounds, *, multiplier, shift, factors, ridge_failure, rng):
    """The formula of the docstring, with draws in the order of the releases."""
    p = data.dimension
    gram, moment = data.features.T @ data.features, data.features.T @ data.labels
    square = bounds.feature_norm**2
    below = np.linalg.eigvalsh(gram)[0] + multiplier * square * (rng.standard_normal() - shift)
    scale = multiplier * factors[0] * square
    ridge = scale * np.sqrt(p * np.log(2 * p**2 / ridge_failure)) - max(0.0, below)
    entries = rng.standard_normal((p, p))
    noise = np.array([[entries[min(i, j), max(i, j)] for j in range(p)] for i in range(p)])
    moment = moment + (
        multiplier * factors[1] * bounds.feature_norm * bounds.label * rng.standard_normal(p)
    )
    return np.linalg.solve(gram + scale * noise + max(0.0, ridge) * np.eye(p), moment)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [3, 400, 4000])
@pytest.mark.parametrize("bounds", [Bounds(6.0, 9.0), Bounds(0.5, 0.2)])
def test_estimates_are_those_of_the_formula(bounds, rows, neighbours):
    """With so little data that the ridge is whole, with some, and with so much that it is 0."""
    data = make_data(rows, 3)
    data = ArraySamples(
        data.features * min(1, bounds.feature_norm / np.max(data.norms)),
        np.clip(data.labels, -bounds.label, bounds.label),
    )
    factors = (np.sqrt(2), 2.0) if neighbours == "replace-one" else (1.0, 1.0)
    rho, failure, epsilon, delta = 0.4, 0.2, 0.7, 1e-4
    found = adassp_zcdp(
        data,
        bounds=bounds,
        budget=Budget.zcdp(rho, neighbours=neighbours),
        rng=stream(5),
        ridge_failure=failure,
    )
    options = {"factors": factors, "ridge_failure": failure}
    expected = plain_adassp(
        data,
        bounds,
        multiplier=np.sqrt(3 / (2 * rho)),
        shift=np.sqrt(2 * np.log(1 / failure)),
        rng=stream(5),
        **options,
    )
    assert_allclose(found, expected, rtol=1e-9)
    found = adassp(
        data,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        rng=stream(5),
        neighbours=neighbours,
        ridge_failure=failure,
    )
    log_term = np.log(6 / delta)
    expected = plain_adassp(
        data,
        bounds,
        multiplier=3 * np.sqrt(log_term) / epsilon,
        shift=np.sqrt(log_term),
        rng=stream(5),
        **options,
    )
    assert_allclose(found, expected, rtol=1e-9)


def test_epsilon_is_refused_where_the_noise_would_not_keep_it():
    bounds, delta = Bounds(4.0, 4.0), 1e-6
    # Where ρ + 2 √(ρ ln(1/δ)) with ρ = ε² / (6 ln(6/δ)) reaches ε.
    log_term = np.log(6 / delta)
    limit = 6 * log_term * (1 - np.sqrt(2 / 3 * np.log(1 / delta) / log_term))
    options = {"bounds": bounds, "delta": delta, "rng": stream()}
    adassp(make_data(300, 2), epsilon=0.999 * limit, **options)
    with pytest.raises(ValueError, match=f"epsilon must be at most {limit:.3g}, "):
        adassp(make_data(300, 2), epsilon=1.001 * limit, **options)


def test_shared_sums_are_read_only_and_bound_to_their_bounds():
    sums = clipped_sums(make_data(30, 2), bounds=Bounds(1.0, 1.0))
    assert sums.not_private
    for array in (sums.gram, sums.moment):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    again = pickle.loads(pickle.dumps(sums))
    assert_array_equal(again.gram, sums.gram)
    assert (again.bounds, again.gram.flags.writeable) == (sums.bounds, False)
    with pytest.raises(TypeError):
        type(sums)(**vars(sums))
    with pytest.raises(ValueError, match="bounds must be those of the clipped sums"):
        adassp_zcdp(sums, bounds=Bounds(2.0, 1.0), budget=Budget.zcdp(1.0), rng=stream())
    assert sums.within(Bounds(1.0, 2.0)).bounds == (1.0, 2.0)
    for less in (Bounds(0.9, 2.0), Bounds(2.0, 0.9)):
        with pytest.raises(ValueError, match="bounds must be at least"):
            sums.within(less)
