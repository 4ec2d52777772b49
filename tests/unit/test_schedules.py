"""Schedules, the noise that they imply and the budget that it spends."""

import numpy as np
import pytest

from privreg.privacy.budget import one_pass_zcdp_root
from privreg.schedules import Harmonic, Polynomial, noise_multipliers, rate, step_shape

SCHEDULES = [Polynomial(2.0, a) for a in (0.0, 0.5, 1.0, 2.0)] + [Harmonic(2.0, 0.03)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_used_sample_spends_the_whole_budget(schedule):
    steps = 2.0 * step_shape(schedule, 500)
    noise = noise_multipliers(steps, zcdp_root=0.7)
    for k in np.flatnonzero(steps > 0):
        alone = np.where(np.arange(500) == k, steps, 0.0)
        assert one_pass_zcdp_root(alone, noise) == pytest.approx(0.7, rel=1e-10)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_total_noise_telescopes(schedule):
    steps = step_shape(schedule, 400)
    noise = noise_multipliers(steps, zcdp_root=0.3)
    assert np.sum(noise**2) == pytest.approx(steps[0] ** 2 / 0.09, rel=1e-12)


def test_output_perturbation_adds_all_noise_at_the_end():
    noise = noise_multipliers(step_shape(Polynomial(1.0, 0.0), 50), zcdp_root=0.2)
    assert np.all(noise[:-1] == 0)
    assert noise[-1] == pytest.approx(1 / (50 * 0.2))


def test_square_root_schedule_has_constant_noise():
    noise = noise_multipliers(step_shape(Polynomial(1.0, 0.5), 50), zcdp_root=0.2)
    np.testing.assert_allclose(noise[:-1], 50**-1.5 / 0.2, rtol=1e-12)
    assert noise[-1] == 0


def test_no_noise_reveals_everything():
    steps = np.ones(3)
    assert one_pass_zcdp_root(steps, np.zeros(3)) == np.inf
    assert one_pass_zcdp_root(steps, noise_multipliers(steps, zcdp_root=np.inf)) == np.inf


def test_halving_the_noise_doubles_the_loss():
    steps = step_shape(Polynomial(1.0, 1.0), 20)
    noise = noise_multipliers(steps, zcdp_root=1.0)
    assert one_pass_zcdp_root(steps, noise / 2) == pytest.approx(2.0)


def test_increasing_steps_are_refused():
    with pytest.raises(ValueError, match="step_sizes must not increase"):
        noise_multipliers([1.0, 2.0], zcdp_root=1.0)
    with pytest.raises(ValueError, match=r"zcdp_root must.*0\.0"):
        noise_multipliers([1.0], zcdp_root=0.0)


def test_rate_broadcasts_amplitudes_over_times():
    found = rate(Harmonic(np.array([1.0, 2.0]), 0.5), np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(found, [[2, 1, 2 / 3], [4, 2, 4 / 3]])
