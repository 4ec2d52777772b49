"""The search over all ordered pairs of records, and the proxies that spare it."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.theory.noisy_sgd.pair_proxies import largest_pairs, pair_gradient_gap
from privreg.theory.noisy_sgd.renyi_loss import Record, average_divergence
from privreg.theory.noisy_sgd.worst_pairs import PairSearch

from .laws import DIMENSION, STEP, dense_joint, first_pair, small_law, small_records


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("times", [[3.0], [2.0, 3.0, 4.0]])
def test_search_over_pairs_equals_pair_by_pair(isotropic: bool, times: list[float]) -> None:
    law = small_law(isotropic=isotropic)
    features, labels = small_records(law)
    search = PairSearch(law, features, labels)
    values = search.divergences(times=times, position=2.5, order=2.0)
    for i in range(labels.size):
        for j in range(labels.size):
            expected = average_divergence(
                law,
                Record(features[i], labels[i]),
                Record(features[j], labels[j]),
                times=times,
                position=2.5,
                order=2.0,
            )
            assert values[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-13)
    worst = search.worst(times=times, position=2.5, order=2.0)
    assert worst.divergence == values.max() == values[worst.first, worst.second]
    assert np.all(search.divergences(times=[1.0], position=2.5, order=2.0) == 0)


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
    assert partial.worst(times=[3.0], position=2.5, order=2.0).divergence <= worst


def test_mean_gap_is_the_proxy_at_the_mean() -> None:
    law = small_law()
    first, second = first_pair(law)
    proxy = pair_gradient_gap(
        np.stack([first.features, second.features]),
        np.array([first.label, second.label]),
        law.mean(2.0),
    )
    gap = np.subtract(*(dense_joint(law, r, np.array([2.0]), 2.0)[0] for r in (first, second)))
    assert STEP * proxy[0, 1] == pytest.approx(np.linalg.norm(gap), rel=1e-10)


def test_loss_at_a_random_position() -> None:
    law = small_law()
    features, labels = small_records(law, 4)
    search = PairSearch(law, features, labels)
    value = search.shuffled_loss(times=[3.0], order=2.0, finest=0.01)

    def worst(s: float) -> float:
        return np.expm1(search.worst(times=[3.0], position=s, order=2.0).divergence)

    grid = 3.0 * (np.arange(4000) + 0.5) / 4000
    riemann = np.log1p(np.mean([worst(s) for s in grid]) * 3.0 / 9.0)
    assert value == pytest.approx(riemann, rel=1e-3)
