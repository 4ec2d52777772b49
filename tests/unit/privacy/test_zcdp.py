"""Zero-concentrated privacy: definitions, inverses, bounds on the conversions, sensitivities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import log_ndtr

from privreg.privacy import zcdp
from privreg.privacy.neighbours import Neighbours, sum_sensitivity

RHOS = np.array([1e-4, 0.015, 0.05, 0.5, 3.0])
DELTAS = np.array([[1e-12], [1e-6], [1e-2]])


def exact_gaussian_delta(epsilon: float, rho: float) -> float:
    """δ(ε) of a single Gaussian mechanism with budget ρ (Balle and Wang, 2018)."""
    ratio = np.sqrt(2 * rho)
    upper = log_ndtr(ratio / 2 - epsilon / ratio)
    lower = epsilon + log_ndtr(-ratio / 2 - epsilon / ratio)
    return float(np.exp(upper) - np.exp(lower))


def test_values_quoted_for_the_papers_budgets():
    np.testing.assert_allclose(
        zcdp.to_approximate([0.015, 0.05], delta=1e-6), [0.92546, 1.71226], atol=5e-6
    )


@pytest.mark.parametrize("order", [1.5, 4.0])
def test_gaussian_budget_is_the_renyi_divergence_per_order(order):
    shift, spread = 0.7, 1.3
    p, q = stats.norm(0, spread), stats.norm(shift, spread)
    moment, _ = integrate.quad(
        lambda x: np.exp(order * p.logpdf(x) + (1 - order) * q.logpdf(x)), -40, 40, limit=500
    )
    divergence = np.log(moment) / (order - 1)
    rho = zcdp.gaussian_budget(sensitivity=shift, noise_std=spread)
    assert divergence == pytest.approx(order * rho, rel=1e-9)


def test_noise_is_the_inverse_of_the_budget():
    noise = zcdp.gaussian_noise_std(sensitivity=0.3, rho=RHOS)
    np.testing.assert_allclose(
        zcdp.gaussian_budget(sensitivity=0.3, noise_std=noise), RHOS, rtol=1e-14
    )


def test_budget_limits_are_numbers():
    budgets = zcdp.gaussian_budget(sensitivity=[0.0, 1.0, 1.0], noise_std=[0.0, 0.0, np.inf])
    np.testing.assert_array_equal(budgets, [0.0, np.inf, 0.0])
    assert zcdp.to_approximate(0.0, delta=1e-6) == 0.0
    assert zcdp.to_approximate(np.inf, delta=1e-6) == np.inf
    assert zcdp.from_approximate(0.0, delta=1.0) == 0.0


def test_composition_adds_along_the_axis():
    np.testing.assert_allclose(zcdp.compose([[0.1, 0.2], [0.3, 0.4]], axis=1), [0.3, 0.7])
    assert zcdp.compose(np.full(20, 0.015 / 20)) == pytest.approx(0.015)


def test_round_trip_through_epsilon():
    epsilon = zcdp.to_approximate(RHOS, delta=DELTAS)
    np.testing.assert_allclose(
        zcdp.from_approximate(epsilon, delta=DELTAS),
        np.broadcast_to(RHOS, (3, 5)),
        rtol=1e-12,
    )


def test_tight_conversion_lies_between_the_gaussians_exact_curve_and_the_closed_form():
    closed = zcdp.to_approximate(RHOS, delta=DELTAS)
    tight = zcdp.to_approximate_tight(RHOS, delta=DELTAS)
    assert tight.shape == closed.shape
    assert np.all(tight < closed)
    for index in np.ndindex(tight.shape):
        rho, delta = RHOS[index[1]], DELTAS[index[0], 0]
        # A valid ε cannot go below the exact curve of one mechanism with this budget.
        assert exact_gaussian_delta(tight[index], rho) <= delta * (1 + 1e-9)
        # Half of it would, unless δ alone is enough: the comparison has power.
        assert tight[index] == 0 or exact_gaussian_delta(tight[index] / 2, rho) > delta
    assert np.count_nonzero(tight) == tight.size - 1


def test_tight_conversion_minimises_over_the_order():
    from scipy.optimize import minimize_scalar

    rho, delta = 0.015, 1e-6

    def bound(log_excess: float) -> float:
        order = 1 + np.exp(log_excess)
        return float(
            rho * order + (-np.log(delta) - np.log(order)) / (order - 1) + np.log1p(-1 / order)
        )

    best = minimize_scalar(bound, bounds=(0, 6), method="bounded", options={"xatol": 1e-9}).fun
    assert float(zcdp.to_approximate_tight(rho, delta=delta)) == pytest.approx(best, rel=1e-6)


def test_sensitivity_of_a_clipped_mean_is_attained_by_opposite_records():
    rng = np.random.default_rng(0)
    n, clip = 7, 1.7
    records = rng.standard_normal((n, 3))
    records *= np.minimum(1, clip / np.linalg.norm(records, axis=1))[:, None]
    changes = []
    for first, second in rng.standard_normal((500, 2, 3)):
        pair = [v * min(1.0, clip / np.linalg.norm(v)) for v in (5 * first, 5 * second)]
        changes.append(np.linalg.norm(pair[0] - pair[1]) / n)
    direction = np.array([clip, 0, 0])
    replaced = np.linalg.norm(direction - (-direction)) / n
    added = np.linalg.norm(direction) / n
    limit = sum_sensitivity(clip, neighbours=Neighbours.REPLACE_ONE) / n
    assert max(changes) <= limit
    assert replaced == pytest.approx(limit, rel=1e-14)
    assert added == pytest.approx(sum_sensitivity(clip, neighbours=Neighbours.ADD_REMOVE) / n)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: zcdp.gaussian_budget(sensitivity=-1, noise_std=1), "sensitivity"),
        (lambda: zcdp.gaussian_budget(sensitivity=1, noise_std=np.nan), "noise_std"),
        (lambda: zcdp.gaussian_noise_std(sensitivity=1, rho=0), "rho"),
        (lambda: zcdp.to_approximate(0.1, delta=0.0), "delta"),
        (lambda: zcdp.to_approximate_tight(np.inf, delta=0.1), "rho"),
        (lambda: zcdp.to_approximate_tight(1.0, delta=1.0), "delta"),
        (lambda: zcdp.from_approximate(-0.1, delta=0.1), "epsilon"),
        (lambda: zcdp.compose([-0.1]), "budgets"),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()
