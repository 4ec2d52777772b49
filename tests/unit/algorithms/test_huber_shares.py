"""Private Huber regression: the noise that each release carries, and the steps that it takes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from privreg.algorithms import huber_sums, warm_up
from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.huber_scales import white_cap
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.records import Records
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.whitening import newton_matrix, whiten
from privreg.privacy.budget import Budget

N, P, BOUND = 300.0, 4, 10.0
SETTINGS = HuberSettings(clip_width=1.3, warm_up_steps=4, final_steps=3, gram_rounds=2)
SLOPE = norm.cdf(1.3) - norm.cdf(-1.3)


@pytest.fixture
def table(rng):
    features = np.column_stack([np.ones(300), 1.0 + rng.standard_normal((300, 3))])
    labels = features @ [0.3, 1.0, -1.0, 0.5] + rng.standard_normal(300)
    return ArraySamples(features, labels)


def fit(samples, rho, settings=SETTINGS, **more):
    return huber_descent(
        samples,
        feature_norm=9.0,
        label_bound=BOUND,
        budget=Budget.zcdp(rho),
        settings=settings,
        rng=np.random.Generator(np.random.SFC64(3)),
        **more,
    ).value


def gaussian(sensitivity, rho, n=N):
    return sensitivity / np.sqrt(2 * rho) / n


def test_shares_are_spent_on_what_they_are_for(table):
    spent = {what: part.rho for what, part in fit(table, 2.0, intercept=True).spending}
    assert spent == pytest.approx(
        {
            "centre and length of rows": 0.02,
            "Gram matrix": 0.2,
            "residual scales": 0.08,
            "warm-up steps": 0.2,
            "second moments for intervals": 0.2,
            "final steps": 1.26,
            "means for intervals": 0.04,
        }
    )


@pytest.mark.parametrize("sample_size", [None, 600.0])
@pytest.mark.parametrize("groups", [None, np.arange(300)])
def test_each_release_has_the_noise_of_its_share(table, groups, sample_size):
    """Under replace-one: √2 R² of a symmetric matrix, 2 R² of another, 2γ of a gradient."""
    rho, n = 2.0, sample_size or N
    found = fit(table, rho, groups=groups, sample_size=sample_size)
    gamma = found.clip_norm
    assert gamma == pytest.approx(1.3 * found.residual_scale * np.sqrt(P), rel=1e-12)
    assert found.sample_size == n
    assert found.symmetric == (groups is None)
    share = SETTINGS.gram_shares[-1]
    cap = white_cap(P, sample_size=n, rho=share * rho)
    assert found.gram.noise_std == pytest.approx(gaussian(2**0.5 * cap**2, share * rho, n))
    cap = white_cap(P, sample_size=n, rho=0.05 * rho)
    factor = np.sqrt(2) if groups is None else 2.0
    expected = gaussian(factor * cap**2, 0.05 * rho, n)
    assert found.curvature.noise_std == pytest.approx(expected)
    expected = gaussian(np.sqrt(2) * gamma**2, 0.05 * rho, n)
    assert found.second_moment.noise_std == pytest.approx(expected)
    assert found.mean_square.noise_std == pytest.approx(gaussian(gamma**2 / P, 0.01 * rho, n))
    np.testing.assert_allclose(
        found.gradient_noise_stds[4:], gaussian(2 * gamma, SETTINGS.final_share / 3 * rho, n)
    )
    first = 2 * 1.3 * found.start_scale * np.sqrt(P)
    assert found.gradient_noise_stds[0] == pytest.approx(gaussian(first, 0.025 * rho, n))


@pytest.mark.parametrize(("rho", "bound"), [(2.0, 1.5), (18.0, 3.6), (800.0, 20.0)])
def test_mean_curvature_is_bounded_by_what_its_noise_affords(table, rho, bound):
    """A bound R²/p in [1.5, 20] of which the noise is 0.02: 0.02 · 300 · √(2 · 0.01 · 18) = 3.6."""
    found = fit(table, rho)
    assert found.mean_curvature.noise_std == pytest.approx(gaussian(bound, 0.01 * rho))


def test_the_moments_are_those_at_the_iterates(table):
    """A at the last warm-up step, B and the means at the last step; what is left is noise."""
    found = fit(table, 1e16, intercept=True)
    records = Records(table, 9.0, BOUND, common_width=True)
    # Among 4 x 4 normals none is beyond 6.
    for theta, name, released, bound in (
        (found.iterates[3], "curvature_sum", found.curvature, {"cap": 80.0**0.5}),
        (found.parameters, "second_moment_sum", found.second_moment, {}),
    ):
        exact = getattr(huber_sums, name)(
            records, theta, found.whitening, clip_norm=found.clip_norm, **bound
        )
        np.testing.assert_allclose(released.value, exact / N, atol=6 * released.noise_std)
    exact = huber_sums.traces(
        records, found.parameters, found.whitening, clip_norm=found.clip_norm, cap=80.0**0.5
    )
    for released, trace in zip((found.mean_curvature, found.mean_square), exact, strict=True):
        assert float(released.value) == pytest.approx(trace / N / P, abs=6 * released.noise_std)


@pytest.mark.parametrize("moment_share", [0.0, 0.1])
def test_steps_are_those_of_newton(table, moment_share):
    settings = HuberSettings(clip_width=1.3, moment_share=moment_share)
    found = fit(table, 1e16, settings, intercept=True)
    assert (found.curvature is None) == (found.second_moment is None) == (moment_share == 0)
    newton = np.eye(P) / SLOPE
    np.testing.assert_allclose(found.step_matrices[:4], [newton] * 4, rtol=1e-12)
    if moment_share:
        newton = newton_matrix(found.curvature, SLOPE)
    np.testing.assert_allclose(
        found.step_matrices[4:], [newton, newton / 2, newton / 3], rtol=1e-12
    )
    records = Records(table, 9.0, BOUND, common_width=True)
    for k in (4, 5, 6):
        before, after = found.iterates[k - 1], found.iterates[k]
        gradient = huber_sums.gradient_sum(
            records, before, found.whitening, clip_norm=found.clip_norm
        )
        step = found.whitening @ found.step_matrices[k] @ gradient / N
        np.testing.assert_allclose(after - before, step, atol=1e-6)
    np.testing.assert_array_equal(found.parameters, found.iterates[6])


def test_rows_are_whitened_by_their_deviations(table):
    """W takes (1, x) to (1, x - m) and then by blocks: nothing of x enters the first column."""
    found = fit(table, 1e16, intercept=True)
    white = table.features @ found.whitening
    np.testing.assert_allclose(white.T @ white / N, np.eye(P), atol=1e-4)
    np.testing.assert_allclose(found.whitening[:, 0], [1, 0, 0, 0], atol=1e-2)
    # The last round found what the rounds before had made of the rows.
    before = table.features @ found.whitening @ np.linalg.inv(found.last_root)
    np.testing.assert_allclose(found.gram.value, before.T @ before / N, atol=1e-4)
    assert found.last_root.tolist() == whiten(found.gram).root.tolist()
    assert found.gram_weight == whiten(found.gram).weight


@pytest.mark.parametrize("intercept", [False, True])
def test_without_an_intercept_nothing_is_centred(table, intercept):
    found = fit(table, 1e16, intercept=intercept)
    means = (table.features @ found.whitening)[:, 1:].mean(axis=0)
    # Long rows are shortened for the first round, which mixes columns a little.
    assert np.allclose(means, 0, atol=1e-2) == intercept


def steps_with_scales(monkeypatch, samples, scales):
    """A fit whose private scales are these, None where the noise hides one."""
    queue = iter(scales)
    current = []

    def hidden(**_):
        current[:] = [next(queue)]
        return current[0] is None

    monkeypatch.setattr(warm_up, "scale_is_hidden", hidden)
    monkeypatch.setattr(warm_up, "residual_scale", lambda *_, **__: current[0])
    return fit(samples, 1e4)


def test_a_scale_that_grows_by_a_quarter_takes_its_step_back(table, monkeypatch):
    found = steps_with_scales(monkeypatch, table, [2.0, 2.49, 2.49 * 1.26, None, 1.0])
    assert [not np.any(matrix) for matrix in found.step_matrices] == [0, 1, 1, 0, 0, 0, 0]
    assert (found.start_scale, found.residual_scale) == (2.0, 1.0)
    unit = gaussian(2 * 1.3 * np.sqrt(P), 0.025 * 1e4)
    np.testing.assert_allclose(found.gradient_noise_stds[:4] / unit, [2.0, 2.49, 2.49, 2.49])
    assert np.array_equal(found.iterates[0], found.iterates[1])
    assert np.array_equal(found.iterates[0], found.iterates[2])
    assert not np.array_equal(found.iterates[2], found.iterates[3])


def test_a_first_step_is_taken_back_to_zero(table, monkeypatch):
    found = steps_with_scales(monkeypatch, table, [1.0, 2.0, 1.0, 2.0, 1.25])
    assert [not np.any(matrix) for matrix in found.step_matrices[:4]] == [1, 0, 1, 0]
    assert not np.any(found.iterates[0])
    assert np.any(found.iterates[1])
    # A quarter more is kept, and is the scale of what follows.
    assert found.residual_scale == 1.25


@pytest.mark.parametrize(("first", "start"), [(None, 2.5), (50.0, BOUND), (9.0, 9.0)])
def test_the_start_is_no_wider_than_labels(table, monkeypatch, first, start):
    assert steps_with_scales(monkeypatch, table, [first, 1, 1, 1, 1]).start_scale == start


def test_numbers_of_records_and_iterates_beyond_what_sums_can_hold_are_refused(table):
    for wrong in (0.99, 1e15 + 1, np.nan):
        with pytest.raises(ValueError, match="sample_size must be"):
            fit(table, 1.0, sample_size=wrong)
    for right in (1.0, 1e15):
        assert fit(table, 1e10, sample_size=right).sample_size == right
    released = np.array([1.0, -1e90])
    assert warm_up.moderate(released) is released
    with pytest.raises(ValueError, match="budget must leave iterates"):
        warm_up.moderate(1.1 * released)
