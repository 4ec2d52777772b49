"""Where recipes lie, and under which key their draws are seeded, whatever the shards."""

from __future__ import annotations

import numpy as np

from reproduction.engine import stages
from reproduction.engine.registry import STUDIES, Recipe
from reproduction.engine.trials import Trials, normals, shard_of, side_by_side


def test_an_experiment_draws_with_the_key_that_it_was_first_drawn_with(monkeypatch):
    def simulate(parameters, trials):
        import xarray as xr

        return xr.Dataset({"draw": ("trial", [each.rng.standard_normal() for each in trials])})

    for recipe, key in (
        (Recipe(STUDIES, "audits"), "privreg"),
        (Recipe("lin2025", "scaling"), "lin2025"),
    ):
        monkeypatch.setattr(recipe.module, "simulate", simulate)
        path = f"{recipe.paper}/{recipe.name}"
        found = stages.simulated(recipe, None, {}, (path, 5, 4), (1, 2))
        own = Trials(5, f"{key}/{recipe.name}", 2, 4)
        np.testing.assert_array_equal(found.draw, [each.rng.standard_normal() for each in own])
        np.testing.assert_array_equal(found.trial, [2, 3])
        assert found.attrs == {"seed": 5}


def test_trials_do_not_depend_on_shards():
    whole = [trial.rng.standard_normal() for trial in Trials(1, "paper/experiment", 0, 7)]
    parts = [
        trial.rng.standard_normal()
        for index in range(3)
        for trial in shard_of(1, "paper/experiment", 7, index=index, count=3)
    ]
    assert whole == parts
    assert len(set(whole)) == 7
    other = next(iter(Trials(1, "paper/other", 0, 1))).rng.standard_normal()
    assert other not in whole


def test_normals_side_by_side_are_those_of_each_trial_alone():
    trials = Trials(7, "paper/experiment", 2, 7)
    together = [np.array([*normals(some, 900, 41)]) for some in side_by_side(trials, 3)]
    assert [block.shape for block in together] == [(900, 3, 41), (900, 2, 41)]
    for place, trial in enumerate(trials):
        alone = trial.rng.standard_normal((900, 41))
        np.testing.assert_array_equal(together[place // 3][:, place % 3], alone)
