"""Rényi losses of noisy SGD on random problems and schedules, against dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from privreg.privacy.renyi import renyi_divergence
from privreg.schedules import ConstantRate, InverseSquareRootRate
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, Population, RidgeRegression
from privreg.theory.noisy_sgd.last_iterate_loss import fixed_order_divergence
from privreg.theory.noisy_sgd.renyi_loss import (
    RELEASES,
    Record,
    average_divergence,
    iterates_divergence,
    last_iterate_divergence,
    position_quadrature,
    release_geometries,
    release_loss,
)
from privreg.theory.noisy_sgd.worst_pairs import PairSearch

from .laws import Array, dense_joint

SEEDS = range(6)
HORIZON = 6.0


def random_law(rng: np.random.Generator, size: int = 4) -> HomogenisedSGD:
    spectrum = 10.0 ** rng.uniform(-2, 0, size)
    if rng.integers(2):
        spectrum[:] = spectrum[0]
    problem = RidgeRegression(
        spectrum,
        rng.standard_normal(size),
        rng.standard_normal(size),
        ridge=rng.choice([0.0, 0.2]),
        label_noise_std=rng.uniform(0, 1),
    )
    rate = 10.0 ** rng.uniform(-1, 0)
    scale = 10.0 ** rng.uniform(-5, 1)
    schedule = [ConstantRate(rate), InverseSquareRootRate(rate, scale)][int(rng.integers(4) > 0)]
    return HomogenisedSGD(
        problem, schedule, gradient_noise_std=rng.uniform(0.5, 3), horizon=HORIZON
    )


def random_records(rng: np.random.Generator, law: HomogenisedSGD, count: int = 2) -> list[Record]:
    features = np.sqrt(law.problem.eigenvalues) * rng.standard_normal(
        (count, law.problem.eigenvalues.size)
    )
    return [Record(row, float(row @ law.problem.target + rng.normal())) for row in features]


def variance_at(law: HomogenisedSGD, times: Array) -> dict[float, Array]:
    """Variances by an adaptive method in the logarithm of time, which a fast start is smooth in."""
    problem, schedule = law.problem, law.schedule
    scale = getattr(schedule, "scale", 1.0)
    stops = np.unique(np.append(0.0, times))
    state, found = np.zeros(problem.eigenvalues.size), {0.0: np.zeros(problem.eigenvalues.size)}

    def slope(place: float, variance: Array) -> Array:
        time = scale * np.expm1(place)
        rate = float(schedule.rate(time))
        risk = float(problem.risk(problem.gradient_flow(schedule.integral(time)), variance))
        noise = 2 * risk * problem.eigenvalues + law.gradient_noise_std**2
        change = -2 * rate * problem.curvatures * variance + rate**2 / problem.dimension * noise
        return scale * np.exp(place) * change

    for left, right in pairwise(stops):
        span = np.log1p(np.array([left, right]) / scale)
        options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-16}
        state = solve_ivp(slope, span, state, **options).y[:, -1]
        found[float(right)] = state
    return found


def dense_divergence(
    law: HomogenisedSGD, pair: list[Record], times: Array, place: float, order: float, release: str
) -> float:
    variances = variance_at(law, np.append(times, place))
    size, count = law.problem.eigenvalues.size, times.size
    laws = [dense_joint(law, variances, record, times, place) for record in pair]
    if release != "all":
        weight = np.full((1, count), 1 / count) if release == "average" else np.eye(count)[-1:]
        fold = np.kron(weight, np.eye(size))
        laws = [(fold @ mean, fold @ joint @ fold.T) for mean, joint in laws]
    return renyi_divergence(laws[0][0] - laws[1][0], laws[0][1], laws[1][1], order=order)


@pytest.mark.parametrize("seed", SEEDS)
def test_divergences_are_those_of_dense_laws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = random_law(rng)
    pair = random_records(rng, law)
    # Iterates at least 0.2 apart: those of the dense joint law are singular when they meet.
    times = np.cumsum(rng.uniform(0.2, 1.9, 3))
    place = float(rng.uniform(0.01, times[-1]))
    order = 1 + 10.0 ** rng.uniform(-1, 0.7)
    options = {"position": place, "order": order}
    found = {
        "last": last_iterate_divergence(law, *pair, time=times[-1], **options),
        "average": average_divergence(law, *pair, times=times, **options),
        "all": iterates_divergence(law, *pair, times=times, **options),
    }
    for release in RELEASES:
        expected = dense_divergence(law, pair, times, place, order, release)
        # The dense route solves equations to 1e-11 and loses the condition number of the joint law.
        assert found[release] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_loss_of_a_fast_start() -> None:
    """Losses were 19 % high at the end and 3 % low early: the variances had missed the start."""
    problem = RidgeRegression([0.3, 0.7, 1.1, 1.9], [1.0, -1.0, 0.5, 2.0], np.zeros(4))
    schedule = InverseSquareRootRate(1.0, 1e-3)
    law = HomogenisedSGD(problem, schedule, gradient_noise_std=0.7, horizon=50.0)
    pair = [Record(np.full(4, 0.5), 1.0), Record(np.array([1.0, -1.0, 0.3, 0.0]), -1.0)]
    for place, end in ((0.1, 0.25), (0.2, 5.0), (10.0, 50.0)):
        found = last_iterate_divergence(law, *pair, time=end, position=place, order=2.0)
        dense = dense_divergence(law, pair, np.array([end]), place, 2.0, "last")
        assert found == pytest.approx(dense, rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_geometry_is_that_of_the_dense_average(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = random_law(rng)
    (record,) = random_records(rng, law, 1)
    times = np.cumsum(rng.uniform(0.2, 1.9, 3))
    places = rng.uniform(0.01, times[-1], 3).tolist()
    geometries = release_geometries(law, times=times, position=places)
    fold = np.kron(np.full((1, 3), 1 / 3), np.eye(record.features.size))
    for place, geometry in zip(places, geometries, strict=True):
        assert geometry is not None
        a, step = record.features, geometry.step
        factors = np.column_stack([geometry.carry * a, geometry.cross * a])
        core = np.array([[step**2 * (a**2 @ geometry.prior), -step], [-step, 0.0]])
        covariance = np.diag(geometry.base) + factors @ core @ factors.T
        _, joint = dense_joint(law, variance_at(law, np.append(times, place)), record, times, place)
        np.testing.assert_allclose(
            covariance, fold @ joint @ fold.T, atol=1e-9 * np.max(np.abs(covariance))
        )


def integral_over_positions(
    function: Callable[[float], float], times: Array, scale: float
) -> float:
    """Adaptive quadrature in the logarithm of the position, on pieces between the releases."""
    total = 0.0
    for start, end in pairwise([0.0, *times]):
        places = start + (end - start) * np.append(0.0, np.geomspace(1e-9, 0.5, 14))
        places = np.unique([*places, *(end - (end - start) * np.geomspace(1e-9, 0.5, 14)), end])
        if start == 0.0:
            places = np.unique([*places, *np.geomspace(scale * 1e-3, end * 0.999, 24)])
        for left, right in pairwise(places):
            total += quad(function, left, right, epsabs=0, epsrel=1e-5)[0]
    return total


@pytest.mark.parametrize("seed", range(3))
def test_loss_of_a_shuffled_release_is_an_integral_over_positions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, count = 2, 12
    features = rng.standard_normal((count, size)) / np.sqrt(size)
    labels = rng.standard_normal(count)
    scale = 10.0 ** rng.uniform(-4, 0)
    schedule = InverseSquareRootRate(10.0 ** rng.uniform(-1, 0), scale)
    population = Population(np.eye(size) / size, rng.standard_normal(size), 0.3)
    release, order = RELEASES[seed % 3], 1 + 10.0 ** rng.uniform(-1, 0.2)
    steps = None if release == "last" else [5, 12]
    options = {"schedule": schedule, "gradient_noise_std": 3.0}
    found = release_loss(
        features,
        labels,
        record=1,
        replacement=(np.zeros(size), 0.0),
        order=order,
        release=release,
        steps=steps,
        population=population,
        **options,
    )
    problem, basis = population.regression()
    law = HomogenisedSGD(problem, horizon=count / size, **options)
    pair = (Record(features[1] @ basis, float(labels[1])), Record(np.zeros(size), 0.0))
    times = np.array(steps or [count]) / size
    divergence = iterates_divergence if release == "all" else average_divergence
    for loss, ordered in zip(found.by_direction, (pair, pair[::-1]), strict=True):

        def growth(place: float, ordered: tuple[Record, Record] = ordered) -> float:
            one = divergence(law, *ordered, times=times, position=place, order=order)
            return float(np.expm1((order - 1) * one))

        mean = integral_over_positions(growth, times, scale) / law.horizon
        # The accuracy that the quadrature over positions is tested for.
        assert loss == pytest.approx(np.log1p(mean) / (order - 1), rel=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_position_quadrature_integrates_layers_of_any_schedule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.1, 3.0, int(rng.integers(1, 4))))
    scale, finest = 10.0 ** rng.uniform(-6, 1), 10.0 ** rng.uniform(-4, -1)
    schedule = InverseSquareRootRate(1.0, scale)
    # A layer as wide as the widest first panel.
    speed = 0.5 / finest
    positions, weights = position_quadrature(times, finest=finest, schedule=schedule)

    def layers(place: Array) -> Array:
        ahead = times[np.searchsorted(times, place)]
        return schedule.rate(place) ** 2 * (0.1 + np.exp(-speed * (ahead - place)))

    def layer(place: float) -> float:
        return float(layers(np.array([place]))[0])

    assert weights.sum() == pytest.approx(times[-1], rel=1e-13)
    expected = integral_over_positions(layer, times, scale)
    assert weights @ layers(positions) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_search_is_pair_by_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = random_law(rng, int(rng.integers(2, 8)))
    records = random_records(rng, law, 4)
    times = np.cumsum(rng.uniform(0.2, 1.9, int(rng.integers(1, 4))))
    options = {"position": float(rng.uniform(0, times[-1])), "order": 1 + rng.uniform(0.1, 2)}
    search = PairSearch(law, [r.features for r in records], [r.label for r in records])
    found = search.divergences(times=times, **options)
    expected = [
        [average_divergence(law, one, two, times=times, **options) for two in records]
        for one in records
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)
    worst = search.worst(times=times, **options)
    assert worst.divergence == np.max(found) == found[worst.first, worst.second]


@pytest.mark.parametrize("seed", SEEDS)
def test_fixed_order_loss_is_that_of_two_dense_recursions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    features, labels = rng.standard_normal((n, d)), rng.standard_normal(n)
    place, release = int(rng.integers(n)), int(rng.integers(1, n + 1))
    other, other_label = rng.standard_normal(d), rng.standard_normal()
    steps, sigma = 10.0 ** rng.uniform(-3, -0.5, n), rng.uniform(0.3, 2)
    ridge, order, start = rng.uniform(0, 0.5), 1 + rng.uniform(0.1, 2), rng.standard_normal(d)

    def law(rows: Array, targets: Array) -> tuple[Array, Array]:
        mean, covariance = start, np.zeros((d, d))
        for k in range(release):
            matrix = (1 - steps[k] * ridge) * np.eye(d) - steps[k] * np.outer(rows[k], rows[k])
            mean = matrix @ mean + steps[k] * targets[k] * rows[k]
            covariance = matrix @ covariance @ matrix.T + (steps[k] * sigma) ** 2 * np.eye(d)
        return mean, covariance

    found = fixed_order_divergence(
        features,
        labels,
        initial=start,
        positions=[place],
        replacement_features=[other],
        replacement_labels=[other_label],
        release_steps=[release],
        step_sizes=steps,
        gradient_noise_std=sigma,
        ridge=ridge,
        order=order,
    )[0, 0]
    rows, targets = features.copy(), labels.copy()
    rows[place], targets[place] = other, other_label
    (mean, covariance), (moved, changed) = law(features, labels), law(rows, targets)
    expected = [
        renyi_divergence(mean - moved, covariance, changed, order=order),
        renyi_divergence(moved - mean, changed, covariance, order=order),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-13)
