"""A check as a small picture: what was seen with its noise, what is allowed, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape, quoteattr

from reproduction.claims.verdicts import CheckResult, Numbers
from reproduction.claims.wording import number, series, with_error

WIDTH, MARGIN = 340, 14
STRIP, CURVE = 54, 132
MOST_POINTS = 48
LOGARITHMIC = 1e3  # values further apart than this are drawn on a logarithmic scale


def picture(check: CheckResult) -> str:
    """Inline SVG of a check; empty if nothing finite was seen.

    One number lies on a line, several stand side by side. The allowed region is shaded, a bar spans
    one standard error and a thin one two, crosses are rejected observations; what lies outside the
    window is an arrow at its edge. Colours are the style sheet's.
    """
    observed = _list(check.observed)
    if not any(math.isfinite(value) for value in observed):
        return ""
    draw = _strip if isinstance(check.observed, float | int) else _curve
    body, height = draw(check)
    return (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' role="img" aria-label={quoteattr(_words(check))}>{body}</svg>'
    )


def _words(check: CheckResult) -> str:
    text = f"observed {with_error(check.observed, check.standard_error)}, asked {check.expected}"
    if check.rejected:
        text += "; refuses " + ", ".join(series(_list(value)) for value in check.rejected)
    return text


def _strip(check: CheckResult) -> tuple[str, int]:
    value = _list(check.observed)[0]
    error = (_list(check.standard_error) or [0.0])[0]
    low, high = next(iter(_list(check.low)), None), next(iter(_list(check.high)), None)
    rejected = [entry for entry in check.rejected if isinstance(entry, float | int)]
    scale, beyond, ticks = _axis([value], [error], [low, high], rejected, WIDTH - 2 * MARGIN)

    def at(x: float) -> float:
        return MARGIN + scale(x)

    middle = 20
    parts = [f'<line class="axis" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="34" y2="34"/>']
    if low is not None and high is not None:
        left, right = at(low), at(high)
        parts.append(
            f'<rect class="allowed" x="{left:.1f}" y="6" width="{max(right - left, 1.5):.1f}"'
            ' height="28"/>'
        )
    for entry in rejected:
        parts.append(_refused(at(entry), middle, beyond(entry), 0))
    if error and math.isfinite(error):
        for width, name in ((2, "wide-error"), (1, "error")):
            ends = at(value - width * error), at(value + width * error)
            parts.append(
                f'<line class="{name}" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}"'
                f' y1="{middle}" y2="{middle}"/>'
            )
    parts.append(f'<circle class="seen" cx="{at(value):.1f}" cy="{middle}" r="4.5"/>')
    for tick in ticks:
        parts.append(_text(at(tick), 48, number(tick, 4)))
    return "".join(parts), STRIP


def _curve(check: CheckResult) -> tuple[str, int]:
    values = _list(check.observed)
    chosen = _thinned(values, _list(check.low), _list(check.high))
    errors = _list(check.standard_error) or [0.0] * len(values)
    lows, highs = _list(check.low), _list(check.high)
    rejected = [entry for entry in check.rejected if isinstance(entry, float | int)]
    courses = [
        [entry[index] for index in chosen]
        for entry in check.rejected
        if isinstance(entry, tuple) and len(entry) == len(values)
    ]
    scale, beyond, ticks = _axis(
        [values[index] for index in chosen],
        [errors[index] for index in chosen],
        [bound[index] for bound in (lows, highs) if bound for index in chosen],
        [*rejected, *(value for course in courses for value in course)],
        CURVE - 24,
    )
    left, right = 52, WIDTH - MARGIN
    step = (right - left) / len(chosen)

    def up(y: float) -> float:
        return CURVE - 12 - scale(y)

    parts = [f'<line class="axis" x1="{left}" x2="{left}" y1="8" y2="{CURVE - 12}"/>']
    for place, index in enumerate(chosen):
        x = left + (place + 0.5) * step
        label = check.labels[index] if index < len(check.labels) else ""
        column = []
        if lows and highs:
            top, bottom = up(highs[index]), up(lows[index])
            column.append(
                f'<rect class="allowed" x="{x - step / 2:.1f}" y="{top:.1f}" width="{step:.1f}"'
                f' height="{max(bottom - top, 1.5):.1f}"/>'
            )
        if errors[index] and math.isfinite(errors[index]):
            ends = up(values[index] - errors[index]), up(values[index] + errors[index])
            column.append(
                f'<line class="error" x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}"'
                f' y2="{ends[1]:.1f}"/>'
            )
        if not math.isnan(values[index]):
            said = escape(f"{label}: {with_error(values[index], errors[index] or None)}")
            radius = 4 if len(chosen) <= 12 else 2.5
            column.append(
                f'<circle class="seen" cx="{x:.1f}" cy="{up(values[index]):.1f}" r="{radius}">'
                f"<title>{said}</title></circle>"
            )
        parts += column
    if not (lows and highs):
        course = [values[index] for index in chosen]
        parts.insert(1, _course([up(value) for value in course], left, step, "course"))
    for course in courses:
        parts.append(_course([up(value) for value in course], left, step, "refused course"))
    for entry in rejected:
        parts.append(_refused(right - 4, up(entry), 0, beyond(entry)))
    for tick in ticks:
        parts.append(_text(left - 5, up(tick) + 4, number(tick, 3), anchor="end"))
    return "".join(parts), CURVE


def _axis(
    values: Sequence[float],
    errors: Sequence[float],
    bounds: Sequence[float | None],
    rejected: Sequence[float],
    length: float,
) -> tuple[Callable[[float], float], Callable[[float], int], list[float]]:
    """Position of a value along a length, on which side it is outside, and values to write."""
    near = [value for value in values if math.isfinite(value)]
    near += [
        value + sign * 2 * error
        for value, error in zip(values, errors, strict=True)
        for sign in (-1, 1)
        if math.isfinite(value) and math.isfinite(error)
    ]
    edges = [bound for bound in bounds if bound is not None and math.isfinite(bound)]
    refused = [value for value in rejected if math.isfinite(value)]
    shown = near + edges
    span = max(shown) - min(shown)
    # A far one is an arrow at the edge: it must not squeeze what matters.
    shown += [v for v in refused if min(shown) - 2 * span <= v <= max(shown) + 2 * span or not span]
    positive = min(shown) > 0 and max(shown) / min(shown) > LOGARITHMIC
    low, high = min(shown), max(shown)
    if positive:
        low, high = math.log(low), math.log(high)
    pad = 0.08 * (high - low) or abs(high) or 1.0
    low, high = low - pad, high + pad

    def share(value: float) -> float:
        if positive:
            value = math.log(value) if value > 0 else -math.inf
        return (value - low) / (high - low)

    def scale(value: float) -> float:
        return min(max(share(value), 0.0), 1.0) * length

    def beyond(value: float) -> int:
        return int(share(value) > 1) - int(share(value) < 0)

    ticks: list[float] = []
    seen = [value for value in values if math.isfinite(value)]
    for value in sorted({*edges, min(seen), max(seen)}, key=lambda v: v not in edges):
        if all(abs(scale(value) - scale(other)) > length * 0.16 for other in ticks):
            ticks.append(value)
    return scale, beyond, ticks[:4]


def _thinned(values: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> list[int]:
    """Positions to draw: all, or of a long list a spread and those nearest to a bound."""
    if len(values) <= MOST_POINTS:
        return list(range(len(values)))
    chosen = {round(i * (len(values) - 1) / (MOST_POINTS - 5)) for i in range(MOST_POINTS - 4)}
    if lows and highs:
        margin = [min(v - a, b - v) for v, a, b in zip(values, lows, highs, strict=True)]
        chosen |= set(sorted(range(len(values)), key=lambda index: margin[index])[:4])
    return sorted(chosen)


def _refused(x: float, y: float, right: int, up: int) -> str:
    """A cross, or an arrow to where it lies."""
    if right:
        path = f"M{x - 4 * right:.1f},{y - 4:.1f}l{4 * right},4l{-4 * right},4"
    elif up:
        path = f"M{x - 4:.1f},{y + 4 * up:.1f}l4,{-4 * up}l4,{4 * up}"
    else:
        path = f"M{x - 4:.1f},{y - 4:.1f}l8,8m0,-8l-8,8"
    return f'<path class="refused" d="{path}"/>'


def _course(heights: Sequence[float], left: float, step: float, name: str) -> str:
    points = " ".join(
        f"{left + (place + 0.5) * step:.1f},{height:.1f}"
        for place, height in enumerate(heights)
        if not math.isnan(height)
    )
    return f'<polyline class="{name}" points="{points}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    half = 3.2 * len(text)
    x = min(max(x, half), WIDTH - half) if anchor == "middle" else x
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _list(values: Numbers) -> list[float]:
    if values is None:
        return []
    return [values] if isinstance(values, float | int) else list(values)
