"""The page of the Datasets' variables, from what the recipes declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reproduction.engine.recipe import Variables, structure
from reproduction.pipeline.config import load, read_configuration
from reproduction.pipeline.registry import STAGE_OF, Recipe, known_keys

ABOUT = """The variables of each artifact and their coordinates. A
name in the last column is the variable that holds the standard error. Experiments of the same
variables share a table. The shards of a simulation, `<experiment>/<shard>.nc`, hold what its trials
found before they are summarised."""


def variables_page() -> str:
    """The variables of each kind of Dataset as Markdown, without a run."""
    parts = ["# The Datasets", ABOUT, "## data", "### `data/<table>.nc`", _table(*_tabular())]
    for kind in STAGE_OF:
        parts.append(f"## {kind}")
        tables: dict[tuple[str, str], list[str]] = {}
        for paper, name, found in _declared(kind):
            tables.setdefault((paper, found), []).append(name)
        for (paper, table), names in tables.items():
            listed = ", ".join(f"`{kind}/{paper}/{name}.nc`" for name in names)
            parts += [f"### {listed}", table]
    return "\n\n".join(parts) + "\n"


def _declared(kind: str) -> Iterator[tuple[str, str, str]]:
    """Paper, experiment and table of each artifact of a kind."""
    for paper, block in load(read_configuration(), known_keys()).blocks.items():
        for name, experiment in block.experiments.items():
            recipe = Recipe(paper, experiment.recipe or name)
            if recipe.has(STAGE_OF[kind]):
                found = structure(recipe.maker(kind))
                table = _table(found.coordinates, found.variables) if found else "Not declared."
                yield paper, name, table


def _tabular() -> tuple[Variables, Variables]:
    """Coordinates and variables of a prepared table."""
    from privreg.data import stand_ins
    from reproduction.engine.artifacts import to_dataset

    table = to_dataset(stand_ins.diabetes("its rows are not looked at"))
    coords, held = (
        {str(name): (each.dims, (), each.attrs) for name, each in listed.items()}
        for listed in (table.coords, table.data_vars)
    )
    return coords, held


def _table(coordinates: Variables, held: Variables) -> str:
    every: Mapping[str, tuple] = {**coordinates, **held}
    errors = {about.get("ancillary_variables") for _, _, about in every.values()}
    rows = ["| variable | dimensions | what it is | error |", "|---|---|---|---|"]
    for name, (dims, _, about) in every.items():
        if name in errors:
            continue
        dimensions = dims if isinstance(dims, str) else ", ".join(map(str, dims))
        meaning = str(about["long_name"]).replace("|", r"\|")
        meaning += f" ({about['units']})" if about["units"] != "1" else ""
        error = about.get("ancillary_variables")
        mark = f"`{error}`" if error else ""
        rows.append(f"| `{name}` | {dimensions} | {meaning} | {mark} |")
    return "\n".join(rows)
