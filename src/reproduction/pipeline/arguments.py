"""What a command is told, checked before it starts: names, kinds of file, ranges.

Each option is checked by its name, whatever the command, so that a new command needs no word here.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from reproduction.engine.parameters import ConfigError, choose
from reproduction.pipeline.config import require_address

NETCDF = (b"\x89HDF", b"CDF\x01", b"CDF\x02", b"CDF\x05")
MOST_TRIALS = 1_000_000
MOST_SHOWN = 400


class OneLineParser(argparse.ArgumentParser):
    """A parser that refuses in one line, without the list of all options before it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found:
            names = re.findall(r"[\w-]+", found[2])
            close = difflib.get_close_matches(found[1], names, n=1, cutoff=0.5)
            message += f"; did you mean {close[0]!r}?" if close else ""
        self.exit(2, f"{self.prog}: error: {one_line(message)}\n")


def one_line(value: object) -> str:
    """Text without line breaks, shortened in the middle."""
    text = " ".join(str(value).split())
    if len(text) <= MOST_SHOWN:
        return text
    # The end names what was found and the nearest valid name.
    return f"{text[: MOST_SHOWN // 2]} ... {text[-MOST_SHOWN // 2 :]}"


def json_of(kind: type) -> Callable[[str], Any]:
    """A type of option: JSON whose outermost value is of this kind, dict or list."""
    wanted = "an object" if kind is dict else "a list"

    def read(text: str) -> Any:
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise argparse.ArgumentTypeError(
                f"must be JSON, got {one_line(text)[:60]!r}: {one_line(error)}"
            ) from None
        if not isinstance(found, kind):
            raise argparse.ArgumentTypeError(f"must hold {wanted}, got {one_line(text)[:60]!r}")
        if isinstance(found, list) and not all(isinstance(each, dict) for each in found):
            raise argparse.ArgumentTypeError(f"must list objects, got {one_line(text)[:60]!r}")
        return found

    return read


def require_sound(stage: str, options: Mapping[str, Any]) -> None:
    """Refuse what a command could not work with.

    Raises
    ------
    ConfigError
        One line: the option, what was expected, what was found and the nearest valid name.
    """
    _require_names(stage, options)
    for name, value in options.items():
        for path in _paths(value) if name not in WRITTEN else ():
            if name in ("artifacts", "shards"):
                _require_dataset(path)
            else:
                _require_there(path, folder=name in FOLDERS)
    _require_ranges(options)
    for address in options.get("mirrors") or ():
        require_address(address)
    outputs = [path for name in WRITTEN if name in options for path in _paths(options[name])]
    for path in outputs:
        folders = [options.get("benchmarks"), options.get("entries")]
        _require_writable(path, folder=path in folders)


# Options that are written, and those that name a folder.
WRITTEN = (
    "output", "summary", "log", "csv", "json", "findings", "origin", "benchmarks", "entries",
)  # fmt: skip
FOLDERS = ("ledgers", "folder", "directory", "measured", "logs")
EXPERIMENT_STAGES = ("theory", "simulate", "summarise", "simulation", "intervals")


def _require_names(stage: str, options: Mapping[str, Any]) -> None:
    from reproduction.pipeline.registry import Recipe, known_keys

    paper, slash, name = str(options.get("path", "")).partition("/")
    for each in ({paper} if "path" in options else set()) | {*options.get("ledgers", ())}:
        choose(each, known_keys(), "a paper")
    if "path" in options and not (slash and name):
        raise ConfigError(f"{stage} must be told PAPER/NAME, got {options['path']!r}")
    if stage in EXPERIMENT_STAGES:
        recipe = Recipe(paper, options["recipe"] or name)
        there = [each for each in EXPERIMENT_STAGES if recipe.has(each)]
        there += ["summarise", "simulation"] if "simulate" in there else []
        choose(stage, there, f"a stage of {paper}/{recipe.name}")
        _require_arguments(options["artifacts"], recipe.reads(stage))
        recipe.parameters(options["parameters"], name)
    elif stage in ("figure", "table"):
        from reproduction.pipeline import drawings

        functions = drawings.functions(paper, f"{stage}s")
        choose(name, functions, f"{paper}: a {stage}")
        _require_arguments(options["artifacts"], functions[name])
    elif stage == "falsify":
        from reproduction.pipeline.falsify import wrong_versions

        choose(name, wrong_versions(paper), f"{paper}: a deliberate mistake")
    elif stage in ("judge", "claim"):
        choose(options["paper"], known_keys(), "a paper")


def _require_arguments(given: Mapping[str, Path], wanted: tuple[str, ...]) -> None:
    for argument in given:
        choose(argument, wanted, "--artifacts: an argument")
    for argument in wanted:
        if argument not in given:
            raise ConfigError(
                f"--artifacts must hold {argument}=FILE, got {', '.join(given) or 'none'}"
            )


def _paths(value: Any) -> list[Path]:
    if isinstance(value, Path):
        return [value]
    if isinstance(value, Mapping):
        return [each for each in value.values() if isinstance(each, Path)]
    return [each for each in value if isinstance(each, Path)] if isinstance(value, list) else []


def _require_there(path: Path, *, folder: bool) -> None:
    if not (path.is_dir() if folder else path.is_file()):
        wanted, other = ("folder", "file") if folder else ("file", "folder")
        found = f"a {other}" if path.exists() else "nothing"
        raise ConfigError(f"{path} must be a {wanted}, got {found}")


def _require_writable(path: Path, *, folder: bool) -> None:
    if path.is_dir() and not folder:
        raise ConfigError(f"{path} must be a file to write, got a folder")
    above = next((each for each in path.parents if each.exists()), Path())
    if not above.is_dir():
        raise ConfigError(f"{path} must lie in a folder, got the file {above}")


def _require_dataset(path: Path) -> None:
    _require_there(path, folder=False)
    with path.open("rb") as file:
        start = file.read(8)
    if not start.startswith(NETCDF):
        raise ConfigError(f"{path} must be a Dataset (NetCDF), got a file that begins {start!r}")


def _require_ranges(options: Mapping[str, Any]) -> None:
    trials, shard = options.get("trials"), options.get("shard")
    if trials is not None and not 1 <= trials <= MOST_TRIALS:
        raise ConfigError(f"--trials must be at least 1 and at most {MOST_TRIALS}, got {trials}")
    if trials is not None and shard is not None and shard[1] > trials:
        raise ConfigError(f"--shard must be of at most {trials} shards, the trials, got {shard[1]}")
    if options.get("seed") is not None and not 0 <= options["seed"] < 2**63:
        raise ConfigError(f"--seed must be at least 0 and less than 2^63, got {options['seed']}")
