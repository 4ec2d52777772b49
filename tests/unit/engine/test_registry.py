"""Where recipes lie, of papers and of studies, and under which key their draws are seeded."""

from __future__ import annotations

import pytest

from reproduction.engine import stages
from reproduction.engine.registry import (
    STUDIES,
    Recipe,
    seed_key,
)
from reproduction.engine.trials import Trials, shard_of


def test_an_experiment_that_moved_keeps_the_key_that_seeds_its_draws():
    assert seed_key("lin2025/risk_paths") == "lin2025/risk_paths"
    assert seed_key("studies/prediction") == "privreg/prediction"


def test_a_job_draws_with_that_key(monkeypatch, tmp_path):
    seen = {}

    def simulate(parameters, trials):
        seen["first"] = next(iter(trials)).rng.standard_normal()
        raise ValueError("enough is seen")

    recipe = Recipe(STUDIES, "audits")
    monkeypatch.setattr(recipe.module, "simulate", simulate)
    with pytest.raises(ValueError, match="enough is seen"):
        stages.simulate(
            f"{STUDIES}/audits",
            recipe=None,
            parameters={"promised_mu": 3.0, "confidence": 0.999},
            seed=5,
            trials=4,
            shard=(1, 2),
            artifacts={},
            output=tmp_path / "1.nc",
        )
    before = shard_of(5, "privreg/audits", 4, index=1, count=2)
    assert before == Trials(5, "privreg/audits", 2, 4)
    assert seen["first"] == next(iter(before)).rng.standard_normal()
