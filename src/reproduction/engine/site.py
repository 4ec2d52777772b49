"""Pages of the documentation that follow from sources, for `docs/site/hooks.py`."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from privreg.data.sources import SOURCES
from reproduction.engine.config import Experiment, read_configuration
from reproduction.engine.recipe import Variables, structure
from reproduction.engine.registry import STAGE_OF, Recipe

FORMULA = re.compile(r"^\.\. math::(.*)\n+((?: {4}.*\n?|\n)*)", re.MULTILINE)
INLINE = re.compile(r":math:`([^`]+)`")
HEADING = re.compile(r"^([A-Z][\w ]+)\n-{3,}\n", re.MULTILINE)
# What readers of numpydoc know; all else belongs to the text that comes before.
SECTIONS = {"Parameters", "Returns", "Yields", "Raises", "Warns", "Attributes", "Examples"}
ABOUT = """Variables and coordinates of each artifact; the last column names the standard error.
Experiments of the same variables share a table. A shard of a simulation,
`<experiment>/<shard>.nc`, holds the results of its trials before they are summarised."""
DATA = """Real tables that experiments use; all other data are synthetic. A file is taken from the
folder that `PRIVREG_DATA` names or from a mirror ([configuration](configuration.md)), and only if
it has the SHA-256 below; in text files, line ends do not count. Without it, a [bundled
table](workflow.md#data) stands in. Check a table's licence before you pass it on."""
TYPES = {"number": "number", "integer": "whole number", "null": "nothing", "string": "text"}
TYPES |= {"boolean": "true or false", "object": "mapping"}
LIMITS = {"minimum": "from", "exclusiveMinimum": "above"}
LIMITS |= {"maximum": "to", "exclusiveMaximum": "below"}
# Modules of each page of the reference; the first that matches decides.
TOPICS = {
    "Fit a table": "estimators.(linear_regression|tables)",
    "Budgets and releases": "privacy|estimators.odometer",
    "Plan and predict": "planning|methods.problem|estimators.outlook",
    "Methods": "methods",
    "Intervals": "inference|estimators.report",
    "Audits": "auditing",
    "Algorithms": "algorithms",
    "Noise": "noise",
    "Models and schedules": "checks|models|schedules|spectra",
    "Theory of correlated noise": "theory.(correlated_noise|shaped_noise)",
    "Theory of noisy SGD": "theory.noisy_sgd",
    "Theory of gradient descent": "theory",
    "Data sets": "data",
}
HEAD = "| parameter | what it is | accepts | at the paper's scale |\n|---|---|---|---|"


def parameters_page(config: Path = Path("config")) -> str:
    """Parameters of every experiment: meaning, accepted values, value; as Markdown."""
    parts = [
        "# Parameters of the experiments",
        "Keys of `experiments.<name>.parameters`, which a [configuration](configuration.md) sets.",
    ]
    for key, block in read_configuration(config).blocks.items():
        parts.append(f"## {key}")
        for name, experiment in block.experiments.items():
            model = Recipe(key, experiment.recipe or name).module.Parameters
            values = model(**experiment.parameters).model_dump(mode="json") | experiment.parameters
            fields = model.model_json_schema()
            rows = [
                f"| `{field}` | {_cell(about.get('description', ''))} "
                f"| {_cell(_accepted(about, fields))} | `{_cell(_short(values[field]))}` |"
                for field, stated in fields.get("properties", {}).items()
                for about in [_resolved(stated, fields)]
            ]
            trials = f" {experiment.trials:,} trials." if experiment.trials else ""
            parts += [f"### {key}/{name}", f"{_cell(model.__doc__ or '').strip()}{trials}"]
            parts += ["\n".join([HEAD, *rows])] if rows else []
    return "\n\n".join(parts) + "\n"


def variables_page(config: Path = Path("config")) -> str:
    """The variables of each kind of Dataset as Markdown, without a run."""
    parts = ["# The Datasets", ABOUT, "## data", "### `data/<table>.nc`", _table(_tabular())]
    for kind in STAGE_OF:
        tables: dict[tuple[str, str], list[str]] = {}
        for paper, name, about in _experiments(config):
            recipe = Recipe(paper, about.recipe or name)
            if recipe.has(STAGE_OF[kind]):
                found = structure(recipe.maker(kind))
                table = _table(found.coordinates | found.variables) if found else "Not declared."
                tables.setdefault((paper, table), []).append(f"`{kind}/{paper}/{name}.nc`")
        parts.append(f"## {kind}")
        for (_, table), names in tables.items():
            parts += [f"### {', '.join(names)}", table]
    return "\n\n".join(parts) + "\n"


def _experiments(config: Path) -> list[tuple[str, str, Experiment]]:
    blocks = read_configuration(config).blocks.items()
    return [(key, *each) for key, block in blocks for each in block.experiments.items()]


def _tabular() -> Variables:
    """Coordinates and variables of a prepared table."""
    from reproduction.engine.artifacts import to_dataset

    table = to_dataset(SOURCES["california_housing"].stand_in("its rows are not looked at"))
    every = {**table.coords, **table.data_vars}.items()
    return {str(name): (each.dims, (), each.attrs) for name, each in every}


def _table(every: Variables) -> str:
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


def data_page(workflow: str, config: Path = Path("config")) -> str:
    """Data sets: licences from the guide; content, users, and the SHA-256 of each file."""
    licences = re.findall(r"^\| table \| licence .+?\n(?=\n)", workflow, re.MULTILINE | re.DOTALL)
    parts = ["# Data sets", DATA, *licences]
    for data, source in SOURCES.items():
        train, test = source.rows
        used = [
            f"`{paper}/{name}`"
            for paper, name, about in _experiments(config)
            if about.parameters.get("dataset") == data
        ]
        rows = [f"| `{file.path}` | `{file.sha256}` |" for file in source.files]
        parts += [
            f"## {data}",
            f"{source.about}. {train:,} rows for training, {test:,} for testing. "
            f"{source.stand_in_rows:,} rows in the stand-in. "
            f"Used by {', '.join(used) or 'no experiment as configured'}.",
            f"Mirrors: {', '.join(f'<{mirror}>' for mirror in source.mirrors)}",
            "\n".join(["| file | SHA-256 |\n|---|---|", *rows]),
        ]
    return "\n\n".join(parts) + "\n"


def reference_pages(names: Mapping[str, str]) -> dict[str, str]:
    """Index of public names, and a page for each topic; `names` maps definitions to imports."""
    index, pages = ["# Public names", "The API: names without a dot are those of `privreg`."], {}
    left = dict(sorted(names.items(), key=lambda each: (each[1].count("."), each[1])))
    for topic, homes in TOPICS.items():
        address = f"reference/{topic.lower().replace(' ', '-')}.md"
        index += [f"## [{topic}]({address})", "| name | what it is |\n|---|---|"]
        parts = [f"# {topic}"]
        for home in [each for each in left if re.match(rf"privreg\.({homes})\.", each)]:
            path = left.pop(home)
            module, _, name = path.rpartition(".")
            parts += [] if f"## {module}" in parts else [f"## {module}"]
            parts.append(f"::: {path}")
            value = getattr(import_module(module), name)
            about = as_markdown(value.__doc__) if callable(value) else f"{value}"
            anchors = "".join(f'<a id="{each}"></a>' for each in sorted({path, home}))
            link = f"[`{path.removeprefix('privreg.')}`][{path}]"
            index[-1] += f"\n| {anchors}{link} | {_cell(about.splitlines()[0])} |"
        pages[address] = "\n\n".join(parts) + "\n"
    return {"reference.md": "\n\n".join(index) + "\n", **pages}


def as_markdown(docstring: str) -> str:
    """A docstring with its formulas between dollar signs, and numpydoc's own sections last."""

    def display(found: re.Match[str]) -> str:
        formula = textwrap.dedent(f"{found[1].strip()}\n{textwrap.dedent(found[2])}").strip()
        return f"$$\n{formula}\n$$\n\n"

    text = INLINE.sub(r"$\1$", FORMULA.sub(display, f"{docstring}\n"))
    opening, *rest = HEADING.split(text)
    sections = list(zip(rest[::2], rest[1::2], strict=True))
    others = [f"**{title}.** {body.strip()}" for title, body in sections if title not in SECTIONS]
    known = [
        f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections if title in SECTIONS
    ]
    return "\n\n".join([opening.strip(), *others, *known]).strip()


def _accepted(about: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Short description of the values that a JSON schema accepts."""
    about = _resolved(about, schema)
    if "anyOf" in about:
        return " or ".join(_accepted(each, schema) for each in about["anyOf"])
    if "enum" in about:
        return ", ".join(map(str, about["enum"]))
    if "const" in about:
        return str(about["const"])
    if about.get("type") == "array":
        items = _accepted(about.get("items", {}), schema)
        return f"list of: {items}" if items else "list"
    limits = [f"{words} {about[key]:g}" for key, words in LIMITS.items() if key in about]
    return " ".join([TYPES.get(about.get("type", ""), ""), *limits]).strip()


def _resolved(about: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = about.get("$ref", "").rpartition("/")[2]
    return {**schema["$defs"][name], **about} if name else about


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace(r"\|", r"\Vert ").replace("|", r"\|")
