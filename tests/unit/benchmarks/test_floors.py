"""Floors of the largest jobs: draws are counted as made, formulas fit the recipes as they are."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from privreg.noise.normals import FEWEST, standard_normal
from reproduction.pipeline.costs import merged
from reproduction.pipeline.plan import Plan


@pytest.fixture(scope="module")
def floors():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
        yield importlib.import_module("floors")


def test_normals_take_the_stated_numbers_however_they_are_drawn(floors):
    original, size = np.random.SFC64, 4 * FEWEST
    with floors.counted() as numbers:
        rng = np.random.Generator(np.random.SFC64(0))
        counts = [numbers()] + [numbers() for _ in range(size) if np.isfinite(rng.normal())]
        one_by_one = np.diff(counts)
        standard_normal(np.random.Generator(np.random.SFC64(0)), size)
        assert numbers() == 2 * one_by_one.sum()
    error = one_by_one.std(ddof=1) / size**0.5
    assert abs(one_by_one.mean() - floors.NUMBERS_A_NORMAL) < 4 * error < 0.01
    assert np.random.SFC64 is original


def test_formulas_are_of_parameters_that_the_recipes_have(floors):
    declared, plan = sys.modules["declared_work"], Plan(merged(), checked=False)
    for formulas in (declared.OPERATIONS, declared.BYTES, declared.DRAWS):
        for key, formula in formulas.items():
            paper, name = key.split("/")[1:]
            experiment = plan.experiment(paper, name)
            parameters = plan.recipe(paper, name).parameters(experiment.parameters, name)
            one, three = (formula(parameters, trials) for trials in (1, 3))
            # Work that trials share, such as tuning, does not grow with them.
            grows = not key.startswith("theory")
            assert 0 < one < three <= 3 * one if grows else one == three > 0
