"""What the workflow's rules ask of the ledgers: which artifacts judge which entries."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from reproduction.engine.ledger import Ledger, load_ledger, topic_files
from reproduction.engine.parameters import ConfigError
from reproduction.engine.recipe import entries
from reproduction.engine.yaml_files import read_mapping
from reproduction.pipeline.closure import SOURCE
from reproduction.pipeline.layout import Layout
from reproduction.pipeline.registry import Recipe


def read_ledger(folder: str | Path, paper: str) -> Ledger:
    """A paper's ledger, with the entries that its identities declare; see `load_ledger`."""
    return load_ledger(folder, paper, partial(declared_entries, paper))


def declared_entries(paper: str, experiment: str) -> dict[str, list[Any]]:
    """Entries that the theory of an experiment declares beside its functions, as in a ledger."""
    theory = getattr(Recipe(paper, experiment).module, "theory", None)
    found = entries(getattr(theory, "blocks", ()), f"theory/{experiment}")
    if not any(found.values()):
        raise ConfigError(f"{paper}.experiments.{experiment} must declare identities, got none")
    return found


@dataclass(frozen=True)
class Falsifier:
    """What it takes to make a deliberate mistake and judge it.

    Attributes
    ----------
    experiments : str
        The experiments that run anew, as JSON.
    artifacts : mapping
        What the entries that they judge read, by name.
    files : tuple of str
        Artifacts that are read.
    """

    experiments: str
    artifacts: Mapping[str, str]
    files: tuple[str, ...]


class Ledgers:
    """The papers' ledgers, checked, and the jobs that judge them.

    One job judges all entries of a paper.

    Parameters
    ----------
    folder : str or Path
        Holds a folder a paper, with one file a topic.
    papers : sequence of str
        Citation keys, and that of the studies.
    layout : Layout
        Where the run's files lie.

    Raises
    ------
    ConfigError
        One line for the first thing that is wrong, when a ledger is first asked for.
    """

    def __init__(self, folder: str | Path, papers: Sequence[str], layout: Layout) -> None:
        self._folder = Path(folder)
        self._papers = tuple(papers)
        self._layout = layout

    @cached_property
    def by_paper(self) -> dict[str, Ledger]:
        """Each paper's ledger."""
        return {paper: read_ledger(self._folder / paper, paper) for paper in self._papers}

    def verdicts(self, *papers: str) -> list[str]:
        """Verdict files of these papers or of the studies, of all if none is named."""
        return [
            self._layout.verdicts(paper)
            for paper in papers or self._papers
            if self.by_paper[paper].entries
        ]

    def reads(self, paper: str, claim: str | None = None) -> dict[str, str]:
        """The artifacts that judge the entries of a paper, or one of them."""
        artifacts = self.by_paper[paper].artifacts(None if claim is None else (claim,))
        return {artifact: self._layout.artifact(paper, artifact) for artifact in artifacts}

    def files(self, *papers: str) -> list[str]:
        """Files of these ledgers, recipes that declare entries included."""
        found: list[Path] = []
        for paper in papers:
            topics = topic_files(self._folder / paper)
            named = [name for path in topics for name in read_mapping(path).get("identities", ())]
            modules = [Recipe(paper, name).module_name for name in named]
            recipes = [SOURCE.joinpath(*module.split(".")).with_suffix(".py") for module in modules]
            found += [*topics, *(Path(os.path.relpath(path)) for path in recipes)]
        return [path.as_posix() for path in found]

    def folders(self, *papers: str) -> dict[str, str]:
        """Folder of each of these ledgers."""
        return {paper: (self._folder / paper).as_posix() for paper in papers}

    def falsifier(self, paper: str, experiments: Mapping[str, Mapping[str, Any]]) -> Falsifier:
        """The ledger that some of these experiments judge, and what judging it reads."""
        ledger = self.by_paper[paper]
        changed = [name for name in ledger.artifacts() if name.split("/")[1] in experiments]
        artifacts = {
            name: self._layout.artifact(paper, name)
            for name in ledger.artifacts(ledger.reading(changed))
        }
        inputs = [each for about in experiments.values() for each in about["artifacts"].values()]
        return Falsifier(
            experiments=json.dumps(experiments, sort_keys=True),
            artifacts=artifacts,
            files=tuple(sorted({*artifacts.values(), *inputs})),
        )


def described(
    blocks: Mapping[str, Any], parameters: Mapping[tuple[str, str], Mapping[str, Any]], scale: str
) -> str:
    """Captions, artifacts and parameters of all figures and tables as JSON, for the page.

    They are in natural order, `fig2` before `fig10`; those without a number come last.

    Parameters
    ----------
    blocks : mapping of str to Paper
        The papers or the studies, by their keys.
    parameters : mapping
        Of each experiment, by paper and name.
    scale : {"paper", "quick"}
        Whose numbers of trials the captions state.
    """
    found: dict[str, dict[str, Any]] = {}
    for paper, block in blocks.items():
        found[paper] = {}
        for kind, listed in (("figure", block.figures), ("table", block.tables)):
            for name in sorted(listed, key=_natural):
                drawing = listed[name]
                found[paper][name] = {
                    "kind": kind,
                    "caption": block.caption(drawing, scale),
                    "alt": drawing.alt,
                    "beside": drawing.beside,
                    "artifacts": sorted(set(drawing.artifacts.values())),
                    "parameters": {
                        each: dict(sorted(parameters[paper, each].items()))
                        for each in drawing.experiments
                    },
                }
    return json.dumps(found)


def _natural(name: str) -> tuple[float, str]:
    # Names without a number keep the order in which they are declared.
    numbered = re.fullmatch(r"[a-z]+(\d+)(\w*)", name)
    return (int(numbered[1]), numbered[2]) if numbered else (math.inf, "")
