"""Run a paper's experiments with a deliberate mistake, and see which entries notice.

Each function is a command of `python -m reproduction`; its arguments are the options.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.engine import artifacts as store
from reproduction.engine.falsify import WrongStatement, WrongVersion, applied, turned, uncaught
from reproduction.engine.verdicts import judge
from reproduction.pipeline import stages
from reproduction.pipeline.closure import closure, module_of
from reproduction.pipeline.ledgers import read_ledger
from reproduction.pipeline.registry import Recipe, package

# Modules of a paper that list what its ledger must refuse.
WRONG = ("wrong", "wrong_versions", "wrong_statements")
# The stages in their order, and the kind of artifact that each makes.
KINDS = {
    "theory": "theory",
    "simulate": "simulation",
    "summarise": "simulation",
    "intervals": "intervals",
}


def wrong_versions(paper: str) -> dict[str, WrongVersion | WrongStatement]:
    """What a paper's ledger must refuse, by name: mistakes in the code and wrong statements."""
    found: dict[str, WrongVersion | WrongStatement] = {}
    for module in WRONG:
        name = f"{package(paper)}.{module}"
        if importlib.util.find_spec(name) is not None:
            there = vars(importlib.import_module(name))
            for listed in ("WRONG_VERSIONS", "WRONG_STATEMENTS"):
                found |= {version.name: version for version in there.get(listed, ())}
    return found


def touched(version: WrongVersion | WrongStatement) -> tuple[str, ...]:
    """Experiments whose artifacts a wrong version changes."""
    if isinstance(version, WrongVersion):
        return tuple(version.runs)
    return tuple(dict.fromkeys(artifact.split("/")[1] for artifact in version.observes))


def falsify(
    path: str,
    *,
    experiments: Mapping[str, Mapping[str, Any]],
    folder: Path,
    artifacts: Mapping[str, Path],
    output: Path,
) -> None:
    """Make a mistake, run what it touches and judge it; always succeeds.

    Parameters
    ----------
    path : str
        PAPER/VERSION.
    experiments : mapping
        Of each experiment that is run anew: `recipe`, `parameters`, `seed`, `trials`, and
        `artifacts`, the files that its stages read by kind.
    folder : Path
        Folder of the paper's ledger.
    artifacts : mapping
        Files that its entries read, by name.
    output : Path
        Takes what turned and what was not caught, as JSON.
    """
    paper, _, name = path.partition("/")
    version = wrong_versions(paper)[name]
    with tempfile.TemporaryDirectory() as made:
        rebuilt: dict[str, Path] = {}
        held = {key: store.read(file) for key, file in artifacts.items()}
        if isinstance(version, WrongStatement):
            told = {key: version.evidence(key, each) for key, each in held.items()}
            changed = [*version.observes]
        else:
            for experiment, about in experiments.items():
                rebuilt |= run_wrong(version, paper, experiment, about, Path(made))
            told = held | {key: store.read(file) for key, file in rebuilt.items()}
            changed = [*rebuilt]
        entries = read_ledger(folder, paper)
        right, wrong = (
            judge(entries, each, digests={}, scale="paper", only=entries.reading(changed))
            for each in (held, told)
        )
    result = {
        "version": name,
        "says": version.says,
        "turned": turned(right, wrong),
        "uncaught": uncaught(version, right, wrong),
    }
    store.write_text(json.dumps(result, indent=1), output)


def caught(versions: Sequence[Path], *, output: Path) -> list[str]:
    """Sum up the falsifiers; fails on what was not caught, or turned without being named."""
    found = [json.loads(store.read_bytes(path)) for path in versions]
    failures = [line for result in found for line in result["uncaught"]]
    if not failures:
        lines = [
            f"{result['version']}: caught by {', '.join(result['turned'])}" for result in found
        ]
        store.write_text("\n".join(lines), output)
    return failures


def run_wrong(
    version: WrongVersion,
    paper: str,
    experiment: str,
    about: Mapping[str, Any],
    folder: Path,
) -> dict[str, Path]:
    """Artifacts of an experiment that the mistake changes, by name."""
    recipe = Recipe(paper, about["recipe"])
    mistaken = version.runs[experiment]
    _import_all(recipe)
    wrong_values = dict(about["parameters"]) | dict(version.parameters.get(experiment, {}))
    folder, shard = folder / experiment, folder / experiment / "shard.nc"
    rebuilt: dict[str, Path] = {}
    for stage, kind in KINDS.items():
        joins = stage == "summarise" and recipe.has("simulate")
        if not (recipe.has(stage) or joins):
            continue
        reads = {key: rebuilt.get(f"{key}/{experiment}") for key in recipe.reads(stage)}
        if not (stage in mistaken or any(reads.values()) or (joins and shard.is_file())):
            continue
        options: dict[str, Any] = {
            "recipe": about["recipe"],
            "parameters": wrong_values if stage in mistaken else about["parameters"],
            "artifacts": {
                key: path or Path(about["artifacts"][key]) for key, path in reads.items()
            },
            "output": shard if stage == "simulate" else folder / f"{kind}.nc",
        }
        if stage == "simulate":
            options |= {"seed": about["seed"], "trials": about["trials"], "shard": (0, 1)}
        elif stage == "summarise":
            if not shard.is_file():
                shard = simulate_right(paper, experiment, about, shard)
            options["shards"] = [shard]
        with applied(version.patches if stage in mistaken else ()):
            getattr(stages, stage)(f"{paper}/{experiment}", **options)
        if stage != "simulate":
            rebuilt[f"{kind}/{experiment}"] = options["output"]
    return rebuilt


def simulate_right(paper: str, experiment: str, about: Mapping[str, Any], output: Path) -> Path:
    """All trials of an experiment as they should be, for a summary with a mistake."""
    reads = Recipe(paper, about["recipe"]).reads("simulate")
    stages.simulate(
        f"{paper}/{experiment}",
        recipe=about["recipe"],
        parameters=about["parameters"],
        seed=about["seed"],
        trials=about["trials"],
        shard=(0, 1),
        artifacts={key: Path(about["artifacts"][key]) for key in reads},
        output=output,
    )
    return output


def _import_all(recipe: Recipe) -> None:
    """Import all that a recipe runs, so that a mistake stays in the modules that it names.

    A module that is first imported while a mistake is made would take it along.
    """
    for path in closure(recipe.module_name):
        importlib.import_module(module_of(path))
