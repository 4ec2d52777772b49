"""Floors of the largest jobs: what their draws, arithmetic and memory take at the machine's rates.

    python benchmarks/floors.py [--results results]

Reads the logs of a build, and prints the papers' twenty largest jobs as a Markdown table, each of
all its shards, without the starts of processes:

    floor = draws × seconds a normal + operations / rate of products + bytes / bandwidth

The three are summed, for they are phases that follow each other: rows are drawn, then multiplied,
and bytes are declared of passes beyond the caches that do little arithmetic. Rates are measured in
the same run on one core, held to the instructions that jobs are held to. Draws are 64-bit numbers,
which the generator counts in one trial; each is taken for a normal. Operations and bytes are
declared in `declared_work.py`. The ratio is that of the build's time, so that the program belongs
on the machine of the build, while nothing else runs. It fails if a ratio above 2 has no reason.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import nan
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from declared_work import BYTES, DRAWS, NUMBERS_A_NORMAL, OPERATIONS, REASONS

from reproduction.pipeline import stages
from reproduction.pipeline.config import STUDIES
from reproduction.pipeline.costs import COSTS, merged, took
from reproduction.pipeline.plan import Plan
from reproduction.pipeline.prediction import START, Cost, read_costs
from reproduction.pipeline.processor import pinned

LARGEST, TOLERATED, UNKNOWN, REPEATS = 20, 2.0, "no reason", 50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    results = parser.parse_args().results
    environment = {**os.environ, **pinned(), "OPENBLAS_NUM_THREADS": "1"}
    if environment != dict(os.environ):
        # Libraries have read theirs by now.
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    if not (results / "logs").exists():
        print(f"{results / 'logs'} is not there: nothing to compare before a build")
        return 0
    plan, rates = Plan(merged(), checked=False), Rates.measured()
    print(
        f"{1e9 * rates.normal:.1f} ns a normal, {rates.product / 1e9:.0f} GFLOP/s in products, "
        f"{rates.bandwidth / 1e9:.0f} GB/s\n"
    )
    print("| job | 10⁶ draws | GFLOP | GB | floor, s | build, s | ratio | why |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    unexplained = False
    for key, built in largest(results / "logs"):
        work, seconds = Work.of(plan, key, built, results), _alone(built)
        floor = work.seconds(rates)
        ratio = nan if floor is None else seconds / floor
        why = "" if ratio <= TOLERATED else REASONS.get(key, UNKNOWN)
        unexplained |= why == UNKNOWN
        cells = (
            key.replace("simulation/", ""),
            *work.cells(),
            "" if floor is None else f"{floor:.1f}",
            f"{seconds:.0f}",
            "" if floor is None else f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}",
            why,
        )
        print(f"| {' | '.join(cells)} |", flush=True)
    return int(unexplained)


class Rates(NamedTuple):
    """Seconds a normal, operations a second of a product, bytes a second of a pass; one core."""

    normal: float
    product: float
    bandwidth: float

    @classmethod
    def measured(cls) -> Rates:
        """Each the best of some repeats; large draws are made in the kernel that is timed."""
        from privreg.noise.normals_kernel import fill

        rng, numbers = np.random.Generator(np.random.SFC64(0)), np.empty(1_000_000)
        square, out = rng.standard_normal((1024, 1024)), np.empty((1024, 1024))
        source, copy = np.ones(2**24), np.zeros(2**24)
        return cls(
            fastest(lambda: fill(rng, numbers)) / numbers.size,
            2 * 1024**3 / fastest(lambda: np.matmul(square, square, out=out)),
            2 * source.nbytes / fastest(lambda: np.copyto(copy, source)),
        )


def fastest(run: Callable[[], object]) -> float:
    """Processor seconds of the fastest of some calls after a first."""
    run()
    seconds = []
    for _ in range(REPEATS):
        begin = process_time()
        run()
        seconds.append(process_time() - begin)
    return min(seconds)


def largest(logs: Path) -> list[tuple[str, Cost]]:
    """The largest jobs of the papers that a build has finished, in falling order."""
    keys = (key for key in read_costs(COSTS) if key.split("/")[1] != STUDIES)
    found = {key: built for key in keys if (built := took(logs, key)) is not None}
    if not found:
        sys.exit(f"error: {logs} must hold logs of a build, got none")
    return sorted(found.items(), key=lambda item: -_alone(item[1]))[:LARGEST]


class Work(NamedTuple):
    """What a job draws, computes and moves; operations are None where no formula is at hand."""

    draws: float
    operations: float | None
    bytes: float

    @classmethod
    def of(cls, plan: Plan, key: str, built: Cost, results: Path) -> Work:
        paper, name = key.split("/")[1:]
        parameters = plan.recipe(paper, name).parameters(built.parameters, name)
        trials, drawn = built.trials or 1, 0.0
        if key in DRAWS:
            drawn = DRAWS[key](parameters, trials)
        elif built.trials is not None:
            drawn = trials * numbers_of_a_trial(plan, key, built.parameters, results)
        return cls(
            drawn / NUMBERS_A_NORMAL,
            OPERATIONS[key](parameters, trials) if key in OPERATIONS else None,
            BYTES[key](parameters, trials) if key in BYTES else 0.0,
        )

    def seconds(self, rates: Rates) -> float | None:
        if self.operations is None:
            return None
        computed = self.operations / rates.product
        return self.draws * rates.normal + computed + self.bytes / rates.bandwidth

    def cells(self) -> tuple[str, str, str]:
        return (
            f"{self.draws / 1e6:,.0f}" if self.draws else "",
            "" if self.operations is None else f"{self.operations / 1e9:,.0f}",
            f"{self.bytes / 1e9:,.0f}" if self.bytes else "",
        )


def numbers_of_a_trial(plan: Plan, key: str, parameters: Mapping[str, Any], results: Path) -> int:
    """64-bit numbers that a simulation's first trial draws, on the artifacts of a build."""
    _, paper, name = key.split("/")
    artifacts = {
        kind: results
        / kind
        / (f"{parameters['dataset']}.nc" if kind == "data" else f"{paper}/{name}.nc")
        for kind in plan.reads("simulate", paper, name)
    }
    with tempfile.TemporaryDirectory() as folder, counted() as numbers:
        stages.simulate(
            f"{paper}/{name}",
            recipe=plan.recipe(paper, name).name,
            parameters=parameters,
            seed=plan.config.seed,
            trials=1,
            shard=(0, 1),
            artifacts=artifacts,
            output=Path(folder, "shard.nc"),
        )
        return numbers()


@contextmanager
def counted() -> Iterator[Callable[[], int]]:
    """A function that says how many 64-bit numbers the generators made since then have drawn.

    SFC64 counts them itself. Generators that another one spawns are not seen.
    """
    # It looks at a generator's class, which it must have seen before.
    import privreg.noise.normals  # noqa: F401

    original, made = np.random.SFC64, []

    def recorded(seed: Any = None) -> Any:
        bits = original(seed)
        made.append((bits, _counter(bits)))
        return bits

    np.random.SFC64 = recorded  # type: ignore[assignment,misc]
    try:
        yield lambda: sum(_counter(bits) - start for bits, start in made)
    finally:
        np.random.SFC64 = original  # type: ignore[misc]


def _counter(bits: Any) -> int:
    return int(bits.state["state"]["state"][3])


def _alone(cost: Cost) -> float:
    return max(cost.seconds - START * cost.jobs, 0.0)


if __name__ == "__main__":
    sys.exit(main())
