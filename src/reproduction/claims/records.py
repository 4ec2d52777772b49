"""Records: what the ledger says of an entry, joined with what its evidence says."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import ConfigDict

from reproduction.claims.entries import (
    CrossCheckVerdict,
    Finding,
    Severity,
    Statement,
    StatementKind,
    StatementVerdict,
)
from reproduction.claims.ledger import Entry, Ledger, Topic
from reproduction.claims.verdicts import CheckResult, Judgement, RunResult, Scale, Summary
from reproduction.claims.wording import series
from reproduction.engine.parameters import ConfigError, Strict

STATEMENT_VERDICTS: tuple[str, ...] = get_args(StatementVerdict)
CROSS_CHECK_VERDICTS: tuple[str, ...] = get_args(CrossCheckVerdict)
SEVERITIES: tuple[str, ...] = get_args(Severity)
KINDS: tuple[str, ...] = get_args(StatementKind)
WORDS: dict[Summary, StatementVerdict] = {
    "passed": "reproduced",
    "failed": "contradicted",
    "depends on our choice": "depends on our choice",
    "inconclusive": "inconclusive",
    "untested": "untested",
}
SOUND = ("reproduced", "passed")
COLUMNS = (
    "paper", "topic", "entry", "kind", "id", "where", "statement", "verdict", "expect",
    "as_expected", "finding", "choice", "check", "outcome", "observed", "standard_error", "z",
    "expected", "margin", "at", "trials", "trials_needed", "reason", "stand_in", "scale",
    "artifact", "variable", "select", "digest", "command",
)  # fmt: skip


class Record(Strict):
    """An entry with its verdict."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    paper: str
    topic: str
    entry: Literal["statement", "cross_check"]
    id: str
    kind: StatementKind | None
    where: str | None
    statement: str
    printed: tuple[str, ...]
    ours: tuple[str, ...]
    choice: str | None
    requires: tuple[str, ...]
    broken: tuple[str, ...]
    figure: str | None
    finding: str | None
    note: str | None
    verdict: str
    expect: str
    as_expected: bool
    reason: str
    runs: tuple[RunResult, ...]
    stand_in: bool
    scale: Scale
    command: str

    @property
    def key(self) -> str:
        """The entry's name over all papers, and its anchor on the page."""
        return f"{self.paper}-{self.id}"

    @property
    def checks(self) -> list[CheckResult]:
        """Checks of all runs."""
        return [check for run in self.runs for check in run.checks]


class FindingRecord(Finding):
    """A finding with its paper and the entries that show it."""

    paper: str
    topic: str

    @property
    def key(self) -> str:
        """The finding's name over all papers, and its anchor on the page."""
        return f"{self.paper}-{self.id}"


class TopicRecord(Strict):
    """A topic's heading."""

    paper: str
    name: str
    topic: str
    about: str | None


class Book(Strict):
    """All papers' ledgers with their verdicts."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    topics: tuple[TopicRecord, ...]
    records: tuple[Record, ...]
    findings: tuple[FindingRecord, ...]

    @property
    def papers(self) -> list[str]:
        """Citation keys in order."""
        return list(dict.fromkeys(topic.paper for topic in self.topics))

    @property
    def statements(self) -> list[Record]:
        """What counts for or against a paper."""
        return [record for record in self.records if record.entry == "statement"]

    @property
    def cross_checks(self) -> list[Record]:
        """What guards us."""
        return [record for record in self.records if record.entry == "cross_check"]


def join(ledgers: Iterable[Ledger], judgements: Iterable[Judgement]) -> Book:
    """Join ledgers with what the evidence says of their entries.

    An entry that has no judgement is untested. A base that did not hold, or rests itself on one
    that did not, is listed in `broken` of all that requires it.

    Raises
    ------
    ConfigError
        A judgement is of no entry.
    """
    found = {(judgement.paper, judgement.id): judgement for judgement in judgements}
    topics: list[TopicRecord] = []
    records: list[Record] = []
    findings: list[FindingRecord] = []
    for ledger in ledgers:
        verdicts = {
            name: _verdict(entry, found.get((ledger.paper, name)))
            for name, entry in ledger.entries.items()
        }
        for topic in ledger.topics:
            topics.append(
                TopicRecord(
                    paper=ledger.paper, name=topic.name, topic=topic.topic, about=topic.about
                )
            )
            records += [
                _record(ledger, topic, entry, found.pop((ledger.paper, entry.id), None), verdicts)
                for entry in topic.entries
            ]
            findings += [
                FindingRecord.model_validate(
                    finding.model_dump()
                    | {
                        "paper": ledger.paper,
                        "topic": topic.name,
                        "shown_by": ledger.shown_by(finding.id),
                    }
                )
                for finding in topic.findings
            ]
    for paper, name in found:
        raise ConfigError(f"{paper}.claims.{name}: a judgement of no entry of the ledger")
    return Book(topics=tuple(topics), records=tuple(records), findings=tuple(findings))


def counts(records: Iterable[Record]) -> Counter[str]:
    """Number of records by verdict."""
    return Counter(record.verdict for record in records)


def to_csv(book: Book) -> str:
    """One row a check, with its entry."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for record in book.records:
        writer.writerows(_rows(record))
    return stream.getvalue()


def findings_to_csv(findings: Sequence[FindingRecord]) -> str:
    """One row a finding."""
    columns = ("paper", *(name for name in Finding.model_fields))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    for finding in findings:
        values = {column: getattr(finding, column) for column in columns}
        writer.writerow(
            {
                column: "; ".join(value) if isinstance(value, tuple) else value
                for column, value in values.items()
            }
        )
    return stream.getvalue()


def to_json(book: Book) -> str:
    """The book as JSON; infinity and NaN are strings that `from_json` reads."""
    return book.model_dump_json(indent=1)


def from_json(text: str | bytes) -> Book:
    """The inverse of `to_json`."""
    return Book.model_validate_json(text)


def _verdict(entry: Entry, judgement: Judgement | None) -> str:
    outcome: Summary = "untested" if judgement is None else judgement.outcome
    return WORDS[outcome] if isinstance(entry, Statement) else outcome


def _record(
    ledger: Ledger,
    topic: Topic,
    entry: Entry,
    judgement: Judgement | None,
    verdicts: Mapping[str, str],
) -> Record:
    verdict = verdicts[entry.id]
    own: dict[str, Any] = {"entry": "cross_check", "kind": None, "printed": (), "choice": None}
    if isinstance(entry, Statement):
        choice = entry.depends_on_choice
        own = {
            "entry": "statement",
            "kind": entry.kind,
            "printed": entry.printed,
            "choice": choice.choice if choice else None,
        }
    return Record(
        **own,
        paper=ledger.paper,
        topic=topic.name,
        id=entry.id,
        where=entry.where,
        statement=entry.statement if isinstance(entry, Statement) else entry.compares,
        ours=entry.ours,
        requires=entry.requires,
        broken=_broken(entry.id, ledger, verdicts),
        figure=entry.figure,
        finding=entry.finding if isinstance(entry, Statement) else None,
        note=entry.note,
        verdict=verdict,
        expect=entry.expect,
        as_expected=verdict == entry.expect,
        reason="no judgement" if judgement is None else judgement.reason,
        runs=() if judgement is None else judgement.runs,
        stand_in=judgement is not None and judgement.stand_in,
        scale="paper" if judgement is None else judgement.scale,
        command=f"snakemake results/claims/{ledger.paper}/{entry.id}.json",
    )


def _broken(name: str, ledger: Ledger, verdicts: Mapping[str, str]) -> tuple[str, ...]:
    """Bases, near and far, that did not hold."""
    found: dict[str, None] = {}
    waiting = list(ledger.entries[name].requires)
    seen: set[str] = set()
    while waiting:
        base = waiting.pop(0)
        if base not in seen:
            seen.add(base)
            if verdicts[base] not in SOUND:
                found[base] = None
            waiting += ledger.entries[base].requires
    return tuple(found)


def _rows(record: Record) -> list[dict[str, str]]:
    shared = {
        column: _cell(getattr(record, column))
        for column in COLUMNS
        if column in Record.model_fields and column != "checks"
    }
    rows = []
    for run in record.runs:
        for check in run.checks:
            label = " / ".join(
                text for text in (run.label if len(record.runs) > 1 else None, check.label) if text
            )
            rows.append(
                shared
                | {
                    column: _cell(getattr(check, column))
                    for column in COLUMNS
                    if column in CheckResult.model_fields
                }
                | {"check": label, "digest": "; ".join(check.digests.values())}
            )
    return rows or [shared]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | tuple):
        return series(value)
    return str(value)
