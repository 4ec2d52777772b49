"""The gate: which verdicts are not the expected ones, and a summary of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.claims.records import (
    CROSS_CHECK_VERDICTS,
    SEVERITIES,
    STATEMENT_VERDICTS,
    Book,
    Record,
    counts,
)
from reproduction.claims.wording import with_error

OTHER_SCALES = {"quick": "reduced scale", "own": "your own scale"}


def gate(records: Sequence[Record]) -> list[str]:
    """One line for each verdict that differs from what the ledger expects.

    A run at a reduced scale or your own decides nothing, and an entry on stand-in data is untested
    by no fault of its own: neither is listed.
    """
    return [_line(record) for record in records if is_unexpected(record)]


def is_unexpected(record: Record) -> bool:
    """Whether a verdict fails the gate."""
    return record.scale == "paper" and not record.stand_in and not record.as_expected


def summary(book: Book) -> str:
    """Counts in one line, and what the gate left out."""
    parts = [
        _counted("statement of the papers", "statements of the papers", book.statements,
                 STATEMENT_VERDICTS),
        _counted("cross-check of ours", "cross-checks of ours", book.cross_checks,
                 CROSS_CHECK_VERDICTS),
        _findings(book),
    ]  # fmt: skip
    if not book.statements:
        # The studies make no statement of a paper, in which a slip could be found.
        parts = parts[1:2]
    unexpected = sum(map(is_unexpected, book.records))
    if unexpected:
        parts.append(f"{unexpected} not as expected")
    broken = sum(bool(record.broken) for record in book.records)
    if broken:
        parts.append(f"{broken} on a base that did not hold")
    stand_ins = sum(record.stand_in for record in book.records)
    if stand_ins:
        parts.append(f"{stand_ins} untested because bundled data stands in for the paper's")
    for scale, words in OTHER_SCALES.items():
        elsewhere = sum(record.scale == scale for record in book.records)
        if elsewhere:
            parts.append(f"{elsewhere} at {words}, which decides nothing")
    return "; ".join(part for part in parts if part)


def _counted(one: str, many: str, records: Sequence[Record], names: Sequence[str]) -> str:
    found = counts(records)
    shares = [f"{found[name]} {name}" for name in names if found[name]]
    return f"{len(records)} {one if len(records) == 1 else many}: {', '.join(shares) or 'none'}"


def _findings(book: Book) -> str:
    by_severity = [
        (severity, sum(finding.severity == severity for finding in book.findings))
        for severity in SEVERITIES
    ]
    shares = ", ".join(f"{count} of a {severity}" for severity, count in by_severity if count)
    number = len(book.findings)
    return f"{number} finding{'' if number == 1 else 's'}" + (f": {shares}" if shares else "")


def _line(record: Record) -> str:
    checks = [check for check in record.checks if check.outcome != "passed"] or record.checks
    seen = "; ".join(
        f"{check.label + ': ' if check.label else ''}observed"
        f" {with_error(check.observed, check.standard_error) or 'nothing'}, asked {check.expected}"
        for check in checks
    )
    reason = f" ({record.reason})" if record.reason else ""
    return (
        f"{record.paper}/{record.id}: {record.verdict}, expected {record.expect};"
        f" {seen or 'nothing seen'}{reason}; rebuild: {record.command}"
    )
