"""Alternatives as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privreg.ranges import short


def table(alternatives: Sequence[Any]) -> str:
    """The alternatives as lines of text, the best first."""
    listed = isinstance(alternatives, (list, tuple)) and len(alternatives) > 0
    if not listed or not all(hasattr(each, "worst") for each in alternatives):
        raise ValueError(f"alternatives must be a list of Alternative, got {short(alternatives)}")
    header = ("method", "excess risk", "± run", "interval", "regret", "theory", "settings")
    lines = [
        (
            each.name,
            f"{each.worst.excess_risk:.3g}",
            f"{each.worst.excess_risk_std:.2g}",
            f"{each.worst.interval_length:.3g}",
            f"{each.regret:.2f}",
            str(each.worst.regime),
            str(each.method),
        )
        for each in alternatives
    ]
    widths = [max(len(line[at]) for line in [header, *lines]) for at in range(len(header))]
    rows = [
        "  ".join(
            text.ljust(width) if at in (0, 5, 6) else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [header, *lines]
    ]
    return "\n".join(rows)
