"""The configuration of a run, typed: the shared part, and each paper's experiments and drawings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, Field, model_validator

from reproduction.engine.parameters import Artifact, ConfigError, Name, Strict, choose, validate
from reproduction.engine.quantities import Real, Some
from reproduction.engine.yaml_files import read_mapping

STUDIES = "studies"
# More trials or jobs than any machine would finish are a slip of the hand.
Trials = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Shards = Annotated[int, Field(ge=1, le=10_000, strict=True)]
# Any limit, or as good as none.
Limit = Annotated[Real, Field(ge=1e-30, le=1e30)]
Text = Annotated[str, Field(min_length=1)]


def require_address(value: str) -> str:
    """An address that a table may be downloaded from, else a ValueError."""
    try:
        parts = urlsplit(value)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(each.isspace() or not each.isprintable() for each in value):
        raise ValueError(f"must be an address such as https://example.org/folder, got {value!r}")
    return value


Address = Annotated[str, AfterValidator(require_address)]


class Overlay(Strict):
    """What another scale changes in an experiment."""

    trials: Trials | None = Field(default=None, description="Repetitions at this scale.")
    shards: Shards | None = Field(default=None, description="Jobs at this scale.")
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="Parameters that differ at this scale."
    )


class Experiment(Strict):
    """One experiment of a paper."""

    recipe: Name | None = Field(
        None, description="Recipe of the paper that runs it; the experiment's own name if left out."
    )
    trials: Trials | None = Field(None, description="Independent repetitions of a simulation.")
    shards: Shards = Field(1, description="Jobs that the trials are split over.")
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="The recipe's own parameters."
    )
    quick: Overlay = Field(
        default=Overlay(), description="What `scale: quick` changes, to see it run."
    )

    @model_validator(mode="after")
    def _shards_fit(self) -> Self:
        if self.shards > (self.trials or 1):
            raise ValueError(
                f"shards must be at most trials = {self.trials or 1}, got {self.shards}"
            )
        return self

    def parameters_as_json(self) -> str:
        """The parameters with sorted keys, as jobs are told them and artifacts state them."""
        return json.dumps(self.parameters, sort_keys=True)

    def at(self, scale: str) -> Experiment:
        """The experiment at a scale: one shard and the overlay, unless the scale is the paper's."""
        if scale == "paper":
            return self
        changed = self.quick.model_dump(exclude_none=True, exclude={"parameters"})
        changed["parameters"] = merge(self.parameters, self.quick.parameters)
        return Experiment.model_validate(self.model_dump() | {"shards": 1} | changed)


class Figure(Strict):
    """One figure: the artifacts that its drawing function takes, by argument name."""

    artifacts: dict[str, Artifact] = Field(min_length=1, description="Argument: artifact.")
    caption: Text = Field(
        description="What a reader should see, and the choices made. `{trials}` is replaced by the "
        "number of trials, or numbers, `{trials of fixed_ratio}` by that of one experiment."
    )
    alt: Text | None = Field(None, description="What is seen, for a reader who cannot look.")
    beside: Text | None = Field(
        None, description="How it reads beside the paper's own figure, and why where it differs."
    )

    @property
    def experiments(self) -> list[str]:
        """Names of the experiments that it shows, sorted."""
        parts = (artifact.split("/") for artifact in self.artifacts.values())
        return sorted({name for kind, name in parts if kind != "data"})


class Table(Figure):
    """One table: the artifacts that its function takes, by argument name."""


class Paper(Strict):
    """The experiments, figures and tables of a paper or of the studies."""

    experiments: dict[Name, Experiment] = Field(min_length=1)
    figures: dict[Name, Figure] = Field(default_factory=dict)
    tables: dict[Name, Table] = Field(default_factory=dict)

    def caption(self, drawing: Figure, scale: str) -> str:
        """The caption of a figure or table with its numbers of trials at a scale.

        Raises
        ------
        ValueError
            One line: the drawing shows no such experiment.
        """
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
    """Where a table may be downloaded from."""

    mirrors: Some[Address] = Field(description="Base addresses, tried in this order.")


class LargestJob(Strict):
    """What a job may be predicted to need; a run with a larger one is refused before it starts."""

    hours: Limit = Field(default=24.0, description="Hours of one core.")
    memory_gb: Limit = Field(default=64.0, description="Memory in GB.")


class Config(Strict):
    """The whole configuration, after the files are merged."""

    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = Field(
        description="The one seed; each trial derives its own stream from it."
    )
    scale: Literal["paper", "quick"] = Field(
        "paper", description="'quick' makes everything small, marked so, in a folder of its own."
    )
    largest_job: LargestJob = Field(
        default=LargestJob(), description="The largest job that a run may hold."
    )
    data: dict[Name, DataSource] = Field(description="Download mirrors of each real table.")
    papers: dict[Name, Paper] = Field(description="The papers to rebuild, by citation key.")
    studies: Paper | None = Field(None, description="The studies of the project's own promises.")

    @property
    def blocks(self) -> dict[str, Paper]:
        """The papers by citation key, then the studies."""
        return self.papers | ({STUDIES: self.studies} if self.studies else {})


def read_configuration(folder: Path = Path("config")) -> dict[str, Any]:
    """The configuration that lies in a folder, merged, without any overlay of a run.

    Raises
    ------
    ConfigError
        One line: a file that cannot be read or is no YAML.
    """
    raw = read_mapping(folder / "config.yaml")
    listed = raw.get("papers")
    for paper in listed if isinstance(listed, list) else ():
        raw |= read_mapping(folder / "papers" / f"{paper}.yaml")
    studies = folder / f"{STUDIES}.yaml"
    if studies.is_file():
        raw |= read_mapping(studies)
    return raw


def with_arguments(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A merged configuration in which what `--config` says is read as YAML would be.

    Snakemake takes all that stands inside an argument's braces for text.
    """
    return merge(config, {key: _reread(value) for key, value in arguments.items()})


def _reread(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _reread(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_reread(inner) for inner in value]
    if not isinstance(value, str):
        return value
    try:
        # YAML 1.1 knows no number without a point, and on a command line there is no other reader.
        pointless = re.fullmatch(r"[-+]?\d+[eE][-+]?\d+", value)
        found = float(value) if pointless else yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError):
        return value
    return found if isinstance(found, bool | int | float | None) else value


def load(raw: Mapping[str, Any], known_keys: Iterable[str]) -> Config:
    """Check a merged configuration; each listed paper is a top-level block, and so are studies.

    Parameters
    ----------
    raw : mapping
        `papers` is a list of citation keys; each of them is also a key that holds its block.
    known_keys : iterable of str
        Citation keys that this package implements, and that of the studies.

    Raises
    ------
    ConfigError
        One line: the key, what was expected, what was found and the nearest valid name.
    """
    known = [key for key in known_keys if key != STUDIES]
    listed = raw.get("papers")
    if not isinstance(listed, list) or not listed:
        raise ConfigError(f"config.papers must be a list of citation keys, got {listed!r}")
    for paper in listed:
        choose(paper, known, "config.papers")
    shared = {key: value for key, value in raw.items() if key not in known}
    for key in shared:
        choose(key, [*Config.model_fields, *known], "a key of config")
    if len(set(listed)) < len(listed):
        raise ConfigError(f"config.papers must name each paper once, got {listed!r}")
    papers = {paper: validate(Paper, raw.get(paper, {}), paper) for paper in listed}
    if STUDIES in shared:
        shared[STUDIES] = validate(Paper, shared[STUDIES], STUDIES)
    return validate(Config, shared | {"papers": papers}, "config")


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the overlay's values, block by block."""
    merged = dict(base)
    for key, value in overlay.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged
