"""Alternatives and settings as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from privreg.schedules import Harmonic, Polynomial


def table(alternatives: Sequence[Any]) -> str:
    """The alternatives as lines of text, the best first.

    Parameters
    ----------
    alternatives : sequence of Alternative
    """
    listed = isinstance(alternatives, (list, tuple)) and len(alternatives) > 0
    if not listed or not all(hasattr(each, "worst") for each in alternatives):
        raise ValueError(f"alternatives must be a list of Alternative, got {alternatives!r}")
    header = ("method", "excess risk", "± run", "interval", "regret", "theory", "settings")
    lines = [
        (
            each.name,
            f"{each.worst.excess_risk:.3g}",
            f"{each.worst.excess_risk_std:.2g}",
            f"{each.worst.interval_length:.3g}",
            f"{each.regret:.2f}",
            str(each.worst.regime),
            settings_text(each.method),
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


def settings_text(method: Any) -> str:
    """Settings as one line: names and numbers of three digits."""
    if not is_dataclass(method) or isinstance(method, type):
        raise ValueError(f"method must be a method's settings, got {method!r}")
    parts = []
    for each in fields(method):
        if not each.init:
            continue
        value = getattr(method, each.name)
        if isinstance(value, Harmonic):
            parts.append(f"rate {float(np.asarray(value.numerator)):.3g}/(t + {value.offset:.3g})")
        elif isinstance(value, Polynomial):
            rate = float(np.asarray(value.initial))
            parts.append(f"rate {rate:.3g}·(1 - t)^{value.exponent:g}")
        else:
            parts.append(f"{each.name.replace('_', ' ')} {value:.3g}")
    return ", ".join(parts)
