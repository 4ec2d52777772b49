"""A plan: what jobs read and make, and what is refused before any of them, in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from privreg import data
from reproduction.engine.closing import closing
from reproduction.engine.config import Config, Paper, merge
from reproduction.engine.parameters import ConfigError
from reproduction.engine.plan import Plan, looked_for_in
from reproduction.engine.registry import STUDIES, known_papers
from reproduction.engine.yaml_files import read_mapping

CONFIG = Path(__file__).parents[3] / "config"


@pytest.fixture(scope="module")
def whole():
    return Plan(CONFIG)


def nested(path, value):
    """Keys joined by dots, as blocks."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


HEAT = "bombari2025.experiments.mnist_heat_maps.parameters"
TRAJECTORIES = "bombari2025.experiments.trajectories"
FIG1 = "brown2024.figures.fig1"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("sead", 1, "a key of config must be ... did you mean 'seed'"),
        ("scale", "quik", "config.scale must be 'paper' or 'quick', got 'quik'"),
        ("seed", "one", "config.seed must be a whole number, got 'one'"),
        ("papers", ["bombary2025"], "config.papers ... 'bombary2025'... 'bombari2025'"),
        ("papers", "lin2025", "config.papers must be a list of citation keys, got 'lin2025'"),
        ("papers.lin2025", {}, "got {'lin2025': {}}; a paper's own keys stand at the top"),
        (f"{TRAJECTORIES}.quick.parameters", {"dimenson": 3}, "a key must be ...'dimenson'"),
        (
            "data.mnits",
            {"mirrors": ["https://a.b"]},
            "a key of config.data ... did you mean 'mnist'",
        ),
        (f"{TRAJECTORIES}.trails", 3, f"{TRAJECTORIES}: a key must be ...; did you mean 'trials'"),
        (
            f"{TRAJECTORIES}.shards",
            61,
            f"{TRAJECTORIES}: shards must be at most trials = 60, got 61",
        ),
        (f"{TRAJECTORIES}.resources", {"mem": 1}, "resources: a key must be ... 'mem_mb'"),
        (f"{TRAJECTORIES}.parameters.budget", {"half_square": 0.0}, "at least 1e-09, got 0.0"),
        ("studies.experiments.audits.trials", 19, "audits.trials must be at least 20, got 19"),
        (
            "lin2025.experiments.pair_losses.parameters.design.step_size",
            10.0,
            "step_size must be at most 2 / (ridge + mean squared norm of the features)",
        ),
        (
            "brown2024.experiments.fixed_ratio.parameters.budget",
            {"zcdp": 1000.0},
            "budget must be at most epsilon = ... at this delta",
        ),
        (f"{HEAT}.train", [100, 13_000], "train + normalisation must be at most the 13007"),
        (
            f"{HEAT}.dataset",
            "mnits",
            "mnist_heat_maps.parameters.dataset must be 'mnist'...'mnits'",
        ),
        (
            "choquettechoo2024.experiments.private_training.parameters.steps_per_epoch",
            2000,
            "steps_per_epoch must be at most ... the training images of the stand-in",
        ),
        (
            "bombari2025.experiments.clipping_factors.trials",
            3,
            "clipping_factors.trials must be none (no simulation), got 3",
        ),
        (
            "brown2024.experiments.covrage",
            {"trials": 3},
            "brown2024.experiments must be ...'coverage'",
        ),
        (
            f"{FIG1}.artifacts",
            {"simulatoin": "simulation/fixed_ratio"},
            "did you mean 'simulation'",
        ),
        (f"{FIG1}.artifacts.simulation", "simulation/fixed_ratios", "did you mean 'fixed_ratio'"),
        (
            "bombari2025.figures.fig1.artifacts.theory",
            "simulation/clipping_factors",
            "fig1.artifacts.theory must name an experiment with the stage 'simulation'",
        ),
        (f"{FIG1}.caption", "{trials of coverage}", "must name {trials of fixed_ratio}, got"),
    ],
)
def test_a_wrong_value_is_one_line(path, value, said):
    with pytest.raises(ConfigError) as caught:
        Plan(CONFIG, nested(path, value))
    assert re.search(".*".join(map(re.escape, said.split("..."))), str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_corrupt_local_file_is_one_line(tmp_path, monkeypatch):
    file = tmp_path / "california_housing" / "cal_housing.data"
    file.parent.mkdir()
    file.write_text("1,2,3\n")
    monkeypatch.setenv("PRIVREG_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"cal_housing\.data[^\n]*$"):
        Plan(CONFIG)


@pytest.mark.parametrize("overlay", ["quick", "large"])
def test_overlays_are_valid_and_change_nothing_else(whole, overlay):
    raw = read_mapping(CONFIG / f"{overlay}.yaml")
    other = Plan(CONFIG, raw)
    assert other.root == ("results/quick" if overlay == "quick" else "results")
    assert other.experiments.keys() == whole.experiments.keys()
    assert Plan(CONFIG, merge(raw, {"results": "elsewhere"})).root == "elsewhere"


def test_the_users_word_wins_over_the_quick_scales():
    """What the files say comes first, then `quick`, then the user; `quick` of the user as well."""
    path = "brown2024.experiments.coverage"
    for own, found in (
        ({}, None),
        ({"trials": 7, "shards": 2}, (7, 2)),
        ({"quick": {"trials": 5}}, (5, 1)),
        ({"trials": 7, "quick": {"trials": 5}}, (5, 1)),
    ):
        plan = Plan(CONFIG, {"scale": "quick"} | nested(path, own))
        experiment = plan.experiments["brown2024", "coverage"]
        quick = plan.config.papers["brown2024"].experiments["coverage"].quick
        assert (experiment.trials, experiment.shards) == (found or (quick.trials, 1))
    assert (
        Plan(CONFIG, nested(path, {"trials": 7})).experiments["brown2024", "coverage"].trials == 7
    )


def test_a_caption_states_the_trials_of_its_experiments():
    block = Paper.model_validate(
        {
            "experiments": {"a": {"trials": 8, "quick": {"trials": 2}}, "b": {"trials": 5}},
            "figures": {
                "both": {
                    "artifacts": {"x": "theory/a", "y": "intervals/b"},
                    "caption": "A {trials of a}, b {trials of b}, {trials} each.",
                },
                "one": {"artifacts": {"x": "simulation/a"}, "caption": "{trials} {d}."},
            },
        }
    )
    assert block.caption(block.figures["both"], "paper") == "A 8, b 5, 8 or 5 each."
    assert block.caption(block.figures["one"], "quick") == "2 {d}."


def test_a_wrong_variable_of_an_entry_is_named(tmp_path):
    for path in (CONFIG / "claims/lin2025").glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text().replace("variable: ", "variable: x", 1))
    whole = Plan(CONFIG)
    from reproduction.engine.ledger import Ledger, parse_topic, read_ledger

    with pytest.raises(ConfigError, match=r"^lin2025\.claims\..*variable must be [^\n]*$"):
        whole._check_ledger("lin2025", read_ledger(tmp_path, "lin2025"))
    evidence = {"artifact": "simulation/population_coverage", "variable": "covered"}
    check = {"kind": "close", "expected": 1.0, "sigmas": 3}
    raw = {"id": "a", "compares": "b", "evidence": evidence, "check": check}
    topic = parse_topic({"topic": "T", "cross_checks": [raw]}, "t", "x")
    with pytest.raises(
        ConfigError, match=r"^studies\.claims\.a must give one of resolves, rejects"
    ):
        whole._check_ledger("studies", Ledger("studies", (topic,)))


def test_what_is_one_shard_is_simulated_and_summarised_by_one_job():
    def at_once(shards):
        changed = nested("brown2024.experiments.coverage.quick", {"trials": 4, "shards": shards})
        plan = Plan(CONFIG, changed | {"scale": "quick"})
        assert len(plan.shards("brown2024", "coverage")) == shards
        return {*plan.at_once().split("|")}

    assert at_once(1) - at_once(2) == {"(?<=/brown2024/)coverage"}


def test_an_entry_is_judged_from_what_it_names_alone(whole):
    ledger = whole.ledgers["brown2024"]
    of_each = {name: set(whole.evidence("brown2024", name)) for name in ledger.entries}
    assert set().union(*of_each.values()) == set(whole.evidence("brown2024"))
    for name, entry in ledger.entries.items():
        read = {each.artifact for probe in entry.probes for each in probe.reads}
        assert of_each[name] == {whole.artifact("brown2024", each) for each in read}


# Where a table is looked for

NAME = "california_housing"


@pytest.fixture
def files(tmp_path, monkeypatch):
    for path in data.files_of(NAME):
        (tmp_path / "files" / path).parent.mkdir(parents=True)
        (tmp_path / "files" / path).write_text("rows")
    return lambda there: monkeypatch.setenv(
        "PRIVREG_DATA", str(tmp_path / "files") if there else ""
    )


@pytest.mark.parametrize("record", [None, "", "{", "[]", '{"stand_in": true}'])
def test_without_a_table_the_shell_decides(tmp_path, files, record):
    if record is not None:
        (tmp_path / f"{NAME}.json").write_text(record)
    for there in (False, True):
        files(there)
        found = looked_for_in(f"{tmp_path}/{NAME}.json")
        assert found == ("PRIVREG_DATA" if there else "download")


@pytest.mark.parametrize(
    ("stand_in", "made_with", "with_files"),
    [
        (False, "PRIVREG_DATA", "PRIVREG_DATA"),
        (False, "download", "download"),
        (True, "download", "PRIVREG_DATA"),
    ],
)
def test_a_real_table_stays_and_a_stand_in_gives_way(
    tmp_path, files, stand_in, made_with, with_files
):
    about = {"looked_for_in": made_with, "stand_in": stand_in}
    (tmp_path / f"{NAME}.json").write_text(json.dumps(about))
    for there, expected in ((False, made_with), (True, with_files)):
        files(there)
        assert looked_for_in(f"{tmp_path}/{NAME}.json") == expected


def test_an_unknown_target_is_answered_with_the_nearest_name(whole):
    with pytest.raises(ConfigError, match=r"lin2025: no figure 'fig9a'; the nearest name is 'fig"):
        whole.drawn_from("lin2025", "figures", "fig9a")
    with pytest.raises(ConfigError, match="name is 'fixed_order'"):
        whole.reads("lin2025", "fixed_ordr", "theory")
    with pytest.raises(ConfigError, match="name is 'ode-tracks-dpgd'"):
        whole.evidence("bombari2025", "ode-tracks")


def test_the_end_of_a_run_tells_verdicts_only_if_they_decide_and_a_slip_once(tmp_path):
    (tmp_path / "index.html").touch()
    one = {"paper": "x", "id": "a", "finding": "slip", "verdict": "contradicted"}
    for scale, said in (("paper", "1 contradicted"), ("quick", "0 figures, 2 entries\nAll of it")):
        records = [one | {"scale": scale}] * 2
        (tmp_path / "claims.json").write_text(json.dumps({"records": records}))
        assert "\n".join(closing(str(tmp_path), 0.0)).startswith(f"{'x':18} {said}")
    claim = tmp_path / "claims/x/a.json"
    claim.parent.mkdir(parents=True)
    claim.write_text(json.dumps(one))
    assert f"{'contradicted':18} {claim}" in closing(str(tmp_path), 0.0)


def schema():
    """JSON schema of `config/*.yaml` and of a file for `--configfile`, a definition a line."""
    whole = Config.model_json_schema()
    for each in whole["$defs"].values():
        each.pop("required", None)  # files are merged, so that each may hold a part
    keys = {key: whole["properties"][key] for key in ("seed", "scale", "results", "data")}
    keys["papers"] = {"type": "array", "items": {"enum": [*known_papers()]}, "uniqueItems": True}
    keys |= {key: {"$ref": "#/$defs/Paper"} for key in [*known_papers(), STUDIES]}
    text = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"'
    for part, found in {"properties": keys, "$defs": whole["$defs"]}.items():
        lines = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in found.items())
        text += f',\n"{part}": {{\n{lines}}}'
    return text + ',\n"additionalProperties": false}\n'


def test_the_schema_is_that_of_the_models_and_accepts_every_configuration():
    found = (CONFIG.parent / "workflow/schemas/config.schema.json").read_text()
    assert found == schema(), f"workflow/schemas/config.schema.json must be\n{schema()}"
    validator = Draft202012Validator(json.loads(found))
    for path in CONFIG.rglob("*.yaml"):
        if path.parent.name in ("config", "papers"):
            validator.validate(read_mapping(path))
    assert not validator.is_valid({"brown2024": {"experiment": {}}})
