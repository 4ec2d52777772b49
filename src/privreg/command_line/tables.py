"""Commands about tables in files: bounds, fit, score and odometer, with the options they share."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from math import inf, isfinite
from pathlib import Path
from secrets import token_hex
from threading import Lock
from time import monotonic
from typing import Any, Self

import yaml

from privreg.checks import require_choice, require_number, rounded
from privreg.estimators.odometer import (
    Odometer,
    PrivacyStatement,
    as_json,
    privacy_as_json,
    read_statement,
)
from privreg.privacy.budget import Budget, Neighbours

# Seconds before the first line of progress, and between two.
PATIENCE, PAUSE = 3.0, 0.5


def shown(text: str, kept: str = "") -> str:
    """Text with a terminal's control characters escaped, except those in `kept`."""
    return "".join(
        each if each.isprintable() or each in kept else repr(each)[1:-1] for each in text
    )


def adder(to: Any) -> Callable[..., None]:
    """Return a function that adds an option to a parser, from `--name METAVAR`, help and type.

    "(default X)" at the end of the help sets the default.
    """

    def add(usage: str, help: str, kind: Callable[[str], Any] = str, **settings: Any) -> None:
        name, _, metavar = usage.partition(" ")
        stated = re.search(r"\(default ([^)]+)\)$", help)
        default = kind(stated[1]) if stated else None
        settings = {"default": default, "metavar": metavar or None, **settings}
        to.add_argument(name, type=kind, help=help, **settings)

    return add


def add_budget(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add options for a zCDP budget, or for ε and δ."""
    group = parser.add_argument_group("the budget")
    add, stated = adder(group), adder(group.add_mutually_exclusive_group(required=required))
    stated("--rho", "budget, as rho of rho-zCDP", float)
    stated("--epsilon", "budget, as epsilon of (epsilon, delta)-DP", float)
    add("--delta", "delta that goes with --epsilon (default 1e-6)", float)
    differ = "one record replaced by another, added or removed, or blanked (default replace-one)"
    listed = [each.value for each in Neighbours]
    add("--neighbours", f"how neighbouring data sets differ: {differ}", choices=listed)


def budget_of(options: argparse.Namespace) -> Budget:
    """The stated budget; δ is checked even if ρ is given."""
    require_number("--delta", options.delta, above=0, below=1)
    if options.rho is not None:
        return Budget.zcdp(options.rho, neighbours=options.neighbours)
    return Budget.approximate(options.epsilon, options.delta, neighbours=options.neighbours)


def add_table(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    add("table", "a .csv or .parquet file, or a folder of such files", Path)
    between = r"character between the cells of a CSV file, \t for a tab (default ,)"
    add("--separator CHARACTER", between, lambda text: text.replace("\\t", "\t"))


def open_stated(options: argparse.Namespace) -> Any:
    from privreg.estimators.tables import open_table

    return open_table(options.table, separator=options.separator)


class Watched:
    """Table that shows the progress of its passes on a terminal after some seconds."""

    def __init__(self, table: Any, what: str) -> None:
        self.table, self.what = table, what
        self.schema, self.row_count = table.schema, int(table.row_count)
        self._lock, self._read, self._length = Lock(), 0, 0
        self._start = self._shown = monotonic()

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """Parts of the table; rows are counted as they are read."""
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
        share = 100 * rest // max(1, self.row_count)
        line = f"{self.what}: pass {passes + 1}, {share} %, {now - self._start:.0f} s"
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
    """Template of bounds as YAML; `privreg fit` refuses it until it is filled in."""
    from privreg.estimators.columns import require_column

    schema = open_stated(options).schema
    label = require_column("--label", options.label, schema.names)
    # If all types are texts, as in CSV files, they say nothing.
    typed = any(each.type != "string" for each in schema)
    if not typed and any(map(NUMBER.fullmatch, schema.names)):
        raise ValueError("table must have a header line of column names, got numbers")
    lines = [_template(each.name, each.type, typed=typed) for each in schema if each.name != label]
    return "\n".join(
        [
            "# Use public knowledge, never the table. Delete columns that are not features.",
            f"# With codes for missing values: {{bounds: {RANGE}, missing: [-999, 9999]}}",
            f"{_key(label)}: {RANGE}  # the label: smallest and largest possible value",
            *dict.fromkeys(lines),
        ]
    )


def _template(name: str, kind: Any, *, typed: bool) -> str:
    from pyarrow import types

    from privreg.estimators.columns import Numbers, value_type

    categories = f"{{categories: [{', '.join(BLANK)}]}}"
    value, key = value_type(kind), _key(name)
    if types.is_boolean(value):
        return f"{key}: {{categories: [false, true]}}  # the first is the reference"
    if typed and value == "string":
        return f"{key}: {categories}  # all categories, or {RANGE} if the texts are numbers"
    try:
        Numbers(name, 0.0, 1.0).require_type(kind)
    except ValueError as error:
        return f"# {error}"
    other = f", or {categories}" if types.is_integer(value) or not typed else ""
    return f"{key}: {RANGE}  # smallest and largest possible value{other}"


def _key(name: str) -> str:
    """A name written in one line such that YAML reads it back unchanged."""
    quote = None if name.isidentifier() else '"'
    text: str = yaml.safe_dump(name, default_style=quote, allow_unicode=True, width=inf)
    return text.removesuffix("...\n").strip("\n")


class _Number(str):
    """A number as it was written, without quotes."""


def read_bounds(path: Path) -> dict[str, Any]:
    """Bounds by column from a YAML or JSON file; categories keep their text as written."""
    if path.is_dir() or not path.exists():
        raise ValueError(f"--bounds must be a file that exists, got {str(path)!r}")
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
    found = f"a list of {len(written)}" if isinstance(written, list) else "another form"
    numbers = "[low, high] with plain numbers such as 2030 and 0.5"
    others = "{bounds: [low, high], missing: [9999]} or {categories: [first, second]}"
    found = "an unfilled template" if listed == BLANK else found
    raise ValueError(f"bounds of {name!r} must be {numbers}, {others}, got {found}")


def _plain(node: yaml.Node | None) -> Any:
    """Convert a node to mappings, lists and texts; among types that YAML guesses, keep numbers."""
    if isinstance(node, yaml.MappingNode):
        return _once((_plain(name), _plain(value)) for name, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    if not isinstance(node, yaml.ScalarNode):
        return None
    number = node.style is None and NUMBER.fullmatch(node.value)
    return (_Number if number else str)(node.value)


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """A mapping of names; each name must occur once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise ValueError("bounds must have column names as keys, got a key that is not text")
        if name in found:
            raise ValueError(f"bounds must name each column once, got {name!r} twice")
        found[name] = value
    return found


# fit, and the files of a fit or a score

NEW = "a new file that can be written"
WRITTEN = "the budget is written to it before noise is drawn"


class Record(Odometer):
    """Odometer that writes the budget to `--output` before noise is drawn, and the result later.

    A second run with the same output is refused. Errors in its `with` block name the file.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        named = {f"--{name}": getattr(options, name, None) for name in ("report", "output")}
        self._files: dict[str, Path] = {name: path for name, path in named.items() if path}
        for name, path in self._files.items():
            # A device, a folder and a link to nothing are there as well.
            there = ", which exists already" if os.path.lexists(path) else ""
            if there or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
                raise ValueError(f"{name} must be {NEW}, got {str(path)!r}{there}")
        places = {path.parent.resolve() / path.name for path in self._files.values()}
        if len(places) < len(self._files):
            raise ValueError(f"--report must be a file other than --output, got {str(path)!r}")

    def add(self, fit: Any) -> None:
        """Count a fit, and create its files."""
        # The token tells one unfinished fit from another.
        known = {"privacy": privacy_as_json(fit), "unfinished": token_hex(16)}
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
            warnings.warn(f"{spent}; --output FILE would record it", UserWarning, stacklevel=2)

    def finish(self, said: str, **written: Callable[[], str]) -> None:
        """Write each file with the function named like its option; print `said` even on failure."""
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
    """Write a new file completely, or leave no file."""
    with path.open("x", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink()
            raise


def add_fit(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    add_table(parser)
    add("--label COLUMN", "column of the label; not needed with --formula")
    add("--formula FORMULA", "model of columns, such as 'rent ~ size * C(city) + np.log(income)'")
    add(
        "--bounds FILE",
        "YAML or JSON file with [low, high] or {categories: [first, second]} for each column, from "
        "public knowledge; {bounds: [low, high], missing: [9999]} also declares codes for missing "
        "values. Numbers outside the bounds are clipped. `privreg bounds` writes a template",
        Path,
        required=True,
    )
    right = "shorter but valid only if errors are symmetric given features or independent of them"
    add("--target", f"least_squares, or huber: its intervals are {right} (default least_squares)")
    add("--weight COLUMN", "column of the records' weights, such as survey weights")
    add("--weight-bound W", "public largest weight; weights are clipped to [0, W]", float)
    add_budget(parser)
    counts = "share of the budget for counting incomplete and clipped records (default 0.01)"
    add("--quality-share SHARE", counts, float)
    parser.add_argument("--no-intercept", action="store_true", help="fit no intercept")
    add("--level", "coverage of the intervals (default 0.95)", float)
    add("--output FILE", f"new file for the fit as JSON; {WRITTEN}", Path)
    add("--report FILE", "new file for the report with pictures, as HTML", Path)
    add("--threads", "number of threads that read the table (default 2)", int)


def fit(options: argparse.Namespace) -> None:
    from privreg.estimators.linear_regression import PrivateLinearRegression
    from privreg.estimators.report import fit_as_json

    # Everything is checked before the fit: a later failure would waste the budget.
    require_number("--level", options.level, above=0, below=1)
    if (options.weight is None) != (options.weight_bound is None):
        raise ValueError("--weight and --weight-bound must be given together, got one of them")
    record, given = Record(options), read_bounds(options.bounds)
    if options.formula is None:
        require_choice("--label, a column of the bounds,", options.label, given)
    model = PrivateLinearRegression(
        budget_of(options),
        delta=options.delta,
        feature_bounds=given,
        formula=options.formula,
        weight_bound=options.weight_bound,
        fit_intercept=not options.no_intercept,
        target=options.target,
        odometer=record,
    )
    with record:
        with Watched(open_stated(options), "privreg fit") as table:
            names = ("label", "weight", "quality_share", "threads")
            model.fit_table(table, **{name: getattr(options, name) for name in names})

        record.finish(
            model.report(level=options.level).rstrip(),
            output=lambda: as_json(fit_as_json(model, level=options.level), indent=2) + "\n",
            report=lambda: model.report("html", level=options.level),
        )


def add_score(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    add_table(parser)
    weighs = "the score of a weighted fit is weighted"
    add("--fit FILE", f"file that `privreg fit --output` wrote; {weighs}", Path, required=True)
    add_budget(parser)
    add("--output FILE", f"new file for the score as JSON; {WRITTEN}", Path)
    add("--threads", "number of threads that read the table (default 2)", int)


def score(options: argparse.Namespace) -> None:
    from privreg.estimators.linear_regression import PrivateLinearRegression
    from privreg.estimators.tables import score_statement

    record, budget = Record(options), budget_of(options)
    try:
        model = PrivateLinearRegression.load(options.fit)
    except ValueError as error:
        raise ValueError(f"--{error}") from None
    model.odometer = record
    with record:
        with Watched(open_stated(options), "privreg score") as table:
            found = model.private_score(table, budget=budget, threads=options.threads)
        privacy = score_statement(budget.gaussian(), *found.assumptions, delta=options.delta)
        parts = {"score": vars(found.value), "privacy": privacy_as_json(privacy)}
        plain = as_json(parts, indent=2) + "\n"
        record.finish(_scored(found.value, model._source.weight, privacy), output=lambda: plain)


def _scored(score: Any, weight: Any, privacy: PrivacyStatement) -> str:
    def line(what: str, value: float, noise: float) -> str:
        known = f"{rounded(value, 4)} ± {rounded(noise)}"
        return f"{what:20}{known if isfinite(value) else 'hidden by the noise'}"

    weighing = []
    if weight is not None:
        bound = f"clipped to [0, {weight.high:g}] and summed in units of {weight.high:g}"
        weighing = [f"Records are weighted by {weight.name!r}, as in the fit. Weights are {bound}."]
    return "\n".join(
        [
            line("mean squared error", score.mean_squared_error, score.mean_squared_error_noise),
            line("R²", score.r2, score.r2_noise),
            f"{'sum of weights' if weight else 'complete records':20}"
            f"{score.records:,.0f} ± {score.records_noise:,.0f}",
            "",
            *weighing,
            "± is the standard deviation of the privacy noise alone. Predictions are clipped to "
            "the label's bounds.",
            f"The score is {privacy.sentence}. Its cost adds to the cost of other fits and scores "
            "of these records.",
        ]
    )


def add_odometer(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    files = "files that `privreg fit --output` or `privreg score --output` wrote"
    add("fits", files, Path, nargs="+")
    add("--delta", "delta at which epsilon is stated (default 1e-6)", float)


def odometer(options: argparse.Namespace) -> str:
    counted, known, rows = Odometer(), dict[bytes, Path](), []
    for path in options.fits:
        cost = read_statement(path)
        counted.add(cost)
        rows.append((shown(str(path)), cost))
        # Noise is never drawn twice alike: two files of the same bytes are copies, or linked.
        first = known.setdefault(path.read_bytes(), path)
        if first is not path:
            other = "" if first == path else f", also as {str(first)!r}"
            raise ValueError(f"fits must be different files, got {str(path)!r} twice{other}")
    total = counted.total
    rows.append(("together", total))
    width = max(len(name) for name, _ in rows)
    lines = [
        f"{name.ljust(width)}  rho = {found.rho:.4g}, mu = {found.mu:.4g}, "
        f"epsilon = {found.epsilon(options.delta):.4g} at delta = {options.delta:g}\n"
        for name, found in rows
    ]
    return (
        f"{''.join(lines)}\nThe total is for tables that differ in one {total.unit} "
        f"({total.with_secret_noise.neighbours.value}). It holds if all fits are of one table and "
        "their number and budgets were fixed beforehand."
    )
