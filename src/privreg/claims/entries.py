"""Entries of a ledger: a claim, its place, its evidence, its check, what the check must refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from privreg.claims.checks import KINDS, Check, Label, Number, Ordered, refuses
from privreg.experiment.parameters import Artifact, ConfigError, Name, Strict, explain
from privreg.validation import expected_choice as nearest

VerdictName = Literal["reproduced", "contradicted", "inconclusive", "untested"]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Text = Annotated[str, Field(min_length=1)]
Rejected = Number | Annotated[tuple[Number, ...], Field(min_length=1)]


def _known_kind(value: Any) -> Any:
    if isinstance(value, Mapping) and "kind" in value and value["kind"] not in KINDS:
        raise ValueError(f"kind = {value['kind']!r}; {nearest(value['kind'], KINDS)}")
    return value


class Evidence(Strict):
    """A variable of an artifact, at labels of its coordinates."""

    artifact: Artifact = Field(description="STAGE/EXPERIMENT, or data/DATASET.")
    variable: Name
    select: dict[Name, Label | tuple[Label, ...]] = Field(
        default_factory=dict, description="Coordinate: one label, or several in this order."
    )


class Entry(Strict):
    """What a paper says, where, and what would refute it."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    id: Identifier
    where: Text = Field(description="Place in the paper.")
    statement: Text
    evidence: Evidence
    check: Annotated[Check, Field(discriminator="kind"), BeforeValidator(_known_kind)]
    rejects: Annotated[tuple[Rejected, ...], Field(min_length=1)] = Field(
        description="Observations that the check must refuse, a list where it takes a list."
    )
    expect: VerdictName = "reproduced"
    note: Text | None = Field(None, description="Why it is wrong, what holds, how it is measured.")
    pair: Identifier | None = Field(
        None, description="The entry that states what holds, where this one is printed wrong."
    )
    figure: Name | None = Field(None, description="The paper's figure to look at.")

    @model_validator(mode="after")
    def _can_fail(self) -> Self:
        for rejected in self.rejects:
            if not refuses(self.check, rejected):
                shown = list(rejected) if isinstance(rejected, tuple) else rejected
                raise ValueError(
                    f"a check that cannot refuse {shown!r}, which `rejects` lists:"
                    " expected a tighter check, or an observation outside its bounds"
                )
        return self

    @model_validator(mode="after")
    def _selects_once(self) -> Self:
        if isinstance(self.check, Ordered) and self.check.dimension in self.evidence.select:
            raise ValueError(
                f"evidence.select.{self.check.dimension}: expected no selection along the dimension"
                " that the check orders"
            )
        return self

    @model_validator(mode="after")
    def _says_what_holds(self) -> Self:
        if self.expect == "contradicted" and self.pair is None and self.note is None:
            raise ValueError("expect = 'contradicted': expected `pair` or `note` to say what holds")
        if self.pair is not None and self.expect != "contradicted":
            raise ValueError(
                f"pair = {self.pair!r}: expected only on an entry that expects 'contradicted'"
            )
        return self


def load_ledger(raw: Any, paper: str) -> list[Entry]:
    """Check a paper's ledger.

    Parameters
    ----------
    raw : list or mapping
        The entries, as they are or under the one key `claims`.
    paper : str
        Citation key, for the messages.

    Returns
    -------
    list of Entry
        In the order of the ledger.

    Raises
    ------
    ConfigError
        One line: the paper, the entry, the key, what was found and what was expected.
    """
    where = f"{paper}.claims"
    found = raw
    if isinstance(raw, Mapping):
        for key in raw:
            if key != "claims":
                raise ConfigError(f"{where}: unknown key {key!r}; {nearest(key, ['claims'])}")
        found = raw.get("claims")
    if not isinstance(found, list) or not found:
        raise ConfigError(f"{where}: expected a list of at least one entry, found {found!r:.40}")
    entries = [_entry(value, where, position) for position, value in enumerate(found)]
    _check_names(entries, where)
    return entries


def _entry(value: Any, where: str, position: int) -> Entry:
    name = value.get("id", position) if isinstance(value, Mapping) else position
    try:
        return Entry.model_validate(value)
    except ValidationError as error:
        raise ConfigError(explain(error, f"{where}.{name}")) from None


def _check_names(entries: list[Entry], where: str) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise ConfigError(f"{where}.{entry.id}: this id is there twice; expected each once")
        seen.add(entry.id)
    for entry in entries:
        others = seen - {entry.id}
        if entry.pair is not None and entry.pair not in others:
            raise ConfigError(
                f"{where}.{entry.id}.pair = {entry.pair!r}: {nearest(entry.pair, others)}"
            )
