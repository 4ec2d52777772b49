"""The identities that a plan expects of the artifacts that its jobs read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from reproduction.pipeline.plan import Plan
from reproduction.pipeline.provenance import (
    MADE_WITH,
    SHORT,
    code_digest,
    config_digest,
    identity,
    table_identity,
)


class Expected:
    """What the readers of artifacts expect of them, as the plan has it.

    Each method gives a JSON object, from argument names to short identities, for the option
    `--expected` of a stage.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._identity = cache(self._uncached_identity)

    def stage(self, stage: str, paper: str, name: str) -> str:
        """Of what a stage of an experiment reads."""
        expected = {}
        for kind, path in self._plan.reads(stage, paper, name).items():
            named = Path(path).stem if kind == "data" else name
            expected[kind] = self._artifact(paper, named, kind)
        if stage in ("summarise", "simulation"):
            expected["shards"] = self._made_by("simulate", paper, name)
        return json.dumps(expected)

    def drawing(self, kind: str, paper: str, name: str) -> str:
        """Of what a figure or table reads; `kind` is figure or table."""
        block = self._plan.config.blocks[paper]
        drawing = block.figures[name] if kind == "figure" else block.tables[name]
        return self._named(paper, drawing.artifacts)

    def verdicts(self, paper: str, claim: str | None = None) -> str:
        """Of what judges the entries of a paper, or one of them."""
        return self._named(paper, {name: name for name in self._plan.ledgers.reads(paper, claim)})

    def _named(self, paper: str, artifacts: Mapping[str, str]) -> str:
        found = {}
        for argument, artifact in artifacts.items():
            kind, _, name = artifact.partition("/")
            found[argument] = self._artifact(paper, name, kind)
        return json.dumps(found)

    def _artifact(self, paper: str, name: str, kind: str) -> str:
        """Of an artifact of an experiment; for the kind `data`, `name` is a table's."""
        if kind == "data":
            return self._identity("data", "data", name)[:SHORT]
        return self._made_by("summarise" if kind == "simulation" else kind, paper, name)

    def _made_by(self, stage: str, paper: str, name: str) -> str:
        short = self._identity(stage, paper, name)[:SHORT]
        steps = ("simulate", "summarise") if stage == "summarise" else (stage,)
        tables = [self._plan.reads(step, paper, name).get("data") for step in steps]
        table = next(filter(None, tables), None)
        return f"{short}{MADE_WITH}{table}" if table else short

    def _uncached_identity(self, stage: str, paper: str, name: str) -> str:
        if stage == "data":
            return table_identity(name)
        plan, recipe = self._plan, self._plan.recipe(paper, name)
        reads: dict[str, str] = {}
        for kind, path in plan.reads(stage, paper, name).items():
            if kind == "data":
                reads[kind] = self._identity("data", "data", Path(path).stem)
            else:
                maker = "summarise" if kind == "simulation" else kind
                reads[kind] = self._identity(maker, paper, name)
        draws: dict[str, Any] = {}
        if stage == "simulate":
            draws = {"seed": plan.config.seed, "trials": plan.experiment(paper, name).trials}
        elif recipe.has("simulate") and stage == "summarise":
            reads["shards"] = self._identity("simulate", paper, name)
        return identity(
            f"{paper}/{name}",
            stage,
            config_digest=config_digest(plan.parameters(paper, name)),
            code_digest=code_digest(stage, recipe.module_name),
            reads=reads,
            draws=draws,
        )
