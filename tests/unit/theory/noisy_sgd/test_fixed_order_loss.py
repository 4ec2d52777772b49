"""The exact loss with the records held fixed against two dense recursions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from privreg.privacy.gaussian import renyi_divergence
from privreg.theory.noisy_sgd.fixed_order_loss import fixed_order_divergence

Array = NDArray[np.float64]


def test_fixed_order_loss_equals_two_dense_recursions() -> None:
    rng = np.random.default_rng(11)
    d, n, ridge, noise = 5, 9, 0.2, 0.8
    features, labels = rng.standard_normal((n, d)), rng.standard_normal(n)
    others, other_labels = rng.standard_normal((3, d)), rng.standard_normal(3)
    steps = rng.uniform(0.02, 0.06, n)
    initial = rng.standard_normal(d)
    positions, releases = np.array([0, 4, 8]), np.array([5, 9])

    def law(rows: Array, targets: Array, count: int) -> tuple[Array, Array]:
        mean, covariance = initial, np.zeros((d, d))
        for k in range(count):
            matrix = (1 - steps[k] * ridge) * np.eye(d) - steps[k] * np.outer(rows[k], rows[k])
            mean = matrix @ mean + steps[k] * targets[k] * rows[k]
            covariance = matrix @ covariance @ matrix.T + (steps[k] * noise) ** 2 * np.eye(d)
        return mean, covariance

    result = fixed_order_divergence(
        features,
        labels,
        initial=initial,
        positions=positions,
        replacement_features=others,
        replacement_labels=other_labels,
        release_steps=releases,
        step_sizes=steps,
        gradient_noise_std=noise,
        ridge=ridge,
        order=2.0,
    )
    for p, position in enumerate(positions):
        rows, targets = features.copy(), labels.copy()
        rows[position], targets[position] = others[p], other_labels[p]
        for r, count in enumerate(releases):
            given, replaced = law(features, labels, count), law(rows, targets, count)
            shift = given[0] - replaced[0]
            for way, (one, two) in enumerate(((given, replaced), (replaced, given))):
                expected = renyi_divergence(shift, one[1], two[1], order=2.0)
                assert result[r, p, way] == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert np.all(result[0, 2] == 0)


def test_a_covariance_without_full_rank_is_refused() -> None:
    """Steps of ever other sizes left 1e-17 of a variance: a loss was 1e70 that is infinite."""
    with pytest.raises(ValueError, match="double precision"):
        fixed_order_divergence(
            [
                [0.00021158307742062343, 0.02665424485970391],
                [5.150952648550863e-05, -0.0004209687182528405],
                [-0.0005954802595769051, -4.2063202473996296e-05],
                [-0.0193640743446377, -0.00032770321207174026],
            ],
            [3.9e-74, -2.0e-74, 5.3e-75, -2.4e-74],
            initial=[4.35e-38, 4.37e-38],
            positions=[2],
            replacement_features=[[-0.191732919759509, -0.4133657303489195]],
            replacement_labels=[-4.1728443974904474e98],
            release_steps=[4],
            step_sizes=[
                4.6711851991811284e29,
                7.355381061546555e19,
                2673.042790681627,
                6.112411891085738e21,
            ],
            gradient_noise_std=1.1412380755472891e21,
            ridge=0.0,
            order=1.2654832027987837,
        )
