"""Costs: what was measured comes back, and grows with trials, arithmetic and numbers held."""

import json
import resource
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from reproduction.experiment.parameters import ConfigError
from reproduction.pipeline import cli, costs, prediction, usage
from reproduction.pipeline.plan import Plan

KEY = "simulation/brown2024/fixed_ratio"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


@cache
def whole_plan():
    """Of the configuration as it is, which half a second goes into."""
    return Plan(costs.merged())


def predicted(tmp_path, overlay):
    path = tmp_path / "overlay.json"
    path.write_text(json.dumps({"brown2024": {"experiments": {"fixed_ratio": overlay}}}))
    return costs.predict(Plan(costs.merged(path)))[KEY]


def test_the_measured_configuration_costs_what_was_measured():
    found = costs.predict(whole_plan())
    measured = json.loads(costs.COSTS.read_text())
    for key, cost in found.items():
        if cost.known and cost.trials == measured[key].get("trials"):
            assert (
                cost.seconds <= max(measured[key]["seconds"], prediction.START * cost.jobs) * 1.001
            )
            assert cost.memory_mb == measured[key]["memory_mb"]


def test_time_grows_with_the_trials_and_memory_does_not(tmp_path):
    one = costs.predict(whole_plan())[KEY]
    ten = predicted(tmp_path, {"trials": 10 * one.trials, "shards": 4})
    start = prediction.START * one.jobs
    assert ten.seconds - start == pytest.approx(10 * (one.seconds - start))
    assert ten.memory_mb == one.memory_mb
    assert ten.known


def test_a_dimension_grows_time_and_memory_by_what_the_recipe_states(tmp_path):
    small = predicted(tmp_path, {"parameters": {"dimensions": [2, 500]}})
    large = predicted(tmp_path, {"parameters": {"dimensions": [2, 1000]}})
    # n p (p + 50) with n = 100 p: 1000² · 1050 over 500² · 550.
    start = prediction.START * small.jobs
    assert (large.seconds - start) / (small.seconds - start) == pytest.approx(7.636, rel=1e-3)
    assert large.memory_mb - small.memory_mb == pytest.approx(8 * 100 * (1000**2 - 500**2) / 2**20)
    assert large.known


def test_changed_parameters_without_stated_work_are_said_to_be_unknown(tmp_path):
    path = tmp_path / "overlay.json"
    experiment = {"parameters": {"runs": 11}}
    path.write_text(json.dumps({"brown2024": {"experiments": {"coverage": experiment}}}))
    assert not costs.predict(Plan(costs.merged(path)))["simulation/brown2024/coverage"].known


def test_a_killed_job_asks_for_twice_as_much():
    needs = costs.Needs(whole_plan())
    job = SimpleNamespace(paper="brown2024", experiment="fixed_ratio")
    for ask in (needs.memory_mb("simulation"), needs.minutes("simulation")):
        assert ask(job, 2) == 2 * ask(job, 1)
        assert ask(job, 3) == 4 * ask(job, 1)
    measured = json.loads(costs.COSTS.read_text())[KEY]["memory_mb"]
    assert needs.memory_mb("simulation")(job, 1) > measured


def test_a_configuration_that_is_no_mapping_is_refused(tmp_path):
    path = tmp_path / "list.yaml"
    path.write_text("- 1\n")
    with pytest.raises(ValueError, match=r"list\.yaml must hold keys and their values, got a list"):
        costs.merged(path)


def log(folder, key, seconds, memory, **of):
    file = folder / f"{key}.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    found = {"seconds": seconds, "memory_mb": memory, "forked": False}
    file.write_text(f"a warning\ntook {json.dumps(found | {'of': {'parameters': {}} | of})}\n")


def test_a_build_stands_beside_its_prediction(tmp_path, capsys):
    """Four shards of twice the predicted time, and a stage of another paper as predicted."""
    expected = costs.predict(whole_plan())
    for shard in range(4):
        log(tmp_path, f"{KEY}/{shard}", expected[KEY].seconds / 2, 100, trials=20, jobs=4)
    other = "theory/lin2025/scaling"
    log(tmp_path, other, expected[other].seconds, expected[other].memory_mb)
    assert cli.main(["cost", "--measured", str(tmp_path)]) == 0
    _, _, said = capsys.readouterr().out.partition("\n\n")
    rows = {line.split()[0]: line.split() for line in said.splitlines()[1:]}
    assert rows.keys() == {"brown2024", "lin2025", "all"}
    assert (rows["brown2024"][1], rows["brown2024"][6]) == ("1", "2.00")
    assert (rows["lin2025"][1], rows["lin2025"][6], rows["lin2025"][9]) == ("1", "1.00", "1.00")
    assert rows["all"][1] == "2"


def test_the_studies_are_counted_apart(capsys):
    assert cli.main(["cost"]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()[1:]}
    papers = [row for name, row in rows.items() if name not in ("all", "studies")]
    assert int(rows["all"][2]) == sum(int(row[2]) for row in papers)
    assert list(rows)[-2:] == ["all", "studies"]


def test_a_build_of_the_papers_keeps_what_the_studies_took(tmp_path):
    kept, new = "theory/studies/planning", "theory/lin2025/scaling"
    output = tmp_path / "costs.json"
    output.write_text(json.dumps({kept: json.loads(costs.COSTS.read_text())[kept], "gone": {}}))
    log(tmp_path, new, 3.0, 100)
    assert cli.main(["measure", str(tmp_path), "--output", str(output)]) == 0
    assert json.loads(output.read_text()).keys() == {kept, new}


def test_what_was_measured_is_recorded_with_what_it_was_of(tmp_path):
    """Whatever the configuration has by now, and whatever an earlier split has left."""
    for shard in range(2):
        log(tmp_path, f"{KEY}/{shard}", 5.0, 100 + shard, trials=7, jobs=2, parameters={"a": 1})
    log(tmp_path, f"{KEY}/2", 50.0, 900, trials=7, jobs=3, parameters={"a": 1})
    output = tmp_path / "costs.json"
    assert cli.main(["measure", str(tmp_path), "--output", str(output)]) == 0
    found = {"seconds": 10.0, "memory_mb": 101, "jobs": 2, "trials": 7, "parameters": {"a": 1}}
    assert json.loads(output.read_text()) == {KEY: found}


def test_a_stage_with_an_unfinished_job_is_not_recorded(tmp_path):
    log(tmp_path, f"{KEY}/0", 5.0, 100, trials=7, jobs=2)
    (tmp_path / f"{KEY}/1.log").write_text("simulate: killed\n")
    assert costs.took(tmp_path, KEY) is None


def processor_seconds():
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in found)


def test_a_job_measures_itself_to_its_end(tmp_path):
    """In half a second, in which a sampled benchmark sees nothing."""
    options = ["--parameters", json.dumps({"largest_ratio": 4.0, "points": 10})]
    files = ["--output", str(tmp_path / "theory.nc"), "--log", str(tmp_path / "theory.log")]
    before = processor_seconds()
    assert cli.main(["theory", "bombari2025/clipping_factors", *options, *files]) == 0
    found = usage.read(tmp_path / "theory.log")
    # The log rounds to a thousandth.
    assert before - 5e-4 <= found.seconds <= processor_seconds() + 5e-4
    assert 30 < found.memory_mb < 8000
    assert found.of == {"parameters": {"largest_ratio": 4.0, "points": 10}}


def test_what_nothing_reads_is_not_counted():
    """`all` leaves alone what no figure, table or entry reads; its rule still has needs."""
    plan = whole_plan()
    unread = "theory/brown2024/coverage_clipped"
    job = SimpleNamespace(paper="brown2024", experiment="coverage_clipped")
    assert costs.Needs(plan).memory_mb("theory")(job, 1) > 0
    assert unread not in costs.asked_for(plan)
    assert {KEY, "theory/brown2024/coverage", "intervals/brown2024/coverage"} <= costs.asked_for(
        plan
    )


@pytest.mark.parametrize("command", [["cost", "--measured"], ["measure"]])
def test_a_folder_without_logs_is_refused_and_nothing_written(tmp_path, capsys, command):
    output = tmp_path / "costs.json"
    wrong = [
        *command,
        str(tmp_path),
        *(["--output", str(output)] if command == ["measure"] else []),
    ]
    assert cli.main(wrong) == 1
    assert f"{tmp_path} must hold logs of a build, got none" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(
    ("paper", "name", "overlay", "words"),
    [
        (
            "bombari2025",
            "trajectories",
            {"parameters": {"aspect_ratio": 1.5e-12}},
            "parameters.aspect",
        ),
        (
            "bombari2025",
            "sample_sizes",
            {"parameters": {"dimension": 10**7}},
            "parameters.dimension",
        ),
        (
            "bombari2025",
            "diffusion",
            {"parameters": {"aspect_ratio": 1.5e-12}},
            "parameters.aspect",
        ),
        ("lin2025", "scaling", {"parameters": {"horizon": 1.0e6}}, "parameters.horizon"),
        (
            "choquettechoo2024",
            "scaling_dimension",
            {"parameters": {"step_size": 1.5e-9}},
            "parameters.step_size",
        ),
        ("brown2024", "accounting", {"parameters": {"pairs": 10**7}}, "parameters.pairs"),
        ("lin2025", "martingales", {"trials": 10**6, "shards": 1}, "trials must be fewer"),
    ],
)
def test_a_job_beyond_the_limit_is_refused_by_what_makes_it_so(
    tmp_path, paper, name, overlay, words
):
    path = tmp_path / "overlay.json"
    path.write_text(json.dumps({paper: {"experiments": {name: overlay}}}))
    raw = costs.merged(path)
    with pytest.raises(ConfigError, match=rf"^{paper}\.experiments\.{name}\.{words}") as refused:
        Plan(raw)
    said = str(refused.value)
    assert "\n" not in said
    assert "config.largest_job." in said
    limits = {"hours": 1e30, "memory_gb": 1e30}
    Plan(raw | {"largest_job": limits})


def test_the_limit_on_memory_is_one_of_its_own(tmp_path):
    path = tmp_path / "overlay.json"
    experiment = {"parameters": {"dimensions": [2, 20_000]}}
    path.write_text(json.dumps({"brown2024": {"experiments": {"fixed_ratio": experiment}}}))
    raw = costs.merged(path) | {"largest_job": {"hours": 1e9}}
    with pytest.raises(ConfigError, match=r"parameters\.dimensions .* 298 GB"):
        Plan(raw)


@pytest.mark.parametrize("overlay", ["config/quick.yaml", "config/large.yaml"])
def test_what_is_committed_is_far_below_the_limits(overlay):
    plan = Plan(costs.merged(Path(overlay)))
    for cost in costs.predict(plan).values():
        assert cost.longest < 3600 * plan.config.largest_job.hours / 20
        assert cost.memory_mb < 1024 * plan.config.largest_job.memory_gb / 10
