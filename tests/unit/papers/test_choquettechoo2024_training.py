"""Private softmax training: clipped gradients by a loop, noise by its law, the whole budget."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chi2

from privreg.data.sources import SOURCES
from privreg.noise.toeplitz import dense_matrix
from privreg.privacy.budget import Budget
from reproduction.engine.artifacts import to_dataset
from reproduction.engine.trials import shard_of
from reproduction.papers.choquettechoo2024.experiments import amplification, private_training
from reproduction.papers.choquettechoo2024.experiments.private_training import Parameters
from reproduction.papers.choquettechoo2024.features import (
    FEATURE_MAPS,
    feature_map,
)
from reproduction.papers.choquettechoo2024.mechanisms import prefix_errors
from reproduction.papers.choquettechoo2024.private_runs import (
    TRAINED,
    Runs,
    clipped_mean_gradient,
    correlate,
    rate_shares,
    train,
)

PARAMETERS = Parameters(
    dataset="mnist_digits",
    sample_size=50000,
    validation=10000,
    test=10000,
    epochs=3,
    steps_per_epoch=10,
    clip_norm=0.7,
    momentum=0.9,
    cooldown=0.2,
    final_rate=0.05,
    epsilons=[1.0, 8.0],
    delta=1e-5,
    rate_factors=[1.0],
    noiseless_rates=[10.0],
)


@pytest.fixture(scope="module")
def theory():
    return private_training.theory(PARAMETERS)


@pytest.fixture(scope="module")
def table():
    return to_dataset(SOURCES["mnist_digits"].stand_in("a test needs no download"))


@pytest.fixture(scope="module")
def runs(theory, table):
    return Runs(PARAMETERS, shard_of(3, "x/y", 1, index=0, count=1), theory, table)


def test_clipped_gradients_equal_a_loop_over_records(rng):
    size, dimension, classes, models = 12, 5, 4, 6
    features = rng.standard_normal((size, dimension)).astype(np.float32)
    labels = rng.integers(0, classes, size)
    theta = rng.standard_normal((classes, models, dimension)).astype(np.float32)
    found = clipped_mean_gradient(
        features,
        np.eye(classes, dtype=np.float32)[:, labels],
        theta,
        0.9,
        np.linalg.norm(features, axis=1),
        size,
    )
    clipped = 0
    for model in range(models):
        total = np.zeros((classes, dimension))
        for x, label in zip(features.astype(float), labels, strict=True):
            residual = softmax(theta[:, model] @ x)
            residual[label] -= 1
            gradient = np.outer(residual, x)
            norm = np.linalg.norm(gradient)
            clipped += norm > 0.9
            total += gradient * min(1, 0.9 / norm)
        # Single precision: relative 6e-8 a rounding, sums of some tens of terms below 1.
        np.testing.assert_allclose(found[:, model], total / size, atol=5e-6)
    assert 0 < clipped < size * models


def test_sampled_batches_are_divided_by_their_mean_size(rng):
    size, labels = 40, rng.integers(0, 4, 40)
    features = rng.standard_normal((size, 3)).astype(np.float32)
    parameters = PARAMETERS.model_copy(update={"epochs": 1, "steps_per_epoch": 2})
    nothing = np.zeros((2, 4, 1, 3), np.float32)
    found = train(
        (features, labels),
        parameters,
        nothing,
        np.zeros((1, 1)),
        np.array([0.5]),
        np.zeros(1),
        np.random.Generator(np.random.SFC64(7)),
    )
    again, theta = np.random.Generator(np.random.SFC64(7)), np.zeros((4, 1, 3), np.float32)
    norms, one_hot = np.linalg.norm(features, axis=1), np.eye(4, dtype=np.float32)[:, labels]
    for share in rate_shares(parameters):
        now = again.random(size) < 0.5
        assert now.sum() != size / 2
        terms = clipped_mean_gradient(features[now], one_hot[:, now], theta, 0.7, norms[now], 1)
        theta = theta - 0.5 * share * terms / (size / 2)
    np.testing.assert_allclose(found, theta, atol=1e-6)


def test_rates_fall_over_the_last_steps_and_momentum_is_that_of_heavy_ball(rng):
    settings = {"epochs": 2, "steps_per_epoch": 4, "cooldown": 0.5, "final_rate": 0.1}
    parameters = PARAMETERS.model_copy(update=settings)
    shares = rate_shares(parameters)
    np.testing.assert_allclose(shares, [1, 1, 1, 1, 0.775, 0.55, 0.325, 0.1], rtol=1e-6)
    # Records without features have no gradient, so that only the noise moves.
    noise = rng.standard_normal((8, 2, 1, 3)).astype(np.float32)
    std, rates, momentum = np.array([[0.5], [0.0]]), np.full(2, 2.0), np.full(2, 0.9)
    records = np.zeros((8, 3), np.float32), np.zeros(8, int)
    found = train(records, parameters, noise, std, rates, momentum)
    theta, velocity = np.zeros((2, 3)), np.zeros((2, 3))
    for share, draw in zip(shares, noise[:, :, 0], strict=True):
        velocity = 0.9 * velocity + 0.5 * draw
        theta -= 2.0 * 0.1 * share * velocity
    np.testing.assert_allclose(found[:, 0], theta, atol=1e-5)
    assert not found[:, 1].any()


def test_the_noise_of_every_mechanism_has_the_scale_that_its_budget_asks_for(runs, rng):
    steps, dimension, classes = 30, 40, 10
    white = rng.standard_normal((steps, dimension * classes), dtype=np.float32)
    noise = np.empty((steps, classes, len(TRAINED), dimension), np.float32)
    for at, (decoder, _) in enumerate(runs.mechanisms):
        correlate(decoder, white, into=noise[:, :, at])
    std = runs.noise_std
    spread = np.einsum("mb,mk->mbk", std, np.eye(len(TRAINED))).reshape(std.size, -1)
    rows = runs.batch_size * PARAMETERS.steps_per_epoch
    records = np.zeros((rows, dimension), np.float32), np.zeros(rows, int)
    rates, momentum = np.ones(std.size), np.zeros(std.size)
    found = train(records, PARAMETERS, noise, spread, rates, momentum)
    found = found.reshape(classes, *std.shape, dimension)
    weights = rate_shares(PARAMETERS)
    count = dimension * classes
    low, high = chi2.ppf([1e-6, 1 - 1e-6], count)
    for at, name in enumerate(TRAINED):
        matrices = prefix_errors(name, PARAMETERS.participation).matrices
        decoder = matrices.decoder
        decoder = decoder if decoder.ndim == 2 else dense_matrix(decoder)
        for place, epsilon in enumerate(PARAMETERS.epsilons):
            root = Budget.approximate(epsilon, 1e-5, neighbours="zero-out").root
            scale = matrices.sensitivity * 0.7 / (runs.batch_size * root)
            expected = scale * np.linalg.norm(weights @ decoder)
            statistic = np.sum(found[:, at, place] ** 2) / expected**2
            assert low < statistic < high, name
            # The bounds tell noise of another size apart.
            assert statistic * (3 / 2) ** 2 > high
            assert statistic * (2 / 3) ** 2 < low


@pytest.mark.parametrize("name", TRAINED)
def test_the_budget_is_that_of_the_whole_matrix(runs, name):
    matrices = prefix_errors(name, PARAMETERS.participation).matrices
    decoder, encoder = (
        dense_matrix(m) if m.ndim == 1 else m for m in (matrices.decoder, matrices.encoder)
    )
    np.testing.assert_allclose(decoder @ encoder, np.eye(30), atol=1e-10)
    change = PARAMETERS.clip_norm / runs.batch_size
    worst = 0.0
    for first in range(PARAMETERS.steps_per_epoch):
        for signs in np.ndindex((2,) * PARAMETERS.epochs):
            # A record's three gradients, at the clip norm and in one or the other direction.
            moved = np.zeros(30)
            moved[first :: PARAMETERS.steps_per_epoch] = change * (1 - 2 * np.array(signs))
            worst = max(worst, float(np.linalg.norm(encoder @ moved)))
    for std, epsilon in zip(runs.noise_std[TRAINED.index(name)], PARAMETERS.epsilons, strict=True):
        budget = Budget.approximate(epsilon, PARAMETERS.delta, neighbours="zero-out")
        # Never more than the budget; the search for ME meets its constraint to 1e-3.
        assert 0.5 * (worst / std) ** 2 <= budget.rho * (1 + 1e-6)
        assert 0.5 * (worst / std) ** 2 >= budget.rho * (1 - 1e-3)


def test_sampled_steps_spend_the_budget_by_their_renyi_account(runs):
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    share, steps = 1 / PARAMETERS.steps_per_epoch, PARAMETERS.participation.steps
    multipliers = runs.sampled_std * runs.batch_size / PARAMETERS.clip_norm
    for multiplier, epsilon in zip(multipliers, PARAMETERS.epsilons, strict=True):
        accountant = RdpAccountant([*map(int, amplification.ORDERS)])
        accountant.compose(PoissonSampledDpEvent(share, GaussianDpEvent(multiplier)), steps)
        assert accountant.get_epsilon(PARAMETERS.delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("name", FEATURE_MAPS)
@pytest.mark.parametrize(("dataset", "pixels"), [("mnist_digits", 784), ("cifar10", 3072)])
def test_features_have_norm_one_and_look_at_one_image(name, dataset, pixels, rng):
    images = rng.integers(0, 256, (3, pixels), dtype=np.uint8)
    found = feature_map(name, images, dataset=dataset, scale=255.0)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    alone = feature_map(name, images[1:2], dataset=dataset, scale=255.0)
    np.testing.assert_allclose(found[1:2], alone, atol=1e-5)
    assert np.ptp(found, axis=0).max() > 1e-2
    assert np.all(np.isfinite(feature_map(name, images * 0, dataset=dataset, scale=255.0)))


def test_training_without_noise_learns(theory, table):
    trials = shard_of(3, "choquettechoo2024/private_training", 1, index=0, count=1)
    found = private_training.simulate(PARAMETERS, trials, theory=theory, data=table)
    # Ten classes and 256 images: chance is 0.1, with a standard error of 0.02.
    assert np.all(found.noiseless_accuracy > 0.3)
    assert found.attrs["images"] == "MNIST in place of CIFAR-10"
