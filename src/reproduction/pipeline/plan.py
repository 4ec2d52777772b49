"""What the workflow's rules ask: targets, inputs and parameters of each job, checked up front."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeVar

from reproduction.engine.falsify import WrongVersion
from reproduction.engine.recipe import structure
from reproduction.pipeline import scales, soundness
from reproduction.pipeline.closure import SOURCE, closure
from reproduction.pipeline.config import Config, Experiment, load
from reproduction.pipeline.falsify import WRONG, touched, wrong_versions
from reproduction.pipeline.layout import FIGURE_FORMATS, Layout, book_of
from reproduction.pipeline.ledgers import Falsifier, Ledgers, described
from reproduction.pipeline.lock import JOBS, JOBS_VARIABLE
from reproduction.pipeline.prediction import read_costs, require_affordable
from reproduction.pipeline.processor import ALLOCATOR, pinned
from reproduction.pipeline.registry import STAGE_OF, Recipe, known_keys, package

Result = TypeVar("Result")
Scale = Literal["paper", "quick", "own"]
COSTS = Path("workflow/costs.json")
FALSIFY = "reproduction.pipeline.falsify"
MOST_LINES = 20
STAGES = ("theory", "simulate", "summarise", "intervals")


class Plan:
    """The checked configuration and what follows from it.

    Parameters
    ----------
    raw : mapping
        The merged configuration.
    ledgers : str or Path
        Folder with a folder a paper, which holds its ledger.
    recorded : str or Path
        Folder with what was recorded at the papers' own scale: `scale.lock`, by which an edit of
        the configuration is noticed, and `costs.json`, from which jobs are predicted.
    checked : bool
        Whether what is wrong is looked for; the process of a job need not, its run has.

    Attributes
    ----------
    reference : mapping
        What each paper's configuration is as it was committed.
    own : frozenset
        Paper and name of each experiment that is neither at the paper's scale nor made small.
    scale : {"paper", "quick", "own"}
        Of the run, which decides where its results lie; your own as soon as one experiment is.

    Raises
    ------
    ConfigError
        One line for each thing that is wrong, before any job runs.
    """

    def __init__(
        self,
        raw: Mapping[str, Any],
        ledgers: str | Path = "config/claims",
        recorded: str | Path = "workflow",
        *,
        checked: bool = True,
    ) -> None:
        self.config: Config = load(raw, known_keys())
        self.reference = scales.read_reference(Path(recorded, scales.LOCK.name))
        if checked:
            soundness.require_sound_experiments(self)
            costs = Path(recorded, COSTS.name)
            require_affordable(self, read_costs(costs) if costs.exists() else {})
        paper_scale = self.config.scale == "paper"
        self.own = scales.own(self.config, self.reference) if paper_scale else frozenset()
        self.scale: Scale = "own" if self.own else self.config.scale
        self.layout = Layout(self.scale)
        self.ledgers = Ledgers(ledgers, tuple(self.config.blocks), self.layout)
        if checked:
            soundness.require_sound_tables(os.environ.get("PRIVREG_DATA"))
            soundness.require_sound_drawings_and_ledgers(self)

    # Targets

    def keys(self, book: str) -> tuple[str, ...]:
        """What a page and its gate are of: the papers, or the studies."""
        return tuple(key for key in self.config.blocks if book_of(key) == book)

    def built(self, book: str) -> list[str]:
        """Every figure and table of a book, its page and its gate."""
        keys, layout = self.keys(book), self.layout
        return [*self.figures(*keys), *self.tables(*keys), layout.page(book), layout.gate(book)]

    def figures(self, *papers: str) -> list[str]:
        """Figure files of these papers or of the studies."""
        return [
            self.layout.figure(paper, figure, suffix=suffix)
            for paper in papers
            for figure in self.config.blocks[paper].figures
            for suffix in FIGURE_FORMATS
        ]

    def images(self, *papers: str) -> list[str]:
        """Their figures as images for a page."""
        return [path for path in self.figures(*papers) if path.endswith(".png")]

    def tables(self, *papers: str) -> list[str]:
        """Table files of these papers or of the studies."""
        return [
            self.layout.table(paper, table)
            for paper in papers
            for table in self.config.blocks[paper].tables
        ]

    # An experiment's jobs

    def experiment(self, paper: str, name: str) -> Experiment:
        """Configuration of one experiment at the run's scale."""
        return self.config.blocks[paper].experiments[name].at(self.config.scale)

    def recipe(self, paper: str, name: str) -> Recipe:
        """The recipe that runs an experiment."""
        return Recipe(paper, self.experiment(paper, name).recipe or name)

    def parameters(self, paper: str, name: str) -> str:
        """An experiment's parameters as JSON, the smallest slice that its stages need."""
        return self.experiment(paper, name).parameters_as_json()

    def reads(self, stage: str, paper: str, name: str) -> dict[str, str]:
        """The artifacts that a stage of an experiment reads, by argument name."""
        recipe = self.recipe(paper, name)
        found = {}
        for kind in recipe.reads(stage):
            what = self._typed_parameters(paper, name).dataset if kind == "data" else name
            found[kind] = self.layout.artifact(paper, f"{kind}/{what}")
        return found

    def shards(self, paper: str, name: str) -> list[str]:
        """Shard files of a simulation."""
        count = self.experiment(paper, name).shards
        return [self.layout.shard(paper, name, index) for index in range(count)]

    def sources(self, stage: str, paper: str, name: str) -> list[str]:
        """Source files that a stage of an experiment runs."""
        module = self.recipe(paper, name).module_name
        functions = ("simulate", "summarise") if stage == "simulation" else (stage,)
        roots = [f"{module}:{function}" for function in functions]
        return _posix(closure(f"reproduction.pipeline.stages:{stage}", *roots))

    def simulated_at_once(self) -> dict[str, list[str]]:
        """By paper, the experiments of one shard, which one job simulates and summarises."""
        return {
            paper: [
                name
                for name in block.experiments
                if self.recipe(paper, name).has("simulate")
                and self.experiment(paper, name).shards == 1
            ]
            for paper, block in self.config.blocks.items()
        }

    @cache  # noqa: B019 a plan lives as long as its process
    def known(self, paper: str, artifact: str) -> tuple[str, ...] | None:
        """Variables that the recipe declares of an artifact."""
        kind, _, name = artifact.partition("/")
        if kind == "data":
            return None
        found = structure(self.recipe(paper, name).maker(kind))
        return None if found is None else tuple(found.variables)

    # Data, drawings and claims

    def data_sources(self) -> list[str]:
        """Source files that prepare the tables."""
        return _posix(closure("reproduction.pipeline.stages:data", "privreg.data"))

    def drawing_sources(self, kind: str, paper: str) -> list[str]:
        """Source files that a paper's figures or tables run; `kind` is figure or table."""
        return _posix(closure(f"reproduction.pipeline.stages:{kind}", f"{package(paper)}.{kind}s"))

    def drawing_reads(self, kind: str, paper: str, name: str) -> dict[str, str]:
        """Artifacts that a figure or table reads, by argument name."""
        block = self.config.blocks[paper]
        drawing = block.figures[name] if kind == "figure" else block.tables[name]
        return {
            argument: self.layout.artifact(paper, artifact)
            for argument, artifact in drawing.artifacts.items()
        }

    def scale_of_drawing(self, kind: str, paper: str, name: str) -> Scale:
        """The scale that a figure or table is of: your own if one of its experiments is."""
        block = self.config.blocks[paper]
        drawing = block.figures[name] if kind == "figure" else block.tables[name]
        return self._scale_of(paper, drawing.artifacts.values())

    def figures_by_table(self) -> dict[str, list[str]]:
        """The figures that depend on each real table."""
        found: dict[str, list[str]] = {}
        for paper, block in self.config.blocks.items():
            for figure, drawing in block.figures.items():
                for artifact in drawing.artifacts.values():
                    stage, _, name = artifact.partition("/")
                    made_by = STAGE_OF.get(stage, stage)
                    table = (
                        Path(self.reads(made_by, paper, name).get("data", "")).stem
                        if stage in STAGE_OF
                        else name
                    )
                    if table and f"{paper}/{figure}" not in found.setdefault(table, []):
                        found[table].append(f"{paper}/{figure}")
        return found

    def caption(self, paper: str, figure: str) -> str:
        """Caption of a figure, with the numbers of trials of this run."""
        block = self.config.blocks[paper]
        return block.caption(block.figures[figure], self.config.scale)

    def drawings(self, *papers: str) -> str:
        """Captions, artifacts and parameters of the figures and tables of these, as JSON."""
        blocks = {paper: self.config.blocks[paper] for paper in papers}
        parameters = {
            (paper, name): self.experiment(paper, name).parameters
            for paper, block in blocks.items()
            for name in block.experiments
        }
        return described(blocks, parameters, self.config.scale)

    def falsified(self) -> list[str]:
        """Result files of all deliberate mistakes."""
        return [
            self.layout.falsified(paper, version)
            for paper in self.config.blocks
            for version in wrong_versions(paper)
        ]

    def falsifier(self, paper: str, version: str) -> Falsifier:
        """What it takes to make a deliberate mistake and judge it."""
        experiments: dict[str, Any] = {}
        for name in touched(wrong_versions(paper)[version]):
            reads: dict[str, str] = {}
            for stage in STAGES:
                reads |= self.reads(stage, paper, name)
            experiment = self.experiment(paper, name)
            experiments[name] = {
                "recipe": self.recipe(paper, name).name,
                "parameters": experiment.parameters,
                "seed": self.config.seed,
                "trials": experiment.trials,
                "artifacts": reads,
            }
        return self.ledgers.falsifier(paper, experiments)

    def falsifier_sources(self, paper: str, version: str) -> list[str]:
        """Source files that a deliberate mistake runs."""
        wrong = wrong_versions(paper)[version]
        mistaken = isinstance(wrong, WrongVersion)
        roots = [f"{package(paper)}.{name}" for name in WRONG] + [f"{FALSIFY}:falsify"]
        for name in touched(wrong) if mistaken else ():
            recipe = self.recipe(paper, name)
            roots += [f"{recipe.module_name}:{stage}" for stage in STAGES if recipe.has(stage)]
        return _posix(closure(*roots))

    def claim_sources(self, stage: str, module: str = "ledger_stages") -> list[str]:
        """Source files of a stage of the ledger, with the templates that it fills in."""
        folder = SOURCE / "reproduction" / "claims" / "templates"
        templates = sorted(folder.iterdir()) if stage == "page" else []
        files = closure(f"reproduction.pipeline.{module}:{stage}")
        return _posix((*files, *(Path(os.path.relpath(path)) for path in templates)))

    def peers_sources(self) -> list[str]:
        """Source files that the comparison with other libraries runs."""
        module = "reproduction.studies.compared_"
        return _posix(closure(f"{module}methods", f"{module}tables", "privreg.data"))

    def environment(self, source: Path, *, conda: bool) -> str:
        """Shell prefix by which jobs import this checkout, on pinned loops.

        Outside conda the interpreter is the one that runs the workflow, activated or not.
        """
        paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
        lines = ["set -euo pipefail", f"export PYTHONPATH={quote(os.pathsep.join(paths))}"]
        if not conda:
            lines.append(f"export PATH={quote(str(Path(sys.executable).parent))}:$PATH")
        pins = pinned() | ALLOCATOR | {JOBS_VARIABLE: str(JOBS.absolute())}
        lines += [f"export {name}={quote(value)}" for name, value in pins.items()]
        # A notebook's shell names a back end that only a notebook has.
        lines.append("export MPLBACKEND=agg")
        # Without docstrings an artifact would have another title; a figure has no date.
        lines.append("unset PYTHONOPTIMIZE SOURCE_DATE_EPOCH")
        return "; ".join(lines) + "; "

    def _scale_of(self, paper: str, artifacts: Iterable[str]) -> Scale:
        if self.config.scale != "paper":
            return self.config.scale
        names = (artifact.partition("/") for artifact in artifacts)
        mine = any(kind != "data" and (paper, name) in self.own for kind, _, name in names)
        return "own" if mine else "paper"

    def _typed_parameters(self, paper: str, name: str) -> Any:
        values = self.experiment(paper, name).parameters
        return self.recipe(paper, name).parameters(values, name)


def assignments(reads: Mapping[str, str]) -> list[str]:
    """Artifacts as `argument=file`, the way a stage takes them."""
    return [f"{argument}={path}" for argument, path in reads.items()]


def stop_in_one_line(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function, except that a wrong configuration or file ends the run, a line an error."""

    def wrapped(*arguments: Any, **options: Any) -> Result:
        try:
            return function(*arguments, **options)
        except ValueError as error:
            lines = str(error).splitlines()
            more = [f"and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
            sys.exit("\n".join(f"error: {line}" for line in [*lines[:MOST_LINES], *more]))

    return wrapped


def _posix(paths: tuple[Path, ...]) -> list[str]:
    return [path.as_posix() for path in paths]
