"""Zero-concentrated privacy: definitions, inverses, bounds on the conversions, sensitivities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from scipy.special import log_ndtr

from privreg.privacy import budget
from privreg.privacy.budget import Neighbours, gram_sensitivity, sum_sensitivity

RHOS = np.array([1e-4, 0.015, 0.05, 0.5, 3.0])
DELTAS = np.array([[1e-12], [1e-6], [1e-2]])


def exact_gaussian_delta(epsilon: float, rho: float) -> float:
    """δ(ε) of a single Gaussian mechanism with budget ρ (Balle and Wang, 2018)."""
    ratio = np.sqrt(2 * rho)
    upper = log_ndtr(ratio / 2 - epsilon / ratio)
    lower = epsilon + log_ndtr(-ratio / 2 - epsilon / ratio)
    return float(np.exp(upper) - np.exp(lower))


def test_values_quoted_for_the_papers_budgets():
    assert_allclose(budget.to_approximate([0.015, 0.05], delta=1e-6), [0.92546, 1.71226], atol=5e-6)


@pytest.mark.parametrize("order", [1.5, 4.0])
def test_gaussian_budget_is_the_renyi_divergence_per_order(order):
    shift, spread = 0.7, 1.3
    p, q = stats.norm(0, spread), stats.norm(shift, spread)
    moment, _ = integrate.quad(
        lambda x: np.exp(order * p.logpdf(x) + (1 - order) * q.logpdf(x)), -40, 40, limit=500
    )
    divergence = np.log(moment) / (order - 1)
    rho = budget.gaussian_budget(sensitivity=shift, noise_std=spread)
    assert divergence == pytest.approx(order * rho, rel=1e-9)


def test_noise_is_the_inverse_of_the_budget():
    noise = budget.gaussian_noise_std(sensitivity=0.3, rho=RHOS)
    assert_allclose(budget.gaussian_budget(sensitivity=0.3, noise_std=noise), RHOS, rtol=1e-14)


def test_tight_conversion_lies_between_the_gaussians_exact_curve_and_the_closed_form():
    closed = budget.to_approximate(RHOS, delta=DELTAS)
    tight = np.array(
        [[budget.to_approximate_tight(rho, delta=d) for rho in RHOS] for d in DELTAS[:, 0]]
    )
    assert np.all(tight < closed)
    for index in np.ndindex(tight.shape):
        rho, delta = RHOS[index[1]], DELTAS[index[0], 0]
        # A valid ε cannot go below the exact curve of one mechanism with this budget.
        assert exact_gaussian_delta(tight[index], rho) <= delta * (1 + 1e-9)
        # Half of it would, unless δ alone is enough: the comparison has power.
        assert tight[index] == 0 or exact_gaussian_delta(tight[index] / 2, rho) > delta
    assert np.count_nonzero(tight) == tight.size - 1


@pytest.mark.parametrize("delta", [1e-9, 0.9])
@pytest.mark.parametrize("epsilon", [1e-5, 1.0, 300.0])
def test_tight_inverse_is_the_largest_budget_that_keeps_epsilon(epsilon, delta):
    rho = budget.from_approximate_tight(epsilon, delta=delta)
    assert budget.to_approximate_tight(rho, delta=delta) <= epsilon
    assert budget.to_approximate_tight(rho * (1 + 4e-9), delta=delta) > epsilon
    assert budget.to_approximate(rho, delta=delta) >= epsilon * (1 - 1e-12)


@pytest.mark.parametrize("rho", [1e-9, 0.02, 1.0, 300.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-3, 0.4])
def test_tight_conversion_is_that_of_dp_accounting(rho, delta):
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    orders = 1 + np.sqrt(-np.log(delta) / rho) * np.geomspace(0.05, 20.0, 20_000)
    expected = min(
        compute_epsilon(orders, rho * orders, delta)[0], budget.to_approximate(rho, delta=delta)
    )
    found = budget.to_approximate_tight(rho, delta=delta)
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_infinities_are_answers():
    assert_array_equal(
        budget.gaussian_budget(
            sensitivity=[np.inf, np.inf, 0.0, 0.0, 1.0, 1.0],
            noise_std=[1.0, np.inf, np.inf, 0.0, 0.0, np.inf],
        ),
        [np.inf, np.inf, 0.0, 0.0, np.inf, 0.0],
    )
    assert_array_equal(
        budget.gaussian_noise_std(sensitivity=[np.inf, 1.0, np.inf], rho=[1.0, np.inf, np.inf]),
        [np.inf, 0.0, np.inf],
    )
    assert budget.to_approximate(0.0, delta=1e-6) == 0.0
    assert budget.to_approximate(np.inf, delta=1e-6) == np.inf
    # With δ = 1 everything is hidden already: ε is what ρ alone asks for.
    assert_array_equal(budget.to_approximate([0.5, np.inf], delta=1.0), [0.5, np.inf])
    assert budget.to_approximate(0.5, delta=0.5) == pytest.approx(
        0.5 + 2 * np.sqrt(0.5 * np.log(2)), rel=1e-15
    )


def test_a_budget_that_underflows_is_rounded_up():
    assert 0 < budget.gaussian_budget(sensitivity=1e-200, noise_std=1.0) <= 5e-301
    assert budget.gaussian_budget(sensitivity=1.0, noise_std=1e-3) == pytest.approx(5e5)
    assert budget.gaussian_noise_std(sensitivity=1e-300, rho=1e60) > 0


@pytest.mark.parametrize(
    ("sensitivity", "replaced"), [(sum_sensitivity, 2.0), (gram_sensitivity, np.sqrt(2.0))]
)
def test_sensitivities_by_relation(sensitivity, replaced):
    """A record taken away or blanked moves a sum by its bound, one replaced by more."""
    expected = {"replace-one": replaced, "add-remove": 1.0, "zero-out": 1.0}
    for neighbours, factor in expected.items():
        for relation in (neighbours, Neighbours(neighbours)):
            assert_array_equal(
                sensitivity([0.0, 3.0, np.inf], neighbours=relation), [0.0, 3 * factor, np.inf]
            )
    assert sensitivity(3.0) == 3 * replaced


def test_what_a_replaced_record_moves_is_reached_and_never_passed():
    rng = np.random.default_rng(11)
    vectors = rng.standard_normal((400, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ends = np.concatenate([vectors, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]])
    grams = np.einsum("ki,kj->kij", ends, ends).reshape(len(ends), -1)
    for terms, sensitivity in ((ends, sum_sensitivity), (grams, gram_sensitivity)):
        moves = np.linalg.norm(terms[:, None] - terms[None], axis=2)
        assert moves.max() == pytest.approx(sensitivity(1.0), rel=1e-12)
