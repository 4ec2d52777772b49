"""`python -m reproduction STAGE …`: the command that the workflow's rules run.

Each stage reads artifacts and writes one. What it says on the way goes to the terminal and, with
`--log`, to a file, which also takes the traceback of a failure.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.engine.artifacts import FileFault
from reproduction.pipeline import usage
from reproduction.pipeline.arguments import OneLineParser, json_of, one_line, require_sound
from reproduction.pipeline.lock import running_job

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[OneLineParser]

logger = logging.getLogger("reproduction")
# A full disk, a folder that cannot be written: the line is all there is to say.
NO_FAULT_OF_CODE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


def main(arguments: Sequence[str] | None = None, *, forked: bool = False) -> int:
    """Run one stage; returns the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line's if left out.
    forked : bool
        Whether this process began with its imports behind it; its log says so.
    """
    # Parallelism is the workflow's; a BLAS that starts threads of its own fights with other jobs.
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    options = vars(_parser().parse_args(arguments))
    stage, log = options.pop("stage"), options.pop("log")
    try:
        _start_log(log)
        # Imported here, so that `--help` and a misspelt option cost no import of a stage.
        module = importlib.import_module(f"reproduction.pipeline.{options.pop('module')}")
        require_sound(stage, options)
        with running_job():
            failures = getattr(module, stage)(**options)
    except (ValueError, OSError) as error:
        logger.error("%s: %s", stage, one_line(error))
        if not (isinstance(error, FileFault) or getattr(error, "errno", None) in NO_FAULT_OF_CODE):
            logger.debug("traceback", exc_info=True)
        return 1
    except Exception as error:
        hint = "" if log else "; --log FILE takes the traceback"
        logger.error("%s: %s: %s%s", stage, type(error).__name__, one_line(error), hint)
        logger.debug("traceback", exc_info=True)
        return 1
    for line in failures or ():
        logger.error("%s", line)
    if not failures:
        logger.debug("%s", usage.line(options, forked=forked))
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    """One command a function of a module of stages, whose options are its parameters."""
    parser = OneLineParser(prog="python -m reproduction", description=__doc__)
    commands = parser.add_subparsers(dest="stage", required=True, metavar="STAGE")
    for add in (_costs, _data, _experiments, _drawings, _verdicts, _checks):
        add(commands)
    return parser


def _command(
    commands: Commands, name: str, summary: str, module: str = "stages"
) -> argparse.ArgumentParser:
    added = commands.add_parser(name, help=summary, description=summary)
    added.set_defaults(module=module)
    added.add_argument("--log", type=Path, help="also write messages and tracebacks here")
    return added


def _experiment(commands: Commands, name: str, summary: str) -> argparse.ArgumentParser:
    added = _command(commands, name, summary)
    added.add_argument("path", metavar="PAPER/EXPERIMENT")
    added.add_argument(
        "--recipe", help="recipe of the paper; the experiment's own name if left out"
    )
    added.add_argument("--parameters", type=json_of(dict), default={}, metavar="JSON")
    _artifacts(added)
    _output(added)
    return added


def _artifacts(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--artifacts", action=_Assignments, nargs="*", default={}, metavar="ARGUMENT=FILE"
    )
    added.add_argument(
        "--expected",
        type=json_of(dict),
        default={},
        metavar="JSON",
        help="identity that each artifact must have",
    )


def _output(added: argparse.ArgumentParser, **options: Any) -> None:
    added.add_argument("--output", type=Path, required=True, **options)


def _ledgers(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--ledgers", action=_Assignments, nargs="+", required=True, metavar="PAPER=FOLDER"
    )


def _draws(added: argparse.ArgumentParser) -> None:
    added.add_argument("--seed", type=int, required=True)
    added.add_argument("--trials", type=int, required=True)


def _costs(commands: Commands) -> None:
    added = _command(commands, "cost", "tell what a configuration costs before it runs", "costs")
    added.add_argument("configs", type=Path, nargs="*", metavar="CONFIG")
    added.add_argument("--measured", type=Path, metavar="FOLDER", help="logs of a build")
    added = _command(commands, "measure", "write what the jobs of a build took", "costs")
    added.add_argument("logs", type=Path, metavar="FOLDER")
    added.add_argument("--configs", type=Path, nargs="*", default=[], metavar="CONFIG")
    _output(added)


def _data(commands: Commands) -> None:
    added = _command(commands, "data", "fetch, check and store a real table")
    added.add_argument("name")
    added.add_argument("--mirrors", nargs="+", default=None, metavar="ADDRESS")
    added.add_argument(
        "--directory",
        type=Path,
        default=os.environ.get("PRIVREG_DATA") or None,
        help="where to look before a download; PRIVREG_DATA if left out",
    )
    added.add_argument("--real", action="store_true", help="refuse a stand-in")
    added.add_argument("--looked-for-in", default="", help="written into the origin")
    added.add_argument("--origin", type=Path, help="takes where the table came from, as JSON")
    _output(added)


def _experiments(commands: Commands) -> None:
    _experiment(commands, "theory", "evaluate an experiment's theory")

    added = _experiment(commands, "simulate", "simulate one shard of an experiment's trials")
    _draws(added)
    added.add_argument("--shard", type=_fraction, default=(0, 1), metavar="INDEX/COUNT")
    added = _experiment(commands, "summarise", "join an experiment's shards and summarise them")
    added.add_argument("--shards", type=Path, nargs="+", required=True, metavar="FILE")
    added = _experiment(
        commands, "simulation", "simulate all trials of an experiment and summarise them"
    )
    _draws(added)
    added.add_argument("--summary", type=Path, required=True, metavar="FILE")
    _experiment(commands, "intervals", "compute an experiment's confidence intervals")


def _drawings(commands: Commands) -> None:
    added = _command(commands, "figure", "make one figure")
    added.add_argument("path", metavar="PAPER/FIGURE")
    _artifacts(added)
    added.add_argument("--scale", choices=("paper", "quick", "own"), default="paper")
    _output(added, nargs="+")
    added = _command(commands, "table", "make one table")
    added.add_argument("path", metavar="PAPER/TABLE")
    _artifacts(added)
    _output(added)


def _verdicts(commands: Commands) -> None:
    for name, summary in (
        ("judge", "judge the entries of a paper"),
        ("claim", "write the verdict on one entry to a file of its own"),
    ):
        added = _command(commands, name, summary, "ledger_stages")
        added.add_argument("paper")
        added.add_argument("--folder", type=Path, required=True)
        added.add_argument("--scale", choices=("paper", "quick"), required=True)
        if name == "claim":
            added.add_argument("--entry", required=True)
        _artifacts(added)
        _output(added)
    added = _command(commands, "ledger", "join the ledgers with their verdicts", "ledger_stages")
    added.add_argument("verdicts", type=Path, nargs="+", metavar="VERDICTS")
    _ledgers(added)
    for kind in ("csv", "json", "findings"):
        added.add_argument(f"--{kind}", type=Path, required=True)
    added = _command(commands, "page", "show the ledger beside the figures", "ledger_stages")
    added.add_argument("ledger", type=Path)
    added.add_argument("--drawings", type=json_of(dict), default={}, metavar="JSON")
    added.add_argument("--images", type=Path, nargs="*", default=[], metavar="PNG")
    added.add_argument("--benchmarks", type=Path, required=True, metavar="FOLDER")
    added.add_argument("--entries", type=Path, required=True, metavar="FOLDER")
    _output(added)
    added = _command(commands, "gate", "fail if a verdict is not the expected one", "ledger_stages")
    added.add_argument("ledger", type=Path)
    _output(added)
    added = _command(
        commands, "docs", "write what the repository says of the ledgers", "ledger_stages"
    )
    _ledgers(added)
    added.add_argument("--drawings", type=json_of(dict), default={}, metavar="JSON")
    added.add_argument("--readme", type=Path, default=Path("README.md"))
    _output(added)


def _checks(commands: Commands) -> None:
    added = _command(commands, "falsify", "make a mistake and see which entries notice", "falsify")
    added.add_argument("path", metavar="PAPER/VERSION")
    added.add_argument("--experiments", type=json_of(dict), required=True, metavar="JSON")
    added.add_argument("--folder", type=Path, required=True)
    added.add_argument(
        "--artifacts", action=_Assignments, nargs="+", required=True, metavar="NAME=FILE"
    )
    _output(added)
    added = _command(commands, "caught", "fail if a mistake was not caught", "falsify")
    added.add_argument("versions", type=Path, nargs="+", metavar="FILE")
    _output(added)

    _output(_command(commands, "schema", "write the JSON schema of the configuration"))
    _output(_command(commands, "scales", "write the digests of the paper's scale", "scales"))


class _Assignments(argparse.Action):
    """ARGUMENT=FILE options as a dict of paths."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        found = {}
        for text in values:
            name, equals, path = text.partition("=")
            if not (name and equals and path):
                raise argparse.ArgumentError(self, f"must be ARGUMENT=FILE, got {text!r}")
            found[name] = Path(path)
        setattr(namespace, self.dest, found)


def _fraction(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(
            f"must be INDEX/COUNT with INDEX below COUNT, got {text!r}"
        )
    return int(index), int(count)


def _start_log(path: Path | None) -> None:
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.INFO)
    handlers: list[logging.Handler] = [terminal]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(path, mode="w", encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(message)s"))
    # The library reports its downloads.
    for each in (logger, logging.getLogger("privreg")):
        each.setLevel(logging.DEBUG)
        each.handlers[:] = handlers
    warnings.showwarning = _log_warning


def _log_warning(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
    logger.warning("%s", message)


if __name__ == "__main__":
    sys.exit(main())
