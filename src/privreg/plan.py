"""What the workflow's rules ask: targets, inputs and parameters of each job, checked up front."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter

from privreg import data
from privreg.claims.entries import Entry, load_ledger
from privreg.config import Config, ConfigError, Experiment, choose, load
from privreg.papers.registry import Recipe, known_papers, recipes
from privreg.sources import PACKAGE, closure

Result = TypeVar("Result")
FIGURE_FORMATS = ("pdf", "png")
MADE_BY = {"theory": "theory", "simulation": "simulate", "intervals": "intervals"}


class Plan:
    """The checked configuration and what follows from it.

    Parameters
    ----------
    raw : mapping
        The merged configuration.
    ledgers : str or Path
        Folder with one ledger a paper.

    Raises
    ------
    ConfigError
        One line for the first thing that is wrong, before any job runs.
    """

    def __init__(self, raw: Mapping[str, Any], ledgers: str | Path = "config/claims") -> None:
        self.config: Config = load(raw, known_papers())
        self._ledgers = Path(ledgers)
        directory = os.environ.get("PRIVREG_DATA")
        if directory:
            data.check(Path(directory))
        for paper in self.config.papers:
            self._check_experiments(paper)
            self._check_references(paper)

    def figures(self, *papers: str) -> list[str]:
        """Figure files of the papers, of all papers if none is named."""
        return [
            f"results/figures/{paper}/{figure}.{suffix}"
            for paper in papers or self.config.papers
            for figure in self.config.papers[paper].figures
            for suffix in FIGURE_FORMATS
        ]

    def tables(self, *papers: str) -> list[str]:
        """Table files of the papers, of all papers if none is named."""
        return [
            f"results/tables/{paper}/{table}.csv"
            for paper in papers or self.config.papers
            for table in self.config.papers[paper].tables
        ]

    def claims(self, *papers: str) -> list[str]:
        """Verdict files of the papers, of all papers if none is named."""
        return [
            f"results/claims/{paper}/{claim}.json"
            for paper in papers or self.config.papers
            for claim in self.ledger[paper]
        ]

    @cached_property
    def ledger(self) -> dict[str, dict[str, Entry]]:
        """Each paper's entries by id."""
        found: dict[str, dict[str, Entry]] = {}
        for paper in self.config.papers:
            path = self._ledgers / f"{paper}.yaml"
            if not path.is_file():
                raise ConfigError(f"{path}: no such file; expected the ledger of {paper}")
            entries = load_ledger(yaml.safe_load(path.read_text(encoding="utf-8")), paper)
            found[paper] = {entry.id: entry for entry in entries}
        return found

    def experiment(self, paper: str, name: str) -> Experiment:
        """Configuration of one experiment."""
        return self.config.papers[paper].experiments[name]

    def recipe(self, paper: str, name: str) -> Recipe:
        """The recipe that runs an experiment."""
        return Recipe(paper, self.experiment(paper, name).recipe or name)

    def parameters(self, paper: str, name: str) -> str:
        """An experiment's parameters as JSON, the smallest slice that its stages need."""
        return json.dumps(self.experiment(paper, name).parameters, sort_keys=True)

    def reads(self, stage: str, paper: str, name: str, kind: str) -> list[str]:
        """The artifact of this kind that a stage reads: one path, or none."""
        recipe = self.recipe(paper, name)
        if kind not in recipe.reads(stage):
            return []
        if kind == "data":
            return [f"results/data/{self._typed_parameters(paper, name).dataset}.nc"]
        return [f"results/{kind}/{paper}/{name}.nc"]

    def shards(self, paper: str, name: str) -> list[str]:
        """Shard files of a simulation."""
        count = self.experiment(paper, name).shards
        return [f"results/simulation/{paper}/{name}/{index}.nc" for index in range(count)]

    def sources(self, stage: str, paper: str, name: str) -> list[str]:
        """Source files that a stage of an experiment runs."""
        glue = "gather" if stage == "summarise" else stage
        roots = [f"privreg.stages:{glue}", f"{self.recipe(paper, name).module_name}:{stage}"]
        return _posix(closure(*roots))

    def drawing_sources(self, kind: str, paper: str) -> list[str]:
        """Source files that a paper's figures or tables run; `kind` is figure or table."""
        return _posix(closure(f"privreg.stages:{kind}", f"privreg.papers.{paper}.{kind}s"))

    def drawing_artifacts(self, kind: str, paper: str, name: str) -> dict[str, str]:
        """Artifacts that a figure or table reads, by argument name."""
        block = self.config.papers[paper]
        drawing = block.figures[name] if kind == "figure" else block.tables[name]
        return {
            argument: _artifact(paper, artifact) for argument, artifact in drawing.artifacts.items()
        }

    def assignments(self, kind: str, paper: str, name: str) -> list[str]:
        """The same as `argument=file`."""
        artifacts = self.drawing_artifacts(kind, paper, name)
        return [f"{argument}={path}" for argument, path in artifacts.items()]

    def data_sources(self) -> list[str]:
        """Source files that prepare the tables."""
        return _posix(closure("privreg.stages:data", "privreg.data"))

    def local_data(self) -> str:
        """Where tables are looked for first; another place prepares them anew."""
        return "PRIVREG_DATA" if os.environ.get("PRIVREG_DATA") else "download"

    def claim_sources(self, stage: str) -> list[str]:
        """Source files that judge claims (`claims`), join (`ledger`) or compare them (`gate`)."""
        template = (
            [os.path.relpath(PACKAGE / "claims" / "ledger.html")] if stage == "ledger" else []
        )
        return _posix(closure(f"privreg.stages:{stage}")) + template

    def environment(self, source: Path, *, conda: bool) -> str:
        """Shell prefix that makes `python -m privreg` this checkout's package.

        Outside conda the interpreter is the one that runs the workflow, activated or not.
        """
        paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
        lines = ["set -euo pipefail", f"export PYTHONPATH={quote(os.pathsep.join(paths))}"]
        if not conda:
            lines.append(f"export PATH={quote(str(Path(sys.executable).parent))}:$PATH")
        return "; ".join(lines) + "; "

    def evidence(self) -> list[tuple[str, str, str]]:
        """Paper, artifact and a name for it, of each artifact that claims are judged by."""
        artifacts = {
            (paper, entry.evidence.artifact)
            for paper, ledger in self.ledger.items()
            for entry in ledger.values()
        }
        return [
            (paper, artifact, artifact.replace("/", "_")) for paper, artifact in sorted(artifacts)
        ]

    def evidence_file(self, paper: str, artifact: str) -> str:
        """File of an artifact."""
        return _artifact(paper, artifact)

    def claims_on(self, paper: str, artifact: str) -> list[str]:
        """Verdict files of the claims that an artifact decides."""
        return [
            f"results/claims/{paper}/{entry.id}.json" for entry in self._entries(paper, artifact)
        ]

    def entries(self, paper: str, artifact: str) -> str:
        """The same claims' entries as JSON, in the same order."""
        entries = [entry.model_dump(mode="json") for entry in self._entries(paper, artifact)]
        return json.dumps(entries, sort_keys=True)

    def _entries(self, paper: str, artifact: str) -> list[Entry]:
        ledger = self.ledger[paper].values()
        return [entry for entry in ledger if entry.evidence.artifact == artifact]

    def _typed_parameters(self, paper: str, name: str) -> Any:
        values = self.experiment(paper, name).parameters
        return self.recipe(paper, name).parameters(values, f"{paper}.experiments.{name}.parameters")

    def _check_experiments(self, paper: str) -> None:
        for name, experiment in self.config.papers[paper].experiments.items():
            recipe = self.recipe(paper, name)
            typed = self._typed_parameters(paper, name)
            where = f"{paper}.experiments.{name}"
            if recipe.has("simulate") != (experiment.trials is not None):
                expected = (
                    "a number of trials" if recipe.has("simulate") else "none (no simulation)"
                )
                raise ConfigError(f"{where}.trials = {experiment.trials}: expected {expected}")
            if any("data" in recipe.reads(stage) for stage in MADE_BY.values()):
                choose(typed.dataset, data.NAMES, f"{where}.parameters.dataset")
                choose(typed.dataset, self.config.data, f"{where}.parameters.dataset")

    def _check_references(self, paper: str) -> None:
        block = self.config.papers[paper]
        for kind, drawings in (("figures", block.figures), ("tables", block.tables)):
            for name, drawing in drawings.items():
                for argument, artifact in drawing.artifacts.items():
                    self._check_artifact(paper, artifact, f"{paper}.{kind}.{name}.{argument}")
        for claim, entry in self.ledger[paper].items():
            self._check_artifact(paper, entry.evidence.artifact, f"{paper}.claims.{claim}.evidence")

    def _check_artifact(self, paper: str, artifact: str, where: str) -> None:
        stage, _, name = artifact.partition("/")
        if stage == "data":
            choose(name, self.config.data, where)
            return
        choose(name, self.config.papers[paper].experiments, where)
        if not self.recipe(paper, name).has(MADE_BY[stage]):
            raise ConfigError(f"{where} = {artifact!r}: experiment {name!r} has no stage {stage!r}")


def stop_in_one_line(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function, except that a wrong configuration or file ends the run in one line."""

    def wrapped(*arguments: Any) -> Result:
        try:
            return function(*arguments)
        except ValueError as error:
            sys.exit(f"error: {error}")

    return wrapped


def schema() -> str:
    """JSON schema of the merged configuration, each paper a top-level block."""
    from privreg.config import DataSource, Paper

    definitions: dict[str, Any] = {}
    blocks: dict[str, Any] = {}
    for paper in known_papers():
        block = _definition(Paper, definitions)
        blocks[paper] = {"$ref": block, "description": f"The block of {paper}."}
        for name in recipes(paper):
            model = Recipe(paper, name).module.Parameters
            title = f"{paper}.{name}.Parameters"
            definitions[title] = TypeAdapter(model).json_schema() | {"title": title}
    shared = Config.model_json_schema(ref_template="#/$defs/{model}")["properties"]
    _definition(DataSource, definitions)
    listed = {
        "type": "array",
        "minItems": 1,
        "items": {"enum": known_papers()},
        "description": shared["papers"]["description"],
    }
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of privreg",
        "description": "Generated by `make schema`; the parameters of each recipe are in $defs.",
        "type": "object",
        "additionalProperties": False,
        "required": ["seed", "data", "papers"],
        "properties": shared | {"papers": listed} | blocks,
        "$defs": definitions,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _definition(model: Any, definitions: dict[str, Any]) -> str:
    found = model.model_json_schema(ref_template="#/$defs/{model}")
    definitions.update(found.pop("$defs", {}))
    definitions[model.__name__] = found
    return f"#/$defs/{model.__name__}"


def _artifact(paper: str, artifact: str) -> str:
    stage, _, name = artifact.partition("/")
    return f"results/data/{name}.nc" if stage == "data" else f"results/{stage}/{paper}/{name}.nc"


def _posix(paths: tuple[Path, ...]) -> list[str]:
    return [path.as_posix() for path in paths]
