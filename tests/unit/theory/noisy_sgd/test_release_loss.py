"""One call for the loss of a release, against the calls that it composes and the exact loss."""

import numpy as np
import pytest

from privreg.schedules import ConstantRate
from privreg.theory.noisy_sgd.diffusion import (
    HomogenisedSGD,
    Population,
    RidgeRegression,
    estimated_population,
)
from privreg.theory.noisy_sgd.last_iterate_loss import fixed_order_divergence
from privreg.theory.noisy_sgd.renyi_loss import (
    RELEASES,
    Record,
    average_divergence,
    iterates_divergence,
    last_iterate_divergence,
    position_quadrature,
    release_loss,
    shuffled_loss,
)

D, N, RATE, NOISE, RIDGE, ORDER = 8, 40, 0.4, 0.7, 0.1, 2.0
MEAN, LABEL_NOISE = 0.2, 0.3


@pytest.fixture(scope="module")
def records():
    rng = np.random.Generator(np.random.SFC64(8))
    features = MEAN + rng.standard_normal((N, D)) / np.sqrt(D)
    target = rng.standard_normal(D)
    return features, features @ target + LABEL_NOISE * rng.standard_normal(N), target


@pytest.fixture(scope="module")
def population(records):
    moment = np.eye(D) / D + MEAN**2 * np.ones((D, D))
    return Population(moment, records[2], LABEL_NOISE)


def loss_of(records, population=None, **changes):
    features, labels, _ = records
    chosen = {
        "record": 3,
        "replacement": (-features[5], 1.0),
        "schedule": ConstantRate(RATE),
        "gradient_noise_std": NOISE,
        "order": ORDER,
        "ridge": RIDGE,
        "start": np.linspace(-1, 1, D),
        "population": population,
    } | changes
    return release_loss(features, labels, **chosen)


@pytest.mark.parametrize("release", RELEASES)
def test_the_one_call_is_the_composed_calls(records, population, release):
    features, labels, target = records
    eigenvalues, basis = np.linalg.eigh(population.second_moment)
    problem = RidgeRegression(
        eigenvalues,
        target @ basis,
        np.linspace(-1, 1, D) @ basis,
        label_noise_std=LABEL_NOISE,
        ridge=RIDGE,
    )
    law = HomogenisedSGD(problem, ConstantRate(RATE), gradient_noise_std=NOISE, horizon=N / D)
    steps = [30] if release == "last" else [10, 25, 40]
    times = np.array(steps) / D
    places, weights = position_quadrature(times, finest=1 / D)
    given = Record(features[3] @ basis, labels[3])
    other = Record(-features[5] @ basis, 1.0)

    def divergence(first, second, place):
        if release == "last":
            return last_iterate_divergence(
                law, first, second, time=times[0], position=place, order=ORDER
            )
        function = average_divergence if release == "average" else iterates_divergence
        return function(law, first, second, times=times, position=place, order=ORDER)

    found = loss_of(records, population, release=release, steps=steps)
    expected = []
    for pair in ((given, other), (other, given)):
        profile = [divergence(*pair, place) for place in places]
        expected.append(float(shuffled_loss(profile, weights, horizon=N / D, order=ORDER)))
    np.testing.assert_allclose(found.by_direction, expected, rtol=1e-12)
    assert found.loss == max(found.by_direction) > 0
    np.testing.assert_array_equal(found.positions, places)


def test_a_record_in_its_place_loses_nothing_before_it_is_used(records, population):
    def at(step):
        return loss_of(records, population, record=10, shuffled=False, steps=[step]).loss

    assert at(1) == at(10) == 0.0
    assert at(11) > at(12) > at(40) > 0.0


def test_with_strong_noise_a_record_in_its_place_loses_what_the_exact_law_says():
    # Sampling noise, which the diffusion counts and the exact law of given records does not, is
    # here a hundredth of the private noise; steps small beside 1 leave an error of their order.
    rng = np.random.Generator(np.random.SFC64(9))
    d, n, rate, noise = 40, 120, 0.5, 10.0
    features = rng.standard_normal((n, d)) / np.sqrt(d)
    target = rng.standard_normal(d) / np.sqrt(d)
    labels = features @ target
    releases, places = np.array([45, 80, 120]), np.array([20, 44])
    others, other_labels = -features[[1, 2]], np.array([2.0, -3.0])
    exact = fixed_order_divergence(
        features,
        labels,
        initial=np.zeros(d),
        positions=places,
        replacement_features=others,
        replacement_labels=other_labels,
        release_steps=releases,
        step_sizes=np.full(n, rate / d),
        gradient_noise_std=noise,
        ridge=0.0,
        order=2.0,
    )
    population = Population(np.eye(d) / d, target, 0.0)
    for row, step in enumerate(releases):
        for column, place in enumerate(places):
            found = release_loss(
                features,
                labels,
                record=int(place),
                replacement=(others[column], other_labels[column]),
                schedule=ConstantRate(rate),
                gradient_noise_std=noise,
                order=2.0,
                steps=[step],
                population=population,
                shuffled=False,
            )
            np.testing.assert_allclose(found.by_direction, exact[row, column], rtol=0.1)


def test_population_is_estimated_from_many_records():
    rng = np.random.Generator(np.random.SFC64(10))
    features = rng.standard_normal((40_000, 3)) * [1.0, 2.0, 0.5] + 0.5
    labels = features @ [1.0, -1.0, 2.0] + 0.3 * rng.standard_normal(40_000)
    found = estimated_population(features, labels)
    expected = np.diag([1.0, 4.0, 0.25]) + 0.25
    np.testing.assert_allclose(found.second_moment, expected, atol=0.15)
    np.testing.assert_allclose(found.target, [1.0, -1.0, 2.0], atol=0.02)
    # Five standard errors of a standard deviation.
    assert abs(found.label_noise_std / 0.3 - 1) < 5 / np.sqrt(2 * 40_000)


def test_estimated_population_is_the_default(records):
    given = estimated_population(records[0], records[1])
    assert loss_of(records).loss == loss_of(records, given).loss


def test_nothing_is_lost_if_the_record_is_replaced_by_itself(records, population):
    features, labels, _ = records
    same = (features[3], labels[3])
    assert loss_of(records, population, replacement=same).loss == pytest.approx(0.0, abs=1e-12)
