"""What is looked for in a plan before any job runs: names, parameters, arguments, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from privreg import data
from reproduction.engine.ledger import Entry
from reproduction.engine.parameters import ConfigError, choose, explain
from reproduction.pipeline import drawings, scales
from reproduction.pipeline.config import Config
from reproduction.pipeline.ledgers import Ledgers
from reproduction.pipeline.registry import STAGE_OF, Recipe


class Plan(Protocol):
    """What is looked at, of a plan."""

    config: Config
    ledgers: Ledgers
    reference: dict[str, scales.Reference]

    def recipe(self, paper: str, name: str) -> Recipe: ...

    def known(self, paper: str, artifact: str) -> tuple[str, ...] | None: ...


def require_sound_experiments(plan: Plan) -> None:
    """Refuse names, numbers of trials and parameters that the recipes do not take.

    Raises
    ------
    ConfigError
        One line for the first thing that is wrong.
    """
    for name in plan.config.data:
        choose(name, data.NAMES, "a key of config.data")
    for paper in plan.config.blocks:
        _check_experiments(plan, paper)


def require_sound_tables(directory: str | None) -> None:
    """Refuse a folder of real tables whose files are not what they should be."""
    if directory:
        data.check(Path(directory))


def require_sound_drawings_and_ledgers(plan: Plan) -> None:
    """Refuse figures, tables and entries that could not be made or judged.

    Raises
    ------
    ConfigError
        A line for each thing that is wrong, of the first paper that has any.
    """
    for paper in plan.config.blocks:
        _check_drawings(plan, paper)
        _check_ledger(plan, paper)


def _check_experiments(plan: Plan, paper: str) -> None:
    for name, experiment in plan.config.blocks[paper].experiments.items():
        where = f"{paper}.experiments.{name}"
        recipe = plan.recipe(paper, name)
        if recipe.has("simulate") != (experiment.trials is not None):
            expected = "a number of trials" if recipe.has("simulate") else "none (no simulation)"
            raise ConfigError(f"{where}.trials must be {expected}, got {experiment.trials}")
        for scale in ("paper", "quick"):
            try:
                scaled = experiment.at(scale)
            except ValidationError as error:
                raise ConfigError(explain(error, f"{where}.{scale}")) from None
            if scaled.trials is not None and scaled.trials < recipe.least_trials:
                key = "trials" if scale == "paper" else f"{scale}.trials"
                raise ConfigError(
                    f"{where}.{key} must be at least {recipe.least_trials}, got {scaled.trials}"
                )
            typed: Any = recipe.parameters(scaled.parameters, name)
            if any("data" in recipe.reads(stage) for stage in STAGE_OF.values()):
                choose(typed.dataset, data.NAMES, f"{where}.parameters.dataset")
                choose(typed.dataset, plan.config.data, f"{where}.parameters.dataset")


def _check_drawings(plan: Plan, paper: str) -> None:
    block = plan.config.blocks[paper]
    as_committed = plan.reference.get(paper)
    for kind, listed in (("figures", block.figures), ("tables", block.tables)):
        functions = drawings.functions(paper, kind)
        for name, drawing in listed.items():
            where = f"{paper}.{kind}.{name}"
            choose(name, functions, where)
            for argument in drawing.artifacts:
                choose(argument, functions[name], f"{where}.artifacts: a key")
            made = as_committed.drawings.get(name, {}) if as_committed else {}
            for argument, artifact in drawing.artifacts.items():
                _check_artifact(plan, paper, artifact, f"{where}.{argument}")
                is_made = scales.made_as(plan.config, paper, artifact)
                if is_made != made.get(argument, is_made):
                    raise ConfigError(
                        f"{where}.{argument} must be {made[argument]} as its recipe makes it, "
                        f"got {artifact}"
                    )
            for argument in functions[name]:
                if argument not in drawing.artifacts:
                    raise ConfigError(f"{where}.artifacts.{argument} must be given")
            try:
                block.caption(drawing, plan.config.scale)
            except ValueError as error:
                raise ConfigError(f"{where}.caption {error}") from None


def _check_ledger(plan: Plan, paper: str) -> None:
    wrong = []
    for name, entry in plan.ledgers.by_paper[paper].entries.items():
        try:
            _check_entry(plan, paper, entry, f"{paper}.claims.{name}")
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))


def _check_entry(plan: Plan, paper: str, entry: Entry, where: str) -> None:
    for probe in entry.probes:
        for evidence in probe.reads:
            _check_artifact(plan, paper, evidence.artifact, f"{where}.evidence")
            known = plan.known(paper, evidence.artifact)
            if known is not None:
                choose(evidence.variable, known, f"{where}: evidence.variable")
    if entry.figure is not None:
        block = plan.config.blocks[paper]
        choose(entry.figure, [*block.figures, *block.tables], f"{where}.figure")


def _check_artifact(plan: Plan, paper: str, artifact: str, where: str) -> None:
    stage, _, name = artifact.partition("/")
    if stage == "data":
        choose(name, plan.config.data, where)
        return
    choose(name, plan.config.blocks[paper].experiments, where)
    if not plan.recipe(paper, name).has(STAGE_OF[stage]):
        raise ConfigError(f"{where} must name an experiment with the stage {stage!r}, got {name!r}")
