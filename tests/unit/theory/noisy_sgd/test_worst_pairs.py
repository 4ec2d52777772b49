"""The search over all ordered pairs of records, and the proxies that spare it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from privreg.theory.noisy_sgd import worst_pairs
from privreg.theory.noisy_sgd.renyi_loss import (
    Record,
    ReleaseGeometry,
    average_divergence,
    pair_divergence,
)
from privreg.theory.noisy_sgd.worst_pairs import (
    PairSearch,
    candidate_records,
    largest_pairs,
    pair_divergences,
    pair_gradient_gap,
)

from .laws import DIMENSION, STEP, dense_joint, first_pair, small_law, small_records

Array = NDArray[np.float64]


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("times", [[3.0], [2.0, 3.0, 4.0]])
def test_search_over_pairs_equals_pair_by_pair(isotropic: bool, times: list[float]) -> None:
    law = small_law(isotropic=isotropic)
    features, labels = small_records(law)
    search = PairSearch(law, features, labels)
    values = search.divergences(times=times, position=2.5, order=2.0)
    printed = search.divergences(times=times, position=2.5, order=2.0, variant="paper")
    for i in range(labels.size):
        for j in range(labels.size):
            pair = [Record(features[k], labels[k]) for k in (i, j)]
            options = {"times": times, "position": 2.5, "order": 2.0}
            expected = average_divergence(law, *pair, **options)
            assert values[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-13)
            # As printed the direction is the other one.
            expected = average_divergence(law, *pair[::-1], variant="paper", **options)
            assert printed[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-13)
    worst = search.worst(times=times, position=2.5, order=2.0)
    assert worst.divergence == values.max() == values[worst.first, worst.second]
    assert np.all(search.divergences(times=[1.0], position=2.5, order=2.0) == 0)


def test_several_positions_and_orders_are_one_by_one() -> None:
    law = small_law(isotropic=False)
    search = PairSearch(law, *small_records(law))
    times, positions, orders = [2.0, 3.0, 4.0], [0.5, 2.5, 2.7, 3.5, 4.5], [1.5, 3.0]
    values = search.divergences(times=times, position=positions, order=np.array(orders)[:, None])
    for (k, order), (m, position) in product(enumerate(orders), enumerate(positions)):
        alone = search.divergences(times=times, position=position, order=order)
        np.testing.assert_allclose(values[k, m], alone, rtol=1e-12)
    with pytest.raises(ValueError, match="order must be more than 1"):
        search.divergences(times=times, position=positions, order=[2.0, 1.0])


def drawn_geometry(rng: np.random.Generator) -> tuple[ReleaseGeometry, Array, Array, float]:
    """A geometry, records of which some are nearly parallel, their labels, and an order."""
    dimension = int(rng.integers(1, 5))
    features = rng.standard_normal((5, dimension)) * 10 ** rng.uniform(-1, 0.5)
    near = rng.choice([0.0, 1e-6, 0.1], (4, 1))
    features[1:] = np.where(near > 0, features[0], features[1:])
    features[1:] += near * rng.standard_normal((4, dimension))
    prior = 10 ** rng.uniform(-3, 1) * np.exp(rng.standard_normal(dimension))
    carry = 10 ** rng.uniform(-1, 0) * np.exp(0.3 * rng.standard_normal(dimension))
    base = carry**2 * (prior + 10 ** rng.uniform(-3, 1)) + 10 ** rng.uniform(-6, 0)
    step = 10 ** rng.uniform(-2, 0.3) / np.max(np.sum(features**2, axis=1))
    mean = rng.standard_normal(dimension)
    geometry = ReleaseGeometry(base, carry, carry * prior, prior, mean, step)
    return geometry, features, rng.standard_normal(5), 1 + 10 ** rng.uniform(-2, 2)


def test_pairs_of_any_geometry_equal_low_rank_laws() -> None:
    """Also where the part of the first record alone would leave no definite covariance."""
    compared = np.zeros((2, 2), int)
    for seed in range(100):
        geometry, features, labels, order = drawn_geometry(np.random.default_rng(seed))
        base, carry, cross, prior, mean, step = geometry
        parts = np.array([carry**2, carry * cross, cross**2]) / base
        found, errors = pair_divergences(
            np.array([(features * part) @ features.T for part in parts]),
            np.eye(3),
            features @ mean - labels,
            features**2 @ prior,
            step,
            order,
            (mean.size + 8) * np.finfo(float).eps,
        )
        for i, j in zip(*np.nonzero((errors == 0) & ~np.eye(5, dtype=bool)), strict=True):
            pair = [Record(features[k], float(labels[k])) for k in (i, j)]
            try:
                wanted = pair_divergence(geometry, *pair, order=order)
            except ValueError:
                continue
            assert found[i, j] == pytest.approx(wanted, rel=1e-6, abs=1e-9), (seed, i, j)
            factors = np.column_stack([carry * features[i], cross * features[i]])
            core = (1 - order) * step * np.array([[step * (features[i] ** 2 @ prior), -1], [-1, 0]])
            definite = np.linalg.eigvalsh(np.diag(base) + factors @ core @ factors.T)[0] > 0
            compared[int(definite), int(np.isfinite(wanted))] += 1
    assert np.all(compared > 10)


def test_search_reports_infinite_pairs() -> None:
    law = small_law()
    features = np.vstack([np.zeros(DIMENSION), 3 * np.eye(DIMENSION)[0]])
    values = PairSearch(law, features, np.zeros(2)).divergences(
        times=[6.0], position=6.0, order=4.0
    )
    assert values[0, 1] == np.inf
    assert np.isfinite(values[1, 0])


def test_proxies_equal_their_definition_and_bound_the_search() -> None:
    law = small_law()
    features, labels = small_records(law)
    ones = np.ones(DIMENSION)
    proxy = pair_gradient_gap(features, labels, ones, ridge=0.1)
    gap = np.outer(features[2], features[2]) - np.outer(features[7], features[7])
    direct = labels[2] * features[2] - labels[7] * features[7] - (gap + 0.1 * np.eye(6)) @ ones
    assert proxy[2, 7] == pytest.approx(np.linalg.norm(direct), rel=1e-12)
    assert np.diag(proxy) == pytest.approx(0.1 * np.sqrt(DIMENSION))
    assert proxy[2, 7] != pytest.approx(proxy[7, 2], rel=1e-3)
    top = largest_pairs(proxy, 5)
    ranked = np.sort(proxy[~np.eye(labels.size, dtype=bool)])[::-1]
    np.testing.assert_array_equal(proxy[top[:, 0], top[:, 1]], ranked[:5])
    search = PairSearch(law, features, labels)
    worst = search.worst(times=[3.0], position=2.5, order=2.0).divergence
    subset = np.unique(top)
    partial = PairSearch(law, features[subset], labels[subset])
    # Sums over other numbers of records round otherwise.
    found = partial.worst(times=[3.0], position=2.5, order=2.0).divergence
    assert found <= worst * (1 + 1e-12)


def test_pairs_of_lost_digits_are_computed_one_by_one(monkeypatch) -> None:
    law = small_law()
    search = PairSearch(law, *small_records(law))
    at = {"times": [3.0], "position": 2.5, "order": 2.0}
    expected = search.divergences(**at)
    lost = np.zeros_like(expected), np.full_like(expected, np.inf)
    monkeypatch.setattr(worst_pairs, "pair_divergences", lambda *_: lost)
    np.testing.assert_allclose(search.divergences(**at), expected, rtol=1e-9, atol=1e-13)


def test_proxies_of_nearly_equal_records_keep_their_digits() -> None:
    features, labels = small_records(small_law())
    features[1], labels[1] = features[0] * (1 + 1e-9), labels[0]
    gap = labels[0] * (features[0] - features[1])
    found = pair_gradient_gap(features, labels, np.zeros(DIMENSION))
    assert found[0, 1] == pytest.approx(np.linalg.norm(gap), rel=1e-6)


def test_proxies_at_several_points_are_those_at_each() -> None:
    features, labels = small_records(small_law())
    points = np.random.default_rng(0).standard_normal((2, 3, DIMENSION))
    ridges = np.array([0.0, 0.1, 2.0])
    found = pair_gradient_gap(features, labels, points, ridge=ridges)
    for i, j in np.ndindex(2, 3):
        alone = pair_gradient_gap(features, labels, points[i, j], ridge=ridges[j])
        np.testing.assert_allclose(found[i, j], alone, rtol=1e-12)
    with pytest.raises(ValueError, match="broadcast"):
        pair_gradient_gap(features, labels, points[0, 0], ridge=ridges)


def test_mean_gap_is_the_proxy_at_the_mean() -> None:
    law = small_law()
    first, second = first_pair(law)
    proxy = pair_gradient_gap(
        np.stack([first.features, second.features]),
        np.array([first.label, second.label]),
        law.mean(2.0),
    )
    variances = {t: law.variance(t) for t in (0.0, 2.0)}
    means = [dense_joint(law, variances, r, np.array([2.0]), 2.0)[0] for r in (first, second)]
    gap = means[0] - means[1]
    assert STEP * proxy[0, 1] == pytest.approx(np.linalg.norm(gap), rel=1e-10)


@pytest.mark.parametrize("seed", range(12))
def test_candidates_are_the_records_of_largest_norm_and_gradient(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((5, 3)) * 10.0 ** rng.uniform(-11, 11)
    labels = rng.standard_normal(5) * 10.0 ** rng.uniform(-11, 11)
    # Now and then exactly or nearly the same record twice.
    rows[1], labels[1] = rows[0] * (1 + rng.choice([0.0, 1e-9, 1.0])), labels[0]
    point = rng.standard_normal(3)
    exact = [[Fraction(x) for x in row] for row in rows.tolist()]
    norms = [sum(x * x for x in row) for row in exact]
    gaps = [
        sum(x * Fraction(z) for x, z in zip(row, point.tolist(), strict=True)) - Fraction(label)
        for row, label in zip(exact, labels.tolist(), strict=True)
    ]
    gradients = [n * g * g for n, g in zip(norms, gaps, strict=True)]
    found = candidate_records(rows, labels, point, count=1)
    assert set(found) == {int(np.argmax(norms)), int(np.argmax(gradients))}


def test_largest_pairs_are_of_two_records() -> None:
    top = largest_pairs([[9.0, np.inf], [-1e12, 9.0]], 2)
    np.testing.assert_array_equal(top, [[0, 1], [1, 0]])
