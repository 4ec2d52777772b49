"""The gate: which verdicts are not the expected ones, and a summary of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from privreg.claims.entries import VerdictName
from privreg.claims.verdicts import Verdict
from privreg.claims.wording import with_error


def gate(verdicts: Sequence[Verdict]) -> list[str]:
    """One line for each verdict that differs from what the ledger expects.

    A run at reduced scale decides nothing, and a claim on stand-in data is untested by no fault of
    its own: neither is listed.
    """
    return [_line(verdict) for verdict in verdicts if is_unexpected(verdict)]


def is_unexpected(verdict: Verdict) -> bool:
    """Whether a verdict fails the gate."""
    return verdict.scale == "paper" and not verdict.stand_in and not verdict.as_expected


def summary(verdicts: Sequence[Verdict]) -> str:
    """Counts in one line, and what the gate left out."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    shares = [f"{counts[name]} {name}" for name in get_args(VerdictName) if counts[name]]
    parts = [f"{len(verdicts)} claims: {', '.join(shares) or 'none'}"]
    expected = sum(
        verdict.verdict == "contradicted" and verdict.as_expected for verdict in verdicts
    )
    if expected:
        parts.append(f"{expected} of the contradictions as expected")
    unexpected = sum(map(is_unexpected, verdicts))
    if unexpected:
        parts.append(f"{unexpected} not as expected")
    stand_ins = sum(verdict.stand_in for verdict in verdicts)
    if stand_ins:
        parts.append(f"{stand_ins} untested because bundled data stands in for the paper's")
    quick = sum(verdict.scale == "quick" for verdict in verdicts)
    if quick:
        parts.append(f"{quick} at reduced scale, which decides nothing")
    return "; ".join(parts)


def _line(verdict: Verdict) -> str:
    observed = with_error(verdict.observed, verdict.standard_error) or "nothing"
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return (
        f"{verdict.paper}/{verdict.id}: {verdict.verdict}, expected {verdict.expect};"
        f" observed {observed}, asked {verdict.expected}{reason}; rebuild: {verdict.command}"
    )
