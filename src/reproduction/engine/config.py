"""The configuration of a run, typed: the shared part, and each paper's experiments and drawings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from reproduction.engine.parameters import Artifact, ConfigError, Name, Strict, choose, validate
from reproduction.engine.quantities import Some
from reproduction.engine.registry import STUDIES, known_papers
from reproduction.engine.yaml_files import read_mapping

Scale = Literal["paper", "quick"]
Text = Annotated[str, Field(min_length=1)]
Folder = Annotated[str, Field(pattern=r"^[^{}]*[^{}./\s][./\s]*$")]
Address = Annotated[str, Field(pattern=r"^https?://[^\s/]+\S*$")]
# More trials or jobs than any machine would finish are a slip of the hand.
Trials = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Shards = Annotated[int, Field(ge=1, le=10_000, strict=True)]


class Overlay(Strict):
    """Changes of an experiment at the quick scale."""

    trials: Trials | None = Field(None, description="Repetitions at this scale.")
    shards: Shards = Field(1, description="Jobs at this scale.")
    parameters: dict[str, Any] = Field({}, description="Parameters that differ at this scale.")


class Resources(Strict):
    """Resources of one job of an experiment; each retry requests a multiple."""

    mem_mb: Annotated[int, Field(ge=1)] = Field(1000, description="Memory in MB.")
    runtime: Annotated[int, Field(ge=1)] = Field(30, description="Minutes of one core.")


class Experiment(Strict):
    """One experiment of a paper."""

    recipe: Name | None = Field(
        None, description="Recipe of the paper that runs it; the experiment's own name if left out."
    )
    trials: Trials | None = Field(None, description="Independent repetitions of a simulation.")
    shards: Shards = Field(1, description="Jobs that the trials are split over.")
    parameters: dict[str, Any] = Field({}, description="The recipe's own parameters.")
    resources: Resources = Field(
        Resources.model_validate({}), description="Memory and minutes of a large job."
    )
    quick: Overlay = Field(
        Overlay.model_validate({}), description="Changes at `scale: quick`, for a short test run."
    )

    @model_validator(mode="after")
    def _shards_fit(self) -> Experiment:
        if self.shards > (self.trials or 1):
            raise ValueError(
                f"shards must be at most trials = {self.trials or 1}, got {self.shards}"
            )
        return self

    def at(self, scale: Scale) -> Experiment:
        """Experiment at a scale; `quick` overrides the rest at the quick scale."""
        if scale == "paper":
            return self
        trials = self.quick.trials or self.trials
        changed = {
            "shards": min(self.quick.shards, trials or 1),
            "trials": trials,
            "parameters": merge(self.parameters, self.quick.parameters),
        }
        return self.model_copy(update=changed)


class Drawing(Strict):
    """A figure or table: the artifacts that its function takes, by argument name."""

    artifacts: dict[str, Artifact] = Field(min_length=1, description="Argument: artifact.")
    caption: Text = Field(
        description="What a reader should see, and the choices made. `{trials}` is replaced by the "
        "numbers of trials, and `{trials of fixed_ratio}` by the number of that experiment."
    )
    alt: Text | None = Field(None, description="Description for a reader who cannot see it.")
    beside: Text | None = Field(
        None, description="Comparison with the paper's own figure, and the reason for differences."
    )

    @property
    def experiments(self) -> list[str]:
        """Names of the experiments that the drawing shows, sorted."""
        parts = (artifact.split("/") for artifact in self.artifacts.values())
        return sorted({name for kind, name in parts if kind != "data"})


class Paper(Strict):
    """The experiments, figures and tables of a paper or of the studies."""

    experiments: dict[Name, Experiment] = Field(min_length=1)
    figures: dict[Name, Drawing] = Field({})
    tables: dict[Name, Drawing] = Field({})

    def drawings(self, kind: str) -> dict[str, Drawing]:
        """The paper's `figures` or `tables`."""
        return {"figures": self.figures, "tables": self.tables}[kind]

    def caption(self, drawing: Drawing, scale: Scale) -> str:
        """Caption with numbers of trials at a scale; ValueError if an experiment has no trials."""
        trials = {
            name: found
            for name in drawing.experiments
            if (found := self.experiments[name].at(scale).trials)
        }

        def number(match: re.Match) -> str:
            if not trials or match[1] not in (None, *trials):
                known = " or ".join(f"{{trials of {name}}}" for name in trials) or "no trials"
                raise ValueError(f"must name {known}, got {match[0]}")
            counts = [trials[match[1]]] if match[1] else dict.fromkeys(trials.values())
            return " or ".join(map(str, counts))

        return re.sub(r"\{trials(?: of (\w+))?\}", number, drawing.caption)


class DataSource(Strict):
    """Download addresses of a table."""

    mirrors: Some[Address] = Field(description="Base addresses, tried in this order.")


class Config(Strict):
    """The whole configuration, after the files are merged."""

    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = Field(
        description="The one seed; each trial derives its own stream from it."
    )
    scale: Scale = Field("paper", description="'quick' makes all runs small and marks results.")
    results: Folder | None = Field(
        None, description="Folder of all results; default `results`, if quick `results/quick`."
    )
    data: dict[Name, DataSource] = Field(description="Download mirrors of each real table.")
    papers: dict[Name, Paper] = Field(description="The papers to rebuild, by citation key.")
    studies: Paper | None = Field(None, description="Studies of the library's own guarantees.")

    @property
    def blocks(self) -> dict[str, Paper]:
        """The papers by citation key, then the studies."""
        return self.papers | ({STUDIES: self.studies} if self.studies else {})

    @property
    def root(self) -> str:
        """Folder below which all results lie."""
        usual = "results" if self.scale == "paper" else "results/quick"
        return str(Path(self.results or usual).expanduser())


def read_configuration(folder: Path, overlay: Mapping[str, Any] | None = None) -> Config:
    """Configuration of a folder, with a run's changes, block by block."""
    raw = merge(read_mapping(folder / "config.yaml"), overlay or {})
    listed = raw.pop("papers", None)
    if not isinstance(listed, list) or not listed or len({*map(str, listed)}) < len(listed):
        remedy = "; a paper's own keys stand at the top" if isinstance(listed, dict) else ""
        raise ConfigError(f"config.papers must be a list of citation keys, got {listed!r}{remedy}")
    files = [f"papers/{choose(paper, known_papers(), 'config.papers')}.yaml" for paper in listed]
    for key in raw.keys() & {*known_papers(), STUDIES}:
        raw[key] = _at_both_scales(raw[key])
    for file in (*files, "studies.yaml"):
        raw = merge(read_mapping(folder / file), raw)
    blocks = {key: validate(Paper, raw.get(key, {}), key) for key in (*listed, STUDIES)}
    shared = {key: value for key, value in raw.items() if key not in (*known_papers(), STUDIES)}
    for key in shared:
        choose(key, [*Config.model_fields, *known_papers()], "a key of config")
    shared[STUDIES] = blocks.pop(STUDIES)
    return validate(Config, shared | {"papers": blocks}, "config")


def _at_both_scales(block: Any) -> Any:
    """Changes of experiments by a user, which override the files' quick scale."""
    listed = block.get("experiments") if isinstance(block, Mapping) else None
    changed = {}
    for name, each in listed.items() if isinstance(listed, Mapping) else ():
        if isinstance(each, Mapping):
            own = {key: each[key] for key in Overlay.model_fields if key in each}
            changed[name] = merge({"quick": own}, each)
    return merge(block, {"experiments": changed}) if changed else block


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the overlay's values, block by block."""
    merged = dict(base)
    for key, value in overlay.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged
