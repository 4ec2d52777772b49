"""Plan of a run: the checked configuration, and the answers to the workflow's rules."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from privreg import data
from reproduction.engine.checks import Evidence
from reproduction.engine.code import code_of
from reproduction.engine.config import Drawing, Experiment, read_configuration
from reproduction.engine.falsify import touched, wrong_versions
from reproduction.engine.ledger import Ledger, load_coverage, read_ledger, topic_files
from reproduction.engine.parameters import ConfigError, Strict, choose, validate
from reproduction.engine.recipe import Variables, structure
from reproduction.engine.registry import STAGE_OF, STUDIES, Recipe, drawings, package
from reproduction.engine.yaml_files import read_mapping

STAGES = ("theory", "simulate", "summarise", "intervals")


class Plan:
    """Checked configuration, with inputs, parameters and resources of the rules.

    The folder holds the configuration, with the ledgers below `claims`; the overlay holds changes
    of one run. The first error raises a ConfigError of one line, before any job runs.
    """

    def __init__(self, folder: Path, overlay: Mapping[str, Any] | None = None) -> None:
        self.config = read_configuration(folder, overlay)
        self.folder, self.root = folder, self.config.root
        self.experiments: dict[tuple[str, str], Experiment] = {}
        self.parameters: dict[tuple[str, str], Strict] = {}
        for name in self.config.data:
            choose(name, data.NAMES, "a key of config.data")
        if directory := os.environ.get("PRIVREG_DATA"):
            data.check(directory)
        self.ledgers: dict[str, Ledger] = {}
        self.items: dict[str, list[dict[str, Any]]] = {}
        for paper, block in self.config.blocks.items():
            for name, experiment in block.experiments.items():
                # A wrong value of the quick scale is refused at the other as well.
                self._add(paper, name, experiment.at("quick"), jointly=False)
                self._add(paper, name, experiment.at(self.config.scale), jointly=True)
            for kind in ("figures", "tables"):
                for name, drawing in block.drawings(kind).items():
                    self._check_drawing(paper, kind, name, drawing)
            self.ledgers[paper] = read_ledger(folder / "claims" / paper, paper)
            self._check_ledger(paper, self.ledgers[paper])
            for path in folder.glob(f"coverage/{paper}.yaml"):
                items = load_coverage(path, self.ledgers[paper])
                self.items[paper] = [item.model_dump() for item in items]

    # Experiments

    def recipe(self, paper: str, name: str) -> Recipe:
        """The recipe that runs an experiment."""
        return Recipe(paper, self.experiments[paper, name].recipe or name)

    def settings(self, paper: str, name: str) -> dict[str, Any]:
        """Parameters of an experiment as plain values; a change reruns its jobs."""
        return self.parameters[paper, name].model_dump(mode="json")

    def code(self, paper: str, name: str) -> str:
        """Digest of the code of an experiment."""
        return code_of("reproduction.engine.simulation", self.recipe(paper, name).module_name)

    def reads(self, paper: str, name: str, *stages: str) -> dict[str, str]:
        """The artifacts that stages of an experiment read, by argument name."""
        known = [each for key, each in self.experiments if key == paper]
        typed: Any = self.parameters[paper, _known(name, known, f"{paper}: no experiment")]
        return {
            kind: self.artifact(paper, f"{kind}/{typed.dataset if kind == 'data' else name}")
            for kind in self.recipe(paper, name).reads(*stages)
        }

    def draws(self, paper: str, name: str) -> tuple[str, int, int]:
        """Origin of an experiment's draws: its path, the seed and the number of trials."""
        return f"{paper}/{name}", self.config.seed, self.experiments[paper, name].trials or 0

    def memory_mb(self, wildcards: Any, attempt: int) -> int:
        """Memory of an experiment's job; one that was killed gets more."""
        return attempt * self.experiments[wildcards.paper, wildcards.experiment].resources.mem_mb

    def minutes(self, wildcards: Any, attempt: int) -> int:
        """Run time of an experiment's job."""
        return attempt * self.experiments[wildcards.paper, wildcards.experiment].resources.runtime

    def shards(self, paper: str, name: str) -> list[str]:
        """Shard files of a simulation."""
        folder = f"{self.root}/simulation/{paper}/{name}"
        return [f"{folder}/{shard}.nc" for shard in range(self.experiments[paper, name].shards)]

    def at_once(self) -> str:
        """Pattern of single-shard experiments, each simulated and summarised in one job.

        It matches names below their papers' folders; without such experiments it matches nothing.
        """
        found = (key for key, each in self.experiments.items() if each.trials and each.shards == 1)
        return "|".join(f"(?<=/{paper}/){name}" for paper, name in found) or "(?!)"

    def artifact(self, paper: str, artifact: str) -> str:
        """Path of an artifact named `stage/experiment`, or `data/dataset`."""
        kind, _, name = artifact.partition("/")
        middle = "" if kind == "data" else f"{paper}/"
        return f"{self.root}/{kind}/{middle}{name}.nc"

    # Figures, tables and ledgers

    def keys(self, book: str) -> list[str]:
        """Keys of a page and its gate: the papers, or the studies."""
        return [key for key in self.config.blocks if (key == STUDIES) == bool(book)]

    def built(self, *keys: str) -> list[str]:
        """Every figure and table of papers or of the studies."""
        suffixes = {"figures": ("pdf", "png"), "tables": ("csv",)}
        return [
            f"{self.root}/{kind}/{key}/{name}.{suffix}"
            for key in keys
            for kind, endings in suffixes.items()
            for name in self.config.blocks[key].drawings(kind)
            for suffix in endings
        ]

    def drawn_from(self, paper: str, kind: str, name: str) -> dict[str, str]:
        """Artifacts that a figure or table is drawn from, by argument name."""
        drawn = self.config.blocks[paper].drawings(kind)
        drawing = drawn[_known(name, drawn, f"{paper}: no {kind[:-1]}")]
        return {key: self.artifact(paper, each) for key, each in drawing.artifacts.items()}

    def drawing_code(self, paper: str, kind: str) -> str:
        """Digest of the code of a paper's figures or tables."""
        return code_of(f"{package(paper)}.{kind}")

    def caption(self, paper: str, figure: str) -> str:
        """Caption of a figure, with the numbers of trials of this run."""
        block = self.config.blocks[paper]
        return block.caption(block.figures[figure], self.config.scale)

    def described(self, *keys: str) -> dict[str, dict[str, Any]]:
        """Captions, artifacts and parameters of figures and tables, for the page.

        Names are in natural order, `fig2` before `fig10`; names without a number come last.
        """
        found: dict[str, dict[str, Any]] = {}
        for paper in keys:
            block, found[paper] = self.config.blocks[paper], {}
            for kind in ("figures", "tables"):
                for name in sorted(block.drawings(kind), key=_natural):
                    drawing = block.drawings(kind)[name]
                    found[paper][name] = {
                        "kind": kind[:-1],
                        "caption": block.caption(drawing, self.config.scale),
                        "alt": drawing.alt,
                        "beside": drawing.beside,
                        "artifacts": sorted(set(drawing.artifacts.values())),
                        "parameters": {
                            each: dict(sorted(self.experiments[paper, each].parameters.items()))
                            for each in drawing.experiments
                        },
                    }
        return found

    def coverage(self, *keys: str) -> dict[str, list[dict[str, Any]]]:
        """Coverage of papers that no entry's place states, for the page."""
        return {key: self.items[key] for key in keys if key in self.items}

    def ledger_files(self, *keys: str) -> list[str]:
        """Files of the ledgers of papers or of the studies.

        Paths below the working directory are relative, so that a clone reruns nothing.
        """
        files = [file for key in keys for file in topic_files(self.folder / "claims" / key)]
        here = Path.cwd()
        return [
            str(each.relative_to(here) if each.is_relative_to(here) else each) for each in files
        ]

    def stated_code(self, paper: str) -> str:
        """Digest of the recipes that declare entries of a ledger."""
        files = map(Path, self.ledger_files(paper))
        named = [name for path in files for name in read_mapping(path).get("identities", ())]
        return code_of(*(Recipe(paper, name).module_name for name in named))

    def evidence(self, paper: str, claim: str | None = None) -> list[str]:
        """Artifacts that judge the entries of a paper, or one of them."""
        ledger = self.ledgers[paper]
        asked = claim and (_known(claim, ledger.entries, f"{paper}: no entry"),)
        read = ledger.artifacts(asked or None)
        return [self.artifact(paper, each) for each in read]

    # Deliberate mistakes

    def falsified(self) -> list[str]:
        """Result files of all deliberate mistakes."""
        return [
            f"{self.root}/falsified/{paper}/{version}.json"
            for paper in self.config.blocks
            for version in wrong_versions(paper)
        ]

    def falsifier(self, paper: str, version: str) -> dict[str, dict[str, Any]]:
        """Recipe, parameters, seed and trials of each experiment that a mistake touches."""
        return {
            name: {
                "recipe": self.recipe(paper, name).name,
                "parameters": self.experiments[paper, name].parameters,
                "seed": self.config.seed,
                "trials": self.experiments[paper, name].trials,
            }
            for name in touched(wrong_versions(paper)[version])
        }

    def falsifier_reads(self, paper: str, version: str) -> list[str]:
        """Artifacts that judge a mistake, and the inputs of the experiments that it touches."""
        names, ledger = touched(wrong_versions(paper)[version]), self.ledgers[paper]
        read = {file for name in names for file in self.reads(paper, name, *STAGES).values()}
        changed = [each for each in ledger.artifacts() if each.split("/")[1] in names]
        judged = ledger.artifacts(ledger.reading(changed))
        return sorted(read | {self.artifact(paper, each) for each in judged})

    def falsifier_code(self, paper: str, version: str) -> str:
        """Digest of the code that a mistake runs."""
        names = touched(wrong_versions(paper)[version])
        recipes = (self.recipe(paper, name).module_name for name in names)
        return code_of(f"{package(paper)}.wrong", *recipes)

    def _add(self, paper: str, name: str, experiment: Experiment, *, jointly: bool) -> None:
        where = f"{paper}.experiments.{name}"
        recipe = Recipe(paper, experiment.recipe or name)
        if recipe.has("simulate") != (experiment.trials is not None):
            expected = "a number of trials" if recipe.has("simulate") else "none (no simulation)"
            raise ConfigError(f"{where}.trials must be {expected}, got {experiment.trials}")
        if not hasattr(recipe.module, "PLACE"):
            raise ConfigError(f"{recipe.module_name} must state its PLACE in the paper")
        least = getattr(recipe.module, "LEAST_TRIALS", 1)
        if experiment.trials is not None and experiment.trials < least:
            raise ConfigError(f"{where}.trials must be at least {least}, got {experiment.trials}")
        parameters, place = experiment.parameters, f"{where}.parameters"
        typed: Any = validate(recipe.module.Parameters, parameters, place, jointly=jointly)
        if "data" in recipe.reads(*STAGES):
            choose(typed.dataset, self.config.data, f"{where}.parameters.dataset")
        self.experiments[paper, name], self.parameters[paper, name] = experiment, typed

    def _check_drawing(self, paper: str, kind: str, name: str, drawing: Drawing) -> None:
        where = f"{paper}.{kind}.{name}"
        functions = drawings(paper, kind)
        taken = inspect.signature(functions[choose(name, functions, where)]).parameters
        for argument, artifact in drawing.artifacts.items():
            choose(argument, taken, f"{where}.artifacts: a key")
            self._check_artifact(paper, artifact, f"{where}.artifacts.{argument}")
        for argument in taken:
            if argument not in drawing.artifacts:
                raise ConfigError(f"{where}.artifacts.{argument} must be given")
        try:
            self.config.blocks[paper].caption(drawing, self.config.scale)
        except ValueError as error:
            raise ConfigError(f"{where}.caption {error}") from None

    def _check_ledger(self, paper: str, ledger: Ledger) -> None:
        block = self.config.blocks[paper]
        for name, entry in ledger.entries.items():
            where = f"{paper}.claims.{name}"
            if entry.figure is not None:
                choose(entry.figure, [*block.figures, *block.tables], f"{where}.figure")
            for probe in entry.probes:
                noisy = [each for each in probe.reads if self._is_noisy(paper, each, where)]
                if noisy and not (probe.resolves or probe.rejects or probe.wrong):
                    raise ConfigError(
                        f"{where} must give one of resolves, rejects and wrong, since "
                        f"{noisy[0].variable!r} has a standard error"
                    )
        for finding in ledger.findings.values():
            if finding.foremost and (shown := finding.foremost.figure):
                where = f"{paper}.claims.{finding.id}.foremost.figure"
                choose(shown, [*block.figures, *block.tables], where)

    def _is_noisy(self, paper: str, seen: Evidence, where: str) -> bool:
        """True for evidence with a standard error; a `ConfigError` for missing evidence."""
        self._check_artifact(paper, seen.artifact, f"{where}.evidence")
        kind, _, made = seen.artifact.partition("/")
        known = {} if kind == "data" else _variables(self.recipe(paper, made), kind)
        if known:
            choose(seen.variable, known, f"{where}.evidence.variable")
        return bool(known and known[seen.variable][2].get("ancillary_variables"))

    def _check_artifact(self, paper: str, artifact: str, where: str) -> None:
        kind, _, name = artifact.partition("/")
        if kind == "data":
            choose(name, self.config.data, where)
            return
        choose(name, self.config.blocks[paper].experiments, where)
        if not self.recipe(paper, name).has(STAGE_OF[kind]):
            raise ConfigError(
                f"{where} must name an experiment with the stage {kind!r}, got {name!r}"
            )


def looked_for_in(origin: str) -> str:
    """Source of a table, `PRIVREG_DATA` or `download`, given the path of its recorded origin.

    If the source changes, the table is prepared anew. A real table is kept in a shell that could
    not prepare it; a stand-in is replaced by the real files.
    """
    directory, dataset = os.environ.get("PRIVREG_DATA"), Path(origin).stem
    here = "PRIVREG_DATA" if directory and data.is_complete(dataset, directory) else "download"
    try:
        known = json.loads(Path(origin).read_bytes())
        stays = here == "download" or not known["stand_in"]
        return str(known["looked_for_in"]) if stays else here
    except (OSError, ValueError, KeyError, TypeError):
        return here


def _known(name: str, names: Iterable[str], missing: str) -> str:
    if name not in names:
        near = "".join(get_close_matches(name, names, n=1, cutoff=0))
        raise ConfigError(f"{missing} {name!r}; the nearest name is {near!r}")
    return name


@cache
def _variables(recipe: Recipe, kind: str) -> Variables:
    """Variables that a recipe declares of an artifact; none where it declares nothing."""
    found = structure(recipe.maker(kind))
    return found.variables if found else {}


def _natural(name: str) -> tuple[float, str]:
    # Names without a number keep the order in which they are declared.
    numbered = re.fullmatch(r"[a-z]+(\d+)(\w*)", name)
    return (int(numbered[1]), numbered[2]) if numbered else (math.inf, "")
