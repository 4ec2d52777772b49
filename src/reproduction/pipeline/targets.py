"""What a run may be asked for: a name that nothing makes is refused, with the nearest one."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from reproduction.engine.parameters import ConfigError
from reproduction.pipeline.falsify import wrong_versions
from reproduction.pipeline.layout import PEERS_FILES, Layout, book_of
from reproduction.pipeline.plan import Plan


def checked(workflow: Any, plan: Plan) -> Callable[..., None]:
    """Snakemake's `workflow.execute`, after a look at what it is asked for.

    Snakemake itself says of a figure that is not there how its rule failed, in a traceback.
    """
    from snakemake_interface_executor_plugins.settings import ExecMode

    execute = workflow.execute

    def checked_execute(executor_plugin: Any, **options: Any) -> None:
        if workflow.exec_mode == ExecMode.DEFAULT:
            asked = workflow.dag_settings
            names = (asked.targets, asked.forcerun, asked.until, asked.omit_from)
            try:
                require_made(
                    sorted({str(name) for given in names for name in given or ()}),
                    plan,
                    [rule.name for rule in workflow.rules],
                )
            except ConfigError as error:
                sys.exit(f"error: {error}")
            for line in own_lines(plan):
                print(line, file=sys.stderr, flush=True)
        execute(executor_plugin=executor_plugin, **options)

    return checked_execute


def own_lines(plan: Plan) -> list[str]:
    """Says, where it is so, that the run is not at the paper's scale and where its results lie."""
    if not plan.own:
        return []
    names = [f"{paper}/{name}" for paper, name in sorted(plan.own)]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [
        f"Your own scale: {', '.join(names[:3])}{more} with other parameters than the paper's; "
        f"results go to {plan.layout.root}"
    ]


def require_made(names: Iterable[str], plan: Plan, rules: Iterable[str]) -> None:
    """Refuse a target that is neither a rule, nor made by one, nor a file that is there.

    Raises
    ------
    ConfigError
        One line: the name, and the nearest one that is made.
    """
    known_rules, made = set(rules), files_made(plan)
    for name in names:
        path = Path(os.path.relpath(name)).as_posix() if name else name
        if name in known_rules or path in made:
            continue
        # Of what lies there already, sources are targets too; what a rule made once is not.
        if not path.startswith("results/") and Path(path).is_file():
            continue
        raise ConfigError(f"{name!r} is neither a rule nor made by one{_hint(path, plan, made)}")


def files_made(plan: Plan) -> set[str]:
    """Every file that the workflow's rules can make for this plan."""
    layout = plan.layout
    keys = tuple(plan.config.blocks)
    found = {*plan.figures(*keys), *plan.tables(*keys), *plan.ledgers.verdicts()}
    for book in {book_of(key) for key in keys}:
        found |= {layout.ledger("csv", book), layout.ledger("json", book), layout.findings(book)}
        found |= {layout.page(book), layout.entries(book), layout.gate(book)}
    found.add(layout.caught())
    found |= {layout.peers(name) for name in PEERS_FILES}
    found |= {layout.data(name) for name in plan.config.data}
    for paper, block in plan.config.blocks.items():
        found |= {layout.claim(paper, entry) for entry in plan.ledgers.by_paper[paper].entries}
        found |= {layout.falsified(paper, version) for version in wrong_versions(paper)}
        for name in block.experiments:
            recipe = plan.recipe(paper, name)
            if recipe.has("theory"):
                found.add(layout.theory(paper, name))
            if recipe.has("intervals"):
                found.add(layout.intervals(paper, name))
            if recipe.has("simulate"):
                found |= {layout.simulation(paper, name), *plan.shards(paper, name)}
    return found | {
        layout.benchmark(file) for file in found if not file.endswith((".html", "/entries"))
    }


def _hint(path: str, plan: Plan, made: set[str]) -> str:
    shard = re.fullmatch(rf"{plan.layout.root}/simulation/(\w+)/(\w+)/\d+\.nc", path)
    if shard and f"{plan.layout.root}/simulation/{shard[1]}/{shard[2]}.nc" in made:
        count = len(plan.shards(shard[1], shard[2]))
        return f"; {shard[1]}/{shard[2]} has the shards 0 to {count - 1}"
    inside = re.sub(r"^results/((quick|own)/)?", "", path)
    here = f"{plan.layout.root}/{inside}"
    if here in made:
        return f"; at this run's scale it is {here}"
    if path.startswith("results/quick/") and plan.layout != Layout("quick"):
        return "; the quick scale takes --configfile config/quick.yaml"
    folder = here.rpartition("/")[0]
    beside = [file for file in made if file.rpartition("/")[0] == folder]
    names = beside or [file for file in made if "/benchmarks/" not in file]
    close = difflib.get_close_matches(here, names, n=1, cutoff=0.6)
    if not path.startswith("results"):
        people = ["all", "claims", "falsify", "docs", "peers", *plan.config.blocks]
        close = difflib.get_close_matches(path, people, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""
