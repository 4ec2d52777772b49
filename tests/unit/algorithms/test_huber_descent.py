"""Private Huber regression: bounded sums, what is spent on what, and the minimiser it nears."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms import huber_sums
from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.records import Records
from privreg.algorithms.samples import ArraySamples
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours

CLIP, CAP = 0.7, 1.9


@pytest.fixture
def table(rng):
    features = np.column_stack([np.ones(300), rng.standard_normal((300, 3))])
    labels = features @ [0.3, 1.0, -1.0, 0.5] + rng.standard_normal(300)
    return ArraySamples(features, labels)


@pytest.fixture
def whitening(rng):
    return np.eye(4) + 0.2 * rng.standard_normal((4, 4))


def records_of(samples, groups=None, common_width=False):
    return Records(
        samples, feature_norm=1e3, label_bound=1e3, groups=groups, common_width=common_width
    )


def fit(samples, budget, settings=None, rng=None, **more):
    return huber_descent(
        samples,
        feature_norm=5.0,
        label_bound=10.0,
        budget=budget,
        settings=settings or HuberSettings(),
        rng=rng or np.random.Generator(np.random.SFC64(3)),
        **more,
    )


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("moment_share", [0.0, 0.1])
def test_what_is_spent_is_the_budget(table, neighbours, intercept, moment_share):
    budget = Budget.zcdp(0.3, neighbours=neighbours)
    settings = HuberSettings(moment_share=moment_share)
    release = fit(table, budget, settings, sample_size=300.0, intercept=intercept)
    assert release.budget == budget
    spent = [each for _, each in release.value.spending]
    assert sum(each.rho for each in spent) == pytest.approx(0.3, rel=1e-12)
    assert {each.neighbours for each in spent} == {neighbours}
    assert np.all(np.isfinite(release.value.parameters))


def gradients(samples, theta, whitening):
    residuals = samples.labels - samples.features @ theta
    return (samples.features @ whitening) * residuals[:, None]


def test_sums_are_those_of_a_loop_over_records(table, whitening, rng):
    theta, groups = rng.standard_normal(4) / 2, rng.integers(0, 120, 300)
    whole = gradients(table, theta, whitening)
    by_person = np.array([whole[groups == k].sum(axis=0) for k in np.unique(groups)])
    for found, records in (
        (whole, records_of(table)),
        (by_person, records_of(table, groups)),
    ):
        lengths = np.linalg.norm(found, axis=1)
        clipped = found * np.minimum(1, CLIP / lengths)[:, None]
        arguments = (records, theta, whitening)
        np.testing.assert_allclose(
            huber_sums.gradient_sum(*arguments, clip_norm=CLIP), clipped.sum(axis=0), rtol=1e-12
        )
        np.testing.assert_allclose(
            huber_sums.second_moment_sum(*arguments, clip_norm=CLIP),
            clipped.T @ clipped,
            atol=1e-11,
        )
        counts = huber_sums.residual_histogram(*arguments, np.array([0.1, 1.0]))
        np.testing.assert_array_equal(counts, np.histogram(lengths / 2, [0, 0.1, 1.0, np.inf])[0])
    white, records = table.features @ whitening, records_of(table)
    lengths = np.linalg.norm(white, axis=1)
    counts = huber_sums.length_histogram(records, whitening, np.array([1.5, 2.5]))
    np.testing.assert_array_equal(counts, np.histogram(lengths, [0, 1.5, 2.5, np.inf])[0])
    shorter = white * np.minimum(1, CAP / lengths)[:, None]
    gram = huber_sums.gram_sum(records, whitening, cap=CAP)
    np.testing.assert_allclose(gram, shorter.T @ shorter, atol=1e-11)


@pytest.mark.parametrize("cap", [CAP, 1e6])
def test_traces_are_those_of_the_matrices_at_one_width(table, whitening, rng, cap):
    arguments = (records_of(table, common_width=True), rng.standard_normal(4) / 2, whitening)
    found = huber_sums.traces(*arguments, clip_norm=CLIP, cap=cap)
    curvature = huber_sums.curvature_sum(*arguments, clip_norm=CLIP, cap=cap)
    square = huber_sums.second_moment_sum(*arguments, clip_norm=CLIP)
    assert found == pytest.approx((np.trace(curvature), np.trace(square)), rel=1e-10)


def test_one_width_for_all_rows_shortens_long_ones(table, whitening, rng):
    theta = rng.standard_normal(4) / 2
    white, residuals = table.features @ whitening, table.labels - table.features @ theta
    shorter = white * np.minimum(1, 2 / np.linalg.norm(white, axis=1))[:, None]
    expected = shorter * np.clip(residuals, -CLIP / 2, CLIP / 2)[:, None]
    arguments = (records_of(table, common_width=True), theta, whitening)
    np.testing.assert_allclose(
        huber_sums.gradient_sum(*arguments, clip_norm=CLIP), expected.sum(axis=0), rtol=1e-12
    )
    np.testing.assert_allclose(
        huber_sums.second_moment_sum(*arguments, clip_norm=CLIP), expected.T @ expected, atol=1e-11
    )
    counts = huber_sums.residual_histogram(*arguments, np.array([0.1, 1.0]))
    np.testing.assert_array_equal(counts, np.histogram(np.abs(residuals), [0, 0.1, 1.0, np.inf])[0])


@pytest.mark.parametrize("common_width", [False, True])
def test_skewed_errors_leave_slopes_alone_at_one_width(rng, common_width):
    """Categories of very different rows: at widths of their own their shifts differ."""
    chosen = rng.choice(4, 20_000, p=[0.6, 0.3, 0.07, 0.03])
    features = np.column_stack([np.ones(20_000), np.eye(4)[chosen][:, 1:]])
    labels = features @ [0.3, 1.0, -1.0, 0.5] + 2 * rng.standard_exponential(20_000)
    settings = HuberSettings(common_width=common_width, clip_width=2.0)
    found = fit(ArraySamples(features, labels), Budget.zcdp(1e4), settings, intercept=True).value
    error = np.abs(found.parameters[1:] - [1.0, -1.0, 0.5])
    # The rarest category has 600 rows: a standard error of 0.07.
    assert np.all(error < 0.2) == common_width


@pytest.mark.parametrize("kind", ["rows", "persons", "one width"])
def test_curvature_is_the_derivative_of_the_clipped_gradient(table, whitening, rng, kind):
    """Central differences; no record crosses its clip within the step, but for measure zero."""
    groups = rng.integers(0, 120, 300) if kind == "persons" else None
    records = records_of(table, groups, common_width=kind == "one width")
    theta, step = rng.standard_normal(4) / 2, 1e-6
    found = huber_sums.curvature_sum(records, theta, whitening, clip_norm=CLIP, cap=1e6)
    columns = [
        (
            huber_sums.gradient_sum(records, theta - shift, whitening, clip_norm=CLIP)
            - huber_sums.gradient_sum(records, theta + shift, whitening, clip_norm=CLIP)
        )
        / (2 * step)
        for shift in step * whitening.T
    ]
    np.testing.assert_allclose(found, np.array(columns).T, atol=1e-4)
    traces = huber_sums.traces(records, theta, whitening, clip_norm=CLIP, cap=CAP)
    capped = huber_sums.curvature_sum(records, theta, whitening, clip_norm=CLIP, cap=CAP)
    square = huber_sums.second_moment_sum(records, theta, whitening, clip_norm=CLIP)
    assert traces == pytest.approx((np.trace(capped), np.trace(square)), rel=1e-10)


ROWS = [0.0, 5e-324, 1e-160, 1.0, -3.0, 1e8, 1e300, -1e308]


@pytest.mark.parametrize("common_width", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_no_record_moves_a_sum_by_more_than_is_said(rng, whitening, rows, common_width):
    for _ in range(50):
        features = rng.choice(ROWS, (rows, 4)) * rng.uniform(0.5, 1, (rows, 4))
        labels = rng.choice(ROWS, rows)
        records = Records(
            ArraySamples(features, labels),
            5.0,
            10.0,
            np.zeros(rows) if rows > 1 else None,
            common_width=common_width,
        )
        assert records.count == 1
        arguments = (records, rng.standard_normal(4), whitening)
        slack = 1 + 1e-12
        gradient = huber_sums.gradient_sum(*arguments, clip_norm=CLIP)
        assert np.linalg.norm(gradient) <= CLIP * slack
        square = huber_sums.second_moment_sum(*arguments, clip_norm=CLIP)
        assert np.linalg.norm(square) <= CLIP**2 * slack
        gram = huber_sums.gram_sum(records, whitening, cap=CAP)
        assert np.linalg.norm(gram) <= CAP**2 * slack
        assert np.linalg.eigvalsh(gram)[0] >= -1e-12
        curvature = huber_sums.curvature_sum(*arguments, clip_norm=CLIP, cap=CAP)
        assert np.linalg.norm(curvature) <= CAP**2 * slack
        traces = huber_sums.traces(*arguments, clip_norm=CLIP, cap=CAP)
        assert -1e-12 <= traces[0] <= CAP**2 * slack
        assert 0 <= traces[1] <= CLIP**2 * slack
        assert np.linalg.norm(huber_sums.row_sum(records)) <= 5.0 * slack
        for counts in (
            huber_sums.length_histogram(records, whitening, np.array([1.0, 2.0])),
            huber_sums.residual_histogram(*arguments, np.array([1.0, 2.0])),
        ):
            assert sorted(counts) in ([0, 0, 0], [0, 0, 1])
            assert np.sum(counts) == 1 or not np.any(np.abs(features) >= 1e-150)


def test_with_a_large_budget_the_fit_is_the_huber_minimiser(rng):
    features = np.column_stack([np.ones(4000), rng.standard_normal((4000, 3))])
    labels = features @ [0.3, 1.0, -1.0, 0.5] + rng.standard_t(3, 4000)
    samples = ArraySamples(features, labels)
    settings = HuberSettings(warm_up_steps=8, final_steps=8)
    found = fit(samples, Budget.zcdp(1e12), settings, intercept=True).value
    records = Records(samples, 5.0, 10.0, common_width=True)
    whitening = found.whitening
    gradient = (
        huber_sums.gradient_sum(records, found.parameters, whitening, clip_norm=found.clip_norm)
        / 4000
    )
    at_start = huber_sums.gradient_sum(records, np.zeros(4), whitening, clip_norm=found.clip_norm)
    # Eight steps of sizes 1/k on a linear gradient would leave nothing; the clip bends it a little.
    assert np.linalg.norm(gradient) < 1e-3 * np.linalg.norm(at_start) / 4000
    np.testing.assert_allclose(
        whitening.T @ features.T @ features @ whitening / 4000, np.eye(4), atol=0.1
    )


def test_a_group_of_one_row_each_is_no_group(table):
    settings = HuberSettings(moment_share=0.0, common_width=False)
    plain = fit(table, Budget.zcdp(0.5), settings).value
    grouped = fit(table, Budget.zcdp(0.5), settings, groups=np.arange(300)).value
    np.testing.assert_allclose(plain.parameters, grouped.parameters, rtol=1e-9)


def test_what_is_undefined_is_refused(table):
    for budget, more, message in (
        (Budget(np.inf), {}, "budget must be finite"),
        (Budget.zcdp(1.0), {"groups": [1, 2]}, "groups must have shape"),
        (Budget.zcdp(0.5, neighbours="add-remove"), {}, "sample_size must be given under add-rem"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(table, budget, **more)
