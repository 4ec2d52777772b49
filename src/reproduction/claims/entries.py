"""What a ledger may say: statements of a paper, cross-checks of ours, findings, by topic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from privreg.validation import expected_choice
from reproduction.claims.checks import (
    KINDS,
    All,
    Check,
    Close,
    Number,
    Numbers,
    Ordered,
    references,
    refuses,
)
from reproduction.claims.evidence import Evidence
from reproduction.engine.parameters import Name, Strict

StatementKind = Literal["printed number", "theorem", "proof step", "figure", "prose"]
StatementVerdict = Literal[
    "reproduced", "contradicted", "depends on our choice", "inconclusive", "untested"
]
CrossCheckVerdict = Literal["passed", "failed", "inconclusive", "untested"]
Severity = Literal["conclusion", "hypothesis", "constant", "typo"]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Text = Annotated[str, Field(min_length=1)]
Texts = tuple[Text, ...]


class Beside(Strict):
    """A rejected observation told by its distance to what is expected."""

    times: Number | None = Field(None, description="This multiple of what is expected.")
    plus: Number | None = Field(None, description="This much more than what is expected.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.times is None) == (self.plus is None):
            raise ValueError("a rejected observation must be told by one of times and plus")
        return self

    def of(self, expected: float | tuple[float, ...]) -> NDArray[np.float64]:
        """The observation that is meant."""
        values = np.asarray(expected, dtype=np.float64)
        return values * self.times if self.times is not None else values + (self.plus or 0.0)


def _form(value: Any) -> str:
    if isinstance(value, Mapping | Beside):
        return "beside"
    return "list" if isinstance(value, list | tuple) else "number"


Rejected = Annotated[
    Annotated[Number, Tag("number")]
    | Annotated[Numbers, Tag("list")]
    | Annotated[Beside, Tag("beside")],
    Discriminator(_form),
]


def _known_kind(value: Any) -> Any:
    if isinstance(value, Mapping) and "kind" in value and value["kind"] not in KINDS:
        raise ValueError(f"kind must be {expected_choice(value['kind'], KINDS)}")
    return value


class Wrong(Strict):
    """A small wrong version of a statement, which the evidence must refuse."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    says: Text = Field(description="What is wrong, as in 'without its logarithm'.")
    evidence: Evidence | None = Field(None, description="Where it differs from the check's own.")
    check: Annotated[Check, Field(discriminator="kind"), BeforeValidator(_known_kind)] | None = (
        Field(None, description="Where it differs from the check's own.")
    )

    @model_validator(mode="after")
    def _differs(self) -> Self:
        if self.evidence is None and self.check is None:
            raise ValueError("one of evidence and check must be given, in which it differs")
        return self


class Probe(Strict):
    """One check of one piece of evidence, with what it must refuse."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    label: Text | None = Field(None, description="What this check looks at, where several are.")
    evidence: Evidence
    check: Annotated[Check, Field(discriminator="kind"), BeforeValidator(_known_kind)]
    rejects: tuple[Rejected, ...] = Field(
        (), description="Observations that the check must refuse, a list where it takes a list."
    )
    wrong: tuple[Wrong, ...] = Field(
        (), description="Small wrong versions of the statement, which the evidence must refuse."
    )

    @model_validator(mode="before")
    @classmethod
    def _wrong_evidence_is_whole(cls, raw: Any) -> Any:
        # The evidence of a wrong version says where it differs from the check's own.
        if not (isinstance(raw, Mapping) and isinstance(raw.get("evidence"), Mapping)):
            return raw
        listed = raw.get("wrong")
        if not isinstance(listed, list | tuple):
            return raw
        whole = [
            {**each, "evidence": {**raw["evidence"], **each["evidence"]}}
            if isinstance(each, Mapping) and isinstance(each.get("evidence"), Mapping)
            else each
            for each in listed
        ]
        return {**raw, "wrong": whole}

    @model_validator(mode="after")
    def _can_fail(self) -> Self:
        # What a check expects may lie in an artifact; then its power shows when it is judged.
        if not references(self.check):
            require_power(self.check, self.rejects)
        return self

    @model_validator(mode="after")
    def _selects_once(self) -> Self:
        if isinstance(self.check, Ordered) and self.check.dimension in self.evidence.select:
            raise ValueError(
                f"evidence.select.{self.check.dimension} must not be given:"
                " the check orders that dimension"
            )
        return self

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Artifacts that it reads, the evidence first."""
        probes = (self, *self.falsifiers)
        read = [each for p in probes for each in (p.evidence, *references(p.check).values())]
        return tuple(dict.fromkeys(evidence.artifact for evidence in read))

    @property
    def falsifiers(self) -> tuple[Probe, ...]:
        """The wrong versions as checks of their own, labelled with what they say."""
        return tuple(
            self.model_copy(
                update={
                    "label": each.says,
                    "evidence": each.evidence or self.evidence,
                    "check": each.check or self.check,
                    "rejects": (),
                    "wrong": (),
                }
            )
            for each in self.wrong
        )


def rejected_values(check: Check, rejected: float | tuple[float, ...] | Beside) -> Any:
    """The observation that a check must refuse, as numbers."""
    if not isinstance(rejected, Beside):
        return rejected
    inner = check.of if isinstance(check, All) else check
    if not isinstance(inner, Close) or isinstance(inner.expected, Evidence):
        raise ValueError("rejects must be numbers, unless the check is of kind 'close'")
    return rejected.of(inner.expected)


def require_power(check: Check, rejects: tuple[Any, ...]) -> None:
    """Refuse a check that takes, without any noise, what it must refuse."""
    for rejected in rejects:
        values = rejected_values(check, rejected)
        if not refuses(check, values):
            shown = np.asarray(values).tolist()
            raise ValueError(
                f"check must refuse what `rejects` lists, got one that cannot refuse {shown!r}"
            )


class Run(Strict):
    """The checks at one value of a choice of ours."""

    label: Text = Field(description="The choice, as it is made here.")
    checks: Annotated[tuple[Probe, ...], Field(min_length=1)]


class Choice(Strict):
    """What the paper leaves open and the verdict would turn with, run at several values."""

    choice: Text = Field(description="What is left open.")
    runs: Annotated[tuple[Run, ...], Field(min_length=2)]


class _Entry(Strict):
    """What statements and cross-checks share."""

    id: Identifier
    checks: tuple[Probe, ...] = ()
    requires: tuple[Identifier, ...] = Field((), description="Entries that this one rests on.")
    figure: Name | None = Field(None, description="The figure or table to look at.")
    note: Text | None = Field(None, description="What a reader needs besides; how it is measured.")

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The checks, one run for each value of our choice; none where nothing can be had."""
        return (Run(label="as stated", checks=self.checks),) if self.checks else ()


class Statement(_Entry):
    """What a paper says: in our words, no stronger, at its place."""

    kind: StatementKind
    where: Text = Field(description="Section, theorem, equation or panel.")
    statement: Text
    printed: Texts = Field((), description="Numbers as the paper prints them.")
    ours: Texts = Field((), description="What the paper leaves open and we chose.")
    depends_on_choice: Choice | None = None
    finding: Identifier | None = Field(None, description="The slip of the paper that it shows.")
    expect: StatementVerdict = "reproduced"

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The checks, one run for each value of our choice."""
        return self.depends_on_choice.runs if self.depends_on_choice else super().runs

    @model_validator(mode="after")
    def _is_checked_once(self) -> Self:
        given = bool(self.checks) + (self.depends_on_choice is not None)
        if given > 1 or (given == 0 and self.expect != "untested"):
            raise ValueError("one of checks and depends_on_choice must be given")
        return self

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.expect == "contradicted" and self.finding is None:
            raise ValueError("finding must be given, the slip that a contradicted statement shows")
        if self.expect == "depends on our choice" and self.depends_on_choice is None:
            raise ValueError("depends_on_choice must be given for expect = 'depends on our choice'")
        if self.expect in ("inconclusive", "untested") and self.note is None:
            raise ValueError(f"note must say why, for expect = {self.expect!r}")
        if self.kind == "printed number" and not self.printed:
            raise ValueError("printed must be given for kind = 'printed number'")
        return self


class CrossCheck(_Entry):
    """A guard of ours, for or against no paper: two routes to one number, a self-test."""

    compares: Text = Field(description="What must agree with what.")
    where: Text | None = Field(None, description="The place in the paper that it is near.")
    ours: Texts = ()
    expect: CrossCheckVerdict = "passed"

    @model_validator(mode="after")
    def _is_checked(self) -> Self:
        if not self.checks:
            raise ValueError("checks must hold at least one")
        if self.expect != "passed" and self.note is None:
            raise ValueError(f"note must say why, for expect = {self.expect!r}")
        return self


class Finding(Strict):
    """One slip of a paper, however many statements show it."""

    id: Identifier
    severity: Severity
    places: Annotated[Texts, Field(min_length=1)]
    printed: Text = Field(description="What the paper says.")
    holds: Text = Field(description="What holds instead.")
    how_we_know: Text = Field(description="The derivation in a few lines, and the check.")
    shown_by: tuple[Identifier, ...] = Field(
        (), description="Entries that show what holds; statements that name it are added."
    )
    downstream: Text = Field(
        description="What it changes in the paper, or that it changes nothing."
    )


class Topic(Strict):
    """Entries about one theorem or figure."""

    name: Identifier
    topic: Text = Field(description="Heading.")
    about: Text | None = Field(None, description="What the entries share, said once.")
    statements: tuple[Statement, ...] = ()
    cross_checks: tuple[CrossCheck, ...] = ()
    findings: tuple[Finding, ...] = ()

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not (self.statements or self.cross_checks or self.findings):
            raise ValueError("one of statements, cross_checks and findings must be given")
        return self

    @property
    def entries(self) -> tuple[Statement | CrossCheck, ...]:
        """What is judged, in order."""
        return (*self.statements, *self.cross_checks)
