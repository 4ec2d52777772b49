"""The recipes of the sample sizes and of tables, at a small scale."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from reproduction.engine.trials import Trials
from reproduction.papers.bombari2025.experiments import sample_sizes

SIZES = {
    "dimension": 10,
    "sample_sizes": [200, 1000],
    "budget": {"half_square": 1.0},
    "clip_constant": 0.3,
    "label_noise_std": 0.3,
    "exponents": [0.0, 0.5],
    "spectra": ["uniform"],
}


def trials(count: int) -> Trials:
    return Trials(5, "bombari2025/test", 0, count)


@pytest.fixture(scope="module")
def tuned() -> tuple[sample_sizes.Parameters, xr.Dataset]:
    parameters = sample_sizes.Parameters.model_validate(SIZES)
    return parameters, sample_sizes.theory(parameters)


def test_tuned_runs_follow_the_prediction(tuned):
    parameters, theory = tuned
    simulation = sample_sizes.simulate(parameters, trials(40), theory)
    simulation = simulation.assign_coords(trial=np.arange(40))
    summary = sample_sizes.summarise(parameters, simulation, theory)
    distance = summary.prediction_distance.values
    error = summary.prediction_distance_standard_error.values
    # Runs deviate by the Monte-Carlo error and by order 1 / d.
    assert np.all(np.abs(distance) < 4 * error + 2 / parameters.dimension)
    assert np.any(np.abs(distance + np.log(1.5)) > 4 * error + 2 / parameters.dimension)
    np.testing.assert_array_equal(summary.ratio.values[:, 0], 1.0)


def test_schedules_that_share_draws_are_compared_by_their_differences(tuned):
    parameters, theory = tuned
    drawn = np.exp(0.5 * np.random.default_rng(1).standard_normal((30, 1, 2)))
    # A schedule's risk is a multiple of another's in every trial, whatever the trial draws.
    multiples = np.array([1.0, 0.7, 0.4])[:, None]
    risk = theory.risk.transpose("spectrum", "schedule", "sample_size").copy()
    risk = (risk * 0 + 1).expand_dims(trial=np.arange(30)) * (drawn * multiples)[:, None]
    simulation = risk.transpose("trial", "spectrum", "sample_size", "schedule").to_dataset()
    summary = sample_sizes.summarise(parameters, simulation, theory)
    np.testing.assert_allclose(summary.ratio[0], np.tile(multiples, 2), rtol=1e-12)
    for name in ("ratio", "harmonic_excess"):
        np.testing.assert_allclose(summary[f"{name}_standard_error"], 0, atol=1e-12)
    # Sample sizes share none.
    relative = drawn[:, 0].std(axis=0, ddof=1) / drawn[:, 0].mean(axis=0) / np.sqrt(30)
    np.testing.assert_allclose(
        summary.largest_step_standard_error[0], np.full(3, np.hypot(*relative)), rtol=1e-12
    )


def table(rows: int = 600, dimension: int = 5) -> xr.Dataset:
    from privreg.data.tables import Table
    from reproduction.engine.artifacts import to_dataset

    rng = np.random.Generator(np.random.SFC64(2))
    features = rng.standard_normal((rows, dimension))
    labels = features @ np.ones(dimension) + 0.3 * rng.standard_normal(rows)
    return to_dataset(
        Table(
            name="california_housing",
            features=features,
            labels=labels,
            feature_names=tuple("abcde"[:dimension]),
            official_test=np.zeros(rows, dtype=bool),
            source="drawn for the test",
        )
    )


def test_features_that_are_always_zero_cost_nothing_and_count():
    from privreg.data import tables
    from reproduction.engine.artifacts import from_dataset
    from reproduction.papers.bombari2025.experiments import table_heat_maps

    options = {
        "dataset": "california_housing",
        "train": [50, 100],
        "normalisation": 100,
        "validation": 200,
        "budget": {"half_square": 0.5},
        "exponents": [0.0],
        "initial_rates": {"low": 0.1, "high": 1.0, "count": 2},
        "clip_constants": {"low": 0.1, "high": 1.0, "count": 2},
    }
    parameters = table_heat_maps.Parameters.model_validate(options)
    data = table(dimension=5)
    data["features"] = data.features.where(np.isin(np.arange(5), [0, 2, 4]), 7.0)
    (ready, _), (trial,) = next(parameters.standardised(trials(1), data)), trials(1)
    split = tables.split(from_dataset(data), **parameters.sizes(data), rng=trial.rng)
    every = tables.standardise(split, from_dataset(data))
    assert len(ready.constant_features) == 5
    np.testing.assert_array_equal(every.train_features[:, [1, 3]], 0)
    np.testing.assert_array_equal(ready.train_features, every.train_features[:, [0, 2, 4]])
    np.testing.assert_array_equal(
        ready.validation_features, every.validation_features[:, [0, 2, 4]]
    )


def test_medians_have_the_error_of_their_law():
    from reproduction.papers.bombari2025.experiments import table_heat_maps

    drawn = np.random.default_rng(2).standard_normal((400, 240))
    medians, errors = np.transpose([table_heat_maps._median(list(each)) for each in drawn])
    # Of a normal law: sqrt(pi / 2) deviations of the mean; half and twice that are far.
    assert np.isclose(np.mean(errors) * np.sqrt(240), np.sqrt(np.pi / 2), rtol=0.05)
    assert np.isclose(np.std(medians), np.mean(errors), rtol=0.1)
