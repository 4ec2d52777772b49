"""DP-FTRL with shaped noise against the algorithm line by line, and what it refuses."""

import math

import numpy as np
import pytest

from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.shaped_dp_ftrl import shaped_dp_ftrl
from privreg.algorithms.shaped_mechanism import FixedClip, ResidualClip, ShapedMechanism
from privreg.algorithms.shaped_settings import run_settings
from privreg.noise.correlations import (
    IndependentCorrelation,
    SquareRootCorrelation,
    TreeCorrelation,
)
from privreg.noise.covariance import (
    PublicCovariance,
    identity_covariance,
    population_covariance,
)
from privreg.privacy.budget import Budget

SIZE, DIMENSION = 45, 12
EIGENVALUES = np.arange(1.0, DIMENSION + 1) ** -2


def generator(seed):
    return np.random.Generator(np.random.SFC64(seed))


def data(seed=0):
    rng = generator(seed)
    features = rng.standard_normal((SIZE, DIMENSION)) * np.sqrt(EIGENVALUES)
    return features, features @ np.arange(1.0, DIMENSION + 1) ** -1 + rng.standard_normal(SIZE)


def shapes():
    public = generator(9).standard_normal((7, DIMENSION)) * np.sqrt(EIGENVALUES)
    return [
        identity_covariance(DIMENSION),
        population_covariance(EIGENVALUES, horizon=SIZE * 0.3),
        PublicCovariance(public, ridge=0.5),
    ]


CORRELATIONS = [TreeCorrelation(), IndependentCorrelation(), SquareRootCorrelation(0.2)]


def dense_run(mechanism, step_size, features, labels, increments):
    """Algorithm 1 with prefix sums, a dense Σ and given increments of unshaped noise."""
    covariance, clip = mechanism.covariance, mechanism.clipping.clip_norm
    root = covariance.root_multiply(np.eye(covariance.draws))
    inverse = np.linalg.inv(root.T @ root)
    prefixes = np.cumsum(increments @ root, axis=0) * mechanism.noise_multiplier * clip
    gradients, iterates = np.zeros(DIMENSION), [np.zeros(DIMENSION)]
    for t in range(SIZE - 1):
        w = iterates[-1]
        gradient = features[t] * (features[t] @ w - labels[t])
        norm = math.sqrt(gradient @ inverse @ gradient)
        gradients = gradients + gradient * min(1.0, clip / norm)
        iterates.append(-step_size * (gradients + prefixes[t]))
    return np.mean(iterates, axis=0)


@pytest.mark.parametrize("shape", range(3))
@pytest.mark.parametrize("correlation", CORRELATIONS, ids=lambda c: type(c).__name__)
def test_a_run_is_algorithm_1(shape, correlation):
    features, labels = data()
    covariance = shapes()[shape]
    mechanism = ShapedMechanism(covariance, correlation, FixedClip(1.5), 0.3, SIZE)
    run = shaped_dp_ftrl(
        ArraySamples(features, labels), mechanism=mechanism, step_size=0.3, rng=generator(3)
    )
    increments = correlation.stream(covariance.draws, steps=SIZE - 1, rng=generator(3)).draw(SIZE)
    expected = dense_run(mechanism, 0.3, features, labels, increments)
    np.testing.assert_allclose(run.average, expected, rtol=1e-9, atol=1e-12)
    assert 0 < run.clipped_fraction.non_private < 1
    assert run.largest_clip_norm == 1.5


def test_the_last_row_enters_nothing():
    features, labels = data()
    mechanism = ShapedMechanism(shapes()[1], TreeCorrelation(), FixedClip(2.0), 0.5, SIZE)
    averages = []
    for last in (labels[-1], 1e6):
        labels[-1] = last
        run = shaped_dp_ftrl(
            ArraySamples(features, labels), mechanism=mechanism, step_size=0.2, rng=generator(1)
        )
        averages.append(run.average)
    np.testing.assert_array_equal(*averages)


def test_settings_are_runs():
    features, labels = data()
    covariances = shapes()[:2]
    steps, clips, taus = [0.3, 0.1, 0.3], [1.5, 0.7, math.inf], [0.3, 1.0, 0.0]
    used = [covariances[1], covariances[0], covariances[0]]
    noise = TreeCorrelation().stream(DIMENSION, steps=SIZE - 1, rng=generator(4)).draw(SIZE)
    averages, clipped = run_settings(
        features,
        labels,
        inverse_norms=[shape.inverse_norms(features) for shape in used],
        noise=noise,
        noise_scale=[
            (tau * clip if tau else 0.0) * np.sqrt(shape.diagonal)
            for tau, clip, shape in zip(taus, clips, used, strict=True)
        ],
        step_size=steps,
        clip_norm=clips,
        block=2,
    )
    for at in range(3):
        mechanism = ShapedMechanism(
            used[at], TreeCorrelation(), FixedClip(clips[at]), taus[at], SIZE
        )
        run = shaped_dp_ftrl(
            ArraySamples(features, labels),
            mechanism=mechanism,
            step_size=steps[at],
            rng=generator(4),
        )
        np.testing.assert_allclose(averages[at], run.average, rtol=1e-10, atol=1e-13)
        assert clipped.non_private[at] == pytest.approx(run.clipped_fraction.non_private)


def test_one_step_of_a_setting_is_its_gradient_and_both_noises():
    """Two rows, of which the last enters nothing: w_0 = 0 and w_1 are averaged."""
    averages, clipped = run_settings(
        [[1.0, 2.0], [0.0, 0.0]],
        [3.0, 0.0],
        inverse_norms=np.ones((1, 2)),
        noise=[[0.1, 0.2]],
        noise_scale=[[1.0, 2.0]],
        step_size=[0.5],
        clip_norm=[math.inf],
        shared_noise=[[5.0, 7.0]],
        shared_scale=[2.0],
    )
    moved = 0.5 * (3.0 * np.array([1.0, 2.0]) - [0.1, 0.4] - 2.0 * np.array([5.0, 7.0]))
    np.testing.assert_allclose(averages[0], moved / 2, rtol=1e-12)
    assert clipped.non_private[0] == 0


def test_a_block_of_settings_has_some():
    with pytest.raises(ValueError, match="block must be"):
        run_settings(
            np.ones((2, 1)),
            np.ones(2),
            inverse_norms=np.ones((1, 2)),
            noise=[[0.0]],
            noise_scale=[[0.0]],
            step_size=[0.5],
            clip_norm=[1.0],
            block=0,
        )


def test_a_shared_part_of_the_noise_makes_the_public_shape():
    features, labels = data()
    public = shapes()[2]
    increments = TreeCorrelation().stream(public.draws, steps=SIZE - 1, rng=generator(5)).draw(SIZE)
    averages, _ = run_settings(
        features,
        labels,
        inverse_norms=[public.inverse_norms(features)],
        noise=increments[:, :DIMENSION],
        noise_scale=np.full((1, DIMENSION), 0.3 * 1.5 * np.sqrt(public.ridge / 7)),
        shared_noise=increments[:, DIMENSION:] @ public.features,
        shared_scale=[0.3 * 1.5 / np.sqrt(7)],
        step_size=[0.3],
        clip_norm=[1.5],
    )
    mechanism = ShapedMechanism(public, TreeCorrelation(), FixedClip(1.5), 0.3, SIZE)
    run = shaped_dp_ftrl(
        ArraySamples(features, labels), mechanism=mechanism, step_size=0.3, rng=generator(5)
    )
    np.testing.assert_allclose(averages[0], run.average, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("correlation", CORRELATIONS[:2], ids=["tree", "independent"])
def test_adaptive_clipping_follows_the_residuals(correlation):
    features, labels = data()
    public_rows = data(seed=8)
    clipping = ResidualClip(3.0, *public_rows)
    covariance = shapes()[1]
    mechanism = ShapedMechanism(covariance, correlation, clipping, 0.05, SIZE)
    run = shaped_dp_ftrl(
        ArraySamples(features, labels), mechanism=mechanism, step_size=0.2, rng=generator(6)
    )
    # Algorithms 1 to 3, with the whole list of node noises and the decoder's rows.
    rng, nodes, w, total, largest = generator(6), [], np.zeros(DIMENSION), np.zeros(DIMENSION), 0.0
    norms = covariance.inverse_norms(features)
    for t in range(SIZE - 1):
        clip = 3.0 * np.sqrt(2 * np.mean((public_rows[0] @ w - public_rows[1]) ** 2))
        largest = max(largest, clip)
        residual = features[t] @ w - labels[t]
        gradient = features[t] * residual * min(1.0, clip / (abs(residual) * norms[t]))
        nodes.append(0.05 * largest * covariance.root_multiply(rng.standard_normal(DIMENSION)))
        noise = nodes[t].copy()
        for earlier in correlation.increment_terms(t + 1)[0]:
            noise -= nodes[earlier - 1]
        w = w - 0.2 * (gradient + noise)
        total += w
    np.testing.assert_allclose(run.average, total / SIZE, rtol=1e-10)
    assert run.largest_clip_norm == pytest.approx(largest)


def test_a_diverging_run_is_kept_as_infinite():
    features, labels = data()
    mechanism = ShapedMechanism(
        shapes()[0], TreeCorrelation(), ResidualClip(100.0, features, labels), 100.0, SIZE
    )
    run = shaped_dp_ftrl(
        ArraySamples(features, labels), mechanism=mechanism, step_size=0.5, rng=generator(0)
    )
    assert run.diverged
    assert np.all(run.average == np.inf)
    plain = ShapedMechanism(shapes()[0], TreeCorrelation(), FixedClip(math.inf), 0.0, SIZE)
    run = shaped_dp_ftrl(
        ArraySamples(1e4 * features, labels), mechanism=plain, step_size=1e4, rng=generator(0)
    )
    assert run.diverged
    assert np.all(run.average == np.inf)


@pytest.mark.parametrize(("size", "nodes"), [(2, 1), (3, 2), (8, 3), (9, 4), (10, 4)])
def test_all_rows_but_the_last_are_paid_for(size, nodes):
    """Of N - 1 gradients one is in that many nodes of the tree, each of sensitivity 2 over τ."""
    budget = Budget.zcdp(0.3)
    mechanism = ShapedMechanism.for_budget(
        budget,
        covariance=identity_covariance(2),
        correlation=TreeCorrelation(),
        clipping=FixedClip(1.0),
        sample_size=size,
    )
    assert mechanism.noise_multiplier == pytest.approx(2 * math.sqrt(nodes) / budget.root)
    assert mechanism.spent() == pytest.approx(2 * nodes / mechanism.noise_multiplier**2)
    assert mechanism.spent(neighbours="zero-out") == pytest.approx(mechanism.spent() / 4)


def test_a_budget_is_spent_to_the_last():
    budget = Budget.zcdp(0.2)
    for correlation in CORRELATIONS:
        mechanism = ShapedMechanism.for_budget(
            budget,
            covariance=shapes()[0],
            correlation=correlation,
            clipping=FixedClip(1.0),
            sample_size=SIZE,
        )
        assert mechanism.spent() == pytest.approx(0.2)
        assert mechanism.spent(neighbours="zero-out") == pytest.approx(0.05)
    silent = ShapedMechanism(shapes()[0], TreeCorrelation(), FixedClip(1.0), 0.0, SIZE)
    assert silent.spent() == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ShapedMechanism(shapes()[0], TreeCorrelation(), FixedClip(math.inf), 1.0, 9),
            "clip_norm must be finite where noise is added",
        ),
        (
            lambda: ShapedMechanism(
                shapes()[0], SquareRootCorrelation(0.1), ResidualClip(1.0, *data()), 1.0, 9
            ),
            "clipping must be FixedClip",
        ),
        (
            lambda: ShapedMechanism(
                identity_covariance(3), TreeCorrelation(), ResidualClip(1.0, *data()), 1.0, 9
            ),
            "features of the clipping must have 3 columns, got 12",
        ),
        (lambda: FixedClip(0.0), "clip_norm must be"),
        (
            lambda: ShapedMechanism(shapes()[0], TreeCorrelation(), FixedClip(1.0), 1.0, 1),
            "sample_size must be a whole number, at least 2, got 1",
        ),
        (
            lambda: shaped_dp_ftrl(
                ArraySamples(*data()),
                mechanism=ShapedMechanism(
                    shapes()[0], TreeCorrelation(), FixedClip(1.0), 1.0, SIZE + 1
                ),
                step_size=0.1,
                rng=generator(0),
            ),
            "samples must have the mechanism's sample_size rows, 46, got 45",
        ),
    ],
)
def test_values_out_of_range_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
