"""What rebuilding an entry costs, from the benchmarks of the jobs behind its evidence."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path

STAGES = ("theory", "simulation", "intervals")


def seconds(benchmarks: Path, paper: str, artifacts: Iterable[str]) -> float | None:
    """Wall time of all jobs that make the artifacts of a paper, one after the other.

    Parameters
    ----------
    benchmarks : Path
        Folder with a file a job, as the workflow writes them.
    paper : str
        Citation key.
    artifacts : iterable of str
        STAGE/EXPERIMENT, or data/DATASET. A stage may read the stages before it: they count.

    Returns
    -------
    float or None
        None if no job of an artifact was measured.
    """
    files: dict[Path, None] = {}
    for artifact in artifacts:
        stage, _, name = artifact.partition("/")
        if stage == "data":
            listed = [benchmarks / "data" / f"{name}.tsv"]
        else:
            until = STAGES[: STAGES.index(stage) + 1]
            folders = [benchmarks / earlier / paper for earlier in until]
            listed = [path for folder in folders for path in _jobs(folder, name)]
        found = [path for path in listed if path.is_file()]
        if not found:
            return None
        files |= dict.fromkeys(found)
    return sum(map(_measured, files)) if files else None


def words(cost: float | None) -> str:
    """A cost to one digit: no two runs measure the second one alike."""
    if cost is None:
        return "not measured in this build"
    if cost < 1:
        return "under a second"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if cost >= 1.5 * size:
            return f"about {_one_digit(cost / size)} {unit}"
    return f"about {_one_digit(cost)} s"


def _jobs(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.tsv", *sorted((folder / name).glob("*.tsv"))]


@cache
def _measured(path: Path) -> float:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return float(rows[0]["s"]) if rows else 0.0


def _one_digit(value: float) -> str:
    return f"{float(f'{value:.1g}'):.0f}"
