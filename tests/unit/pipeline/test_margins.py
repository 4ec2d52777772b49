"""The table of margins: least certain first, with the cost of certainty, another build beside."""

import pytest

from reproduction.claims.margins import Margin
from reproduction.pipeline import cli, margins
from reproduction.pipeline.costs import COSTS, read_costs


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


def margin(entry: str, bound: float, trials: int = 20) -> Margin:
    return Margin(
        entry=entry,
        check="",
        artifact="simulation/fixed_ratio",
        variable="law_ratio",
        place="dimension=400",
        value=1.02,
        standard_error=0.01,
        bound=bound,
        refusal=8.0,
        trials=trials,
    )


def test_a_folder_without_artifacts_is_refused(tmp_path, capsys):
    assert cli.main(["margins", "--results", str(tmp_path)]) == 1
    assert "must hold artifacts of a build" in capsys.readouterr().err


def test_the_least_certain_comes_first_with_what_more_trials_cost(tmp_path, monkeypatch, capsys):
    builds = {
        tmp_path / "new": {"sure": 7.0, "weak": 2.0, "fair": 3.0},
        tmp_path / "old": {"sure": 7.0, "weak": 1.0, "fair": 3.5},
    }
    for folder in builds:
        folder.mkdir()
    monkeypatch.setattr(
        margins,
        "_of",
        lambda plan, results, papers: (
            (("brown2024", name, 0), margin(name, bound)) for name, bound in builds[results].items()
        ),
    )
    new, old = map(str, builds)
    assert cli.main(["margins", "--results", new, "--before", old, "--below", "4"]) == 0
    weak, fair = (line.split() for line in capsys.readouterr().out.splitlines()[1:])
    assert weak[0] == "brown2024/weak"
    assert fair[0] == "brown2024/fair"
    # Four times the trials for twice the margin: three times the cost on top.
    cost = read_costs(COSTS)["simulation/brown2024/fixed_ratio"]
    assert weak[-3:-1] == ["80", f"{3 * cost.seconds:.0f}"]
    assert (weak[-1], fair[-1]) == ("1.00", "3.50")
