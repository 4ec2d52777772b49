"""Commands about tables in files: bounds, fit, score and odometer, with the options they share.

A fit or a score creates its files, and writes its budget to them, before noise is drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from pathlib import Path
from secrets import token_hex
from threading import Lock
from time import monotonic
from typing import Any, Self

import yaml

from privreg.checks import require_choice, require_number, require_scale
from privreg.estimators.odometer import UNREADABLE, Odometer, PrivacyStatement, read_statement
from privreg.privacy.budget import Budget, Neighbours

# Seconds before the first line of progress, and between two.
PATIENCE, PAUSE = 3.0, 0.5


def shown(text: str, kept: str = "") -> str:
    """A text in which characters that a terminal obeys are escaped, but those that are kept."""
    return "".join(
        each if each.isprintable() or each in kept else repr(each)[1:-1] for each in text
    )


def as_json(value: Any, indent: int) -> str:
    """Plain types as JSON, with null where a number is not finite."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def adder(to: Any) -> Callable[..., None]:
    """A function that adds options to a parser or a group.

    It takes `--name METAVAR`, the help, whose "(default X)" at the end states the default, and the
    type.
    """

    def add(usage: str, help: str, kind: Callable[[str], Any] = str, **settings: Any) -> None:
        name, _, metavar = usage.partition(" ")
        stated = re.search(r"\(default ([^)]+)\)$", help)
        default = kind(stated[1]) if stated else None
        settings = {"default": default, "metavar": metavar or None, **settings}
        to.add_argument(name, type=kind, help=help, **settings)

    return add


def add_budget(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add a zCDP budget, or ε and δ."""
    group = parser.add_argument_group("the budget")
    add, stated = adder(group), adder(group.add_mutually_exclusive_group(required=required))
    stated("--rho", "budget as rho of rho-zCDP", float)
    stated("--epsilon", "budget as epsilon of (epsilon, delta)-DP", float)
    add("--delta", "delta of --epsilon (default 1e-6)", float)
    add(
        "--neighbours",
        "how neighbouring data sets differ: one record replaced by another, added or removed, "
        "or blanked (default replace-one)",
        choices=[each.value for each in Neighbours],
    )


def budget_of(options: argparse.Namespace) -> Budget:
    """The stated budget; δ is looked at even where ρ needs none."""
    require_number("--delta", options.delta, above=0, below=1)
    if options.rho is not None:
        return Budget.zcdp(options.rho, neighbours=options.neighbours)
    return Budget.approximate(options.epsilon, options.delta, neighbours=options.neighbours)


def add_table(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    add("table", "a .csv or .parquet file, or a folder of them", Path)
    add(
        "--separator CHARACTER",
        r"character between the cells of a CSV file, \t for a tab (default ,)",
        lambda text: text.replace("\\t", "\t"),
    )


def open_stated(options: argparse.Namespace) -> Any:
    """The table of `add_table`."""
    from privreg.estimators.tables import open_table

    return open_table(options.table, separator=options.separator)


class Watched:
    """A table that shows after some seconds, on a terminal, how far the pass over its rows is.

    As a context it clears the line at its end. Of the rows nothing enters but their number.
    """

    def __init__(self, table: Any, what: str) -> None:
        self.table, self.what = table, what
        self.schema, self.row_count = table.schema, int(table.row_count)
        self._lock, self._read, self._length = Lock(), 0, 0
        self._start = self._shown = monotonic()

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """Parts of the table, whose rows are counted as they are read."""
        if not sys.stderr.isatty():
            return list(self.table.parts(names))
        return [partial(self._counted, part) for part in self.table.parts(names)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._length:
            print("\r" + " " * self._length + "\r", end="", file=sys.stderr, flush=True)

    def _counted(self, part: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        for batch in part():
            yield batch
            with self._lock:
                self._read += batch.num_rows
                self._show()

    def _show(self) -> None:
        now = monotonic()
        if now - self._start < PATIENCE or now - self._shown < PAUSE:
            return
        self._shown = now
        passes, rest = divmod(self._read, max(1, self.row_count))
        line = (
            f"{self.what}: pass {passes + 1} over the table, "
            f"{100 * rest // max(1, self.row_count)} %, {now - self._start:.0f} s"
        )
        # Nothing of a longer line before stays.
        print("\r" + line.ljust(self._length), end="", file=sys.stderr, flush=True)
        self._length = max(self._length, len(line))


# bounds: a template of the bounds that a fit needs, and the file that it becomes

RANGE = "[LOW, HIGH]"
NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
# What a template has in place of categories.
BLANK = ["FIRST", "SECOND"]


def add_bounds(parser: argparse.ArgumentParser) -> None:
    add_table(parser)
    adder(parser)("--label COLUMN", "column of the label", required=True)


def bounds(options: argparse.Namespace) -> str:
    """The template as YAML, which is refused until it is filled in."""
    from privreg.estimators.columns import require_column

    schema = open_stated(options).schema
    label = require_column("--label", options.label, schema.names)
    # Where all are texts, as in CSV files, types say nothing.
    typed = any(each.type != "string" for each in schema)
    if not typed and any(map(NUMBER.fullmatch, schema.names)):
        raise ValueError("table must have a header line of names, got numbers, as of a record")
    lines = [_template(each.name, each.type, typed=typed) for each in schema if each.name != label]
    return "\n".join(
        [
            "# From public knowledge, never from a look at the table. Delete what is no feature.",
            f"# Where numbers are codes for missing: {{bounds: {RANGE}, missing: [-999, 9999]}}",
            f"{_key(label)}: {RANGE}  # the label: the least and the greatest that it can be",
            *dict.fromkeys(lines),
        ]
    )


def _template(name: str, kind: Any, *, typed: bool) -> str:
    from pyarrow import types

    from privreg.estimators.columns import Numbers, value_type

    categories = f"{{categories: [{', '.join(BLANK)}]}}"
    value, key = value_type(kind), _key(name)
    if types.is_boolean(value):
        return f"{key}: {{categories: [false, true]}}  # the first is compared with"
    if typed and value == "string":
        return f"{key}: {categories}  # all categories, or {RANGE} of texts that are numbers"
    try:
        Numbers(name, 0.0, 1.0).require_type(kind)
    except ValueError as error:
        return f"# {error}"
    other = f", or {categories}" if types.is_integer(value) or not typed else ""
    return f"{key}: {RANGE}  # the least and the greatest that it can be{other}"


def _key(name: str) -> str:
    """A name that YAML reads back as it is, in one line."""
    quote = None if name.isidentifier() else '"'
    text: str = yaml.safe_dump(name, default_style=quote, allow_unicode=True, width=inf)
    return text.removesuffix("...\n").strip("\n")


class _Number(str):
    """A number as it was written, without quotes."""


def read_bounds(path: Path) -> dict[str, Any]:
    """Bounds by column from a YAML or JSON file: [low, high] or {"categories": [...]}.

    Each of the categories is the text that was written, `no`, `1.0` and `2020-01-01` as well;
    {"bounds": [low, high], "missing": [...]} declares codes for missing numbers.
    """
    kind, data = "JSON" if path.suffix == ".json" else "YAML", path.read_bytes()
    try:
        if kind == "JSON":
            as_written: Any = {"parse_int": _Number, "parse_float": _Number}
            found = json.loads(data, object_pairs_hook=_once, **as_written)
        else:
            # Aliases could make a short file endless.
            if any(isinstance(each, yaml.AliasToken) for each in yaml.scan(data)):
                raise ValueError("bounds must be written out, got a YAML alias")
            found = _plain(yaml.compose(data, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        # What the parsers say quotes the file, which may be a table by mistake.
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise ValueError(f"bounds must be {kind} in UTF-8, got a fault{where}") from None
    if not isinstance(found, dict):
        raise ValueError("bounds must be a mapping from columns to bounds, got none")
    return {name: _declaration(name, written) for name, written in found.items()}


def _declaration(name: str, written: Any) -> Any:
    coded = isinstance(written, dict) and {*written} == {"bounds", "missing"}
    pair, codes = (written["bounds"], written["missing"]) if coded else (written, [])
    lists = isinstance(pair, list) and len(pair) == 2 and isinstance(codes, list)
    if lists and all(isinstance(each, _Number) for each in pair + codes):
        bounds, missing = ([float(each) for each in part] for part in (pair, codes))
        return {"bounds": bounds, "missing": missing} if coded else bounds
    single = isinstance(written, dict) and [*written] == ["categories"]
    listed = written["categories"] if single else None
    texts = listed if isinstance(listed, list) and listed != BLANK else [None]
    if all(isinstance(each, (str, bool)) for each in texts):
        # JSON has truth values: as in a column, `true` and `false`.
        return {"categories": [str(e).lower() if isinstance(e, bool) else str(e) for e in texts]}
    found = f"a list of {len(written)}" if isinstance(written, list) else "another"
    raise ValueError(
        f"bounds of {name!r} must be [low, high], two plain numbers such as 2030 and 0.5, "
        "{bounds: [low, high], missing: [9999]} with codes for missing, or "
        "{categories: [first, second]} with the categories of the column, got "
        f"{'those of a template' if listed == BLANK else found}"
    )


def _plain(node: yaml.Node | None) -> Any:
    """Mappings, lists and texts, without any type that YAML guesses but that of numbers."""
    if isinstance(node, yaml.MappingNode):
        return _once((_plain(name), _plain(value)) for name, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    if not isinstance(node, yaml.ScalarNode):
        return None
    number = node.style is None and NUMBER.fullmatch(node.value)
    return (_Number if number else str)(node.value)


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """A mapping of names, each of which is there once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise ValueError("bounds must be a mapping from columns, got a list for a column")
        if name in found:
            raise ValueError(f"bounds must name a column once, got {name!r} twice")
        found[name] = value
    return found


# fit, and the files of a fit or a score


NEW = "a new file that can be written"


class Record(Odometer):
    """Writes what is spent to `--output` before noise is drawn, and the whole result after it.

    Both files are created before noise is drawn, or nothing is spent: of two runs with one output
    the second is refused. As a context, it says of a later error where the budget is recorded.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self._delta: float = options.delta
        named = {f"--{name}": getattr(options, name, None) for name in ("report", "output")}
        self._files: dict[str, Path] = {name: path for name, path in named.items() if path}
        for name, path in self._files.items():
            # A device, a folder and a link to nothing are there as well.
            there = ", which is there already" if os.path.lexists(path) else ""
            if there or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
                raise ValueError(f"{name} must be {NEW}, got {str(path)!r}{there}")
        places = {path.parent.resolve() / path.name for path in self._files.values()}
        if len(places) < len(self._files):
            raise ValueError(f"--report must be another file than --output, got {str(path)!r}")

    def add(self, fit: Any) -> None:
        """Count a fit, and create its files."""
        # The token tells one unfinished fit from another.
        known = {"privacy": privacy_as_json(fit, delta=self._delta), "unfinished": token_hex(16)}
        with ExitStack() as undo:
            for name, path in self._files.items():
                try:
                    _write(path, as_json(known, indent=2) + "\n" if name == "--output" else "")
                except OSError as error:
                    found = f"{str(path)!r}: {error.strerror}"
                    raise ValueError(f"{name} must be {NEW}, got {found}") from None
                undo.callback(path.unlink)
            super().add(fit)
            undo.pop_all()
        if "--output" not in self._files:
            spent = f"rho = {fit.rho:.4g} is spent and recorded nowhere"
            warnings.warn(f"{spent}: --output would write it to a file", UserWarning, stacklevel=2)

    def finish(self, said: str, **written: Callable[[], str]) -> None:
        """Write the files, by the names of their options; print what is said even if that fails."""
        faults = []
        for name, path in reversed(self._files.items()):
            beside = path.with_name(f".{token_hex(8)}")
            try:
                _write(beside, written[name.removeprefix("--")]())
                beside.replace(path)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                faults.append(f"{name} could not be written to {str(path)!r}: {why}")
            finally:
                with suppress(OSError):
                    beside.unlink()
        print(shown(said, "\n"), flush=True)
        if faults:
            raise ValueError("; ".join(faults))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if error is None or not self._costs:
            return
        if output := self._files.get("--output"):
            where = "recorded in" if output.is_file() else "recorded nowhere: there is no"
            error.add_note(f"rho = {self.total.rho:.4g} is spent, and {where} {str(output)!r}")
        with suppress(KeyError, OSError):
            if not (report := self._files["--report"]).stat().st_size:
                report.unlink()


def _write(path: Path, text: str) -> None:
    """Write a new file to the disk, or leave none."""
    with path.open("x", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink()
            raise


def privacy_as_json(privacy: PrivacyStatement, *, delta: float) -> dict[str, Any]:
    """Privacy statement in plain types, as `privreg odometer` reads it."""
    return {
        "seeded": privacy.seeded,
        "epsilon": privacy.epsilon(delta),
        "delta": delta,
        "rho": privacy.rho,
        "mu": privacy.mu,
        "unit": privacy.unit,
        "neighbours": privacy.with_secret_noise.neighbours.value,
        "spent": [{"on": what, "rho": budget.rho} for what, budget in privacy.spending],
        "assumptions": list(privacy.assumptions),
    }


def add_fit(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    add_table(parser)
    add("--label COLUMN", "column of the label", required=True)
    add(
        "--bounds FILE",
        "YAML or JSON: for the label and each feature [low, high], or of a feature "
        "{categories: [first, second]}, from public knowledge; {bounds: [low, high], missing: "
        "[9999]} declares codes for missing. Numbers outside are clipped; a "
        "record of an undeclared category counts as absent. `privreg bounds` writes a template",
        Path,
        required=True,
    )
    add(
        "--target",
        "least_squares, or huber: shorter intervals, right where errors are symmetric given "
        "the features or independent of them (default least_squares)",
    )
    add("--weight COLUMN", "column of the records' weights, such as a survey's")
    add(
        "--weight-bound W",
        "largest weight, from public knowledge; needed with --weight. Larger weights are "
        "clipped to it, negative ones to 0",
        float,
    )
    add_budget(parser)
    add(
        "--quality-share SHARE",
        "share of the budget that counts incomplete and clipped records (default 0.01)",
        float,
    )
    parser.add_argument("--no-intercept", action="store_true", help="fit no intercept")
    add("--level", "coverage of the intervals (default 0.95)", float)
    written = "its budget is written before noise is drawn"
    add("--output FILE", f"new file for the fit as JSON; {written}", Path)
    add("--report FILE", "new file for the report with pictures, as HTML", Path)
    add("--threads", "threads that read the table (default 2)", int)


def fit(options: argparse.Namespace) -> None:
    from privreg.estimators.linear_regression import PrivateLinearRegression

    # All of it before the fit: what fails after it has spent the budget for nothing.
    require_number("--level", options.level, above=0, below=1)
    if (options.weight is None) != (options.weight_bound is None):
        raise ValueError(
            "--weight must be given with --weight-bound, and neither without the other"
        )
    record = Record(options)
    given = read_bounds(options.bounds)
    require_choice("--label", options.label, given)
    model = PrivateLinearRegression(
        budget_of(options),
        feature_bounds={name: each for name, each in given.items() if name != options.label},
        label_bounds=given[options.label],
        weight_bound=options.weight_bound,
        fit_intercept=not options.no_intercept,
        target=options.target,
        odometer=record,
    )
    declared: dict[str, Any] = {"label": options.label, "bounds": given}
    if options.weight is not None:
        declared["weight"] = {"column": options.weight, "bound": options.weight_bound}
    with record:
        with Watched(open_stated(options), "privreg fit") as table:
            model.fit_table(
                table,
                label=options.label,
                weight=options.weight,
                quality_share=options.quality_share,
                threads=options.threads,
            )

        def output() -> str:
            found = fit_as_json(model, level=options.level, delta=options.delta)
            return as_json(found | {"declared": declared}, indent=2) + "\n"

        record.finish(
            model.report(level=options.level).rstrip(),
            output=output,
            report=lambda: model.report("html", level=options.level),
        )


def fit_as_json(model: Any, *, level: float, delta: float) -> dict[str, Any]:
    """A fit in plain types: coefficients, intervals, and the privacy that was spent."""
    found, quality, covariance = model.summary(level), model.quality_, model.covariance()
    columns = found.columns
    columns["reason"] = [reason or None for reason in columns["reason"]]
    records = quality and {
        "incomplete": quality.incomplete,
        "clipped": quality.clipped,
        "noise_standard_deviation": quality.noise_std,
    }
    return {
        "coefficients": [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ],
        "covariance": {
            part: getattr(covariance, part).tolist() for part in ("sampling", "privacy")
        },
        "estimates": model.target,
        "warnings": model.warnings_,
        "level": level,
        "target": found.intervals.target,
        "records": records,
        "privacy": privacy_as_json(model.privacy_, delta=delta),
    }


def add_score(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    add_table(parser)
    add(
        "--fit FILE",
        "file that `privreg fit --output` wrote; the score of a weighted fit is weighted, by "
        "the same column and bound",
        Path,
        required=True,
    )
    add_budget(parser)
    written = "its budget is written before noise is drawn"
    add("--output FILE", f"new file for the score as JSON; {written}", Path)
    add("--threads", "threads that read the table (default 2)", int)


def score(options: argparse.Namespace) -> None:
    import numpy as np

    from privreg.estimators.columns import Frame, Numbers, number_column, table_columns
    from privreg.estimators.tables import SHARES, TableSamples, private_score
    from privreg.privacy.release import TIMES, TRUSTED

    record = Record(options)
    budget = budget_of(options).gaussian()
    label, bounds, weight, fitted = _read_fit(options.fit)
    spent = tuple((what, budget.share(share)) for what, share in SHARES.items())
    privacy = PrivacyStatement(budget, "row", spent, (TIMES, TRUSTED))

    class Counted(TableSamples):
        """Reserves the budget between what is refused and noise, and between rows and noise."""

        def each_part(self, task: Any, *, threads: int = 1) -> Iterator[Any]:
            yield from super().each_part(task, threads=threads)
            record.add(privacy)

    with record:
        with Watched(open_stated(options), "privreg score") as table:
            columns = table_columns(
                {name: each for name, each in bounds.items() if name != label},
                label,
                tuple(table.schema.names),
                None if weight is None else weight[0],
            )
            names = [name for column in columns for name in column.names]
            # By their places: a column may be called "(intercept)", too.
            listed, estimates = map(list, zip(*fitted, strict=True))
            if listed not in (names, [*names, "(intercept)"]):
                raise ValueError(f"--fit must have the coefficients {names}, got {listed}")
            aim = number_column("label_bounds", label, bounds[label])
            pairs = np.array([pair for column in columns for pair in column.bounds])
            frame = Frame(pairs, np.array(aim.bounds[0]), True)
            weighing = None if weight is None else Numbers(weight[0], 0.0, weight[1])
            found = private_score(
                Counted(table, columns, aim, frame, weight=weighing),
                estimates if len(listed) > len(names) else [*estimates, 0.0],
                budget=budget,
                rng=None,
                threads=options.threads,
            )
        privacy = replace(privacy, assumptions=found.assumptions)
        plain = {
            "score": vars(found.value),
            "privacy": privacy_as_json(privacy, delta=options.delta),
        }
        record.finish(
            _scored(found.value, weight, privacy), output=lambda: as_json(plain, indent=2) + "\n"
        )


def _read_fit(
    path: Path,
) -> tuple[str, dict[str, Any], tuple[str, float] | None, list[tuple[str, float]]]:
    """Label, bounds and weight of a file of `privreg fit`, and its coefficients by name."""
    found = None
    try:
        found = json.loads(path.read_bytes())
        label, given = found["declared"]["label"], found["declared"]["bounds"]
        estimates = [(each["name"], float(each["estimate"])) for each in found["coefficients"]]
        if not isinstance(given, dict) or label not in given or not estimates:
            raise KeyError("label")
        weight = found["declared"].get("weight")
        if weight is not None:
            weight = str(weight["column"]), require_scale("bound", weight["bound"])
    except UNREADABLE:
        unfinished = isinstance(found, dict) and "unfinished" in found
        raise ValueError(
            f"--fit must be a file of `privreg fit --output` of this version, got {str(path)!r}"
            f"{', whose fit did not finish' if unfinished else ''}"
        ) from None
    return label, given, weight, estimates


def _scored(score: Any, weight: tuple[str, float] | None, privacy: PrivacyStatement) -> str:
    def line(what: str, value: float, noise: float) -> str:
        hidden = "hidden by the noise"
        return f"{what:20}{f'{value:.4g} ± {noise:.2g}' if isfinite(value) else hidden}"

    weighing = []
    if weight is not None:
        column, bound = weight
        weighing.append(
            f"Records count by their weights in {column!r} as in the fit, clipped to "
            f"[0, {bound:g}]; their sum is in units of {bound:g}."
        )
    return "\n".join(
        [
            line("mean squared error", score.mean_squared_error, score.mean_squared_error_noise),
            line("R²", score.r2, score.r2_noise),
            f"{'sum of weights' if weight else 'complete records':20}"
            f"{score.records:,.0f} ± {score.records_noise:,.0f}",
            "",
            *weighing,
            "± is the standard deviation of the private noise alone. Predictions are clipped to "
            "the label's bounds.",
            f"The score is {privacy.sentence}. It adds to what other fits and scores of these "
            "records cost.",
        ]
    )


def add_odometer(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    files = "files that --output of `privreg fit` or `privreg score` wrote"
    add("fits", files, Path, nargs="+")
    add("--delta", "delta at which epsilon is stated (default 1e-6)", float)


def odometer(options: argparse.Namespace) -> str:
    """The cost of each fit and of all together."""
    counted, known, rows = Odometer(), dict[bytes, Path](), []
    for path in options.fits:
        cost = read_statement(path)
        counted.add(cost)
        rows.append((shown(str(path)), cost))
        # Noise is never drawn twice alike: two files of the same bytes are copies, or linked.
        first = known.setdefault(path.read_bytes(), path)
        if first is not path:
            raise ValueError(
                f"fits must be different files, got {str(path)!r} twice"
                f"{'' if first == path else f', as {str(first)!r} too'}"
            )
    total = counted.total
    rows.append(("together", total))
    width = max(len(name) for name, _ in rows)
    lines = [
        f"{name.ljust(width)}  rho = {found.rho:.4g}, mu = {found.mu:.4g}, "
        f"epsilon = {found.epsilon(options.delta):.4g} at delta = {options.delta:g}\n"
        for name, found in rows
    ]
    return (
        f"{''.join(lines)}\nFor tables that differ in one {total.unit} "
        f"({total.with_secret_noise.neighbours.value}), if all fits are of one table and their "
        "number and budgets were fixed beforehand."
    )
