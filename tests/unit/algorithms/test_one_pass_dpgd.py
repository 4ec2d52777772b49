"""Mechanisms of one-pass DP-GD: the clip norm of a schedule, and the ends of their ranges."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.one_pass_dpgd import isotropic_risk_path
from privreg.algorithms.one_pass_mechanism import LARGEST, LARGEST_STEP, Mechanism
from privreg.privacy.budget import Budget
from privreg.schedules import Polynomial


@pytest.mark.parametrize("dimension", [1, 4, 100])
def test_the_clip_norm_is_the_constant_in_units_of_the_residual(dimension: int) -> None:
    mechanism = Mechanism.from_schedule(
        Polynomial(1.0, 0.5),
        sample_size=10,
        dimension=dimension,
        budget=Budget.zcdp(0.5),
        clip_constant=[0.3, 2.0],
    )
    np.testing.assert_allclose(mechanism.clip_norm, np.sqrt(dimension) * np.array([0.3, 2.0]))


@pytest.mark.parametrize(
    ("step", "noise", "amplitude", "clip_norm"),
    [(1.0, 0.0, 1e20, 1e11), (1e10, 0.0, 1e10, 1e11), (0.0, 1e10, 1e10, 1e11)],
)
def test_steps_that_leave_double_precision_are_refused(
    step: float, noise: float, amplitude: float, clip_norm: float
) -> None:
    assert LARGEST_STEP == 1e30
    for factor, fits in ((1.0, False), (0.01, True)):
        given = ([step], [noise], [factor * amplitude], [clip_norm], Budget(np.inf))
        if fits:
            Mechanism(*given)
        else:
            with pytest.raises(ValueError, match="amplitude must make steps of clipped gradients"):
                Mechanism(*given)


def test_the_smallest_amplitude_and_norm_are_taken() -> None:
    least = 1 / LARGEST
    mechanism = Mechanism([1.0], [0.0], [least], [least], Budget(np.inf))
    assert mechanism.amplitude[0] == mechanism.clip_norm[0] == least


def test_recorded_steps_are_in_order_and_may_repeat() -> None:
    mechanism = Mechanism(np.full(5, 0.1), np.zeros(5), [1.0], [1.0], Budget(np.inf))
    options = {"dimension": 3, "target_norm": 0.5, "label_noise_std": 0.1}

    def path(record: object) -> np.ndarray:
        return isotropic_risk_path(mechanism, np.random.default_rng(1), record=record, **options)

    every = path(np.arange(6))
    assert every[0, 0] == pytest.approx(0.125)
    np.testing.assert_array_equal(path([2, 2, 5]), every[:, [2, 2, 5]])
    for wrong in ([2, 1], [[1], [2]], [[2], [1]]):
        with pytest.raises(ValueError, match="record"):
            path(wrong)
