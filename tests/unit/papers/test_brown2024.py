"""The recipes of brown2024: data, crossings and constructions, against exact values."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
from privreg.algorithms.samples import moments
from reproduction.engine.trials import Trial, shard_of
from reproduction.papers.brown2024 import setting
from reproduction.papers.brown2024.experiments import clipping_tradeoff, coverage, sample_sizes


def stream(seed=0):
    return np.random.Generator(np.random.SFC64(seed))


def sizes(**changes):
    values = {
        "dimension": 10,
        "sample_sizes": [1000, 100_000],
        "budget": {"zcdp": 0.015},
        "steps": [20, 30],
        "step_size": 0.25,
        "clip_constant": 5.0,
    }
    return sample_sizes.Parameters(**(values | changes))


def intervals(**changes):
    values = {
        "dimension": 4,
        "sample_size": 2000,
        "budget": {"zcdp": 0.5},
        "gradients": [60, 300],
        "step_size": 0.25,
        "clip_constant": 5.0,
        "runs": 3,
    }
    return coverage.Parameters(**(values | changes))


def test_anisotropic_covariance_has_its_spectrum_and_no_preferred_direction():
    rng = stream()
    roots = [setting.covariance_root(4, rng) for _ in range(4000)]
    covariances = np.array([root @ root.T for root in roots])
    spectra = np.linalg.eigvalsh(covariances)
    assert np.allclose(spectra[:, [0, -1]], [1, 2])
    # A uniform rotation makes each diagonal entry the mean eigenvalue, each other entry 0.
    mean, error = covariances.mean(axis=0), covariances.std(axis=0) / np.sqrt(len(covariances))
    assert np.all(np.abs(mean - 1.5 * np.eye(4)) < 4.5 * error)
    assert np.trace(mean) == pytest.approx(6, abs=0.02)
    assert setting.covariance_root(1, rng).shape == (1, 1)


def test_crossing_solves_its_quadratic_without_bias_and_is_later_with_it():
    parameters = sizes()
    zero = np.zeros(2)
    found = sample_sizes.law_crossing(parameters, False, zero)
    # p (ηλ₁)² g / n² = p / (n - p - 1)
    gain = (1 - 0.75 ** (2 * np.array([20, 30]))) / (1 - 0.75**2)
    square = (0.25 * parameters.gradient_noise_std(1)) ** 2 * gain
    for value, coefficient in zip(found, square, strict=True):
        exact = max(np.roots([1, -coefficient, coefficient * 11]).real)
        assert value == pytest.approx(exact, rel=1e-5)
    whole = sample_sizes.law_crossing(parameters, True, zero)
    assert whole[0] > 1.1 * found[0]
    assert whole[1] == pytest.approx(found[1], rel=1e-3)
    # Half the relative error is reached at a quarter of the size, up to p + 1 samples.
    halved = sample_sizes.law_crossing(parameters, False, zero - np.log(2))
    assert halved == pytest.approx(found / 4, rel=1e-3)
    plateau = sizes(steps=[2], budget={"zcdp": 1e9})
    assert np.isinf(sample_sizes.law_crossing(plateau, True, np.zeros(1))[0])


def test_simulated_crossing_of_exact_errors_is_the_exact_one():
    parameters = sizes(sample_sizes=[50_000, 100_000, 200_000])
    grid = np.asarray(parameters.sample_sizes, dtype=float)
    ones = np.ones((5, 1, 1))
    whole, noise = (
        np.sqrt(sample_sizes.privacy_square(parameters, grid, bias)) * ones
        for bias in (True, False)
    )
    sampling = np.sqrt(sample_sizes.sampling_square(parameters, grid)) * ones[:, 0]
    dataset = xr.Dataset(
        {
            "privacy_error": (("trial", "steps", "sample_size"), whole),
            "noise_error": (("trial", "steps", "sample_size"), noise),
            "sampling_error": (("trial", "sample_size"), sampling),
        }
    ).transpose("sample_size", "trial", "steps")
    for kind, bias in sample_sizes.KINDS.items():
        found, error = sample_sizes.simulated_crossing(parameters, dataset, kind)
        exact = sample_sizes.law_crossing(parameters, bias, np.zeros(2))
        assert found == pytest.approx(exact, rel=1e-9)
        assert np.all(error < 1)


def test_held_and_streamed_data_follow_the_same_law(monkeypatch):
    parameters = sizes(dimension=5, sample_sizes=[4000, 8000], budget={"zcdp": 0.5})
    for limit in (1 << 24, 1):
        monkeypatch.setattr(sample_sizes, "HELD_NUMBERS", limit)
        trial = Trial(0, stream(limit))
        squares = []
        for _ in range(60):
            found = sample_sizes.run(parameters, trial, 4000)
            squares.append(np.square(found["privacy_error"]) / found["law_squared_error"])
        ratio = np.array(squares)
        assert np.all(np.abs(ratio.mean(0) - 1) < 4.5 * ratio.std(0) / np.sqrt(60))


def test_intervals_agree_with_their_exact_coverage_and_length():
    parameters = intervals(runs=150)
    simulation = coverage.simulate(parameters, shard_of(2, "x", 2, index=0, count=1))
    found = coverage.intervals(parameters, simulation)
    assert found.trial.size * parameters.runs == 300
    for name in coverage.ALONG:
        for quantity, target in (("coverage_gap", 0), ("length_ratio", 1)):
            gap = found[f"{name}_{quantity}"] - target
            assert np.all(np.abs(gap) < 4.5 * found[f"{name}_{quantity}_standard_error"])
    # Short blocks are correlated: their coverage is told apart from the nominal one.
    short = found.batch_means_coverage[0]
    assert short + 4 * found.batch_means_coverage_standard_error[0] < parameters.level


def test_literal_coverage_of_final_iterates_is_a_noncentral_t():
    parameters = intervals(dimension=1, sample_size=1000, literal_steps=[5, 12, 15])
    found = coverage.literal(parameters, "independent_runs")["literal_coverage"]
    for value, steps in zip(found, (5, 12, 15), strict=True):
        noise = parameters.gradient_noise_std(parameters.budget.rho, 10 * steps)
        spread = 0.25 * noise * np.sqrt((1 - 0.75 ** (2 * steps)) / (1 - 0.75**2))
        shift = 0.75**steps * np.sqrt(10) / spread
        quantile = stats.t.ppf(0.975, 9)
        exact = stats.nct.cdf(quantile, 9, shift) - stats.nct.sf(quantile, 9, -shift)
        assert value == pytest.approx(exact, abs=1e-6)


def test_squared_bias_is_free_of_the_runs_variance():
    parameters = clipping_tradeoff.Parameters(
        dimension=3,
        sample_size=300,
        budget={"zcdp": 0.05},
        steps=[40],
        step_size=0.25,
        clip_norms={"low": 30, "high": 60, "count": 3},
        runs=5,
    )
    found = clipping_tradeoff.simulate(parameters, shard_of(5, "x", 150, index=0, count=1))
    # Without clipping the law's bias is 0.75^40 of the start: nothing.
    bias = found.squared_bias.sel(clip_norm=60.0).values[:, 0]
    assert abs(bias.mean()) < 4.5 * bias.std() / np.sqrt(len(bias))
    plug_in = bias + found.variance.sel(clip_norm=60.0).values[:, 0] / parameters.runs
    assert plug_in.mean() > 4.5 * plug_in.std() / np.sqrt(len(bias))


def test_minimiser_of_the_clipped_loss_is_least_squares_without_clipping_and_not_with_it():
    data, _ = setting.draw(300, 4, stream())
    gram, moment = moments(data)
    least_squares = np.linalg.solve(gram, moment)
    assert setting.clipped_minimiser(data, 1e3) == pytest.approx(least_squares)
    found = setting.clipped_minimiser(data, 1.0)
    assert np.linalg.norm(found - least_squares) > 0.01
    descent = full_batch_dpgd(
        data, clip_norm=1.0, step_size=0.5, gradient_noise_std=0.0, steps=600, rng=stream()
    )
    assert descent.iterates[0, -1] == pytest.approx(found, abs=1e-9)
