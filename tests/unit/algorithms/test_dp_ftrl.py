"""DP-FTRL: the algorithm against a plain loop, and what its joint release costs."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relations import generator
from scipy import stats

from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl, simulate_ftrl
from privreg.algorithms.samples import ArraySamples
from privreg.noise.streams import ToeplitzNoise
from privreg.noise.toeplitz import (
    anti_pgd,
    damped_square_root,
    dense_matrix,
    identity,
    inverse_coefficients,
)
from privreg.privacy.budget import Budget

LOWER = np.tril(0.02 * np.random.default_rng(5).standard_normal((400, 400)), -1) + np.eye(400)
ZERO_OUT = Budget.zcdp(0.3, neighbours="zero-out")


def data(n, p, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, p))
    return features, features @ np.linspace(-1, 1, p) + 0.1 * rng.standard_normal(n)


def plain_loop(features, labels, noise, *, epochs, batch, clip, etas, ridge):
    theta, path, step = np.zeros(features.shape[1]), [], 0
    for _ in range(epochs):
        for first in range(0, len(features), batch):
            rows, targets = features[first : first + batch], labels[first : first + batch]
            gradients = rows * (rows @ theta - targets)[:, None]
            norms = np.linalg.norm(gradients, axis=1)
            gradients *= np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None]
            mean = gradients.sum(axis=0) / batch + ridge * theta
            theta = theta - etas[step] * (mean + noise[step])
            path.append(theta)
            step += 1
    return np.array(path)


@pytest.mark.parametrize("clip", [0.7, np.inf])
@pytest.mark.parametrize(("epochs", "batch"), [(1, 1), (2, 1), (2, 7)])
def test_iterates_equal_a_plain_loop(epochs, batch, clip):
    # More rows than a chunk holds, and a last batch that is not full.
    features, labels = data(1100, 3)
    steps = epochs * -(-1100 // batch)
    beta = damped_square_root(steps, damping=0.05)
    mechanism = FTRLMechanism(beta, 0.2, clip, 1100, epochs, batch)
    etas, samples = 0.02 / np.sqrt(1 + np.arange(steps)), ArraySamples(features, labels)
    run, some = (
        dp_ftrl(samples, mechanism=mechanism, step_size=etas, rng=generator(), ridge=0.3, times=t)
        for t in (np.arange(1, steps + 1), [2, steps - 1])
    )
    noise = ToeplitzNoise(beta, dimension=3, rng=generator(), std=0.2).draw(steps)
    settings = {"epochs": epochs, "batch": batch, "clip": clip, "etas": etas, "ridge": 0.3}
    expected = plain_loop(features, labels, noise, **settings)
    assert_allclose(run.iterates, expected, rtol=1e-9, atol=1e-12)
    assert (run.clipped_fraction.non_private > 0.3) == np.isfinite(clip)
    assert_array_equal(some.iterates, run.iterates[[1, -2]])


def implied_white_noise(path, decoder, eta):
    """The white noise behind iterates of data whose gradients are all 0."""
    correlated = -np.diff(path, axis=0, prepend=0.0) / eta
    matrix = decoder if decoder.ndim == 2 else dense_matrix(decoder)
    return np.linalg.solve(matrix, correlated)


@pytest.mark.parametrize("decoder", [identity(400), damped_square_root(400, damping=0.02), LOWER])
def test_noise_has_the_standard_deviation_that_the_budget_asks_for(decoder):
    mechanism = FTRLMechanism.for_budget(decoder, clip_norm=0.5, budget=ZERO_OUT, sample_size=400)
    run = dp_ftrl(
        ArraySamples(np.zeros((400, 5)), np.zeros(400)),
        mechanism=mechanism,
        step_size=0.1,
        rng=generator(),
        times=np.arange(1, 401),
    )
    white = implied_white_noise(run.iterates, decoder, 0.1)
    if decoder.ndim == 1:
        gamma = np.linalg.norm(inverse_coefficients(decoder))
    else:
        gamma = np.linalg.norm(np.linalg.inv(decoder), axis=0).max()
    expected = gamma * 0.5 / np.sqrt(2 * 0.3)
    low, high = stats.chi2(white.size).ppf([1e-4, 1 - 1e-4]) / white.size

    def accepts(std):
        return low <= np.mean(white**2) / std**2 <= high

    assert accepts(expected)
    assert not accepts(expected * 2 / 3)
    assert not accepts(expected * 3 / 2)


@pytest.mark.parametrize("family", [identity, anti_pgd, "damped"])
@pytest.mark.parametrize(("epochs", "batch"), [(1, 1), (3, 1), (2, 4)])
def test_privacy_loss_of_the_joint_release_is_the_budget(family, epochs, batch):
    """Worst neighbours: other records blank, one record clipped in one direction at every visit.

    All iterates of both runs come from the same noise, so what separates them in units of the
    white noise is the whole privacy loss of the joint release.
    """
    n = 24
    steps = epochs * n // batch
    beta = damped_square_root(steps, damping=0.1) if family == "damped" else family(steps)
    for neighbours, other in (("zero-out", 0.0), ("replace-one", -1.0)):
        budget = Budget.zcdp(0.3, neighbours=neighbours)
        mechanism = FTRLMechanism.for_budget(
            beta, clip_norm=2.0, budget=budget, sample_size=n, epochs=epochs, batch_size=batch
        )
        features, labels = np.zeros((n, 2)), np.zeros(n)
        whites = []
        for sign in (1.0, other):
            # A label so far away that the gradient always has the clip norm and this direction.
            features[0], labels[0] = [abs(sign), 0.0], -1e9 * sign
            run = dp_ftrl(
                ArraySamples(features, labels),
                mechanism=mechanism,
                step_size=0.1,
                rng=generator(),
                times=np.arange(1, steps + 1),
            )
            whites.append(implied_white_noise(run.iterates, beta, 0.1))
        shift = np.linalg.norm(whites[0] - whites[1])
        loss = 0.5 * (shift / mechanism.gradient_noise_std) ** 2
        assert loss == pytest.approx(0.3, rel=1e-6)
        assert mechanism.spent(neighbours=neighbours) == pytest.approx(0.3, rel=1e-12)


@pytest.mark.parametrize("dense_steps", [4096, 4])
def test_sensitivity_over_epochs_equals_brute_force(dense_steps, monkeypatch):
    """And beyond so many steps, where no matrix is made, is no less."""
    monkeypatch.setattr("privreg.algorithms.dp_ftrl.DENSE_STEPS", dense_steps)
    epochs, per_epoch = 3, 4
    for beta in (
        damped_square_root(12, damping=0.2),
        identity(12),
        np.array([1.0, 0.7, -0.2, 0.4] + [0.0] * 8),
        # Not negative and not falling: the formula for falling ones would give too little.
        inverse_coefficients(np.array([1, 0.2, 0.9, 0.1, 0, 0.8, 0.3, 0.8, 0.6, 0.1, 1.1, 0.4])),
        inverse_coefficients(np.linspace(1.0, 1.5, 12)),
    ):
        encoder = np.linalg.inv(dense_matrix(beta))
        largest = max(
            np.linalg.norm(encoder[:, first::per_epoch] @ signs)
            for first in range(per_epoch)
            for signs in product([-1.0, 1.0], repeat=epochs)
        )
        found = FTRLMechanism(beta, 1.0, 1.0, per_epoch, epochs).sensitivity
        # Signs reach the bound unless columns have products of both signs.
        gram = encoder.T @ encoder
        mixed = np.any(gram[::per_epoch, ::per_epoch] < -1e-12)
        falls = np.all(np.diff(encoder[:, 0]) <= 0) and np.all(encoder >= 0)
        assert found >= largest * (1 - 1e-12)
        if falls or (not mixed and dense_steps > 12):
            assert found == pytest.approx(largest, rel=1e-10)


def test_nothing_is_promised_without_clipping_or_noise():
    assert (noise_for(1e-12), noise_for(1e12)) == (1e-12, 1e12)
    beta = identity(10)
    assert FTRLMechanism(beta, 1.0, np.inf, 10).spent() == np.inf
    assert FTRLMechanism(beta, 0.0, 1.0, 10).spent() == np.inf
    assert FTRLMechanism(beta, 1.0, 1.0, 10).spent() == pytest.approx(2.0)


FEATURES, LABELS = data(10, 2)
QUIET = FTRLMechanism(identity(10), 0.0, 1.0, 10)
WILD = {"mechanism": FTRLMechanism(identity(20), 0.0, 1.0, 10, 2), "start": [1, 1]}
WILD |= {"ridge": 1e12, "step_size": 1e12}
AHEAD = 0.1 * np.outer(np.eye(10)[3], np.eye(10)[4])


def noise_for(clip_norm):
    """With B = I, zero-out and 2ρ = 1 it is the clip norm itself."""
    budget = Budget.half_square(1.0, neighbours="zero-out")
    return FTRLMechanism.for_budget(
        identity(10), clip_norm=clip_norm, budget=budget, sample_size=10
    ).gradient_noise_std


def attempt(**change):
    settings = {"mechanism": QUIET, "step_size": 0.1, "rng": generator(), **change}
    return dp_ftrl(ArraySamples(FEATURES, LABELS), **settings)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: FTRLMechanism(identity(9), 1.0, 1.0, 10), "decoder"),
        (lambda: FTRLMechanism(np.ones((10, 10)), 1.0, 1.0, 10), "decoder"),
        (lambda: FTRLMechanism(np.zeros(10), 1.0, 1.0, 10), "decoder must start with"),
        (lambda: FTRLMechanism(np.eye(10) + AHEAD, 1.0, 1.0, 10), "decoder must be lower triang"),
        (lambda: QUIET.spent(neighbours="add-remove"), "neighbours"),
        (lambda: noise_for(np.inf), "clip_norm"),
        (lambda: attempt(mechanism=FTRLMechanism(identity(9), 0.0, 1.0, 9)), "samples"),
        (lambda: attempt(step_size=[0.1, 0.1]), "step_size"),
        (lambda: attempt(start=[1.1e12, 0.0]), "start"),
        *(
            (lambda times=times: attempt(times=times), "times must")
            for times in ([3, 2], [2, 2], [11], 3, [0], [[1, 2]], [True], [2.5])
        ),
        # The penalty multiplies by -1e24 a step: the second iterate is finite, the last is not.
        (lambda: attempt(times=[2], **WILD), "at most 2e-12 for"),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()


@pytest.mark.parametrize(("epochs", "batch"), [(1, 1), (3, 4)])
def test_the_share_of_clipped_gradients(epochs, batch):
    """Every fourth row has a label so far away that its gradient is clipped; the rest are 0."""
    features, labels = np.zeros((8, 1)), np.zeros(8)
    features[::4], labels[::4] = 1.0, 1e9
    steps = epochs * 8 // batch
    mechanism = FTRLMechanism(identity(steps), 0.0, 1.0, 8, epochs, batch)
    samples, options = ArraySamples(features, labels), {"step_size": 0.1, "rng": generator()}
    run = dp_ftrl(samples, mechanism=mechanism, times=[steps], **options)
    assert run.clipped_fraction.non_private == 0.25
    assert run.iterates.shape == (1, 1)


def test_a_start_of_either_sign_shrinks_by_the_ridge_alone():
    """Blank rows: the penalty is all that moves, by the same factor in each of ten steps."""
    start, blank = np.array([-1e12, 3.0]), ArraySamples(np.zeros((10, 2)), np.zeros(10))
    options = {"step_size": 0.1, "rng": generator(), "ridge": 0.5, "start": start}
    run = dp_ftrl(blank, mechanism=QUIET, **options)
    assert_allclose(run.iterates[0], 0.95**10 * start, rtol=1e-14)


STEPS = 14


@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_simulated_runs_equal_a_plain_loop(sigma: float) -> None:
    eigenvalues, error = np.linspace(0.2, 1.5, 18), np.full(18, 0.3)
    decoder = [1.0, -0.5, 0.0, 0.25]
    found = simulate_ftrl(
        eigenvalues,
        step_size=0.07,
        decoder=decoder,
        gradient_noise_std=sigma,
        steps=STEPS,
        label_noise_std=0.3,
        initial_error=error,
        rng=generator(1),
    )
    rng, scales, noise = generator(1), np.sqrt(eigenvalues), np.zeros((STEPS, 18))
    if sigma > 0:
        # Sixteen columns are drawn at a time.
        white = np.hstack([sigma * rng.standard_normal((STEPS, count)) for count in (16, 2)])
        for lag, weight in enumerate(decoder):
            noise[lag:] += weight * white[: STEPS - lag]
    risks = [0.5 * np.sum((scales * error) ** 2)]
    for kick in noise:
        sample = scales * rng.standard_normal(18)
        gradient = sample * (sample @ error - 0.3 * rng.standard_normal())
        error = error - 0.07 * (gradient + kick)
        risks.append(0.5 * np.sum((scales * error) ** 2))
    assert_allclose(found, risks, rtol=1e-10)


def test_runs_without_noise_and_without_an_end():
    options = {"decoder": [1.0], "rng": generator(1)}
    # From an error of 0, without label noise, nothing moves.
    quiet = {"step_size": 0.1, "gradient_noise_std": 0.0, "steps": 3}
    assert_array_equal(simulate_ftrl(np.array([1.0, 0.0]), **quiet, **options), np.zeros(4))
    wild = {"step_size": 1e30, "gradient_noise_std": 1e30, "steps": STEPS}
    found = simulate_ftrl(np.full(4, 1e30), **wild, **options)
    assert found[-1] == np.inf
    assert not np.any(np.isnan(found))
