"""DP-FTRL with shaped noise against the algorithm line by line, and what it refuses."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relations import generator

from privreg.algorithms.samples import ArraySamples, Chunk
from privreg.algorithms.shaped_dp_ftrl import (
    FixedClip,
    ResidualClip,
    ShapedMechanism,
    _rows_but_last,
    run_settings,
    shaped_budget,
    shaped_dp_ftrl,
    shaped_noise_multiplier,
)
from privreg.noise.covariance import PublicCovariance, identity_covariance, population_covariance
from privreg.noise.streams import IndependentCorrelation, SquareRootCorrelation, TreeCorrelation
from privreg.privacy.budget import Budget

SIZE, DIMENSION = 45, 12
EIGENVALUES = np.arange(1.0, DIMENSION + 1) ** -2


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


def mechanism_of(clipping, noise_multiplier=0.0, *, covariance=None, correlation=None, size=SIZE):
    covariance = covariance or identity_covariance(DIMENSION)
    return ShapedMechanism(
        covariance, correlation or TreeCorrelation(), clipping, noise_multiplier, size
    )


def run_of(rows, mechanism, step_size=0.1, seed=2):
    return shaped_dp_ftrl(
        ArraySamples(*rows), mechanism=mechanism, step_size=step_size, rng=generator(seed)
    )


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
    run = run_of((features, labels), mechanism, 0.3, seed=3)
    increments = correlation.stream(covariance.draws, steps=SIZE - 1, rng=generator(3)).draw(SIZE)
    expected = dense_run(mechanism, 0.3, features, labels, increments)
    assert_allclose(run.average, expected, rtol=1e-9, atol=1e-12)
    assert 0 < run.clipped_fraction.non_private < 1
    assert run.largest_clip_norm == 1.5
    # The last row enters nothing.
    labels[-1] = 1e6
    other = run_of((features, labels), mechanism, 0.3, seed=3)
    assert_array_equal(run.average, other.average)


def test_settings_are_runs():
    features, labels = data()
    covariances = shapes()[:2]
    steps, clips, taus = [0.3, 0.1, 0.3], [1.5, 0.7, math.inf], [0.3, 1.0, 0.0]
    used = [covariances[1], covariances[0], covariances[0]]
    noise = TreeCorrelation().stream(DIMENSION, steps=SIZE - 1, rng=generator(4)).draw(SIZE)
    scales = [0.3 * 1.5, 0.7, 0.0]
    settings = {
        "inverse_norms": [shape.inverse_norms(features) for shape in used],
        "noise_scale": [s * np.sqrt(u.diagonal) for s, u in zip(scales, used, strict=True)],
        "step_size": steps,
        "clip_norm": clips,
    }
    averages, clipped = run_settings(features, labels, noise=noise, block=2, **settings)
    for at in range(3):
        mechanism = mechanism_of(FixedClip(clips[at]), taus[at], covariance=used[at])
        run = run_of((features, labels), mechanism, steps[at], seed=4)
        assert_allclose(averages[at], run.average, rtol=1e-10, atol=1e-13)
        assert clipped.non_private[at] == pytest.approx(run.clipped_fraction.non_private)


def test_one_step_of_a_setting_is_its_gradient_and_both_noises():
    """Two rows, of which the last enters nothing: w_0 = 0 and w_1 are averaged."""
    options = {
        "inverse_norms": np.ones((1, 2)),
        "noise": [[0.1, 0.2]],
        "noise_scale": [[1.0, 2.0]],
        "step_size": [0.5],
        "clip_norm": [math.inf],
        "shared_noise": [[5.0, 7.0]],
        "shared_scale": [2.0],
    }
    averages, clipped = run_settings([[1.0, 2.0], [0.0, 0.0]], [3.0, 0.0], **options)
    moved = 0.5 * (3.0 * np.array([1.0, 2.0]) - [0.1, 0.4] - 2.0 * np.array([5.0, 7.0]))
    assert_allclose(averages[0], moved / 2, rtol=1e-12)
    assert clipped.non_private[0] == 0


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
    mechanism = mechanism_of(FixedClip(1.5), 0.3, covariance=public)
    run = run_of((features, labels), mechanism, 0.3, seed=5)
    assert_allclose(averages[0], run.average, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("correlation", CORRELATIONS[:2], ids=["tree", "independent"])
@pytest.mark.parametrize(("tau", "scale"), [(0.05, 1.0), (0.0, 1.0), (0.0, 1e-3)])
def test_adaptive_clipping_follows_the_residuals(correlation, tau, scale):
    """Algorithms 1 to 3, with the whole list of node noises and the decoder's rows.

    Without noise nothing is drawn from the generator.
    """
    (features, labels), public = data(), data(seed=8)
    labels, public = scale * labels, (public[0], scale * public[1])
    clipping, covariance = ResidualClip(3.0, *public), shapes()[1]
    mechanism = ShapedMechanism(covariance, correlation, clipping, tau, SIZE)
    ours = generator(6)
    run = shaped_dp_ftrl(
        ArraySamples(features, labels), mechanism=mechanism, step_size=0.2, rng=ours
    )
    rng, nodes, w, total, largest = generator(6), [], np.zeros(DIMENSION), np.zeros(DIMENSION), 0.0
    norms, clipped = covariance.inverse_norms(features), 0
    for t in range(SIZE - 1):
        clip = 3.0 * np.sqrt(2 * np.mean((public[0] @ w - public[1]) ** 2))
        assert clipping.clip_norm(w) == pytest.approx(clip, rel=1e-12)
        largest = max(largest, clip)
        residual = features[t] @ w - labels[t]
        clipped += abs(residual) * norms[t] > clip
        noise = -features[t] * residual * min(1.0, clip / (abs(residual) * norms[t]))
        if tau:
            nodes.append(tau * largest * covariance.root_multiply(rng.standard_normal(DIMENSION)))
            noise = noise - nodes[t]
            for earlier in correlation.increment_terms(t + 1)[0]:
                noise += nodes[earlier - 1]
        w = w + 0.2 * noise
        total += w
    assert_allclose(run.average, total / SIZE, rtol=1e-9)
    assert run.largest_clip_norm == pytest.approx(largest)
    assert 0 < clipped < SIZE - 1
    assert run.clipped_fraction.non_private == pytest.approx(clipped / (SIZE - 1))
    assert ours.random() == rng.random()


def test_a_diverging_run_is_kept_as_infinite():
    features, labels = data()
    clipping = ResidualClip(100.0, features, labels)
    for rows, mechanism, step_size in (
        ((features, labels), mechanism_of(clipping, 100.0), 0.5),
        ((1e4 * features, labels), mechanism_of(FixedClip(math.inf)), 1e4),
    ):
        run = run_of(rows, mechanism, step_size)
        assert run.diverged
        assert np.all(run.average == np.inf)


@pytest.mark.parametrize(
    ("correlation", "size", "square"),
    [
        *((TreeCorrelation(), size, n) for size, n in ((2, 1), (3, 2), (8, 3), (9, 4), (10, 4))),
        (IndependentCorrelation(), SIZE, 1.0),
        (CORRELATIONS[2], SIZE, CORRELATIONS[2].sensitivity(SIZE - 1) ** 2),
    ],
)
def test_all_rows_but_the_last_are_paid_for(correlation, size, square):
    """Of N - 1 gradients one is in that many nodes of the tree, each of sensitivity 2 over τ."""
    budget, clipping = Budget.zcdp(0.3), FixedClip(1.0)
    shape = {"covariance": identity_covariance(2), "clipping": clipping, "sample_size": size}
    mechanism = ShapedMechanism.for_budget(budget, correlation=correlation, **shape)
    assert mechanism.noise_multiplier == pytest.approx(2 * math.sqrt(square) / budget.root)
    assert mechanism.spent() == pytest.approx(0.3)
    assert mechanism.spent(neighbours="zero-out") == pytest.approx(0.3 / 4)
    assert mechanism_of(clipping).spent() == math.inf


@pytest.mark.parametrize("sizes", [(38, 7), (44, 1), (1, 43, 1), (45,), (7, 37, 1)])
def test_every_row_but_the_last_is_walked_once(sizes):
    """In blocks of which none is empty: the kernel reads the first row of a block."""
    rows, samples = data(), ArraySamples(*data())
    parts = np.split(np.arange(SIZE), np.cumsum(sizes)[:-1])
    chunks = [Chunk(*(each[part] for each in (*rows, samples.norms))) for part in parts]
    blocks = list(_rows_but_last(chunks, SIZE))
    assert all(len(features) == len(labels) > 0 for features, labels in blocks)
    for at in (0, 1):
        assert_array_equal(np.concatenate([block[at] for block in blocks]), rows[at][:-1])


def test_rows_beyond_all_scales_are_clipped_alike():
    """A clipped gradient does not know its row's scale: 1e20 of it or 1e200."""
    for clipping in (FixedClip(2.0), ResidualClip(1.0, *data())):
        found = []
        for scale in (1e20, 1e200):
            features, labels = data()
            features[5], labels[5] = scale * features[5], scale * labels[5]
            found.append(run_of((features, labels), mechanism_of(clipping)).average)
        assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize(
    ("row", "label", "step_size", "clip_norm", "moved"),
    [
        # Without a clip rows are as they are; η x y / 2 is the average of a step and of the start.
        ([1e60, 2.0], 3e60, 0.1, math.inf, [1.5e119, 3e59]),
        # A clipped step is as long as said.
        ([3.0, 4.0], 7.0, 0.4, 0.2, [0.024, 0.032]),
        ([3.0, 4.0], 7.0, 2.0, 3.0, [1.8, 2.4]),
    ],
)
def test_one_step(row, label, step_size, clip_norm, moved):
    rows = np.array([row, [1.0, 1.0]]), np.array([label, 1.0])
    mechanism = mechanism_of(FixedClip(clip_norm), covariance=identity_covariance(2), size=2)
    found = run_of(rows, mechanism, step_size)
    assert_allclose(found.average, moved, rtol=1e-12)
    assert found.clipped_fraction.non_private == np.isfinite(clip_norm)


def test_the_ends_of_ranges_are_taken():
    for value in (0.0, 1e-12, 1e12):
        assert mechanism_of(FixedClip(1.0), value).noise_multiplier == value
    for value in (1e-12, 1e12):
        assert ResidualClip(value, *data()).per_residual == value
    for size in (np.inf, 1e300):
        assert ResidualClip(2.0, *data()).clip_norm(np.full(DIMENSION, size)) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mechanism_of(FixedClip(math.inf), 1.0), "finite if noise is added"),
        (
            lambda: mechanism_of(ResidualClip(1.0, *data()), correlation=CORRELATIONS[2]),
            "clipping must be FixedClip",
        ),
        (
            lambda: mechanism_of(ResidualClip(1.0, *data()), covariance=identity_covariance(3)),
            "clipping must have features with 3 columns, got 12",
        ),
        (lambda: FixedClip(0.0), "clip_norm must be"),
        (lambda: mechanism_of(FixedClip(1.0), 0.9e-12), "noise_multiplier must be"),
        (lambda: mechanism_of(FixedClip(1.0), size=1), "sample_size must be .* at least 2, got 1"),
        (
            lambda: run_of(data(), mechanism_of(FixedClip(1.0), size=SIZE + 1)),
            "samples must have as many rows as the mechanism, 46, got 45",
        ),
        (lambda: run_of(data(), mechanism_of(FixedClip(1.0)), 0.0), "step_size"),
        (lambda: ResidualClip(math.inf, *data()), "per_residual must be"),
        (lambda: ResidualClip(1.0, [[-1.1e12]], [1.0]), "features must be"),
        (lambda: ResidualClip(1.0, np.ones((2, 1)), np.ones(3)), "labels must have shape"),
        (
            lambda: shaped_budget(
                1.0, correlation=TreeCorrelation(), steps=8, neighbours="add-remove"
            ),
            "got 'add-remove': one more record",
        ),
    ],
)
def test_values_out_of_range_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
@pytest.mark.parametrize(
    "correlation", [TreeCorrelation(), IndependentCorrelation(), SquareRootCorrelation(0.01)]
)
def test_multiplier_and_budget_are_inverses(correlation, neighbours):
    budget = Budget.zcdp(0.3, neighbours=neighbours)
    multiplier = shaped_noise_multiplier(budget, correlation=correlation, steps=777)
    found = shaped_budget(multiplier, correlation=correlation, steps=777, neighbours=neighbours)
    assert found.rho == pytest.approx(0.3, rel=1e-12)
    assert found.neighbours is budget.neighbours
