"""Configurations that are wrong by construction: one thing changed in the real one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from wrong_values import INFINITY, NAN, wrong_values

Raw = dict[str, Any]
Path = tuple[str, ...]
COUNTS = (0, -1, 1.5, "3", True, NAN, INFINITY, 10**9, 10**30, [], [3], {"a": 1}, "many")


def configurations(raw: Raw) -> Iterator[tuple[str, Path, Any]]:
    """What is changed in words, where, and to what; `REMOVED` takes the key away."""
    for name, wrong in shared():
        yield f"{name}: {wrong!r:.60}", (name,), wrong
    for source, about in raw["data"].items():
        for wrong in addresses():
            yield f"mirrors of {source}: {wrong!r:.60}", ("data", source, "mirrors"), wrong
        yield f"data.{source} renamed", ("data", f"{source}x"), about
        yield f"data.{source}: an unknown key", ("data", source, "mirror"), ["https://example.org"]
    for paper in raw["papers"]:
        block = raw[paper]
        for wrong in (None, [], 3, "text", True):
            yield f"{paper}: {wrong!r}", (paper,), wrong
            yield f"{paper}.experiments: {wrong!r}", (paper, "experiments"), wrong
        yield f"{paper}: an unknown key", (paper, "experiment"), {}
        for name, experiment in block["experiments"].items():
            yield from of_experiment((paper, "experiments", name), experiment)
        for kind in ("figures", "tables"):
            for name, drawing in block.get(kind, {}).items():
                yield from of_drawing((paper, kind), name, drawing)


def shared() -> Iterator[tuple[str, Any]]:
    for wrong in (-1, 1.5, True, "x", None, NAN, INFINITY, 2**63, 10**30, [], [1], {"a": 1}, "1"):
        yield "seed", wrong
    for wrong in ("papers", "small", 3, True, None, [], ["paper"], {"a": 1}, "Paper", ""):
        yield "scale", wrong
    for wrong in ([], None, 3, "text", True, {"a": 1}, [None], [3], ["brown2042"], [["a"]], [{}]):
        yield "papers", wrong
    for wrong in ([], None, 3, "text", True, {}, {"mnsit": {"mirrors": ["https://example.org"]}}):
        yield "data", wrong
    for name in ("sead", "paper", "Seed", "seeds", "figures", "experiments", "bombary2025", ""):
        yield name, {"a": 1}


def addresses() -> Iterator[Any]:
    yield from ([], None, 3, "https://example.org", True, {}, [None], [3], [True], [["a"]], [""])
    for text in ("example.org", "ftp://example.org", "http://", "https:///folder", "http//a.org"):
        yield [text]
    for text in ("http://a b", "file:///etc/passwd", "https://[1", "http://a:99999", "http://a\n"):
        yield [text]
    yield ["https://example.org", "https://example.org"]


class Removed:
    """In place of a value: the key is taken away."""

    def __repr__(self) -> str:
        return "removed"


REMOVED = Removed()


def of_experiment(where: Path, experiment: Raw) -> Iterator[tuple[str, Path, Any]]:
    label = ".".join(where)
    simulated = "trials" in experiment

    def case(key: tuple[str, ...], wrong: Any) -> tuple[str, Path, Any]:
        return f"{'.'.join((label, *key))}: {wrong!r:.60}", (*where, *key), wrong

    for wrong in (None, [], 3, "text", True):
        yield f"{label}: {wrong!r}", where, wrong
    for key in ("trails", "parameter", "quik", "Trials", "seed"):
        yield case((key,), 3)
    for wrong in ("trajectory", "", 3, True, [], {}, "../coverage", "Coverage", "os", "a b"):
        yield case(("recipe",), wrong)
    for wrong in COUNTS if simulated else (1, 3, *COUNTS):
        yield case(("trials",), wrong)
    if simulated:
        yield case(("trials",), REMOVED)
        yield case(("trials",), None)
        yield case(("shards",), experiment["trials"] + 1)
    for wrong in (*COUNTS, None) if simulated else (2, *COUNTS, None):
        yield case(("shards",), wrong)
    for wrong in (None, [], 3, "text", True):
        yield case(("parameters",), wrong)
        yield case(("quick",), wrong)
        yield case(("quick", "parameters"), wrong)
    for wrong in COUNTS:
        yield case(("quick", "trials"), wrong)
        yield case(("quick", "shards"), wrong)
    yield case(("quick", "parameter"), {})
    parameters = experiment["parameters"]
    for key in parameters:
        yield case(("parameters", f"{key}x"), parameters[key])
    for path, value in leaves(parameters):
        for wrong in wrong_values(path[-1], value):
            yield case(("parameters", *path), wrong)
            # The same at the quick scale alone, which is checked whatever scale runs.
            yield case(("quick", "parameters", *path), wrong)
    for path, value in axes(parameters):
        yield case(("parameters", *path), {**value, "low": value["high"], "high": value["low"]})
        yield case(("parameters", *path), {**value, "high": value["low"]})
        for missing in value:
            yield case(("parameters", *path, missing), REMOVED)
        for count in (1, 0, 10**6):
            yield case(("parameters", *path, "count"), count)
    for path, _ in budgets(parameters):
        for wrong in ({}, {"zcdp": 1.0, "delta": 0.1}, {"epsilon": 1.0}, {"delta": 0.1}):
            yield case(("parameters", *path), wrong)
        for wrong in ({"zcdp": -1.0}, {"zcdp": True}, {"half_square": 0}, {"gaussian_dp": NAN}):
            yield case(("parameters", *path), wrong)
        for delta in (0, 1, 2.0, -0.1, True, "1e-5", NAN):
            yield case(("parameters", *path), {"epsilon": 1.0, "delta": delta})
    for name in ("delta", "failure", "failure_probability", "momentum", "damping"):
        if name in parameters:
            for wrong in (1, 1.5, 1e6):
                yield case(("parameters", name), wrong)
    for name in ("order", "orders"):
        if name in parameters:
            for wrong in (1, 1.0, 0.5, 0, -1.0, INFINITY):
                yield case(("parameters", name), [wrong] if name == "orders" else wrong)
    for name in ("step_size", "rate", "initial_rate", "clip_norm", "clip_constant", "rho"):
        if name in parameters:
            yield case(("parameters", name), 0)
            yield case(("parameters", name), 0.0)


def of_drawing(where: Path, name: str, drawing: Raw) -> Iterator[tuple[str, Path, Any]]:
    label = ".".join((*where, name))
    for wrong in (None, [], 3, "text", True, {}):
        yield f"{label}: {wrong!r}", (*where, name), wrong
        yield f"{label}.artifacts: {wrong!r}", (*where, name, "artifacts"), wrong
    for wrong in (None, [], 3, "", True, {}):
        yield f"{label}.caption: {wrong!r}", (*where, name, "caption"), wrong
    yield f"{label} has no function", (*where, f"{name}_x"), drawing
    yield f"{label}: an unknown key", (*where, name, "captoin"), "text"
    for argument, artifact in drawing["artifacts"].items():
        path = (*where, name, "artifacts")
        kind, _, experiment = artifact.partition("/")
        other = "theory" if kind == "simulation" else "simulation"
        yield f"{label}: {argument} removed", (*path, argument), REMOVED
        yield f"{label}: argument misspelt", (*path, f"{argument}s"), artifact
        for wrong in (
            f"{kind}/{experiment}x",
            f"{other}/{experiment}",
            f"data/{experiment}",
            f"{kind}s/{experiment}",
            f"{kind}/{experiment.upper()}",
            f"{kind}/../{experiment}",
            "data/mnist; touch x",
            experiment,
            "",
            None,
            3,
            True,
            [artifact],
            "data/mnist",
            "data/mnits",
        ):
            yield f"{label}.{argument}: {wrong!r}", (*path, argument), wrong


def leaves(parameters: Raw, above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Values of parameters, those of mappings inside them too, and the mappings themselves."""
    for key, value in parameters.items():
        yield (*above, key), value
        if isinstance(value, dict) and key not in ("budget",):
            yield from leaves(value, (*above, key))


def axes(parameters: Raw) -> Iterator[tuple[Path, Raw]]:
    for path, value in leaves(parameters):
        if isinstance(value, dict) and {"low", "high", "count"} <= value.keys():
            yield path, value


def budgets(parameters: Raw) -> Iterator[tuple[Path, Raw]]:
    for path, value in leaves(parameters):
        if path[-1] == "budget":
            yield path, value


def changed(raw: Raw, path: Path, value: Any) -> Raw:
    """The configuration with one value changed; what is not on the way there is shared."""
    found = copy.copy(raw)
    block = found
    for key in path[:-1]:
        inner = block.get(key)
        block[key] = copy.copy(inner) if isinstance(inner, dict) else {}
        block = block[key]
    if value is REMOVED:
        block.pop(path[-1], None)
    else:
        block[path[-1]] = value
    return found
