"""Which part of the packages imports which, drawn as a Mermaid graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reproduction.experiment import datasets
from reproduction.pipeline import closure

Graph = dict[str, set[str]]
FENCE = "```"


def imports(*, into: Path | None) -> None:
    """Print which part imports which, or put it into the Mermaid block of a page."""
    if into is None:
        print(mermaid(), end="")
        return
    before, opening, rest = into.read_text(encoding="utf-8").partition(f"{FENCE}mermaid\n")
    _, closing, after = rest.partition(FENCE)
    if not (opening and closing):
        raise ValueError(f"into must be a page with a Mermaid block, got {into}")
    datasets.write_text(before + opening + mermaid() + closing + after, into, checksum=False)


def parts() -> dict[str, Graph]:
    """For each package, the parts that each of its parts imports, itself left out.

    A part is a folder or a file right below a package. Imports inside functions count; those for
    types alone do not.
    """
    found: dict[str, Graph] = {package: {} for package in closure.PACKAGES}
    for module in closure.modules():
        package, _, rest = module.partition(".")
        part = rest.partition(".")[0]
        if part not in ("", "__main__"):
            others = {_part(name) for name in closure.imports(module)}
            found[package].setdefault(part, set()).update(others - {part, ""})
    return found


def mermaid() -> str:
    """The graph of `parts` without the arrows that follow from others.

    Raises
    ------
    ValueError
        If parts import one another in a cycle, which is named.
    """
    packages = parts()
    drawn = reduced({part: others for graph in packages.values() for part, others in graph.items()})
    lines = ["graph TD"]
    for package in reversed(closure.PACKAGES):
        lines += [f"  subgraph {package}", *(f"    {part}" for part in packages[package]), "  end"]
    lines += [f"  {part} --> {other}" for part in sorted(drawn) for other in sorted(drawn[part])]
    return "\n".join(lines) + "\n"


def reduced(graph: Mapping[str, set[str]]) -> Graph:
    """The arrows of an acyclic graph that do not follow from others (its transitive reduction).

    Examples
    --------
    >>> sorted(reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()})["a"])
    ['b']
    """
    below = {part: _below(graph, part, ()) for part in graph}
    return {
        part: {
            other
            for other in others
            if not any(other in below[third] for third in others if third != other)
        }
        for part, others in graph.items()
    }


def _below(graph: Mapping[str, set[str]], part: str, path: tuple[str, ...]) -> set[str]:
    if part in path:
        raise ValueError(f"imports must not form a cycle, got {' -> '.join((*path, part))}")
    found = set(graph.get(part, ()))
    for other in sorted(graph.get(part, ())):
        found |= _below(graph, other, (*path, part))
    return found


def _part(module: str) -> str:
    return Path(*module.split(".")[1:2]).name
