"""Which room of the package imports which, drawn as a Mermaid graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from privreg.pipeline import closure

Graph = dict[str, set[str]]
# What stands above the library; all else is in it.
REPRODUCTION = (
    "pipeline",
    "papers",
    "claims",
    "experiment",
    "version",
    "command_line",
    "__main__",
)


def rooms() -> Graph:
    """The rooms that each room imports, itself left out; a room is a folder or a file.

    Imports inside functions count; those for types alone do not.
    """
    found: Graph = {}
    for path in sorted(closure.PACKAGE.rglob("*.py")):
        parts = path.relative_to(closure.PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        module = ".".join((closure.PACKAGE.name, *(part for part in parts if part != "__init__")))
        here = found.setdefault(parts[0], set())
        here.update(_room(name) for name in closure.imports(module))
    return {room: others - {room, ""} for room, others in found.items()}


def mermaid() -> str:
    """The graph of `rooms` without the arrows that follow from others.

    Raises
    ------
    ValueError
        If rooms import one another in a circle, which is named.
    """
    graph = rooms()
    drawn = reduced(graph)
    lines = ["graph TD"]
    for title, inside in (
        ("the reproduction", [room for room in sorted(graph) if room in REPRODUCTION]),
        ("the library", [room for room in sorted(graph) if room not in REPRODUCTION]),
    ):
        lines += [f'  subgraph "{title}"', *(f"    {room}" for room in inside), "  end"]
    lines += [f"  {room} --> {other}" for room in sorted(drawn) for other in sorted(drawn[room])]
    return "\n".join(lines) + "\n"


def reduced(graph: Mapping[str, set[str]]) -> Graph:
    """The arrows of a graph that no longer way makes superfluous.

    Examples
    --------
    >>> sorted(reduced({"roof": {"wall", "floor"}, "wall": {"floor"}, "floor": set()})["roof"])
    ['wall']
    """
    below = {room: _below(graph, room, ()) for room in graph}
    return {
        room: {
            other
            for other in others
            if not any(other in below[third] for third in others if third != other)
        }
        for room, others in graph.items()
    }


def _below(graph: Mapping[str, set[str]], room: str, way: tuple[str, ...]) -> set[str]:
    if room in way:
        raise ValueError(f"rooms must not form a circle, got {' -> '.join((*way, room))}")
    found = set(graph.get(room, ()))
    for other in sorted(graph.get(room, ())):
        found |= _below(graph, other, (*way, room))
    return found


def _room(module: str) -> str:
    return Path(*module.split(".")[1:2]).name
