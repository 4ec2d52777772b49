"""Floors of the largest jobs: draws are counted as made, formulas fit the recipes as they are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from privreg.noise.normals import FEWEST, standard_normal
from reproduction.pipeline.costs import COSTS, merged
from reproduction.pipeline.plan import Plan
from reproduction.pipeline.prediction import read_costs

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def floors():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("floors")


@pytest.fixture(scope="module")
def declared(floors):
    return sys.modules["declared_work"]


def test_numbers_counted_are_those_drawn(floors):
    with floors.counted() as numbers:
        first, second = (np.random.Generator(np.random.SFC64(seed)) for seed in (0, 1))
        assert numbers() == 0
        first.random(1000)
        second.bit_generator.random_raw(77)
        assert numbers() == 1077


def test_normals_take_the_stated_numbers_however_they_are_drawn(floors):
    size = 4 * FEWEST
    with floors.counted() as numbers:
        rng = np.random.Generator(np.random.SFC64(0))
        counts = [numbers()] + [numbers() for _ in range(size) if np.isfinite(rng.normal())]
        one_by_one = np.diff(counts)
        assert one_by_one.size == size
        standard_normal(np.random.Generator(np.random.SFC64(0)), size)
        assert numbers() == 2 * one_by_one.sum()
    error = one_by_one.std(ddof=1) / size**0.5
    assert abs(one_by_one.mean() - floors.NUMBERS_A_NORMAL) < 4 * error < 0.01


def test_generator_is_given_back(floors):
    original = np.random.SFC64
    with floors.counted():
        assert np.random.SFC64 is not original
    assert np.random.SFC64 is original


def test_floor_sums_what_draws_operations_and_bytes_take(floors):
    rates = floors.Rates(normal=2.0, product=5.0, bandwidth=7.0)
    assert floors.Work(draws=3.0, operations=10.0, bytes=21.0).seconds(rates) == 6 + 2 + 3
    assert floors.Work(draws=3.0, operations=None, bytes=0.0).seconds(rates) is None


def test_formulas_are_of_parameters_that_the_recipes_have(declared):
    plan, measured = Plan(merged(), checked=False), read_costs(COSTS)
    for formulas in (declared.OPERATIONS, declared.BYTES, declared.DRAWS):
        for key, formula in formulas.items():
            paper, name = key.split("/")[1:]
            experiment = plan.experiment(paper, name)
            parameters = plan.recipe(paper, name).parameters(experiment.parameters, name)
            one, three = (formula(parameters, trials) for trials in (1, 3))
            # Work that trials share, such as tuning, does not grow with them.
            grows = not key.startswith("theory")
            assert 0 < one < three <= 3 * one if grows else one == three > 0
    assert set(declared.REASONS) <= set(measured)


def test_matrix_products_count_as_made(declared):
    """Operations of a table's heat map, by those of its products in the smallest case."""

    class Few:
        exponents, train, validation = [0.5], [2], 3
        clip_constants = initial_rates = type("Axis", (), {"count": 2})

    columns, settings = 5, 4
    prediction = update = 2 * columns
    found = declared._heat_maps(columns, Few, 1)
    assert found == settings * (2 * (prediction + update) + 3 * prediction)
