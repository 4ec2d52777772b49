"""What a run costs, told before it is submitted: core hours and memory from measured jobs.

`workflow/costs.json` holds what each job of the papers' own scale took, and the parameters and
trials that it took it for, written by `python -m reproduction measure` from the logs of a build.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from reproduction.engine import artifacts as store
from reproduction.engine.parameters import ConfigError
from reproduction.engine.yaml_files import read_mapping
from reproduction.pipeline import usage
from reproduction.pipeline.config import STUDIES, merge, read_configuration
from reproduction.pipeline.plan import COSTS, Plan
from reproduction.pipeline.prediction import (
    START,
    UNMEASURED,
    Cost,
    predicted,
    read_costs,
    stages,
)

# A rule asks for this much more than was measured, and never for less than this.
MARGIN, SLOWER, LEAST_MEMORY, LEAST_MINUTES = 1.5, 4, 500, 5


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

    def seconds(self, stage: str, wildcards: Any) -> float:
        """How long a stage's job is predicted to take, on the machine that was measured."""
        return self._cost(stage, wildcards).longest

    def _cost(self, stage: str, wildcards: Any) -> Cost:
        # One at a time: the process of a job asks for its own alone.
        key = f"{stage}/{wildcards.paper}/{wildcards.experiment}"
        return predicted(key, self._plan, self._measured)


def measure(logs: Path, *, output: Path, configs: list[Path]) -> None:
    """Write what the jobs of a build took; a stage that it has not built keeps what is there."""
    plan = Plan(merged(*configs))
    built = False
    found: dict[str, dict[str, Any]] = json.loads(output.read_text()) if output.exists() else {}
    found = {key: found[key] for key in stages(plan) if key in found}
    for key in stages(plan):
        taken = took(logs, key)
        if taken is None:
            continue
        built = True
        found[key] = {
            "seconds": round(taken.seconds, 2),
            "memory_mb": round(taken.memory_mb),
            "jobs": taken.jobs,
            "parameters": taken.parameters,
        }
        if taken.trials is not None:
            found[key]["trials"] = taken.trials
    if not built:
        raise ConfigError(f"{logs} must hold logs of a build, got none")
    store.write_text(written(found), output, checksum=False)


def written(found: Mapping[str, Any]) -> str:
    """What was measured as JSON, a line a stage."""
    lines = (
        f" {json.dumps(key)}: {json.dumps(found[key], sort_keys=True)}" for key in sorted(found)
    )
    return "{\n" + ",\n".join(lines) + "\n}"


def took(logs: Path, key: str) -> Cost | None:
    """What the jobs of a stage took, of a build that has finished them; None of one that has not.

    Parameters
    ----------
    logs : Path
        Folder of the build.
    key : str
        `stage/paper/experiment`.
    """
    stage = key.partition("/")[0]
    files = sorted((logs / key).glob("*.log")) if stage == "simulation" else [logs / f"{key}.log"]
    jobs = [found for file in files if file.exists() and (found := usage.read(file)) is not None]
    if not jobs:
        return None
    # Logs of a finer split, or of other trials, may still be there.
    of = jobs[0].of
    jobs = [job for job in jobs if job.of == of]
    if len(jobs) != of.get("jobs", 1):
        return None
    return Cost(
        # As in a process of its own, such as those that a cluster starts.
        seconds=sum(job.seconds + START * job.forked for job in jobs),
        memory_mb=max(job.memory_mb for job in jobs),
        jobs=len(jobs),
        trials=of.get("trials"),
        parameters=of["parameters"],
    )


def predict(plan: Plan, costs: Path = COSTS) -> dict[str, Cost]:
    """Costs of each experiment's stages under a plan, by `stage/paper/experiment`."""
    measured = read_costs(costs)
    return {key: predicted(key, plan, measured) for key in stages(plan)}


def asked_for(plan: Plan) -> set[str]:
    """The stages whose artifacts a figure, a table, an entry or another such stage reads."""
    pending = [
        (paper, artifact)
        for paper, block in plan.config.blocks.items()
        for artifact in (
            *(each for drawing in block.figures.values() for each in drawing.artifacts.values()),
            *(each for drawing in block.tables.values() for each in drawing.artifacts.values()),
            *plan.ledgers.reads(paper),
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
    for target, keys in _targets(found).items():
        mine = [found[key] for key in keys]
        rows.append((target, *_words(mine), _note(mine)))
    beside = [] if measured is None else _beside(found, measured)
    print_table(rows)
    if beside:
        print()
        print_table(beside)


def _beside(found: Mapping[str, Cost], logs: Path) -> list[tuple[str, ...]]:
    """Of the stages that a build has finished: predicted, measured, and one over the other."""
    taken = {key: cost for key in found if (cost := took(logs, key)) is not None}
    if not taken:
        raise ConfigError(f"{logs} must hold logs of a build, got none")
    rows: list[tuple[str, ...]] = [
        ("finished", "stages", "predicted", "measured", "share", "largest memory, share")
    ]
    for target, keys in _targets(taken).items():
        predicted = sum(found[key].seconds for key in keys)
        seconds = sum(taken[key].seconds for key in keys)
        memory = [max(each[key].memory_mb for key in keys) for each in (found, taken)]
        rows.append(
            (
                target,
                str(len(keys)),
                f"{predicted / 3600:.3f} h",
                f"{seconds / 3600:.3f} h",
                f"{seconds / predicted:.2f}",
                f"{memory[0]:.0f} MB, {memory[1] / memory[0]:.2f}",
            )
        )
    return rows


def _targets(keys: Iterable[str]) -> dict[str, list[str]]:
    """Stages by the target that makes them: a paper, all papers, the studies."""
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(key.split("/")[1], []).append(key)
    studies = found.pop(STUDIES, [])
    found["all"] = [key for mine in found.values() for key in mine]
    return found | ({STUDIES: studies} if studies else {})


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Print rows of texts, the columns aligned."""
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


def _note(costs: list[Cost]) -> str:
    unmeasured = sum(cost is UNMEASURED for cost in costs)
    elsewhere = sum(not cost.known for cost in costs) - unmeasured
    return "; ".join(
        f"{words}: {count} stage{'s' * (count > 1)}"
        for words, count in (("scaled by their sizes", elsewhere), ("guessed", unmeasured))
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
