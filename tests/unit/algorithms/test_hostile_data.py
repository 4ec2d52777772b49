"""Every finite row from subnormal to 1e308 moves an output by no more than clipping allows."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from privreg.algorithms import noisy_sgd, one_pass_dpgd
from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, screen
from privreg.algorithms.samples import (
    ArraySamples,
    Chunk,
    clipped_gradient_sum,
    rescaled,
    row_norms,
)
from privreg.models import LinearModel
from privreg.privacy.budget import Budget

SIZES = [5e-324, 1e-308, 1e-160, 1e-60, 1e-3, 1.0, 1e60, 1e155, 1.7e308]
LABELS = [0.0, 5e-324, 1.0, -1e3, -1e300, 1.7e308]
ROWS = [np.array(shape) * size for size in SIZES for shape in ([1.0, 0.0], [1.0, -1.0])]
ROWS = [row for row in ROWS if np.all(np.isfinite(row))]


def exact_clipped(row: np.ndarray, label: float, theta: np.ndarray, bound: float) -> np.ndarray:
    """The clipped negative gradient in rational arithmetic, up to its square root."""
    entries, point = [Fraction(v) for v in row], [Fraction(v) for v in theta]
    residual = Fraction(label) - sum(a * b for a, b in zip(entries, point, strict=True))
    square = residual**2 * sum(a * a for a in entries)
    if square <= Fraction(bound) ** 2:
        return np.array([float(a * residual) for a in entries])
    largest = max(abs(a) for a in entries)
    direction = np.array([float(a / largest) for a in entries])
    direction /= np.linalg.norm(direction)
    return bound * direction * (1.0 if residual > 0 else -1.0)


def one_pass(rows, labels, settings=1, *, clip_norm=0.5, step=0.1, steps=None):
    steps, settings = steps or len(rows), [np.ones(settings), np.full(settings, clip_norm)]
    mechanism = one_pass_dpgd.Mechanism(
        np.full(steps, step), np.zeros(steps), *settings, Budget(np.inf)
    )
    return one_pass_dpgd.fit(mechanism, rows, labels, np.random.default_rng(0))


def noisy_sgd_of(rows, labels, **given):
    options = {
        "records": noisy_sgd.LinearRecords.uniform(mean=0.0, half_width=1.0, target=[0.0, 0.0]),
        "initial": [0.0, 0.0],
        "step_sizes": np.ones(len(rows)),
        "gradient_noise_stds": [0.0],
        "rng": np.random.default_rng(0),
    }
    return noisy_sgd.run_noisy_sgd(rows, labels, **options | given)


@pytest.mark.parametrize("bound", [1e-12, 0.5, 1e12])
@pytest.mark.parametrize("theta", [[0.0, 0.0], [0.3, -2.0], [1e40, 1e30]])
def test_clipped_gradients_are_right_for_every_finite_row(bound, theta):
    point = np.array(theta)
    for row in ROWS:
        for label in LABELS:
            chunk = Chunk(row[None], np.array([label]), row_norms(row[None]))
            found, _ = clipped_gradient_sum(iter([chunk]), point[:, None], clip_norm=[bound])
            found = found[:, 0]
            assert np.linalg.norm(found / bound) <= 1 + 1e-14
            exact = exact_clipped(row, label, point, bound)
            clear = np.linalg.norm(exact / bound) > 1e-9 and _is_clear(row, label, point)
            if clear:
                assert_allclose(found / bound, exact / bound, rtol=1e-9, atol=1e-9)


def _is_clear(row: np.ndarray, label: float, theta: np.ndarray) -> bool:
    """Whether the residual is neither lost in rounding nor that of a row without noise to lose."""
    fitted = [Fraction(a) * Fraction(b) for a, b in zip(row, theta, strict=True)]
    residual = Fraction(label) - sum(fitted)
    scale = max(abs(Fraction(label)), *(abs(part) for part in fitted))
    long = np.max(np.abs(row)) > 1e49 and not np.any(theta)
    return abs(residual) > scale / 10**6 and not long


def test_the_smallest_case_that_moved_an_output_by_1e128():
    rows, labels = [[1e-170, 0.0], [0.0, 0.0]], [1e300, 0.0]
    for screening in (True, False):
        moved = full_batch_dpgd(
            ArraySamples(rows, labels),
            clip_norm=1.0,
            step_size=0.5,
            gradient_noise_std=0.0,
            steps=1,
            rng=np.random.default_rng(0),
            screening=screening,
        ).iterates
        assert_allclose(moved.ravel(), [0.25, 0.0], rtol=1e-12)


def test_one_pass_steps_are_bounded_for_every_finite_row(settings):
    """A step of η on a gradient clipped to C moves at most η C, and later rows contract."""
    for row in ROWS:
        for label in LABELS:
            for other in ([0.0, 0.0], [3.0, 1.0], [1e300, 0.0]):
                moved = one_pass(np.array([row, other]), [label, 0.0], settings)
                assert np.all(np.linalg.norm(moved, axis=1) <= 0.05 * (1 + 1e-12))


def test_one_pass_short_and_long_rows_move_what_real_numbers_say(settings):
    cases = [
        ([1e-170, 0.0], 1e300, 0.05),
        ([1e-170, 0.0], 1e169, 0.01),
        ([1e-165, 0.0], 1e109, 1e-57),
        ([1e200, 0.0], 1.0, 0.0),
    ]
    for row, label, expected in cases:
        moved = one_pass([row], [label], settings)
        assert moved[-1, 0] == pytest.approx(expected, rel=1e-9, abs=1e-90)


def test_a_row_too_long_to_move_anything_leaves_later_steps_alone(settings):
    """Its products with other rows are infinite or no numbers before it is rescaled."""
    for wild in ([1e300, 1e300], [-1e300, 1e300]):
        moved = one_pass([wild, [1e20, 0.0]], [1.0, 1.0], settings)
        # The second step is at the cap: 2/|x|² times a gradient of 0.5.
        assert_allclose(moved[-1], [1e-40, 0.0], rtol=1e-9, atol=1e-80)


def test_the_cap_makes_every_step_a_contraction():
    """Two parameter vectors that meet the same row of any length do not move apart.

    Without the cap 2/|x|² the second row of length 10 would stretch their gap by 1 - 0.1 · 100 = 9,
    with a cap of 4/|x|² by 3.
    """
    rows = np.array([[1e-2, 0.0], [10.0, 0.0]])
    ends = [one_pass(rows, [label, 0.0], clip_norm=1e3)[0, 0] for label in (1e2, -1e2)]
    first_gap = 2 * 0.1 * 1e-2 * 1e2
    # At the cap the step reflects exactly: the gap keeps its size and changes its sign.
    assert ends[0] - ends[1] == pytest.approx(-first_gap, rel=1e-3)


@pytest.mark.parametrize("path", ["risk_path", "isotropic_risk_path"])
def test_the_cap_holds_along_risk_paths(path):
    """Without label noise the error cannot grow, however large the step is."""
    mechanism = one_pass_dpgd.Mechanism(
        np.full(60, 50.0), np.zeros(60), [1.0], [1e6], Budget(np.inf)
    )
    rng = np.random.Generator(np.random.SFC64(3))
    record = np.arange(61)
    if path == "risk_path":
        model = LinearModel.even_target(np.ones(5), label_noise_std=0.0)
        risk = one_pass_dpgd.risk_path(mechanism, model, rng, record=record)
    else:
        risk = one_pass_dpgd.isotropic_risk_path(
            mechanism, rng, dimension=5, target_norm=1.0, label_noise_std=0.0, record=record
        )
    # Every step is at the cap and reflects the error: its length stays. Half the cap would project
    # it away, twice the cap would stretch it.
    assert_allclose(risk, 0.5, rtol=1e-9)


def test_noisy_sgd_steps_are_bounded_for_every_finite_row():
    start, options = [0.1, 0.2], {"step_sizes": [0.1], "clip_norms": [0.5]}
    for ridge in (0.0, 0.3):
        for row in ROWS:
            for label in LABELS:
                run = noisy_sgd_of(row[None], [label], initial=start, ridge=ridge, **options)
                assert np.linalg.norm(run.iterate[0, 0] - start) <= 0.05 * (1 + 1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["features", "labels"])
def test_values_that_are_not_finite_are_refused(bad, where):
    features, labels = np.ones((3, 2)), np.ones(3)
    (features if where == "features" else labels).flat[1] = bad
    for call in (ArraySamples, one_pass, noisy_sgd_of):
        with pytest.raises(ValueError, match=f"{where} must be finite"):
            call(features, labels)


@pytest.mark.parametrize("noise", [-1.0, np.nan, 0.0, 1e-200])
def test_noise_that_is_not_there_keeps_no_promise(noise):
    with pytest.raises(ValueError, match="noise_shape must"):
        one_pass_dpgd.Mechanism(
            np.ones(3), np.full(3, noise), [1.0], [1.0], Budget.half_square(1.0)
        )


def test_a_screening_serves_its_own_samples_and_bounds_only(rng):
    samples = ArraySamples(rng.standard_normal((50, 2)), rng.standard_normal(50))
    others = ArraySamples(rng.standard_normal((50, 2)), rng.standard_normal(50))
    run = {"step_size": 0.3, "gradient_noise_std": 0.01, "steps": 3}
    screened = screen(samples, clip_norm=50.0, **run, lanes=1, start=np.zeros(2))
    assert screened is not None
    options = {**run, "rng": rng, "screening": screened}
    for bound in (50.0, 60.0):
        full_batch_dpgd(samples, clip_norm=bound, **options)
    with pytest.raises(ValueError, match="screening must be of these samples"):
        full_batch_dpgd(others, clip_norm=60.0, **options)
    with pytest.raises(ValueError, match="screening must have a clip norm"):
        full_batch_dpgd(samples, clip_norm=[60.0, 1.0], **options)


def test_rescaled_rows_are_changed_one_by_one():
    """And norms keep their digits."""
    rows = np.array(ROWS)
    labels = np.resize(LABELS, len(rows))
    together = rescaled(Chunk(rows, labels, row_norms(rows)))
    for index in range(len(rows)):
        row, label = rows[index : index + 1], labels[index : index + 1]
        alone = rescaled(Chunk(row, label, row_norms(row)))
        assert_array_equal(alone.features[0], together.features[index])
        assert alone.labels[0] == together.labels[index]
        exact = float(np.max(np.abs(row))) * float(np.sqrt(np.count_nonzero(row)))
        assert row_norms(row)[0] == pytest.approx(exact, rel=1e-14)
    assert_allclose(np.linalg.norm(together.features, axis=1), together.norms)


@pytest.mark.parametrize("start", [1e8, 1e12])
def test_noisy_sgd_clips_gradients_whose_parts_cancel(start):
    """A label that almost cancels the penalty: the gradient is 5, its parts are as far out as x.

    From squares of the parts alone its norm would be rounding's.
    """
    for gap in (0.5, 5.0, 1000.0):
        options = {"initial": [start, 0.0], "clip_norms": [1.0], "ridge": 1.0}
        runs = noisy_sgd_of([[1.0, 0.0]], [2 * start - gap], **options)
        # Up to the last place of the iterate, which a step of 1 is small beside.
        moved = start - runs.iterate[0, 0, 0]
        assert abs(moved) <= 1.0 + 2 * np.spacing(start)
        if gap >= 5.0:
            assert moved == pytest.approx(1.0, abs=2 * np.spacing(start))
            assert runs.clipped_fraction.non_private[0, 0] == 1.0
