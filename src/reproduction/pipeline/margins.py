"""How certain the verdicts of a build are, and what more certainty costs: `margins`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.claims.margins import Margin
from reproduction.experiment import datasets
from reproduction.experiment.parameters import ConfigError, choose
from reproduction.pipeline.costs import COSTS, merged, print_table
from reproduction.pipeline.plan import Plan
from reproduction.pipeline.prediction import Cost, predicted, read_costs

if TYPE_CHECKING:
    import xarray as xr

HEADINGS = (
    "entry", "number", "value", "standard error", "margin", "refusal", "trials", "for {:g}",
    "core seconds more",
)  # fmt: skip


def margins(
    papers: list[str], *, results: Path, below: float, wanted: float, before: Path | None
) -> None:
    """Print, least certain first, the margin of each simulated number that a verdict reads.

    Parameters
    ----------
    papers : list of str
        Citation keys, or `studies`; all if empty.
    results : Path
        Folder of a build at the paper's scale.
    below : float
        Leave out what has a larger margin.
    wanted : float
        Margin for which trials, and what they cost, are told.
    before : Path or None
        Folder of another build, whose margins stand beside.
    """
    plan = Plan(merged(), checked=False)
    found = dict(_of(plan, results, papers))
    if not found:
        raise ConfigError(f"{results} must hold artifacts of a build, got none")
    earlier = {} if before is None else dict(_of(plan, before, papers))
    measured = read_costs(COSTS)
    rows: list[tuple[str, ...]] = [
        (*(each.format(wanted) for each in HEADINGS), *["margin before"] * bool(before))
    ]
    for key in sorted(found, key=lambda key: found[key].least):
        each = found[key]
        if each.least >= below:
            break
        job = f"simulation/{key[0]}/{each.artifact.partition('/')[2]}"
        cost = predicted(job, plan, measured) if job in measured else None
        beside = [] if before is None else [_short(earlier[key].least) if key in earlier else "-"]
        rows.append((*_row(key[0], each, wanted, cost), *beside))
    print_table(rows)


def _of(
    plan: Plan, results: Path, papers: list[str]
) -> Iterator[tuple[tuple[str, str, int], Margin]]:
    """Margins by paper, entry and position of the check; of entries whose artifacts are there."""
    from reproduction.claims.margins import margins as of
    from reproduction.claims.verdicts import artifacts

    layout = plan.layout
    for paper in papers or plan.config.blocks:
        choose(paper, plan.config.blocks, "a paper")
        read: dict[str, xr.Dataset] = {}
        for entry in plan.ledgers.by_paper[paper].entries.values():
            paths = {
                name: results / layout.artifact(paper, name).removeprefix(f"{layout.root}/")
                for name in artifacts(entry)
            }
            if all(path.exists() for path in paths.values()):
                read |= {name: datasets.read(paths[name]) for name in paths.keys() - read.keys()}
                for position, each in enumerate(of(entry, read)):
                    yield (paper, entry.id, position), each


def _row(paper: str, margin: Margin, wanted: float, cost: Cost | None) -> tuple[str, ...]:
    needed = margin.needed(wanted)
    more = math.nan
    if cost is not None and needed is not None and margin.trials:
        more = cost.seconds * max(0.0, needed / margin.trials - 1)
    named = f"{margin.artifact}.{margin.variable}"
    return (
        f"{paper}/{margin.entry}{f' ({margin.check})' * bool(margin.check)}",
        f"{named} at {margin.place}" if margin.place else named,
        f"{margin.value:.5g}",
        f"{margin.standard_error:.2g}",
        _short(margin.bound),
        _short(margin.refusal),
        "-" if margin.trials is None else str(margin.trials),
        "-" if needed is None or margin.least >= wanted else str(needed),
        "-" if math.isnan(more) or more == 0 else f"{more:.0f}",
    )


def _short(value: float) -> str:
    return "exact" if math.isinf(value) else f"{value:.2f}"
