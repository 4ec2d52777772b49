"""What a plan knows before any job: the paper's scale, drawings' arguments, artifacts, targets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from reproduction.pipeline import drawings, scales, targets

from reproduction.engine.config import Paper, load, merge, read_configuration, with_arguments
from reproduction.engine.parameters import ConfigError
from reproduction.engine.plan import Plan, stop_in_one_line
from reproduction.engine.registry import known_keys

ROOT = Path(__file__).parents[3]
RULES = ("all", "claims", "theory")


def one_paper():
    raw = read_configuration(ROOT / "config") | {"papers": ["brown2024"]}
    del raw["studies"]
    return raw


def plan(*, checked=True, **overlay):
    return Plan(
        merge(one_paper(), overlay),
        ROOT / "config/claims",
        ROOT / "workflow",
        checked=checked,
    )


@pytest.fixture(scope="module")
def whole():
    return plan()


def coverage(**changes):
    return {"brown2024": {"experiments": {"coverage": changes}}}


# Whose scale


@pytest.mark.parametrize(
    "changes",
    [{"trials": 11}, {"parameters": {"clip_constant": 4.0}}],
)
def test_another_parameter_is_your_own_scale_for_what_rests_on_it(changes):
    mine = plan(**coverage(**changes))
    assert mine.own == {("brown2024", "coverage")}
    assert (mine.scale, mine.layout.root) == ("own", "results/own")
    assert mine.scale_of_drawing("figure", "brown2024", "fig5") == "own"
    assert mine.scale_of_drawing("figure", "brown2024", "fig1") == "paper"
    assert "brown2024/coverage" in targets.own_lines(mine)[0]


def test_settings_of_the_command_line_are_numbers():
    given = {
        "brown2024": {"experiments": {"coverage": {"trials": "11", "parameters": {"a": "1e-3"}}}}
    }
    found = with_arguments({"brown2024": {"figures": {}}}, given)
    assert found["brown2024"]["experiments"]["coverage"] == {
        "trials": 11,
        "parameters": {"a": 1e-3},
    }
    assert found["brown2024"]["figures"] == {}


def test_the_digests_of_the_papers_scale_are_not_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    scales.scales(output=tmp_path / "found.json")
    listed = (ROOT / "workflow/scale.lock").read_text()
    assert json.loads((tmp_path / "found.json").read_text()) == json.loads(listed), "`make scale`"


# Drawings


def test_figures_and_tables_have_a_function_of_their_arguments():
    config = load(read_configuration(ROOT / "config"), known_keys())
    for paper, block in config.blocks.items():
        for kind, listed in (("figures", block.figures), ("tables", block.tables)):
            for name, drawing in listed.items():
                assert set(drawings.functions(paper, kind)[name]) == set(drawing.artifacts)


def test_a_caption_states_the_trials_of_its_experiments():
    caption = "A {trials of a}, b {trials of b}."
    block = Paper.model_validate(
        {
            "experiments": {"a": {"trials": 8, "quick": {"trials": 2}}, "b": {"trials": 5}},
            "figures": {
                "both": {"artifacts": {"x": "theory/a", "y": "intervals/b"}, "caption": caption},
                "one": {"artifacts": {"x": "simulation/a"}, "caption": "{trials} {d}."},
            },
        }
    )
    assert block.caption(block.figures["both"], "paper") == "A 8, b 5."
    assert block.caption(block.figures["one"], "quick") == "2 {d}."
    both = block.figures["both"].model_copy(update={"caption": "{trials} each."})
    assert block.caption(both, "paper") == "8 or 5 each."


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        (
            "{trials of coverage} runs",
            "must name {trials of fixed_ratio}, got {trials of coverage}",
        ),
        ("{trials of fixed_ratios} runs", "must name {trials of fixed_ratio}, got"),
    ],
)
def test_a_caption_of_other_trials_is_refused(caption, words):
    raw = one_paper()
    raw["brown2024"]["figures"]["fig1"]["caption"] = caption
    with pytest.raises(ConfigError, match=re.escape(words)):
        Plan(raw, ROOT / "config/claims", ROOT / "workflow")


@pytest.mark.parametrize(
    ("artifacts", "words"),
    [
        ({"simulatoin": "simulation/fixed_ratio"}, "did you mean 'simulation'"),
        ({"simulation": "simulation/coverage"}, "must be simulation/fixed_ratio as its recipe"),
        ({"simulation": "simulation/fixed_ratios"}, "did you mean 'fixed_ratio'"),
    ],
)
def test_a_figure_of_wrong_artifacts_is_refused(artifacts, words):
    raw = one_paper()
    raw["brown2024"]["figures"]["fig1"]["artifacts"] = artifacts
    with pytest.raises(ConfigError, match=words):
        Plan(raw, ROOT / "config/claims", ROOT / "workflow")


# Artifacts


def test_a_wrong_entry_is_named_with_each_other_one(tmp_path, capsys):
    folder = tmp_path / "lin2025"
    folder.mkdir()
    for path in (ROOT / "config/claims/lin2025").glob("*.yaml"):
        text = path.read_text().replace("variable: ", "variable: x", 1)
        (folder / path.name).write_text(text)
    raw = one_paper() | {"papers": ["lin2025"]}
    with pytest.raises(SystemExit) as stopped:
        stop_in_one_line(Plan)(raw, tmp_path, ROOT / "workflow")
    lines = str(stopped.value).splitlines()
    assert len(lines) > 1
    assert all(line.startswith("error: lin2025.claims.") for line in lines)


# Simulations


def test_what_is_one_shard_is_simulated_and_summarised_by_one_job():
    at_once = plan(scale="quick", **coverage(quick={"shards": 1})).simulated_at_once()
    assert "coverage" in at_once["brown2024"]
    split = plan(scale="quick", **coverage(quick={"trials": 4, "shards": 2})).simulated_at_once()
    assert set(at_once["brown2024"]) - set(split["brown2024"]) == {"coverage"}


def test_an_edit_of_a_simulation_or_of_its_summary_counts_where_one_job_makes_both(whole):
    both = set(whole.sources("simulation", "brown2024", "coverage"))
    for stage in ("simulate", "summarise"):
        assert set(whole.sources(stage, "brown2024", "coverage")) <= both
        reads = whole.reads(stage, "brown2024", "coverage")
        assert reads.items() <= whole.reads("simulation", "brown2024", "coverage").items()


# Entries


def test_a_job_judges_all_entries_of_a_paper_or_one_from_what_it_reads_alone(whole):
    paper, ledger = "brown2024", whole.ledgers.by_paper["brown2024"]
    assert whole.ledgers.verdicts() == ["results/verdicts/brown2024.json"]
    read = set(whole.ledgers.reads(paper))
    for name, entry in ledger.entries.items():
        assert set(whole.ledgers.reads(paper, name)) == {
            artifact for probe in entry.probes for artifact in probe.artifacts
        }
        assert set(whole.ledgers.reads(paper, name)) < read


# Targets


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("results/figures/brown2024/fig55.pdf", "did you mean results/figures/brown2024/fig5"),
        ("results/simulation/brown2024/coverage/2.nc", "brown2024/coverage has the shards 0 to 1"),
        ("brwn2024", "did you mean brown2024"),
    ],
)
def test_what_nothing_makes_is_refused(whole, name, words):
    with pytest.raises(ConfigError) as caught:
        targets.require_made([name], whole, RULES)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
