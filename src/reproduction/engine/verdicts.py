"""Verdicts on a ledger's entries: judging them, joining papers, tables, the gate."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import ConfigDict, TypeAdapter

from reproduction.engine.checks import (
    SHORT,
    CheckResult,
    Outcome,
    Scale,
    Values,
    decide,
    is_stand_in,
    number,
    series,
)
from reproduction.engine.ledger import (
    CORRECTED,
    SLIPS,
    Change,
    CrossCheckVerdict,
    Entry,
    Finding,
    Ledger,
    Statement,
    StatementKind,
    StatementVerdict,
    Topic,
)
from reproduction.engine.parameters import Strict

if TYPE_CHECKING:
    import xarray as xr

STATEMENT_VERDICTS: tuple[str, ...] = get_args(StatementVerdict)
CHANGES: tuple[str, ...] = get_args(Change)
CROSS_CHECK_VERDICTS: tuple[str, ...] = get_args(CrossCheckVerdict)
KINDS: tuple[str, ...] = get_args(StatementKind)
WORST_FIRST: tuple[Outcome, ...] = ("failed", "untested", "inconclusive", "passed")
# What the outcome of a statement's checks says of the paper.
WORDS = {"passed": "reproduced", "failed": "contradicted"}
SOUND, REFUTED = ("reproduced", *CORRECTED, "passed"), ("contradicted", "failed")
COLUMNS = (
    "paper", "topic", "entry", "kind", "id", "where", "statement", "verdict", "expect",
    "as_expected", "finding", "holds_with", "choice", "check", "outcome", "observed",
    "standard_error", "z", "expected", "margin", "at", "trials", "trials_needed", "reason",
    "stand_in", "scale", "artifact", "variable", "select", "digest", "command",
)  # fmt: skip


class _Result(Strict):
    # JSON has no infinity of its own.
    model_config = ConfigDict(ser_json_inf_nan="strings")


class RunResult(_Result):
    """The checks at one value of a choice of ours."""

    label: str
    outcome: Outcome
    checks: tuple[CheckResult, ...]


class Record(_Result):
    """An entry with its verdict."""

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
    holds_with: str | None
    requires: tuple[str, ...]
    broken: tuple[str, ...] = ()
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


class Book(_Result):
    """Several papers' ledgers with their verdicts."""

    topics: tuple[TopicRecord, ...]
    records: tuple[Record, ...]
    findings: tuple[FindingRecord, ...]

    @property
    def papers(self) -> list[str]:
        """Citation keys in order."""
        return list(dict.fromkeys(topic.paper for topic in self.topics))

    @property
    def statements(self) -> list[Record]:
        """Records of statements, which count for or against a paper."""
        return [record for record in self.records if record.entry == "statement"]

    @property
    def cross_checks(self) -> list[Record]:
        """Records of cross-checks, which test this build."""
        return [record for record in self.records if record.entry == "cross_check"]


# The setting of the models does not reach through a list.
_RECORDS = TypeAdapter(list[Record], config=ConfigDict(ser_json_inf_nan="strings"))


def judge(
    ledger: Ledger,
    datasets: Mapping[str, xr.Dataset],
    *,
    digests: Mapping[str, str],
    scale: Scale,
    only: Collection[str] | None = None,
    results: str = "results",
) -> list[Record]:
    """Judge a ledger's entries, all or those with the ids of `only`.

    The worst of an entry's checks counts: failed, untested, inconclusive, passed. If runs at our
    different choices contradict each other, the entry depends on our choice. A statement that is
    refuted as printed holds as corrected, or has a gap in its proof, if its correction passes.
    Datasets and SHA-256 digests are those of `Ledger.artifacts`; `results` is the run's folder.
    """
    return [
        _record(ledger.paper, topic, entry, datasets, digests, scale, results)
        for topic in ledger.topics
        for entry in topic.entries
        if only is None or entry.id in only
    ]


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Worst of several outcomes, in the order failed, untested, inconclusive, passed."""
    return min(outcomes, key=WORST_FIRST.index)


def _record(
    paper: str,
    topic: Topic,
    entry: Entry,
    datasets: Mapping[str, xr.Dataset],
    digests: Mapping[str, str],
    scale: Scale,
    folder: str,
) -> Record:
    runs = []
    for run in entry.runs:
        found = tuple(decide(probe, datasets, digests, scale) for probe in run.checks)
        worst_of_run = worst(result.outcome for result in found)
        runs.append(RunResult(label=run.label, outcome=worst_of_run, checks=found))
    correction = entry.corrected if isinstance(entry, Statement) else None
    outcome = printed = runs[0].outcome if correction else _over_runs({run.outcome for run in runs})
    words = WORDS
    if correction and printed == "failed":
        holds = CORRECTED[correction.slip == "proof"]
        outcome, words = runs[1].outcome, WORDS | {"passed": holds}
    reasons = [
        f"{run.label}: {check.reason}" if len(runs) > 1 else check.reason
        for run in runs
        for check in run.checks
        if check.reason and (check.outcome in (printed, outcome) or outcome not in WORST_FIRST)
    ]
    says: dict[str, Any] = dict.fromkeys(("kind", "choice", "holds_with", "finding"))
    says |= {"printed": (), "verdict": outcome}
    if isinstance(entry, Statement):
        says |= {
            "kind": entry.kind,
            "printed": entry.printed,
            "choice": entry.depends_on_choice and entry.depends_on_choice.choice,
            "holds_with": correction and correction.holds_with,
            "finding": entry.finding,
            "verdict": words.get(outcome, outcome),
        }
    read = {name for probe in entry.probes for name in probe.artifacts}
    return Record(
        **says,
        paper=paper,
        topic=topic.name,
        entry="statement" if isinstance(entry, Statement) else "cross_check",
        id=entry.id,
        where=entry.where,
        statement=entry.statement if isinstance(entry, Statement) else entry.compares,
        ours=entry.ours,
        requires=entry.requires,
        figure=entry.figure,
        note=entry.note,
        expect=entry.expect,
        as_expected=says["verdict"] == entry.expect,
        reason="; ".join(dict.fromkeys(reasons)) if runs else "there is no evidence to read",
        runs=tuple(runs),
        stand_in=any(is_stand_in(datasets[name]) for name in read if name in datasets),
        scale=scale,
        command=f"snakemake {folder}/claims/{paper}/{entry.id}.json"
        f"{' --configfile config/quick.yaml' if scale == 'quick' else ''}",
    )


def _over_runs(outcomes: Collection[Outcome]) -> str:
    if len(outcomes) == 1:
        return next(iter(outcomes))
    if {*outcomes} == {"passed", "failed"}:
        return "depends on our choice"
    return "untested" if not outcomes or "untested" in outcomes else "inconclusive"


def join(ledgers: Iterable[Ledger], records: Iterable[Record]) -> Book:
    """Join ledgers with the verdicts on their entries.

    `broken` of an entry lists its bases, direct and indirect, that did not hold.
    """
    found = {(record.paper, record.id): record for record in records}
    topics: list[TopicRecord] = []
    findings: list[FindingRecord] = []
    for ledger in ledgers:
        for topic in ledger.topics:
            about = {"paper": ledger.paper, "topic": topic.name}
            topics.append(
                TopicRecord(
                    paper=ledger.paper, name=topic.name, topic=topic.topic, about=topic.about
                )
            )
            findings += [
                FindingRecord(**dict(each) | about | {"shown_by": ledger.shown_by(each.id)})
                for each in topic.findings
            ]
    return Book(
        topics=tuple(topics),
        records=tuple(
            record.model_copy(update={"broken": _broken(record, found)})
            for record in found.values()
        ),
        findings=tuple(findings),
    )


def _broken(record: Record, found: Mapping[tuple[str, str], Record]) -> tuple[str, ...]:
    """Bases, near and far, that did not hold."""
    waiting = list(record.requires)
    seen: dict[str, bool] = {}
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            base = found[record.paper, name]
            seen[name] = base.verdict in SOUND
            waiting += base.requires
    return tuple(name for name, sound in seen.items() if not sound)


def counts(records: Iterable[Record]) -> Counter[str]:
    """Number of records by verdict, where a slip of a paper counts once."""
    return tally((r.verdict, (r.paper, r.finding or r.id)) for r in records)


def tally(verdicts: Iterable[tuple[str, Any]]) -> Counter[str]:
    """Number of verdicts; those on one slip count once, as the gravest."""
    pairs = list(verdicts)
    slips: dict[Any, str] = {}
    for verdict in SLIPS:
        slips = {slip: verdict for own, slip in pairs if own == verdict} | slips
    return Counter([*slips.values(), *(own for own, _ in pairs if own not in SLIPS)])


# Files


def records_to_json(records: Sequence[Record]) -> str:
    """Records as JSON; infinity and NaN are strings that `records_from_json` reads."""
    return _RECORDS.dump_json(list(records), indent=1).decode()


def records_from_json(text: str | bytes) -> list[Record]:
    """The inverse of `records_to_json`."""
    return _RECORDS.validate_json(text)


def to_json(book: Book) -> str:
    """The book as JSON; infinity and NaN are strings that `from_json` reads."""
    return book.model_dump_json(indent=1)


def from_json(text: str | bytes) -> Book:
    """The inverse of `to_json`."""
    return Book.model_validate_json(text)


def to_csv(book: Book) -> str:
    """One row for each check, with its entry."""
    return _table(COLUMNS, (row for record in book.records for row in _rows(record)))


def findings_to_csv(findings: Sequence[FindingRecord]) -> str:
    """One row for each finding."""
    columns = ("paper", *(name for name in Finding.model_fields if name != "foremost"))
    rows = ({column: getattr(each, column) for column in columns} for each in findings)
    return _table(
        columns,
        (
            {key: "; ".join(each) if isinstance(each, tuple) else each for key, each in row.items()}
            for row in rows
        ),
    )


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _rows(record: Record) -> list[dict[str, str]]:
    shared = {name: _cell(getattr(record, name)) for name in COLUMNS if name in Record.model_fields}
    own = [name for name in COLUMNS if name in CheckResult.model_fields]
    rows = []
    for run in record.runs:
        for check in run.checks:
            labels = (run.label if len(record.runs) > 1 else None, check.label)
            row = {name: _cell(getattr(check, name)) for name in own}
            row["check"] = " / ".join(filter(None, labels))
            row["digest"] = "; ".join(check.digests.values())
            rows.append(shared | row)
    return rows or [shared]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | tuple):
        return series(value)
    return "" if value is None else str(value)


# The gate


def gate(records: Sequence[Record]) -> list[str]:
    """Line for each verdict that differs from the ledger's expectation.

    Runs at a reduced scale and entries on stand-in data are not listed: they decide nothing.
    """
    lines = []
    for record in filter(is_unexpected, records):
        seen = "; ".join(
            f"{check.label + ': ' if check.label else ''}observed"
            f" {with_error(check.observed, check.standard_error) or 'nothing'},"
            f" required {check.expected}"
            for check in [each for each in record.checks if each.outcome != "passed"]
            or record.checks
        )
        reason = f" ({record.reason})" if record.reason else ""
        lines.append(
            f"{record.paper}/{record.id}: {record.verdict}, expected {record.expect};"
            f" {seen or 'nothing seen'}{reason}; rebuild: {record.command}"
        )
    return lines


def is_unexpected(record: Record) -> bool:
    """True if a verdict fails the gate."""
    return record.scale == "paper" and not record.stand_in and not record.as_expected


def summary(book: Book) -> str:
    """Counts in one line, and verdicts that the gate left out."""
    said, ours = book.statements, book.cross_checks
    changes = Counter[str](each.changes for each in book.findings)
    parts = [
        _counted(len(said), counts(said), "statement", " of the papers", STATEMENT_VERDICTS),
        _counted(len(ours), counts(ours), "cross-check", " of ours", CROSS_CHECK_VERDICTS),
        _counted(len(book.findings), changes, "finding", " by what changes", CHANGES),
    ]
    if not book.statements:
        # The studies make no statement of a paper, in which a slip could be found.
        parts = parts[1:2]
    stand_ins = sum(each.stand_in for each in book.records)
    small = sum(each.scale == "quick" for each in book.records)
    left_out = {
        "not as expected": sum(map(is_unexpected, book.records)),
        "with a failed premise": sum(bool(record.broken) for record in book.records),
        "untested because bundled data stands in for the paper's": stand_ins,
        "at reduced scale, which decides nothing": small,
    }
    return "; ".join([*parts, *(f"{count} {words}" for words, count in left_out.items() if count)])


def _counted(number: int, found: Counter[str], one: str, rest: str, names: Sequence[str]) -> str:
    shares = ", ".join(f"{found[name]} {name}" for name in names if found[name])
    return f"{number} {one}{'' if number == 1 else 's'}{rest}" + (f": {shares}" if shares else "")


# Words


def with_error(values: Values, errors: Values) -> str:
    """A value with its standard error, rounded where the noise begins."""
    if values is None or errors is None:
        return series(values)
    if isinstance(values, int | float) and isinstance(errors, int | float):
        if math.isfinite(values) and math.isfinite(errors) and errors > 0:
            decimals = 1 - math.floor(math.log10(errors))
            if 0 <= decimals <= 7:
                return f"{values:.{decimals}f} ± {errors:.{decimals}f}"
        return f"{number(values)} ± {number(errors, 2)}"
    if isinstance(values, int | float) or isinstance(errors, int | float):
        raise ValueError("values and errors: expected two numbers or two lists")
    if len(values) <= SHORT:
        return ", ".join(with_error(*pair) for pair in zip(values, errors, strict=True))
    return f"{series(values)}, ± at most {number(max(errors), 2)}"
