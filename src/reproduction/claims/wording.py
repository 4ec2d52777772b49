"""Numbers and checks in words, for reasons, tables and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from reproduction.claims import checks
from reproduction.claims.evidence import Evidence

Values = float | Sequence[float] | None
SHORT = 4


def number(value: float, digits: int = 5) -> str:
    """A number in at most `digits` significant digits."""
    return f"{value:.{digits}g}"


def series(values: Values) -> str:
    """A number, a short list, or the range of a long one."""
    if values is None:
        return ""
    if isinstance(values, int | float):
        return number(values)
    if len(values) <= SHORT:
        return ", ".join(number(value) for value in values)
    known = [value for value in values if not math.isnan(value)]
    missing = len(values) - len(known)
    span = f" from {number(min(known))} to {number(max(known))}" if known else ""
    return f"{len(values)} values{span}" + (f", {missing} of them not a number" if missing else "")


def with_error(values: Values, errors: Values) -> str:
    """A value with its standard error, rounded where the noise begins."""
    if values is None or errors is None:
        return series(values)
    if isinstance(values, int | float) and isinstance(errors, int | float):
        if not (math.isfinite(values) and math.isfinite(errors) and errors > 0):
            return f"{number(values)} ± {number(errors, 2)}"
        decimals = 1 - math.floor(math.log10(errors))
        if 0 <= decimals <= 7:
            return f"{values:.{decimals}f} ± {errors:.{decimals}f}"
        return f"{number(values)} ± {number(errors, 2)}"
    if isinstance(values, int | float) or isinstance(errors, int | float):
        raise ValueError("values and errors: expected two numbers or two lists")
    if len(values) <= SHORT:
        return ", ".join(with_error(*pair) for pair in zip(values, errors, strict=True))
    return f"{series(values)}, ± at most {number(max(errors), 2)}"


def describe(check: checks.Check) -> str:
    """What a check asks for."""
    match check:
        case checks.Close():
            return _close(check)
        case checks.Between():
            return f"between {_bound(check.low)} and {_bound(check.high)}"
        case checks.Below():
            return f"at most {_bound(check.high)}"
        case checks.Above():
            return f"at least {_bound(check.low)}"
        case checks.Monotone():
            return ("strictly " if check.strict else "") + check.direction + _slack(check)
        case checks.Ordered():
            sign = " < " if check.strict else " ≤ "
            return f"{check.dimension}: {sign.join(map(str, check.labels))}{_slack(check)}"
        case checks.All():
            return f"all {describe(check.of)}"


def selection(labels: Mapping[str, object]) -> str:
    """Labels of a selection, as `coordinate=label`."""
    return ", ".join(
        f"{name}={'|'.join(map(str, label)) if isinstance(label, tuple) else label}"
        for name, label in labels.items()
    )


def _close(check: checks.Close) -> str:
    tolerances = [
        number(check.absolute) if check.absolute is not None else "",
        f"{number(100 * check.relative)}%" if check.relative is not None else "",
        f"{number(check.sigmas)} s.e." if check.sigmas is not None else "",
    ]
    given = [text for text in tolerances if text]
    what = _bound(check.expected)
    return f"{what} ± " + (given[0] if len(given) == 1 else f"max({', '.join(given)})")


def _bound(bound: float | tuple[float, ...] | Evidence) -> str:
    if isinstance(bound, Evidence):
        at = f" at {selection(bound.select)}" if bound.select else ""
        return f"{bound.artifact}.{bound.variable}{at}"
    return series(bound)


def _slack(check: checks.Monotone | checks.Ordered) -> str:
    return f" (slack {number(check.slack)})" if check.slack else ""
