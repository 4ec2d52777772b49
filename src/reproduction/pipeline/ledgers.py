"""What the workflow's rules ask of the ledgers: which artifacts judge which entries."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from reproduction.claims import verdicts
from reproduction.claims.ledger import Ledger, load_ledger, topic_files
from reproduction.experiment.identities import entries
from reproduction.experiment.parameters import ConfigError
from reproduction.experiment.yaml_files import read_mapping
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
    experiments, groups : str
        The experiments that run anew and the entries that they judge, as JSON.
    files : tuple of str
        Artifacts that are read.
    verdicts : tuple of str
        The verdicts with the right code.
    """

    experiments: str
    groups: str
    files: tuple[str, ...]
    verdicts: tuple[str, ...]


class Ledgers:
    """The papers' ledgers, checked, and the jobs that judge them.

    Entries that read the same artifacts form a group, which one job judges.

    Parameters
    ----------
    folder : str or Path
        Holds a folder a paper, with one file a topic.
    papers : sequence of str
        Citation keys.
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
        """Verdict files of the papers, of all papers if none is named: one a group."""
        return [
            self._layout.verdicts(paper, group)
            for paper in papers or self._papers
            for group in self._groups[paper]
        ]

    def verdicts_on(self, paper: str, claim: str) -> str:
        """The verdict file that holds an entry."""
        entry = self.by_paper[paper].entries[claim]
        return self._layout.verdicts(paper, _name(verdicts.artifacts(entry)))

    def reads(self, paper: str, group: str) -> dict[str, str]:
        """The artifacts that judge a group."""
        artifacts, _ = self._groups[paper][group]
        return {artifact: self._layout.artifact(paper, artifact) for artifact in artifacts}

    def artifacts(self, paper: str) -> set[str]:
        """All that the entries of a paper read."""
        return {artifact for read, _ in self._groups[paper].values() for artifact in read}

    def cases(self, paper: str, group: str) -> str:
        """The checks of a group's entries as JSON, without the ledger's words."""
        _, names = self._groups[paper][group]
        entries = self.by_paper[paper].entries
        return json.dumps([verdicts.case(entries[name]) for name in names], sort_keys=True)

    def files(self) -> list[str]:
        """Files of all ledgers, recipes that declare entries included."""
        found: list[Path] = []
        for paper in self._papers:
            topics = topic_files(self._folder / paper)
            named = [name for path in topics for name in read_mapping(path).get("identities", ())]
            modules = [Recipe(paper, name).module_name for name in named]
            recipes = [SOURCE.joinpath(*module.split(".")).with_suffix(".py") for module in modules]
            found += [*topics, *(Path(os.path.relpath(path)) for path in recipes)]
        return [path.as_posix() for path in found]

    def folders(self) -> dict[str, str]:
        """Folder of each ledger."""
        return {paper: (self._folder / paper).as_posix() for paper in self._papers}

    def falsifier(self, paper: str, experiments: Mapping[str, Mapping[str, Any]]) -> Falsifier:
        """The groups that some of these experiments judge, and what judging them reads."""
        chosen = {
            group: self.reads(paper, group)
            for group, (artifacts, _) in self._groups[paper].items()
            if any(artifact.split("/")[1] in experiments for artifact in artifacts)
        }
        read = {file for reads in chosen.values() for file in reads.values()}
        read.update(file for about in experiments.values() for file in about["artifacts"].values())
        groups = [
            {"cases": json.loads(self.cases(paper, group)), "artifacts": reads}
            for group, reads in chosen.items()
        ]
        return Falsifier(
            experiments=json.dumps(experiments, sort_keys=True),
            groups=json.dumps(groups, sort_keys=True),
            files=tuple(sorted(read)),
            verdicts=tuple(self._layout.verdicts(paper, group) for group in chosen),
        )

    @cached_property
    def _groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], list[str]]]]:
        return {
            paper: {
                _name(artifacts): (artifacts, names)
                for artifacts, names in verdicts.groups(ledger).items()
            }
            for paper, ledger in self.by_paper.items()
        }


def described(config: Any, parameters: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Captions, artifacts and parameters of all figures and tables as JSON, for the page.

    Parameters
    ----------
    config : Config
        The checked configuration.
    parameters : mapping
        Of each experiment, by paper and name.
    """
    found: dict[str, dict[str, Any]] = {}
    for paper, block in config.papers.items():
        found[paper] = {}
        for kind, listed in (("figure", block.figures), ("table", block.tables)):
            for name, drawing in listed.items():
                artifacts = sorted(set(drawing.artifacts.values()))
                experiments = sorted(
                    {artifact.split("/")[1] for artifact in artifacts if artifact[:5] != "data/"}
                )
                found[paper][name] = {
                    "kind": kind,
                    "caption": drawing.caption,
                    "artifacts": artifacts,
                    "parameters": {each: parameters[paper, each] for each in experiments},
                }
    return json.dumps(found, sort_keys=True)


def _name(artifacts: Sequence[str]) -> str:
    return "+".join(artifact.replace("/", "-") for artifact in artifacts)
