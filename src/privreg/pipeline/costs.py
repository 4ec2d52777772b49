"""What a run costs, told before it is submitted: core hours and memory from measured jobs.

`workflow/costs.json` holds what each job of the papers' own scale took, written by `privreg
measure` from the benchmarks of a build. A simulation's time grows with its trials, and with the
arithmetic of one trial where the recipe's parameters state it as `work`, in a unit of their own;
its memory grows by the numbers that it has in memory, where they state these as `held`. A job whose
parameters differ from those that were measured, and that states no `work`, is counted at the
measured parameters, and said to be.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privreg.experiment import datasets
from privreg.experiment.parameters import ConfigError
from privreg.experiment.yaml_files import read_mapping
from privreg.pipeline.config import merge, read_configuration
from privreg.pipeline.plan import Plan
from privreg.pipeline.provenance import SHORT, config_digest

COSTS = Path("workflow/costs.json")
# Starting a process and importing what it needs, in seconds; the rest of a job grows with its work.
START = 1.2
# A rule asks for this much more than was measured, and never for less than this.
MARGIN, SLOWER, LEAST_MEMORY, LEAST_MINUTES = 1.5, 4, 500, 5


@dataclass(frozen=True)
class Cost:
    """Core seconds of a stage's jobs together, their number, and the largest one's memory."""

    seconds: float
    memory_mb: float
    jobs: int = 1
    trials: int | None = None
    work: float | None = None
    held: float | None = None
    parameters: str = ""
    known: bool = True

    @property
    def longest(self) -> float:
        """Seconds of the longest job, if the trials are split evenly."""
        return self.seconds / self.jobs


# What a job asks for that nobody measured.
UNMEASURED = Cost(seconds=300.0, memory_mb=1000.0, known=False)


class Needs:
    """What the rules ask of a cluster for their jobs."""

    def __init__(self, plan: Plan, costs: Path = COSTS) -> None:
        self._plan, self._measured = plan, read_costs(costs)

    def memory_mb(self, stage: str) -> Callable[[Any, int], int]:
        """Memory of a stage's job, in megabytes, twice as much each time that it was killed."""
        return lambda wildcards, attempt: (
            max(LEAST_MEMORY, round(MARGIN * self._cost(stage, wildcards).memory_mb))
            * 2 ** (attempt - 1)
        )

    def minutes(self, stage: str) -> Callable[[Any, int], int]:
        """Run time of a stage's job, on a machine up to four times slower than the measured one."""
        return lambda wildcards, attempt: (
            max(LEAST_MINUTES, round(SLOWER * MARGIN * self._cost(stage, wildcards).longest / 60))
            * 2 ** (attempt - 1)
        )

    def _cost(self, stage: str, wildcards: Any) -> Cost:
        # One at a time: the process of a job asks for its own alone.
        key = f"{stage}/{wildcards.paper}/{wildcards.experiment}"
        return _predicted(
            self._measured.get(key), self._plan, wildcards.paper, wildcards.experiment
        )


def measure(benchmarks: Path, *, output: Path, configs: list[Path]) -> None:
    """Write what the jobs of a build took."""
    plan = Plan(merged(*configs))
    found: dict[str, dict[str, Any]] = {}
    for key, paper, name in _stages(plan):
        taken = took(benchmarks, key)
        if taken is None:
            continue
        experiment = plan.experiment(paper, name)
        stage = key.partition("/")[0]
        found[key] = {
            "seconds": round(taken.seconds, 2),
            "memory_mb": round(taken.memory_mb),
            "jobs": taken.jobs,
            "parameters": _digest(plan, paper, name),
        }
        if stage == "simulation":
            found[key] |= {"trials": experiment.trials, **_stated(plan, paper, name)}
    if not found:
        raise ConfigError(f"{benchmarks} must hold benchmarks of a build, got none")
    datasets.write_text(json.dumps(found, indent=1, sort_keys=True), output, checksum=False)


def took(benchmarks: Path, key: str) -> Cost | None:
    """What the jobs of a stage took, of a build that has finished them; None of one that has not.

    Parameters
    ----------
    benchmarks : Path
        Folder of the build.
    key : str
        `stage/paper/experiment`.
    """
    files = sorted((benchmarks / key).glob("*.tsv")) or [benchmarks / f"{key}.tsv"]
    rows = [_row(file) for file in files if file.exists()]
    if not rows:
        return None
    seconds, memory = zip(*rows, strict=True)
    return Cost(seconds=sum(seconds), memory_mb=max(memory), jobs=len(rows))


def predict(plan: Plan, costs: Path = COSTS) -> dict[str, Cost]:
    """Costs of each experiment's stages under a plan, by `stage/paper/experiment`."""
    measured = read_costs(costs)
    return {
        key: _predicted(measured.get(key), plan, paper, name) for key, paper, name in _stages(plan)
    }


def read_costs(path: Path) -> dict[str, Cost]:
    """What was measured, by `stage/paper/experiment`."""
    return {key: Cost(**values) for key, values in json.loads(path.read_text()).items()}


def asked_for(plan: Plan) -> set[str]:
    """The stages whose artifacts a figure, a table, an entry or another such stage reads."""
    pending = [
        (paper, artifact)
        for paper, block in plan.config.papers.items()
        for artifact in (
            *(each for drawing in block.figures.values() for each in drawing.artifacts.values()),
            *(each for drawing in block.tables.values() for each in drawing.artifacts.values()),
            *plan.ledgers.artifacts(paper),
        )
        if not artifact.startswith("data/")
    ]
    found: set[str] = set()
    while pending:
        paper, artifact = pending.pop()
        stage, _, name = artifact.partition("/")
        key = f"{stage}/{paper}/{name}"
        if key not in found:
            found.add(key)
            steps = ("simulate", "summarise") if stage == "simulation" else (stage,)
            kinds = {kind for step in steps for kind in plan.reads(step, paper, name)}
            pending += [(paper, f"{kind}/{name}") for kind in kinds - {"data"}]
    return found


def cost(*, configs: list[Path], measured: Path | None) -> None:
    """Print what a configuration costs; beside it what a build of it took, if one is named."""
    plan = Plan(merged(*configs))
    wanted = asked_for(plan)
    found = {key: value for key, value in predict(plan).items() if key in wanted}
    rows: list[tuple[str, ...]] = [("", "core hours", "jobs", "longest job", "largest memory", "")]
    for paper in plan.config.papers:
        mine = [value for key, value in found.items() if key.split("/")[1] == paper]
        rows.append((paper, *_words(mine), _note(mine)))
    rows.append(("all", *_words(list(found.values())), ""))
    beside = [] if measured is None else _beside(found, measured)
    _print(rows)
    if beside:
        print()
        _print(beside)


def _beside(found: Mapping[str, Cost], benchmarks: Path) -> list[tuple[str, ...]]:
    """Of the stages that a build has finished: predicted, measured, and one over the other."""
    taken = {key: cost for key in found if (cost := took(benchmarks, key)) is not None}
    if not taken:
        raise ConfigError(f"{benchmarks} must hold benchmarks of a build, got none")
    rows: list[tuple[str, ...]] = [
        ("finished", "stages", "predicted", "measured", "share", "largest memory, share")
    ]
    by_paper: dict[str, list[str]] = {}
    for key in taken:
        by_paper.setdefault(key.split("/")[1], []).append(key)
    by_paper["all"] = list(taken)
    for paper, keys in by_paper.items():
        predicted = sum(found[key].seconds for key in keys)
        seconds = sum(taken[key].seconds for key in keys)
        memory = [max(each[key].memory_mb for key in keys) for each in (found, taken)]
        rows.append(
            (
                paper,
                str(len(keys)),
                f"{predicted / 3600:.3f} h",
                f"{seconds / 3600:.3f} h",
                f"{seconds / predicted:.2f}",
                f"{memory[0]:.0f} MB, {memory[1] / memory[0]:.2f}",
            )
        )
    return rows


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def merged(*configs: Path) -> dict[str, Any]:
    """The configuration as a run merges it: shared, the papers', then the files named."""
    raw = read_configuration()
    for path in configs:
        raw = merge(raw, read_mapping(path))
    return raw


def _predicted(measured: Cost | None, plan: Plan, paper: str, name: str) -> Cost:
    """A stage's cost under a plan, scaled from the measured one."""
    if measured is None:
        return UNMEASURED
    experiment = plan.experiment(paper, name)
    same = _digest(plan, paper, name) == measured.parameters
    if measured.trials is None:
        return Cost(measured.seconds, measured.memory_mb, known=same)
    stated = {} if same else _stated(plan, paper, name)
    known = same or (measured.work is not None and "work" in stated)
    growth = stated["work"] / (measured.work or 1.0) if known and not same else 1.0
    more = stated.get("held", 0.0) - (measured.held or 0.0) if not same else 0.0
    trials = experiment.trials or 1
    each = max(measured.seconds - START * measured.jobs, 0.0) / measured.trials
    return Cost(
        seconds=START * experiment.shards + each * growth * trials,
        memory_mb=measured.memory_mb + max(0.0, 8 * more / 2**20),
        jobs=experiment.shards,
        trials=trials,
        known=known,
    )


def _stages(plan: Plan) -> Iterator[tuple[str, str, str]]:
    for paper, block in plan.config.papers.items():
        for name in block.experiments:
            recipe = plan.recipe(paper, name)
            for stage, function in (
                ("theory", "theory"),
                ("simulation", "simulate"),
                ("intervals", "intervals"),
            ):
                if recipe.has(function):
                    yield f"{stage}/{paper}/{name}", paper, name


def _digest(plan: Plan, paper: str, name: str) -> str:
    return config_digest(plan.parameters(paper, name))[:SHORT]


def _stated(plan: Plan, paper: str, name: str) -> dict[str, float]:
    typed = plan.recipe(paper, name).parameters(plan.experiment(paper, name).parameters, name)
    return {word: float(getattr(typed, word)) for word in ("work", "held") if hasattr(typed, word)}


def _row(file: Path) -> tuple[float, float]:
    """Seconds and megabytes of a job of one core.

    Snakemake samples processor time so rarely that it misses up to half a minute of a job.
    """
    with file.open(encoding="utf-8") as lines:
        row = next(csv.DictReader(lines, delimiter="\t"))
    memory = row["max_rss"]
    return float(row["s"]), 0.0 if memory in {"-", "NA"} else float(memory)


def _note(costs: list[Cost]) -> str:
    unmeasured = sum(cost is UNMEASURED for cost in costs)
    elsewhere = sum(not cost.known for cost in costs) - unmeasured
    return "; ".join(
        f"{words}: {count} stage{'s' * (count > 1)}"
        for words, count in (("at the papers' parameters", elsewhere), ("guessed", unmeasured))
        if count
    )


def _words(costs: list[Cost]) -> tuple[str, str, str, str]:
    longest = max((cost.longest for cost in costs), default=0.0)
    return (
        f"{sum(cost.seconds for cost in costs) / 3600:.3f}",
        str(sum(cost.jobs for cost in costs)),
        f"{longest / 60:.1f} min",
        f"{max((cost.memory_mb for cost in costs), default=0.0):.0f} MB",
    )
