"""Full-batch DP-GD: clipping identity, plain-loop oracle, screening, sensitivity, coupling."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from privreg.algorithms import full_batch_dpgd as module
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std, screen
from privreg.algorithms.gaussian_samples import GaussianSamples
from privreg.algorithms.samples import ArraySamples, clipped_gradient_sum, moments
from privreg.privacy import budget
from privreg.privacy.budget import Neighbours
from privreg.theory.full_batch_dpgd import clipping_bound, gradient_descent_law


def make_data(n: int, p: int, *, seed: int = 0) -> ArraySamples:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    return ArraySamples(x, x @ (np.ones(p) / np.sqrt(p)) + rng.standard_normal(n))


def clipped_sum_by_rows(data: ArraySamples, theta: np.ndarray, clip_norm: float) -> np.ndarray:
    """The definition: clip each row's gradient vector, then add."""
    total = np.zeros_like(theta)
    for x, y in zip(data.features, data.labels, strict=True):
        gradient = -x * (y - x @ theta)
        norm = np.linalg.norm(gradient)
        total -= gradient * (min(1.0, clip_norm / norm) if norm > 0 else 1.0)
    return total


def huber_gradient_sum(data: ArraySamples, theta: np.ndarray, clip_norm: float) -> np.ndarray:
    """Numerical negative gradient of Σ Huber losses with widths γ/‖x_i‖."""
    widths = clip_norm / np.linalg.norm(data.features, axis=1)

    def loss(point: np.ndarray) -> float:
        r = np.abs(data.labels - data.features @ point)
        return float(np.sum(np.where(r <= widths, r**2 / 2, widths * (r - widths / 2))))

    step = 1e-5
    axes = np.eye(theta.size) * step
    return np.array([(loss(theta - a) - loss(theta + a)) / (2 * step) for a in axes])


def plain_loop(data, *, clip_norm, step_size, gradient_noise_std, steps, runs, rng):
    """One NumPy step after another, no chunks, no screening."""
    theta = np.zeros((runs, data.dimension))
    path = []
    for _ in range(steps):
        residual = data.labels - theta @ data.features.T
        width = clip_norm / np.linalg.norm(data.features, axis=1)
        mean = np.clip(residual, -width, width) @ data.features / data.sample_size
        theta = theta + step_size * (mean + gradient_noise_std * rng.standard_normal(theta.shape))
        path.append(theta)
    return np.stack(path, axis=1)


def test_clipped_gradient_is_its_definition_and_a_huber_gradient():
    data = make_data(1500, 4)
    theta = np.random.default_rng(1).standard_normal((4, 3))
    clip_norms = np.array([0.7, 4.0, np.inf])
    sums, clipped = clipped_gradient_sum(data.chunks(), theta, clip_norm=clip_norms)
    for lane, clip_norm in enumerate(clip_norms):
        expected = clipped_sum_by_rows(data, theta[:, lane], clip_norm)
        np.testing.assert_allclose(sums[:, lane], expected, rtol=1e-11, atol=1e-11)
        norms = data.norms * np.abs(data.labels - data.features @ theta[:, lane])
        assert clipped[lane] == np.count_nonzero(norms > clip_norm)
    for lane in (0, 1):
        numeric = huber_gradient_sum(data, theta[:, lane], clip_norms[lane])
        np.testing.assert_allclose(sums[:, lane], numeric, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("screening", [False, True])
def test_iterates_equal_the_plain_loop_for_every_setting(screening):
    data = make_data(3000, 5)
    clip_norms, noise = np.array([1.0, 12.0, np.inf]), np.array([0.05, 0.1, 0.02])
    result = full_batch_dpgd(
        data,
        clip_norm=clip_norms,
        step_size=0.3,
        gradient_noise_std=noise,
        steps=12,
        runs=4,
        rng=np.random.default_rng(3),
        screening=screening,
    )
    assert result.iterates.shape == (3, 4, 12, 5)
    assert result.clipped_fraction.non_private.shape == (3, 4, 12)
    for setting in range(3):
        expected = plain_loop(
            data,
            clip_norm=clip_norms[setting],
            step_size=0.3,
            gradient_noise_std=noise[setting],
            steps=12,
            runs=4,
            rng=np.random.default_rng(3),
        )
        np.testing.assert_allclose(result.iterates[setting], expected, rtol=1e-10, atol=1e-12)
    assert np.all(result.clipped_fraction.non_private[2] == 0)


def test_screening_keeps_few_rows_and_changes_nothing():
    data = make_data(20_000, 10)
    clip_norm, steps, runs = 5 * np.sqrt(10), 15, 8
    noise = float(
        full_batch_noise_std(clip_norm=clip_norm, rho=0.05, sample_size=20_000, gradients=steps)
    )
    arguments = {
        "clip_norm": clip_norm,
        "step_size": 0.25,
        "gradient_noise_std": noise,
        "steps": steps,
    }
    screened = screen(data, **arguments, lanes=runs, start=np.zeros(10))
    assert screened is not None
    assert 0 < screened.kept.labels.size < 500
    fast, slow = (
        full_batch_dpgd(
            data, **arguments, runs=runs, rng=np.random.default_rng(1), screening=screening
        )
        for screening in (True, False)
    )
    assert 0 < slow.clipped_fraction.non_private.max() < 1e-2
    np.testing.assert_array_equal(
        fast.clipped_fraction.non_private, slow.clipped_fraction.non_private
    )
    np.testing.assert_allclose(fast.iterates, slow.iterates, rtol=1e-10, atol=1e-13)


def test_outside_the_tube_the_whole_data_set_is_used(monkeypatch):
    data = make_data(5000, 5)
    arguments = {
        "clip_norm": 11.0,
        "step_size": 0.25,
        "gradient_noise_std": 0.05,
        "steps": 8,
        "runs": 3,
    }
    slow = full_batch_dpgd(data, **arguments, rng=np.random.default_rng(1), screening=False)

    def narrow(*args, **kwargs):
        # A tube that some steps leave, with a claim that no row can clip inside it.
        screened = screen(*args, **kwargs)
        gram, moment = moments(data)
        empty = type(screened.kept)(np.empty((0, 5)), np.empty(0), np.empty(0))
        changes = {"gram": gram, "moment": moment, "kept": empty, "radius": 1e-9}
        for name, value in changes.items():
            object.__setattr__(screened, name, value)
        return screened

    monkeypatch.setattr(module, "screen", narrow)
    fast = full_batch_dpgd(data, **arguments, rng=np.random.default_rng(1))
    # Only the first gradient, at the start itself, may use the sums, and there some rows do clip.
    np.testing.assert_array_equal(
        fast.clipped_fraction.non_private[:, 1:] > 0, slow.clipped_fraction.non_private[:, 1:] > 0
    )
    assert np.max(np.abs(fast.iterates - slow.iterates)) < 1e-2


def test_wild_labels_do_not_spoil_the_linear_rows():
    data = make_data(4000, 4)
    labels = data.labels.copy()
    labels[:20] = 1e15
    wild = ArraySamples(data.features, labels)
    arguments = {"clip_norm": 20.0, "step_size": 0.25, "gradient_noise_std": 0.01, "steps": 10}
    fast = full_batch_dpgd(wild, **arguments, rng=np.random.default_rng(1))
    slow = full_batch_dpgd(wild, **arguments, rng=np.random.default_rng(1), screening=False)
    np.testing.assert_allclose(fast.iterates, slow.iterates, rtol=1e-9)
    assert np.all(slow.clipped_fraction.non_private >= 20 / 4000)


def test_noiseless_descent_reaches_the_huber_minimiser():
    data = make_data(400, 3)
    last = full_batch_dpgd(
        data,
        clip_norm=1.0,
        step_size=0.5,
        gradient_noise_std=0.0,
        steps=600,
        rng=np.random.default_rng(0),
        times=[600],
    )
    gradient = clipped_sum_by_rows(data, last.iterates[0, 0], 1.0) / 400
    assert np.max(np.abs(gradient)) < 1e-10
    assert last.clipped_fraction.non_private[0, -1] > 0.3


def test_seeded_data_are_the_same_at_every_pass_and_nested():
    seed = np.random.SeedSequence(5, spawn_key=(2,))
    target = np.array([0.6, -0.8, 0.0])
    root = np.diag([1.0, 2.0, 0.5])
    large = GaussianSamples(2500, target, 0.5, seed, covariance_root=root)
    small = dataclasses.replace(large, sample_size=1500)
    rows = np.concatenate([c.features for c in large.chunks()])
    labels = np.concatenate([c.labels for c in large.chunks()])
    again = np.concatenate([c.labels for c in large.chunks()])
    np.testing.assert_array_equal(labels, again)
    np.testing.assert_allclose(
        np.concatenate([c.labels for c in small.chunks()]), labels[:1500], rtol=1e-13, atol=1e-13
    )
    spread = np.sqrt(2 / 2500)
    np.testing.assert_allclose(rows.var(axis=0) / [1, 4, 0.25], 1, atol=4 * spread)
    assert np.var(labels - rows @ target) / 0.25 == pytest.approx(1, abs=4 * spread)
    arguments = {"clip_norm": 9.0, "step_size": 0.2, "gradient_noise_std": 0.1, "steps": 5}
    drawn = full_batch_dpgd(large, **arguments, rng=np.random.default_rng(0))
    held = full_batch_dpgd(ArraySamples(rows, labels), **arguments, rng=np.random.default_rng(0))
    np.testing.assert_allclose(drawn.iterates, held.iterates, rtol=1e-12)


def test_noise_spends_the_budget_and_no_replaced_record_exceeds_the_sensitivity():
    n, clip_norm, rho, steps = 6, 1.3, 0.015, 17
    noise = full_batch_noise_std(clip_norm=clip_norm, rho=rho, sample_size=n, gradients=steps)
    assert noise == pytest.approx(np.sqrt(2 * steps / rho) * clip_norm / n, rel=1e-14)
    spent = budget.gaussian_budget(sensitivity=2 * clip_norm / n, noise_std=noise)
    assert steps * spent == pytest.approx(rho, rel=1e-12)
    added = full_batch_noise_std(
        clip_norm=clip_norm,
        rho=rho,
        sample_size=n,
        gradients=steps,
        neighbours=Neighbours.ADD_REMOVE,
    )
    assert added == pytest.approx(noise / 2)
    rng = np.random.default_rng(0)
    worst = 0.0
    theta = np.zeros((2, 1))
    data = make_data(n, 2)
    for trial in range(300):
        x, y = 10 * rng.standard_normal((2, 2)), 10 * rng.standard_normal(2)
        if trial == 0:
            x[:], y[:] = [[5.0, 0.0], [5.0, 0.0]], [9.0, -9.0]
        means = []
        for row, label in zip(x, y, strict=True):
            features, labels = data.features.copy(), data.labels.copy()
            features[0], labels[0] = row, label
            chunks = ArraySamples(features, labels).chunks()
            means.append(clipped_gradient_sum(chunks, theta, clip_norm=[clip_norm])[0] / n)
        worst = max(worst, float(np.linalg.norm(means[0] - means[1])))
    assert worst == pytest.approx(2 * clip_norm / n, rel=1e-12)


def test_clipped_and_unclipped_runs_part_exactly_where_a_gradient_clips():
    n, p, steps, runs = 1000, 5, 10, 2000
    data = make_data(n, p, seed=2)
    clip_norm = 1.15 * float(np.max(np.abs(data.labels) * data.norms))
    noise = 0.9
    result = full_batch_dpgd(
        data,
        clip_norm=[clip_norm, np.inf],
        step_size=0.25,
        gradient_noise_std=noise,
        steps=steps,
        runs=runs,
        rng=np.random.default_rng(4),
    )
    any_clip = np.any(result.clipped_fraction.non_private[0] > 0, axis=-1)
    apart = np.max(np.abs(result.iterates[0] - result.iterates[1]), axis=(-1, -2)) > 1e-12
    np.testing.assert_array_equal(any_clip, apart)
    share = any_clip.mean()
    assert 0.02 < share < 0.9

    gram, moment = moments(data)
    law = gradient_descent_law(
        gram, moment, sample_size=n, step_size=0.25, gradient_noise_std=noise
    )
    bound, fraction = clipping_bound(
        law, data.features, data.labels, clip_norm=clip_norm, steps=steps
    )
    assert share <= bound + 4 * np.sqrt(share * (1 - share) / runs)
    # The expected share holds along the *unclipped* path, so it is counted there.
    path = np.concatenate([np.zeros((runs, 1, p)), result.iterates[1][:, :-1]], axis=1)
    counts = np.zeros(runs)
    for step in range(steps):
        residual = np.abs(data.labels - path[:, step] @ data.features.T) * data.norms
        counts += np.count_nonzero(residual > clip_norm, axis=1)
    error = counts.std(ddof=1) / np.sqrt(runs)
    assert abs(counts.mean() - fraction * n * steps) < 4 * error
    assert abs(counts.mean() - 1.5 * fraction * n * steps) > 4 * error


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"clip_norm": 0.0}, "clip_norm"),
        ({"gradient_noise_std": np.inf}, "gradient_noise_std"),
        ({"steps": 0}, "steps"),
        ({"runs": 0}, "runs"),
        ({"step_size": np.nan}, "step_size"),
        ({"step_size": 1e6, "clip_norm": np.inf, "steps": 100}, "step_size"),
        ({"start": np.zeros(7)}, "start"),
        ({"times": [3, 3]}, "times"),
        ({"times": [0]}, "times"),
    ],
)
def test_errors_name_the_argument(change, name):
    arguments = {
        "clip_norm": 5.0,
        "step_size": 0.25,
        "gradient_noise_std": 0.1,
        "steps": 4,
    } | change
    with pytest.raises(ValueError, match=name):
        full_batch_dpgd(make_data(50, 3), **arguments, rng=np.random.default_rng(0))


def test_data_errors_name_the_argument():
    with pytest.raises(ValueError, match="labels"):
        ArraySamples(np.ones((3, 2)), np.ones(2))
    with pytest.raises(ValueError, match="features"):
        ArraySamples([[np.nan]], [1.0])
    with pytest.raises(ValueError, match="sample_size"):
        GaussianSamples(0, np.ones(2), 1.0, np.random.SeedSequence(0))


@pytest.mark.parametrize("times", [[1], [3], [1, 3]])
def test_the_first_and_the_last_step_can_be_wanted(times):
    samples = ArraySamples(np.eye(2), [1.0, -1.0])
    options = {"clip_norm": 1.0, "step_size": 0.5, "gradient_noise_std": 0.1, "steps": 3}
    some, every = (
        full_batch_dpgd(
            samples,
            **options,
            times=wanted,
            rng=np.random.Generator(np.random.SFC64(1)),
        )
        for wanted in (times, None)
    )
    np.testing.assert_array_equal(some.iterates[0], every.iterates[0, np.array(times) - 1])
    for wrong in ([4], [0], [1, 1]):
        with pytest.raises(ValueError, match="times must"):
            full_batch_dpgd(samples, **options, times=wrong, rng=np.random.default_rng(0))


def test_noise_of_one_gradient_and_without_a_bound():
    options = {"rho": 0.5, "sample_size": 10}
    assert full_batch_noise_std(clip_norm=1.0, gradients=1, **options) == pytest.approx(0.2)
    assert full_batch_noise_std(clip_norm=np.inf, gradients=1, **options) == np.inf


def test_a_run_starts_where_it_is_told():
    """One step without noise from either side of 0, and nowhere beyond 1e12."""
    data, rng = make_data(20, 2), np.random.Generator(np.random.SFC64(0))
    options = {"clip_norm": 0.5, "step_size": 0.1, "gradient_noise_std": 0.0, "steps": 1}
    for start in (np.array([3.0, -2.0]), np.array([-3.0, 2.0])):
        found = full_batch_dpgd(data, **options, rng=rng, start=start).iterates.ravel()
        moved = 0.1 / 20 * clipped_sum_by_rows(data, start, 0.5)
        np.testing.assert_allclose(found, start + moved, rtol=1e-12)
    for wrong in ([1.1e12, 0.0], [0.0, -1.1e12]):
        with pytest.raises(ValueError, match="start must be"):
            full_batch_dpgd(data, **options, rng=rng, start=wrong)


def test_what_a_run_was_made_with_stays():
    """A release is accounted with the noise and the bound that the run had."""
    bounds, noise = np.array([0.5, 0.7]), np.array([0.1, 0.2])
    found = full_batch_dpgd(
        make_data(20, 2),
        clip_norm=bounds,
        step_size=0.1,
        gradient_noise_std=noise,
        steps=1,
        rng=np.random.Generator(np.random.SFC64(0)),
    )
    bounds[:] = noise[:] = 9.0
    assert (found.clip_norm.tolist(), found.gradient_noise_std.tolist()) == ([0.5, 0.7], [0.1, 0.2])
    for kept in (found.clip_norm, found.gradient_noise_std):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 9.0
