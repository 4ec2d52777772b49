"""`python -m privreg STAGE …`: the one door that the workflow uses.

Each stage reads artifacts and writes one. What it says on the way goes to the terminal and, with
`--log`, to a file, which also takes the traceback of a failure.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

logger = logging.getLogger("privreg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one stage; returns the exit status."""
    # Parallelism is the workflow's; a BLAS that starts threads of its own fights with other jobs.
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    options = _parser().parse_args(arguments)
    _start_log(options.log)
    try:
        status = options.run(options)
    except (ValueError, OSError) as error:
        logger.error("%s: %s", options.stage, error)
        logger.debug("traceback", exc_info=True)
        return 1
    except Exception:
        logger.exception("%s failed", options.stage)
        return 1
    return int(status or 0)


def _data(options: argparse.Namespace) -> None:
    from privreg import stages

    directory = os.environ.get("PRIVREG_DATA")
    stages.data(
        options.name,
        mirrors=options.mirrors,
        directory=Path(directory) if directory else None,
        output=options.output,
    )


def _theory(options: argparse.Namespace) -> None:
    from privreg import stages

    stages.theory(
        _recipe(options), options.parameters, reads=_reads(options), output=options.output
    )


def _simulate(options: argparse.Namespace) -> None:
    from privreg import stages

    stages.simulate(
        _recipe(options),
        options.parameters,
        experiment=options.path,
        seed=options.seed,
        trials=options.trials,
        shard=options.shard,
        reads=_reads(options),
        output=options.output,
    )


def _gather(options: argparse.Namespace) -> None:
    from privreg import stages

    stages.gather(
        _recipe(options),
        options.parameters,
        shards=options.shards,
        reads=_reads(options),
        output=options.output,
    )


def _intervals(options: argparse.Namespace) -> None:
    from privreg import stages

    stages.intervals(
        _recipe(options), options.parameters, reads=_reads(options), output=options.output
    )


def _figure(options: argparse.Namespace) -> None:
    from privreg import stages

    paper, name = options.path.split("/")
    stages.figure(
        paper,
        name,
        artifacts=dict(options.artifacts),
        scale=options.scale,
        outputs=options.output,
    )


def _table(options: argparse.Namespace) -> None:
    from privreg import stages

    paper, name = options.path.split("/")
    stages.table(paper, name, artifacts=dict(options.artifacts), output=options.output)


def _claims(options: argparse.Namespace) -> None:
    from privreg import stages

    stages.claims(
        options.paper,
        options.entries,
        evidence=options.evidence,
        scale=options.scale,
        outputs=options.output,
    )


def _ledger(options: argparse.Namespace) -> None:
    from privreg import stages

    stages.ledger(options.verdicts, csv=options.csv, json_file=options.json, html=options.html)


def _gate(options: argparse.Namespace) -> int:
    from privreg import stages

    failures = stages.gate(options.claims, output=options.output)
    for line in failures:
        logger.error("%s", line)
    return 1 if failures else 0


def _schema(options: argparse.Namespace) -> None:
    from privreg import plan, store

    with store.atomic(options.output) as partial:
        partial.write_text(plan.schema())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="privreg", description=__doc__)
    commands = parser.add_subparsers(dest="stage", required=True, metavar="STAGE")

    def command(name: str, run: Any, summary: str, *, outputs: bool = False) -> Any:
        added = commands.add_parser(name, help=summary, description=summary)
        added.set_defaults(run=run)
        added.add_argument("--log", type=Path, help="also write messages and tracebacks here")
        if name != "ledger":
            added.add_argument("--output", type=Path, required=True, nargs="+" if outputs else None)
        return added

    def recipe_command(name: str, run: Any, summary: str) -> Any:
        added = command(name, run, summary)
        added.add_argument("path", help="PAPER/EXPERIMENT")
        added.add_argument(
            "--recipe", help="module of the paper; the experiment's name if left out"
        )
        added.add_argument("--parameters", type=json.loads, default={}, metavar="JSON")
        for kind in ("data", "theory", "simulation", "intervals"):
            # An artifact that the stage does not read is given as an option without a value.
            added.add_argument(f"--{kind}", type=Path, nargs="*", default=[], metavar="FILE")
        return added

    added = command("data", _data, "fetch, check and store a real table")
    added.add_argument("name")
    added.add_argument("--mirrors", nargs="+", default=None, metavar="ADDRESS")

    recipe_command("theory", _theory, "evaluate an experiment's theory")
    added = recipe_command("simulate", _simulate, "simulate one shard of an experiment's trials")
    added.add_argument("--seed", type=int, required=True)
    added.add_argument("--trials", type=int, required=True)
    added.add_argument("--shard", type=_fraction, default=(0, 1), metavar="INDEX/COUNT")
    added = recipe_command("gather", _gather, "join an experiment's shards and summarise them")
    added.add_argument("--shards", type=Path, nargs="+", required=True, metavar="FILE")
    recipe_command("intervals", _intervals, "compute an experiment's confidence intervals")

    for name, run in (("figure", _figure), ("table", _table)):
        added = command(name, run, f"make one {name}", outputs=name == "figure")
        added.add_argument("path", help=f"PAPER/{name.upper()}")
        added.add_argument("--artifacts", type=_assignment, nargs="+", metavar="ARGUMENT=FILE")
        added.add_argument("--scale", choices=("paper", "quick"), default="paper")

    added = command("claims", _claims, "judge claims that share their evidence", outputs=True)
    added.add_argument("paper")
    added.add_argument("--entries", type=json.loads, required=True, metavar="JSON")
    added.add_argument("--evidence", type=Path, required=True, metavar="FILE")
    added.add_argument("--scale", choices=("paper", "quick"), default="paper")

    added = command("ledger", _ledger, "join verdicts into a table and a page")
    added.add_argument("verdicts", type=Path, nargs="+", metavar="VERDICT")
    for kind in ("csv", "json", "html"):
        added.add_argument(f"--{kind}", type=Path, required=True)

    added = command("gate", _gate, "fail if a verdict is not the expected one")
    added.add_argument("claims", type=Path)

    command("schema", _schema, "write the JSON schema of the configuration")
    return parser


def _recipe(options: argparse.Namespace) -> Any:
    from privreg.papers.registry import Recipe

    paper, experiment = options.path.split("/")
    return Recipe(paper, options.recipe or experiment)


def _reads(options: argparse.Namespace) -> dict[str, Path]:
    kinds = ("data", "theory", "simulation", "intervals")
    return {kind: getattr(options, kind)[0] for kind in kinds if getattr(options, kind)}


def _fraction(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    return int(index), int(count)


def _assignment(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    return name, Path(path)


def _start_log(path: Path | None) -> None:
    logger.setLevel(logging.DEBUG)
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.INFO)
    handlers: list[logging.Handler] = [terminal]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(path, mode="w", encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(message)s"))
    logger.handlers[:] = handlers
    warnings.showwarning = _log_warning


def _log_warning(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
    logger.warning("%s", message)


if __name__ == "__main__":
    sys.exit(main())
