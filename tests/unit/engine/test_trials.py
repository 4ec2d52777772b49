"""Loops that step several trials at once."""

from __future__ import annotations

import numpy as np

from reproduction.engine.trials import Trials, normals, side_by_side


def test_normals_side_by_side_are_those_of_each_trial_alone() -> None:
    trials = Trials(7, "paper/experiment", 2, 7)
    together = [np.array([*normals(some, 900, 41)]) for some in side_by_side(trials, 3)]
    assert [block.shape for block in together] == [(900, 3, 41), (900, 2, 41)]
    for place, trial in enumerate(trials):
        alone = trial.rng.standard_normal((900, 41))
        np.testing.assert_array_equal(together[place // 3][:, place % 3], alone)
