"""The recipes of choquettechoo2024: mechanisms by dense matrices, shards, the drawn slopes."""

import numpy as np
import pytest
from scipy.linalg import circulant, sqrtm

from reproduction.experiment.trials import shard_of
from reproduction.papers.choquettechoo2024 import mechanisms
from reproduction.papers.choquettechoo2024.experiments import mean_estimation, regression_scaling
from reproduction.papers.choquettechoo2024.mechanisms import (
    MECHANISMS,
    Participation,
    prefix_errors,
    tuned_damping,
)
from reproduction.papers.choquettechoo2024.regression import Setting, damping, exact_risk, power_law

EPOCHS = Participation(steps=24, participations=3, separation=8)
ONCE = Participation(steps=24, participations=1, separation=1)


@pytest.mark.parametrize("setting", [ONCE, EPOCHS])
def test_fft_mechanism_equals_its_matrices(setting):
    steps = setting.steps
    ones = np.concatenate([np.ones(steps), np.zeros(steps)])
    root = sqrtm(circulant(ones).astype(complex) + 0j)
    np.testing.assert_allclose(root @ root, circulant(ones), atol=1e-6)
    encoder, decoder = root[:, :steps], root[:steps]
    np.testing.assert_allclose(decoder @ encoder, np.tril(np.ones((steps, steps))), atol=1e-6)
    columns = encoder[:, :: setting.separation] if setting.participations > 1 else encoder[:, :1]
    gram = np.abs(columns.conj().T @ columns)
    expected = np.sqrt(gram.sum()) * np.linalg.norm(decoder[0])
    found = mechanisms._fft(setting, 1).errors
    assert found.mean == pytest.approx(expected, rel=1e-5)
    assert found.mean == found.largest


@pytest.mark.parametrize("setting", [ONCE, EPOCHS])
def test_no_mechanism_beats_the_dense_optimum_and_damping_helps(setting):
    errors = {name: prefix_errors(name, setting).errors.mean for name in MECHANISMS}
    best = errors.pop("multi_epoch")
    assert all(best <= error * (1 + 1e-3) for error in errors.values())
    assert errors["nu_dp_ftrl"] <= errors["optimal_cc"]
    assert errors["nu_dp_ftrl"] < errors["dp_sgd"]
    assert 0 < tuned_damping(setting) < 1


def test_restarts_of_the_fft_mechanism_are_block_diagonal():
    stretches = 3
    length = EPOCHS.steps // stretches
    root = sqrtm(circulant(np.concatenate([np.ones(length), np.zeros(length)])).astype(complex))
    encoder, decoder = np.linalg.norm(root[:, 0]), np.linalg.norm(root[0])
    # One visit a stretch: columns of different stretches do not overlap.
    before = np.repeat(np.arange(stretches), length)
    expected = encoder * np.sqrt(stretches) * decoder * np.sqrt(np.mean(before + 1))
    assert mechanisms._fft(EPOCHS, stretches).errors.mean == pytest.approx(expected, rel=1e-5)


def test_restarts_help_a_baseline_or_are_not_made():
    for name in ("tree_aggregation", "optimal_cc", "full_honaker", "fft"):
        best = prefix_errors(name, EPOCHS)
        assert best.stretches in (1, 3)
        assert best.errors.mean <= mechanisms._RESTARTED[name](EPOCHS, 1).errors.mean
        assert prefix_errors(name, ONCE).stretches == 1


def scaling(**changes):
    values = {
        "varied": "dimension",
        "values": [2, 4],
        "dimension": 4,
        "decay": 1.0,
        "step_size": 0.1,
        "rho": 1.0,
        "burn_in_memories": 1,
        "averaged_memories": 1,
    }
    return regression_scaling.Parameters(**(values | changes))


def test_shards_change_nothing():
    def run(index, count):
        trials = shard_of(3, "choquettechoo2024/scaling", 4, index=index, count=count)
        return regression_scaling.simulate(scaling(), trials).risk.values

    np.testing.assert_array_equal(run(0, 1), np.concatenate([run(0, 2), run(1, 2)]))


def test_slopes_are_those_of_the_exact_risk():
    steps = [0.02, 0.04, 0.08]
    found = regression_scaling.theory(scaling(varied="step_size", values=steps, dimension=16))
    risk = [exact_risk(Setting(power_law(16, 1.0), eta), "noisy_ftrl", rho=1.0) for eta in steps]
    slope = np.polyfit(np.log(steps), np.log(risk), 1)[0]
    assert found.exact_slope.sel(algorithm="noisy_ftrl") == pytest.approx(slope, rel=1e-12)
    assert damping(Setting(power_law(16, 1.0), 0.02)) == pytest.approx(0.02 / 16)


def test_risk_is_in_proportion_to_the_noise_and_not_to_the_labels():
    setting = Setting(power_law(8, 1.0), 0.05)
    for name in ("noisy_sgd", "noisy_ftrl"):
        full, quarter = (exact_risk(setting, name, rho=rho) for rho in (1.0, 4.0))
        assert full == pytest.approx(4 * quarter, rel=1e-12)


def test_a_damping_other_than_the_step_size_is_worse():
    parameters = mean_estimation.Parameters(
        step_sizes={"low": 0.1, "high": 1.0, "count": 3},
        shown_step_sizes=[0.1],
        coefficients=10,
        frequencies=5,
        rho=0.5,
        sample_std=0.0,
        damping_factors=[0.5, 2.0],
        perturbations=3,
        memories=20,
    )
    theory = mean_estimation.theory(parameters)
    assert np.all(theory.other_over_optimal > 1)
    assert np.all(theory.perturbed_over_optimal > 1)
