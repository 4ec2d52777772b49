"""Costs: predictions that a user prints, and the limit on what one job may take."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from reproduction.engine.parameters import ConfigError
from reproduction.pipeline import cli, costs
from reproduction.pipeline.plan import Plan


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


def test_costs_are_printed_by_paper_and_the_studies_apart(capsys):
    assert cli.main(["cost"]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()[1:]}
    papers = [row for name, row in rows.items() if name not in ("all", "studies")]
    assert int(rows["all"][2]) == sum(int(row[2]) for row in papers)
    assert list(rows)[-2:] == ["all", "studies"]


def test_a_killed_job_asks_for_twice_as_much():
    needs = costs.Needs(Plan(costs.merged()))
    job = SimpleNamespace(paper="brown2024", experiment="fixed_ratio")
    for ask in (needs.memory_mb("simulation"), needs.minutes("simulation")):
        assert ask(job, 2) == 2 * ask(job, 1) > 0


@pytest.mark.parametrize(
    ("paper", "name", "overlay", "words"),
    [
        ("bombari2025", "sample_sizes", {"parameters": {"dimension": 10**7}}, r"dimension"),
        ("choquettechoo2024", "scaling_dimension", {"parameters": {"step_size": 1.5e-9}},
         r"step_size"),
        ("lin2025", "martingales", {"trials": 10**6, "shards": 1}, "trials must be fewer"),
    ],
)  # fmt: skip
def test_a_job_beyond_the_limit_is_refused_by_what_makes_it_so(
    tmp_path, paper, name, overlay, words
):
    path = tmp_path / "overlay.json"
    path.write_text(json.dumps({paper: {"experiments": {name: overlay}}}))
    raw = costs.merged(path)
    with pytest.raises(ConfigError, match=rf"^{paper}\.experiments\.{name}\..*{words}") as refused:
        Plan(raw)
    assert "\n" not in str(refused.value)
    Plan(raw | {"largest_job": {"hours": 1e30, "memory_gb": 1e30}})


@pytest.mark.parametrize("overlay", ["config/quick.yaml", "config/large.yaml"])
def test_what_is_committed_is_far_below_the_limits(overlay):
    plan = Plan(costs.merged(Path(overlay)))
    for cost in costs.predict(plan).values():
        assert cost.longest < 3600 * plan.config.largest_job.hours / 20
        assert cost.memory_mb < 1024 * plan.config.largest_job.memory_gb / 10
