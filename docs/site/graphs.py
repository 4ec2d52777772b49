"""Mermaid's graphs of boxes and arrows as SVG, so that a page needs no script to show them."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import fmean

# Pixels: a box's height, from row to row, beside boxes, a letter.
BOX, LEVEL, GAP, LETTER = 26, 56, 14, 7.2
ROUNDS = 12
HEAD = (
    '<defs><marker id="head" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
    '<path d="M0,0 L6,3 L0,6 z" fill="currentColor" stroke="none"/></marker></defs>'
)
# Begins the name of a place where an arrow passes a row.
BEND = ">"


def as_svg(source: str) -> str:
    """The graph that a fenced block holds.

    Parameters
    ----------
    source : str
        A line that names the kind of graph, then lines `a --> b --> c`. No cycle.
    """
    arrows: list[tuple[str, str]] = []
    for line in source.strip().splitlines()[1:]:
        arrows += pairwise(re.split(r"\s*-->\s*", line.strip()))
    names = list(dict.fromkeys(name for pair in arrows for name in pair))
    rows, links = _rows(names, arrows)
    places = _places(rows, links)
    width = max(x + _width(name) / 2 for name, (x, _) in places.items()) + GAP
    height = len(rows) * LEVEL
    drawn = [
        f'<path d="M{x:.0f},{y + _half(start):.0f} L{u:.0f},{v - _half(end):.0f}"{_head(end)}/>'
        for start, end in links
        for (x, y), (u, v) in [(places[start], places[end])]
    ]
    for name, (x, y) in places.items():
        if not name.startswith(BEND):
            wide = _width(name)
            drawn.append(
                f'<rect x="{x - wide / 2:.0f}" y="{y - BOX / 2:.0f}" width="{wide:.0f}" '
                f'height="{BOX}" rx="4" fill="currentColor" fill-opacity="0.03"/>'
                f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" stroke="none" '
                f'fill="currentColor">{name}</text>'
            )
    return (
        f'<figure><svg viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        'class="graph" role="img" aria-label="Graph of boxes and arrows" stroke="currentColor" '
        f'fill="none" font-size="12">{HEAD}{"".join(drawn)}</svg></figure>'
    )


def _rows(
    names: list[str], arrows: list[tuple[str, str]]
) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """Boxes by their longest way from a start; an arrow over several rows bends in each."""
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for start, end in arrows:
            depth[end] = max(depth[end], depth[start] + 1)
    rows: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in names:
        rows[depth[name]].append(name)
    links = []
    for start, end in arrows:
        way = [start]
        for at in range(depth[start] + 1, depth[end]):
            way.append(f"{BEND}{start}{BEND}{end}{BEND}{at}")
            rows[at].append(way[-1])
        links += pairwise([*way, end])
    return rows, links


def _places(rows: list[list[str]], links: list[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Each row in the order of what it hangs together with, which takes most crossings away."""
    beside: dict[str, list[str]] = {name: [] for row in rows for name in row}
    for start, end in links:
        beside[start].append(end)
        beside[end].append(start)
    places: dict[str, tuple[float, float]] = {}
    for turn in range(ROUNDS + 1):
        for level, row in enumerate(rows):
            if turn:
                row.sort(key=lambda name: fmean(places[each][0] for each in beside[name] or [name]))
            at = GAP
            for name in row:
                places[name] = (at + _width(name) / 2, level * LEVEL + LEVEL / 2)
                at += _width(name) + GAP
        widest = max(places[row[-1]][0] + _width(row[-1]) / 2 for row in rows)
        for row in rows:
            shift = (widest - places[row[-1]][0] - _width(row[-1]) / 2) / 2
            for name in row:
                places[name] = (places[name][0] + shift, places[name][1])
    return places


def _width(name: str) -> float:
    return 4 if name.startswith(BEND) else LETTER * len(name) + 14


def _half(name: str) -> float:
    return 0 if name.startswith(BEND) else BOX / 2


def _head(end: str) -> str:
    return "" if end.startswith(BEND) else ' marker-end="url(#head)"'
