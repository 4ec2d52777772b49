"""Shaped DP-FTRL in law: exact errors of the noise, its shape, and what an attacker learns."""

import math

import numpy as np
import pytest
from relations import generator
from scipy import stats

from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.shaped_dp_ftrl import (
    FixedClip,
    ShapedMechanism,
    run_settings,
    shaped_dp_ftrl,
)
from privreg.noise.covariance import PublicCovariance, identity_covariance, population_covariance
from privreg.noise.streams import (
    IndependentCorrelation,
    SquareRootCorrelation,
    TreeCorrelation,
    tree_matrices,
)
from privreg.noise.toeplitz import damped_square_root
from privreg.theory.shaped_noise import privacy_error, private_risk, sgd_risk, tree_factor

SIZE, DIMENSION, ETA = 64, 96, 0.2
LAM = np.arange(1.0, DIMENSION + 1) ** -2
TARGET = np.arange(1.0, DIMENSION + 1) ** -1.0


def excess_risks(correlation, scale, *, runs, zeta, target=TARGET, seed=0):
    """Excess risks of unclipped averages; the scale is τψ times the root of a diagonal Σ."""
    risks = np.empty(runs)
    for run in range(runs):
        rng = generator(seed + run)
        features = rng.standard_normal((SIZE, DIMENSION)) * np.sqrt(LAM)
        labels = features @ target + zeta * rng.standard_normal(SIZE)
        stream = correlation.stream(DIMENSION, steps=SIZE - 1, rng=rng)
        averages, _ = run_settings(
            features,
            labels,
            inverse_norms=np.ones((1, SIZE)),
            noise=stream.draw(SIZE - 1),
            noise_scale=scale[None],
            step_size=[ETA],
            clip_norm=[math.inf],
        )
        risks[run] = 0.5 * (averages[0] - target) ** 2 @ LAM
    return risks


@pytest.mark.parametrize(
    ("correlation", "decoder", "shape"),
    [
        (TreeCorrelation(), None, "identity"),
        (TreeCorrelation(), None, "population"),
        (IndependentCorrelation(), np.eye(SIZE)[0], "identity"),
        (SquareRootCorrelation(0.05), damped_square_root(SIZE, damping=0.05), "population"),
    ],
    ids=["tree", "shaped tree", "independent", "shaped square root"],
)
def test_error_is_the_exact_second_moment(correlation, decoder, shape):
    covariance = (
        identity_covariance(DIMENSION)
        if shape == "identity"
        else population_covariance(LAM, horizon=SIZE * ETA)
    )
    std, runs = 1.5, 2500
    noisy = excess_risks(
        correlation,
        std * np.sqrt(covariance.diagonal),
        runs=runs,
        zeta=0.0,
        target=np.zeros(DIMENSION),
    )
    settings = {"covariance": covariance.diagonal, "step_size": ETA, "sample_size": SIZE}
    expected = private_risk(LAM, noise_std=std, decoder=decoder, **settings)
    error = noisy.std() / np.sqrt(runs)
    assert error < 0.02 * expected
    assert abs(noisy.mean() - expected) < 4 * error
    for wrong in (2 / 3, 3 / 2):
        # The risk is quadratic in the noise.
        assert abs(noisy.mean() - wrong**2 * expected) > 10 * error


def test_tree_error_is_within_a_tenth_of_the_factor_at_small_steps():
    eta, runs = 0.02, 1500
    known = {"covariance": np.ones(DIMENSION), "step_size": eta, "sample_size": SIZE}
    factor = tree_factor(eta * LAM, sample_size=SIZE)
    formula = privacy_error(factor, eigenvalues=LAM, noise_std=1.0, **known)
    found = np.empty(runs)
    for run in range(runs):
        rng = generator(run)
        features = rng.standard_normal((SIZE, DIMENSION)) * np.sqrt(LAM)
        averages, _ = run_settings(
            features,
            np.zeros(SIZE),
            inverse_norms=np.ones((1, SIZE)),
            noise=TreeCorrelation().stream(DIMENSION, steps=SIZE - 1, rng=rng).draw(SIZE),
            noise_scale=np.ones((1, DIMENSION)),
            step_size=[eta],
            clip_norm=[math.inf],
        )
        found[run] = 0.5 * averages[0] ** 2 @ LAM
    assert found.mean() == pytest.approx(formula, rel=0.1)
    assert found.std() / np.sqrt(runs) < 0.03 * formula


def test_bias_and_label_noise_are_exact():
    runs, zeta = 3000, 0.7
    risks = excess_risks(TreeCorrelation(), np.zeros(DIMENSION), runs=runs, zeta=zeta, seed=50_000)
    parts = sgd_risk(LAM, target=TARGET, label_noise_std=zeta, step_size=ETA, sample_size=SIZE)
    assert abs(risks.mean() - parts.total) < 4 * risks.std() / np.sqrt(runs)


def test_shaped_prefixes_follow_the_popcount_law():
    count, draws = 15, 4000
    rng = generator(1)
    features = rng.standard_normal((3, 5))
    covariance = PublicCovariance(features, ridge=0.7)
    dense = (0.7 * np.eye(5) + features.T @ features) / 3
    prefixes = np.empty((draws, count, 5))
    for draw in range(draws):
        stream = TreeCorrelation().stream(covariance.draws, steps=count, rng=rng)
        prefixes[draw] = np.cumsum(covariance.root_multiply(stream.draw(count)), axis=0)
    prefix = np.cumsum(tree_matrices(count)[1], axis=0)
    shared = prefix @ prefix.T
    found = np.einsum("nsi,ntj->stij", prefixes, prefixes) / draws
    expected = shared[:, :, None, None] * dense
    variance = np.einsum("ss,ii,tt,jj->stij", shared, dense, shared, dense) + expected**2
    assert np.max(np.abs(found - expected) / np.sqrt(variance / draws)) < 5
    assert np.max(np.abs(found - 2 / 3 * expected) / np.sqrt(variance / draws)) > 10
    assert np.max(np.abs(found - 3 / 2 * expected) / np.sqrt(variance / draws)) > 10


def attack(covariance, multiplier, promised, *, runs):
    """Lower bound (99.9 %) on the μ of the release, from runs with one opposite record.

    Under μ-GDP no test has power above Φ(Φ⁻¹(level) + μ).
    """
    size, clip, eta = 4, 2.0, 0.5
    mechanism = ShapedMechanism(covariance, TreeCorrelation(), FixedClip(clip), multiplier, size)
    assert mechanism.spent() == pytest.approx(promised**2 / 2)
    record = np.array([1.0, -2.0, 0.5])
    direction = covariance.root_multiply(np.eye(covariance.draws))
    inverse = np.linalg.inv(direction.T @ direction)
    scores = {}
    for label in (50.0, -50.0):
        features = np.zeros((size, 3))
        features[0] = record
        samples = ArraySamples(features, np.array([label, 0.0, 0.0, 0.0]))
        scores[label] = np.array(
            [
                shaped_dp_ftrl(
                    samples, mechanism=mechanism, step_size=eta, rng=generator((label > 0, run))
                ).average
                @ inverse
                @ record
                for run in range(runs)
            ]
        )
    threshold = np.median(np.concatenate(list(scores.values())))
    hits, alarms = (int(np.sum(scores[label] > threshold)) for label in (50.0, -50.0))
    power = stats.beta.ppf(0.0005, hits, runs - hits + 1)
    level = stats.beta.ppf(0.9995, alarms + 1, runs - alarms)
    return stats.norm.ppf(power) - stats.norm.ppf(level)


@pytest.mark.parametrize("shape", ["identity", "population", "public"])
def test_an_attacker_learns_no_more_than_promised(shape):
    covariance = {
        "identity": identity_covariance(3),
        "population": population_covariance([1.0, 0.3, 0.1], horizon=5.0),
        "public": PublicCovariance([[1.0, 0.5, -0.2], [0.1, 0.4, 2.0]], ridge=0.4),
    }[shape]
    promised, runs = 1.0, 3000
    # Three gradients enter at most two nodes: μ = 2√2/τ.
    multiplier = 2 * math.sqrt(2) / promised
    found = attack(covariance, multiplier, promised, runs=runs)
    # The average alone gives away 2·3/√6 of 2√2, and sampling costs the bound some more.
    assert 0.6 * promised < found <= promised


def test_the_attack_sees_noise_that_is_two_thirds_of_what_it_should_be():
    multiplier = 2 * math.sqrt(2)
    covariance = identity_covariance(3)
    found = attack(covariance, multiplier * 2 / 3, 1.5, runs=3000)
    assert found > 1.0
