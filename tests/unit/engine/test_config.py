"""Configuration: what is wrong is said in one line, with the nearest valid name."""

import copy
import json
from pathlib import Path

import pytest
import yaml
from reproduction.pipeline.schema import schema

from reproduction.engine.parameters import ConfigError
from reproduction.engine.plan import Plan
from reproduction.engine.registry import known_keys, paper_files, recipes

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def merged():
    raw = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    for file in paper_files(raw):
        raw |= yaml.safe_load((ROOT / file).read_text())
    return raw


def changed(raw, path, value):
    raw = copy.deepcopy(raw)
    *parents, last = path.split(".")
    block = raw
    for key in parents:
        block = block[key]
    block[last] = value
    return raw


def plan(raw):
    return Plan(raw, ROOT / "config/claims")


def test_the_configuration_is_valid(merged):
    assert plan(merged).figures("brown2024")


TRAJECTORIES = "bombari2025.experiments.trajectories"


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        ("sead", 1, ["a key of config", "did you mean 'seed'"]),
        (
            "papers",
            ["bombary2025"],
            ["config.papers", "'bombary2025'", "did you mean 'bombari2025'"],
        ),
        (f"{TRAJECTORIES}.trails", 3, [TRAJECTORIES, "'trails'", "did you mean 'trials'"]),
        (f"{TRAJECTORIES}.shards", 61, [TRAJECTORIES, "at most trials = 60, got 61"]),
        (
            f"{TRAJECTORIES}.parameters.budget",
            {"half_square": 0.0},
            [f"{TRAJECTORIES}.parameters.budget", "half_square must be at least 1e-09, got 0.0"],
        ),
        ("studies.experiments.audits.trials", 19, ["audits.trials must be at least 20, got 19"]),
        (
            "lin2025.experiments.pair_losses.parameters.design.step_size",
            10.0,
            ["step_size must be at most 2 / (ridge + mean squared norm of the features)"],
        ),
        (
            "brown2024.experiments.fixed_ratio.parameters.budget",
            {"zcdp": 1000.0},
            ["budget must be at most epsilon = ", "at this delta"],
        ),
        (
            "bombari2025.experiments.mnist_heat_maps.parameters.train",
            [100, 13_000],
            ["mnist_heat_maps.parameters", "train + normalisation must be at most the 13007"],
        ),
        (
            "choquettechoo2024.experiments.private_training.parameters.steps_per_epoch",
            2000,
            ["steps_per_epoch must be at most", "the training images of the stand-in"],
        ),
        (
            "bombari2025.experiments.mnist_heat_maps.parameters.dataset",
            "mnits",
            ["mnist_heat_maps.parameters.dataset must be 'mnist'", "'mnits'"],
        ),
        (
            "bombari2025.figures.fig1.artifacts",
            {"theory": "simulation/clipping_factors"},
            ["bombari2025.figures.fig1.theory", "with the stage 'simulation'"],
        ),
        (
            "bombari2025.experiments.clipping_factors.trials",
            3,
            ["clipping_factors.trials must be none (no simulation), got 3"],
        ),
    ],
)
def test_a_wrong_value_is_one_line(merged, path, value, parts):
    with pytest.raises(ConfigError) as caught:
        plan(changed(merged, path, value))
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_corrupt_local_file_stops_before_any_job(merged, tmp_path, monkeypatch):
    file = tmp_path / "california_housing" / "cal_housing.data"
    file.parent.mkdir()
    file.write_text("1,2,3\n")
    monkeypatch.setenv("PRIVREG_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"cal_housing\.data") as caught:
        plan(merged)
    assert "\n" not in str(caught.value)


def test_the_schema_names_every_paper_and_recipe():
    document = json.loads(schema())
    assert set(known_keys()) <= set(document["properties"])
    models = {f"{paper}.{name}.Parameters" for paper in known_keys() for name in recipes(paper)}
    assert models <= set(document["$defs"])


def test_the_quick_configuration_is_an_overlay(merged):
    def overlay(base, over):
        for key, value in over.items():
            if isinstance(value, dict) and isinstance(base.get(key), dict):
                overlay(base[key], value)
            else:
                base[key] = value
        return base

    quick = yaml.safe_load((ROOT / "config/quick.yaml").read_text())
    assert plan(overlay(copy.deepcopy(merged), quick)).config.scale == "quick"
