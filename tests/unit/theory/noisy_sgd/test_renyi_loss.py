"""The privacy loss of homogenised SGD against dense laws, quadrature and exact recursions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privreg.privacy.gaussian import renyi_divergence
from privreg.schedules import ConstantRate
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
from privreg.theory.noisy_sgd.fixed_order_loss import fixed_order_divergence
from privreg.theory.noisy_sgd.hidden_state import (
    hidden_state_divergence,
    shuffled_hidden_state_loss,
)
from privreg.theory.noisy_sgd.pair_proxies import largest_pairs, pair_gradient_gap
from privreg.theory.noisy_sgd.renyi_loss import (
    Record,
    average_divergence,
    iterates_divergence,
    last_iterate_divergence,
)
from privreg.theory.noisy_sgd.worst_pairs import PairSearch

Array = NDArray[np.float64]
DIMENSION, STEP = 6, 0.05


def small_law(*, isotropic: bool = False, gradient_noise_std: float = 1.5) -> HomogenisedSGD:
    rng = np.random.default_rng(4)
    spectrum = np.full(DIMENSION, 0.2) if isotropic else rng.uniform(0.05, 0.4, DIMENSION)
    problem = RidgeRegression(
        spectrum,
        rng.standard_normal(DIMENSION),
        rng.standard_normal(DIMENSION),
        ridge=0.1,
        label_noise_std=0.1**0.5,
    )
    return HomogenisedSGD(
        problem, ConstantRate(STEP * DIMENSION), gradient_noise_std=gradient_noise_std, horizon=9.0
    )


def small_records(law: HomogenisedSGD, count: int = 12) -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    features = np.sqrt(law.problem.eigenvalues) * rng.standard_normal((count, DIMENSION))
    return features, features @ law.problem.target + 0.3 * rng.standard_normal(count)


def dense_joint(
    law: HomogenisedSGD, record: Record, times: Array, position: float
) -> tuple[Array, Array]:
    """Mean and covariance of the stacked iterates, carried from event to event as matrices."""
    d = DIMENSION
    shrink = 1 - STEP * law.problem.ridge
    matrix = shrink * np.eye(d) - STEP * np.outer(record.features, record.features)
    mean, covariance = law.problem.initial, np.zeros((d, d))
    means: list[Array] = []
    cross: list[list[Array]] = []
    links: list[Array] = []
    now = 0.0
    events = sorted([(t, 1) for t in times] + [(position, 0)])
    for time, kind in events:
        decay = np.diag(law.transition(time, now))
        fresh = law.variance(time) - np.diag(decay) ** 2 * law.variance(now)
        mean = law.problem.minimiser + decay @ (mean - law.problem.minimiser)
        covariance = decay @ covariance @ decay + np.diag(fresh)
        links = [decay @ link for link in links]
        now = time
        if kind == 0:
            mean = matrix @ mean + STEP * record.label * record.features
            covariance = matrix @ covariance @ matrix.T
            covariance = covariance + (STEP * law.gradient_noise_std) ** 2 * np.eye(d)
            links = [matrix @ link for link in links]
        else:
            means.append(mean)
            cross.append([*links, covariance])
            links.append(covariance)
    count = len(means)
    joint = np.zeros((count * d, count * d))
    for r in range(count):
        for j in range(r + 1):
            joint[r * d : r * d + d, j * d : j * d + d] = cross[r][j]
            joint[j * d : j * d + d, r * d : r * d + d] = cross[r][j].T
    return np.concatenate(means), joint


def dense_divergence(
    law: HomogenisedSGD,
    pair: tuple[Record, Record],
    times: Array,
    position: float,
    order: float,
    *,
    average: bool,
) -> float:
    laws = [dense_joint(law, record, times, position) for record in pair]
    if average:
        fold = np.kron(np.ones((1, len(times))) / len(times), np.eye(DIMENSION))
        laws = [(fold @ m, fold @ c @ fold.T) for m, c in laws]
    shift = laws[0][0] - laws[1][0]
    return renyi_divergence(shift, laws[0][1], laws[1][1], order=order)


def first_pair(law: HomogenisedSGD) -> tuple[Record, Record]:
    features, labels = small_records(law)
    return Record(features[0], labels[0]), Record(features[1], labels[1])


@pytest.mark.parametrize("order", [1.2, 2.0, 4.0])
@pytest.mark.parametrize("position", [0.0, 0.4, 2.0, 5.0])
def test_last_iterate_equals_dense(order: float, position: float) -> None:
    law = small_law()
    pair = first_pair(law)
    value = last_iterate_divergence(law, *pair, time=5.0, position=position, order=order)
    expected = dense_divergence(law, pair, np.array([5.0]), position, order, average=False)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("position", [0.5, 1.0, 1.7, 2.9, 4.0])
@pytest.mark.parametrize("order", [1.5, 2.0, 3.0])
def test_joint_and_average_releases_equal_dense(position: float, order: float) -> None:
    law = small_law()
    pair = first_pair(law)
    times = np.array([1.0, 1.6, 2.8, 4.0])
    joint = iterates_divergence(law, *pair, times=times, position=position, order=order)
    dense = dense_divergence(law, pair, times, position, order, average=False)
    assert joint == pytest.approx(dense, rel=1e-9)
    mean = average_divergence(law, *pair, times=times, position=position, order=order)
    dense = dense_divergence(law, pair, times, position, order, average=True)
    assert mean == pytest.approx(dense, rel=1e-9)
    assert mean <= joint


def test_nothing_is_lost_before_the_differing_step() -> None:
    law = small_law()
    pair = first_pair(law)
    options: dict[str, Any] = {"position": 3.0, "order": 2.0}
    assert last_iterate_divergence(law, *pair, time=2.0, **options) == 0.0
    assert iterates_divergence(law, *pair, times=[1.0, 2.0], **options) == 0.0
    assert average_divergence(law, *pair, times=[1.0, 2.0], **options) == 0.0


def test_iterates_after_the_step_are_worth_the_first_of_them() -> None:
    law = small_law()
    pair = first_pair(law)
    first = last_iterate_divergence(law, *pair, time=3.0, position=2.5, order=2.0)
    joint = iterates_divergence(law, *pair, times=[3.0, 4.0, 6.0], position=2.5, order=2.0)
    assert joint == first


def test_suffix_claim_understates_the_joint_loss() -> None:
    """An iterate released before the differing step pins the state that the step starts from."""
    law = small_law()
    pair = first_pair(law)
    options: dict[str, Any] = {"times": [2.4, 3.0], "position": 2.5, "order": 2.0}
    joint = iterates_divergence(law, *pair, **options)
    paper = iterates_divergence(law, pair[1], pair[0], variant="paper", **options)
    suffix = last_iterate_divergence(law, *pair, time=3.0, position=2.5, order=2.0)
    assert paper == pytest.approx(suffix, rel=1e-12)
    assert joint > 1.01 * suffix


def test_printed_average_takes_the_printed_cross_covariance() -> None:
    law = small_law()
    pair = first_pair(law)
    times, position, order = np.array([2.4, 3.0]), 2.5, 2.0
    laws = []
    for record in pair:
        mean, joint = dense_joint(law, record, times, position)
        block = np.diag(law.transition(3.0, 2.4) * law.variance(2.4))
        joint[DIMENSION:, :DIMENSION] = joint[:DIMENSION, DIMENSION:] = block
        fold = np.kron([[0.5, 0.5]], np.eye(DIMENSION))
        laws.append((fold @ mean, fold @ joint @ fold.T))
    expected = renyi_divergence(laws[0][0] - laws[1][0], laws[1][1], laws[0][1], order=order)
    options: dict[str, Any] = {"times": times, "position": position, "order": order}
    value = average_divergence(law, *pair, variant="paper", **options)
    assert value == pytest.approx(expected, rel=1e-10)
    exact = average_divergence(law, pair[1], pair[0], **options)
    assert abs(exact / value - 1) > 0.05


def test_printed_direction_is_the_reverse() -> None:
    law = small_law()
    first, second = first_pair(law)
    options: dict[str, Any] = {"time": 3.0, "position": 2.5, "order": 2.0}
    printed = last_iterate_divergence(law, first, second, variant="paper", **options)
    assert printed == last_iterate_divergence(law, second, first, **options)
    assert printed != pytest.approx(
        last_iterate_divergence(law, first, second, **options), rel=1e-3
    )


def test_infinite_beyond_the_largest_order() -> None:
    """Where the first law is the wider one, the loss is infinite from a finite order on."""
    law = small_law()
    none, large = Record(np.zeros(DIMENSION), 0.0), Record(3 * np.eye(DIMENSION)[0], 0.0)
    options: dict[str, Any] = {"time": 6.0, "position": 6.0}
    finite = [last_iterate_divergence(law, none, large, order=a, **options) for a in (1.1, 1.3)]
    assert 0 < finite[0] < finite[1] < np.inf
    assert last_iterate_divergence(law, none, large, order=4.0, **options) == np.inf
    assert last_iterate_divergence(law, large, none, order=4.0, **options) < np.inf
    assert (
        iterates_divergence(law, none, large, times=[5.9, 6.0], position=5.95, order=4.0) == np.inf
    )


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


@pytest.mark.parametrize("clip_norm", [3.0, 7.0])
def test_hidden_state_bounds(clip_norm: float) -> None:
    options: dict[str, Any] = {
        "clip_norm": clip_norm,
        "gradient_noise_std": 1.5,
        "step_size": 0.05,
        "strong_convexity": 0.1,
        "order": 2.0,
    }
    shrink = 1 - 0.05 * 0.1
    for ell, later in ((0, 0), (0, 7), (12, 0), (12, 40)):
        spread = 0.0
        for _ in range(ell + 1):
            spread = shrink**2 * spread + (0.05 * 1.5) ** 2
        loss = 2.0 * (2 * clip_norm) ** 2 / (2 * 1.5**2)
        for _ in range(later):
            # One log-Sobolev step: contract, then add noise.
            contracted = shrink**2 * spread
            loss *= contracted / (contracted + (0.05 * 1.5) ** 2)
            spread = contracted + (0.05 * 1.5) ** 2
        value = hidden_state_divergence(ell, later, **options)
        tight = hidden_state_divergence(ell, later, bound="contraction", **options)
        assert value == pytest.approx(loss, rel=1e-12)
        assert tight <= value * (1 + 1e-12)
        # A linear contraction from a fixed start attains the tight bound at the first position.
        shift, total = 0.05 * 2 * clip_norm * shrink**later, spread
        attained = renyi_divergence([shift], [total], [total], order=2.0)
        assert attained <= tight * (1 + 1e-12)
        if ell == 0:
            assert attained == pytest.approx(float(tight), rel=1e-12)


def test_hidden_state_bound_at_a_random_position() -> None:
    options: dict[str, Any] = {
        "records": 1500,
        "gradient_noise_std": 1.5,
        "step_size": 0.05,
        "strong_convexity": 0.1,
    }
    values = [
        float(shuffled_hidden_state_loss([1500], clip_norm=c, order=2.0, **options)[0])
        for c in (3.0, 5.0, 7.0)
    ]
    assert values == pytest.approx([10.66, 38.17, 80.35], abs=0.005)
    assert shuffled_hidden_state_loss([0], clip_norm=3.0, order=2.0, **options)[0] == 0.0


def test_refuses() -> None:
    law = small_law()
    pair = first_pair(law)
    with pytest.raises(ValueError, match="order"):
        last_iterate_divergence(law, *pair, time=1.0, position=0.5, order=1.0)
    with pytest.raises(ValueError, match="variant"):
        last_iterate_divergence(
            law,
            *pair,
            time=1.0,
            position=0.5,
            order=2.0,
            variant="printed",  # type: ignore[arg-type]
        )
    with pytest.raises(ValueError, match="times"):
        iterates_divergence(law, *pair, times=[2.0, 1.0], position=0.5, order=2.0)
    with pytest.raises(ValueError, match="law must have gradient noise"):
        last_iterate_divergence(
            small_law(gradient_noise_std=0.0), *pair, time=1.0, position=0.5, order=2.0
        )
    with pytest.raises(ValueError, match="strong_convexity"):
        hidden_state_divergence(
            0,
            0,
            clip_norm=1.0,
            gradient_noise_std=1.0,
            step_size=1.0,
            strong_convexity=1.0,
            order=2.0,
        )
