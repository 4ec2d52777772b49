"""Kill a run at seeded moments, type the same command again, compare every byte.

    python tests/faults/kills.py [--kills 200] [--seed 1] [--workers 2]

A worker takes some of the chain's artifacts away, starts the plain command in a process group of
its own and kills the group with SIGKILL; it does so again with the command that follows, up to
`IN_A_ROW` times, and then lets it end. A moment lies either within the start, or after a seeded
number of jobs. No command but the plain one is ever typed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import chain

IN_A_ROW = 10
# What is taken away, from the last artifacts to all: a level goes with those before it in the list.
LEVELS = (
    ["gate.txt", "ro-crate-metadata.json", "index.html"],
    ["claims.csv", "claims.json", "findings.csv", "tables/chain2026/table1.csv"],
    ["verdicts/chain2026.json"],
    ["intervals/chain2026/slope.nc", "figures/chain2026/fig1.pdf", "figures/chain2026/fig1.png"],
    ["simulation/chain2026/slope.nc", "theory/chain2026/slope.nc"],
    ["simulation/chain2026/slope/0.nc", "simulation/chain2026/slope/1.nc"],
    ["data/california_housing.nc", "data/california_housing.json"],
)
# How often each level is the deepest.
WEIGHTS = (6, 5, 4, 3, 2, 2, 1)
# About how long a start of Snakemake and a job take, in seconds.
START, JOB = 1.5, 1.0
STARTING = "Building DAG"


@dataclass
class Outcome:
    """What came of the kills."""

    kills: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    taken_over: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def killed(self) -> int:
        return sum(self.kills.values())

    def __str__(self) -> str:
        where = ", ".join(f"{count} {phase}" for phase, count in sorted(self.kills.items()))
        return (
            f"{self.killed} kills ({where}), {self.rounds} rounds, "
            f"{self.taken_over} takeovers said, {len(self.problems)} problems"
        )


def campaign(built: Path, folder: Path, *, kills: int, seed: int, workers: int) -> Outcome:
    """Kill so often, in as many copies of one built chain as there are workers."""
    expected = chain.artifacts(built)
    share = [kills // workers + (worker < kills % workers) for worker in range(workers)]

    def work(worker: int) -> Outcome:
        copy = folder / f"worker{worker}"
        shutil.copytree(built, copy)
        return _worker(copy, share[worker], random.Random(seed * 1000 + worker), expected)

    total = Outcome()
    with ThreadPoolExecutor(workers) as pool:
        for found in pool.map(work, range(workers)):
            total.kills += found.kills
            total.rounds += found.rounds
            total.taken_over += found.taken_over
            total.problems += found.problems
    return total


def _worker(folder: Path, kills: int, rng: random.Random, expected: dict[str, str]) -> Outcome:
    outcome = Outcome()
    while outcome.killed < kills:
        for level in LEVELS[: 1 + rng.choices(range(len(LEVELS)), WEIGHTS)[0]]:
            for path in level:
                (folder / "results" / path).unlink(missing_ok=True)
        for _ in range(min(IN_A_ROW, kills - outcome.killed)):
            if not _kill_once(folder, rng, outcome):
                break
        ended = chain.run(folder, "--cores", "1")
        outcome.rounds += 1
        outcome.taken_over += "ended without a word" in ended.output
        if ended.status:
            outcome.problems.append(f"the command after a kill failed:\n{ended.output}")
        found = chain.artifacts(folder)
        for path in sorted(expected.keys() | found.keys()):
            if expected.get(path) != found.get(path):
                outcome.problems.append(f"{path}: {found.get(path)}, built {expected.get(path)}")
        if outcome.problems:
            break
    return outcome


def _kill_once(folder: Path, rng: random.Random, outcome: Outcome) -> bool:
    """Start the command and kill it; False if it ended before."""
    started = chain.start(folder, folder / "killed.log", "--cores", "1")
    phase = rng.choice(["starting", "planning", "running", "running", "running"])
    if phase == "starting":
        time.sleep(rng.uniform(0, START))
    elif phase == "planning":
        started.wait_for(STARTING)
        time.sleep(rng.uniform(0, START / 2))
    else:
        started.wait_for_launches(rng.choice([1, 1, 1, 2, 2, 3]))
        time.sleep(rng.uniform(0, JOB))
    alive = started.process.poll() is None
    started.hit(signal.SIGKILL)
    ended = started.end()
    if alive:
        outcome.kills[phase] += 1
    elif ended.status:
        outcome.problems.append(f"the command after a kill failed:\n{ended.output}")
    return alive


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = chain.built_checkout(folder / "built")
        outcome = campaign(
            built, folder, kills=arguments.kills, seed=arguments.seed, workers=arguments.workers
        )
    print(outcome, *outcome.problems, sep="\n")
    print(f"{time.monotonic() - started:.0f} s")
    return bool(outcome.problems)


if __name__ == "__main__":
    raise SystemExit(main())
