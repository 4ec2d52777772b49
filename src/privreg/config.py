"""Typed configuration: rejects what it does not know and names the nearest valid key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Model = TypeVar("Model", bound=BaseModel)
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Artifact = Annotated[str, Field(pattern=r"^(data|theory|simulation|intervals)/[a-z][a-z0-9_]*$")]


class ConfigError(ValueError):
    """A configuration that cannot be run, said in one line."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Valid names with the closest one first, for the end of an error line."""
    names = sorted(valid)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"expected one of {', '.join(names) or 'none'}{hint}"


def choose(name: str, valid: Iterable[str], where: str) -> str:
    """Return `name` if it is valid, else raise a `ConfigError` that names the nearest valid one."""
    names = list(valid)
    if name not in names:
        raise ConfigError(f"{where}: unknown name {name!r}; {nearest(name, names)}")
    return name


class Strict(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key {key!r}; {nearest(key, cls.model_fields)}")
        return value


def explain(error: ValidationError, where: str) -> str:
    """One line for the first error of a validation: key, value found, what was expected."""
    first = error.errors()[0]
    location = ".".join([where, *(str(part) for part in first["loc"])])
    message = first["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    if first["type"] == "value_error":
        return f"{location}: {message}"
    if first["type"] == "missing":
        return f"{location}: a value is required"
    found = repr(first["input"])
    return f"{location} = {found if len(found) < 80 else found[:77] + '...'}: {message}"


def validate(model: type[Model], value: Any, where: str) -> Model:
    """Validate `value`, turning what is wrong into a one-line `ConfigError`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ConfigError(explain(error, where)) from None


class Experiment(Strict):
    """One experiment of a paper."""

    recipe: Name | None = Field(
        None, description="Module of the paper that runs it; the experiment's own name if left out."
    )
    trials: int | None = Field(None, ge=1, description="Independent repetitions of a simulation.")
    shards: int = Field(1, ge=1, description="Jobs that the trials are split over.")
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="The recipe's own parameters."
    )

    @model_validator(mode="after")
    def _shards_fit(self) -> Self:
        if self.shards > (self.trials or 1):
            raise ValueError(f"shards {self.shards}: expected at most trials = {self.trials or 1}")
        return self


class Figure(Strict):
    """One figure: the artifacts that its drawing function takes, by argument name."""

    artifacts: dict[str, Artifact] = Field(min_length=1, description="Argument: artifact.")
    caption: str = Field(
        min_length=1, description="What a reader should see, and the choices made."
    )


class Table(Figure):
    """One table: the artifacts that its function takes, by argument name."""


class Paper(Strict):
    """A paper's experiments, figures and tables."""

    experiments: dict[Name, Experiment] = Field(min_length=1)
    figures: dict[Name, Figure] = Field(default_factory=dict)
    tables: dict[Name, Table] = Field(default_factory=dict)


class DataSource(Strict):
    """Where a table may be downloaded from."""

    mirrors: list[str] = Field(min_length=1, description="Base addresses, tried in this order.")


class Config(Strict):
    """The whole configuration, after the files are merged."""

    seed: int = Field(ge=0, description="The one seed; each trial derives its own stream from it.")
    scale: Literal["paper", "quick"] = Field(
        "paper", description="'quick' marks figures and claims as of a reduced scale."
    )
    data: dict[Name, DataSource] = Field(description="Download mirrors of each real table.")
    papers: dict[Name, Paper] = Field(description="The papers to rebuild, by citation key.")


def load(raw: Mapping[str, Any], known_papers: Iterable[str]) -> Config:
    """Check a merged configuration, in which each listed paper is a top-level block.

    Parameters
    ----------
    raw : mapping
        `papers` is a list of citation keys; each of them is also a key that holds its block.
    known_papers : iterable of str
        Citation keys that this package implements.

    Raises
    ------
    ConfigError
        One line: the key, what was found, what was expected and the nearest valid name.
    """
    known = list(known_papers)
    listed = raw.get("papers")
    if not isinstance(listed, list) or not listed:
        raise ConfigError(f"config.papers = {listed!r}: expected a list of citation keys")
    for paper in listed:
        choose(paper, known, "config.papers")
    shared = {key: value for key, value in raw.items() if key not in known}
    for key in shared:
        if key not in Config.model_fields:
            raise ConfigError(
                f"config: unknown key {key!r}; {nearest(key, [*Config.model_fields, *known])}"
            )
    papers = {paper: validate(Paper, raw.get(paper, {}), paper) for paper in listed}
    return validate(Config, shared | {"papers": papers}, "config")
