"""One-pass DP-GD: kernels against a plain loop, against each other in law, and the budget."""

import numpy as np
import pytest
from relations import generator

from privreg.algorithms import one_pass_dpgd
from privreg.models import LinearModel
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic, Polynomial

SCHEDULES = [Polynomial(3.0, 0.0), Polynomial(3.0, 0.5), Harmonic(0.5, 0.1)]

DEFAULT = Budget.half_square(0.5)


def plain_run(mechanism, setting, features, labels, directions):
    """Algorithm 1, line by line."""
    amplitude, norm = mechanism.amplitude[setting], mechanism.clip_norm[setting]
    theta = np.zeros(features.shape[1])
    for k, (x, y) in enumerate(zip(features, labels, strict=True)):
        gradient = x * (x @ theta - y)
        clipped = gradient * min(1.0, norm / np.linalg.norm(gradient))
        step = min(amplitude * mechanism.step_shape[k], 2 / (x @ x))
        sigma = amplitude * mechanism.noise_shape[k]
        theta = theta - step * clipped + 2 * norm * sigma * directions[k]
    return theta


def mechanism_for(schedule, sample_size, dimension, clip_constant=(0.3, 2.0), budget=DEFAULT):
    return one_pass_dpgd.Mechanism.from_schedule(
        schedule,
        sample_size=sample_size,
        dimension=dimension,
        budget=budget,
        clip_constant=clip_constant,
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fit_is_algorithm_1(schedule):
    sample_size, dimension = 101, 7
    mechanism = mechanism_for(schedule, sample_size, dimension)
    model = LinearModel.even_target(np.linspace(0.2, 1.8, dimension), label_noise_std=0.5)
    features, labels = model.sample(sample_size, generator(1))
    found = one_pass_dpgd.fit(mechanism, features, labels, generator(2))
    # The same directions, drawn as `fit` draws them: only for blocks with noise.
    rng, directions = generator(2), np.zeros((sample_size, dimension))
    for start in range(0, sample_size, one_pass_dpgd.CHUNK):
        block = slice(start, start + one_pass_dpgd.CHUNK)
        if np.any(mechanism.noise_shape[block] > 0):
            directions[block] = rng.standard_normal(directions[block].shape)
    for setting in range(mechanism.settings):
        expected = plain_run(mechanism, setting, features, labels, directions)
        np.testing.assert_allclose(found[setting], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fit_of_one_setting_is_algorithm_1(schedule, monkeypatch):
    sample_size, dimension = 101, 7
    mechanism = mechanism_for(schedule, sample_size, dimension, clip_constant=0.3)
    model = LinearModel.even_target(np.linspace(0.2, 1.8, dimension), label_noise_std=0.5)
    features, labels = model.sample(sample_size, generator(1))
    labels[50] = 1e150
    rng, directions = generator(2), np.zeros((sample_size, dimension))
    for start in range(0, sample_size, 32):
        block = slice(start, start + 32)
        if np.any(mechanism.noise_shape[block] > 0):
            directions[block] = rng.standard_normal(directions[block].shape)
    expected = plain_run(mechanism, 0, features, labels, directions)
    # Blocks of 64 rows and the rest.
    monkeypatch.setattr(one_pass_dpgd, "ROWS_OF_ONE", 64)
    monkeypatch.setattr(one_pass_dpgd, "FEWEST", 300)
    for rows in (features, np.asfortranarray(features)):
        (found,) = one_pass_dpgd.fit(mechanism, rows, labels, generator(2))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_risk_path_is_algorithm_1(schedule):
    sample_size, dimension = 60, 5
    eigenvalues = np.linspace(0.5, 1.5, dimension)
    mechanism = mechanism_for(schedule, sample_size, dimension)
    model = LinearModel.even_target(eigenvalues, label_noise_std=0.5)
    found = one_pass_dpgd.risk_path(mechanism, model, generator(3), record=[0, sample_size])
    rng = generator(3)
    features, labels = np.empty((sample_size, dimension)), np.empty(sample_size)
    directions = np.zeros((sample_size, dimension))
    for k in range(sample_size):
        features[k] = rng.standard_normal(dimension) * np.sqrt(eigenvalues)
        labels[k] = features[k] @ model.target + 0.5 * rng.standard_normal()
        if mechanism.noise_shape[k] > 0:
            directions[k] = rng.standard_normal(dimension)
    np.testing.assert_allclose(found[:, 0], model.excess_risk(np.zeros(dimension)), rtol=1e-12)
    for setting in range(mechanism.settings):
        final = plain_run(mechanism, setting, features, labels, directions)
        assert found[setting, 1] == pytest.approx(float(model.excess_risk(final)), rel=1e-10)


@pytest.mark.parametrize("schedule", SCHEDULES[:2])
def test_isotropic_step_has_the_same_law(schedule):
    sample_size, dimension, runs = 150, 12, 1500
    mechanism = mechanism_for(
        schedule, sample_size, dimension, clip_constant=1.0, budget=Budget.half_square(1.0)
    )
    model = LinearModel.even_target(np.ones(dimension), label_noise_std=0.3)
    record = [20, sample_size]
    full = np.array(
        [
            one_pass_dpgd.risk_path(mechanism, model, generator(i), record=record)[0]
            for i in range(runs)
        ]
    )
    scalar = np.array(
        [
            one_pass_dpgd.isotropic_risk_path(
                mechanism,
                generator(10_000 + i),
                dimension=dimension,
                target_norm=1.0,
                label_noise_std=0.3,
                record=record,
            )[0]
            for i in range(runs)
        ]
    )

    def score(first, second):
        error = np.sqrt((first.var(axis=0) + second.var(axis=0)) / runs)
        return np.abs(first.mean(axis=0) - second.mean(axis=0)) / error

    assert np.all(score(full, scalar) < 4)
    # A comparison this sharp refuses risks off by a third either way.
    assert np.all(score(full, scalar * 2 / 3) > 4)
    assert np.all(score(full, scalar * 3 / 2) > 4)
    assert np.all(score(full**2, scalar**2) < 4)


def test_settings_share_draws_and_do_not_mix():
    model = LinearModel.even_target(np.ones(6), label_noise_std=0.3)
    both = one_pass_dpgd.risk_path(mechanism_for(SCHEDULES[1], 50, 6), model, generator(4))
    second = one_pass_dpgd.risk_path(
        mechanism_for(SCHEDULES[1], 50, 6, clip_constant=2.0), model, generator(4)
    )
    np.testing.assert_allclose(both[1], second[0], rtol=1e-12)


@pytest.mark.parametrize("noisy", [[], [1999], [40, 1100], range(2000)])
def test_one_setting_alone_draws_what_it_does_beside_others(noisy):
    """Whatever steps have noise: a chunk without any draws nothing."""
    rng = generator(6)
    features, labels = rng.standard_normal((2000, 3)), rng.standard_normal(2000)
    noise = np.zeros(2000)
    noise[list(noisy)] = 0.1
    alone, beside = (
        one_pass_dpgd.Mechanism(
            np.full(2000, 0.02), noise, np.ones(count), np.full(count, 0.5), Budget(np.inf)
        )
        for count in (1, 2)
    )
    found = one_pass_dpgd.fit(alone, features, labels, generator(7))
    expected = one_pass_dpgd.fit(beside, features, labels, generator(7))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-12)


def test_a_mechanism_over_its_budget_is_refused():
    good = mechanism_for(SCHEDULES[1], 50, 6)
    with pytest.raises(ValueError, match=r"got rho = 0\.195"):
        one_pass_dpgd.Mechanism(
            good.step_shape, good.noise_shape * 0.8, good.amplitude, good.clip_norm, good.budget
        )


def test_wrong_number_of_samples_is_named():
    with pytest.raises(ValueError, match=r"features must have shape \(50, any\)"):
        one_pass_dpgd.fit(
            mechanism_for(SCHEDULES[0], 50, 3), np.ones((49, 3)), np.ones(49), generator(0)
        )


def test_zero_samples_and_values_out_of_range():
    mechanism = mechanism_for(SCHEDULES[0], 4, 3)
    found = one_pass_dpgd.fit(mechanism, np.zeros((4, 3)), np.ones(4), generator(0))
    assert np.isfinite(found).all()
    with pytest.raises(ValueError, match=r"clip_constant must.*-1"):
        mechanism_for(SCHEDULES[0], 4, 3, clip_constant=-1.0)
    with pytest.raises(ValueError, match=r"dimension must.*2"):
        one_pass_dpgd.isotropic_risk_path(
            mechanism, generator(0), dimension=2, target_norm=1.0, label_noise_std=0.1
        )
