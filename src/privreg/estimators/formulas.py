"""Formulas as in R and patsy, with bounds of their terms from interval arithmetic.

formulaic parses the text. The value of a term depends only on one record and on declared bounds.
Functions that learn from the table, such as `scale`, and undeclared levels are refused.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.checks import LEAST, MOST, nearest, require_array, short
from privreg.estimators.columns import Categories, Numbers, declared_column

FloatArray = NDArray[np.float64]
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}
LEARNING = ("scale", "center", "bs", "cr", "cc", "cs", "te", "poly", "mean", "std", "lag", "cut")
MOST_POWER = 12
Range = tuple[float, float]
# Function of numbers, or of their ranges.
Act = Callable[..., Any]


class Design(NamedTuple):
    """Terms of a formula: products of `factors`, which are expressions or indicators of a category.

    `aim` is the column of the label, and `label` is the expression on the formula's left side.
    """

    names: list[str]
    columns: tuple[Numbers | Categories, ...]
    terms: list[tuple[str, ...]]
    factors: dict[str, Any]
    bounds: list[Range]
    aim: Numbers
    label: ast.expr
    label_bounds: Range
    intercept: bool

    @np.errstate(all="ignore")
    def features(self, values: Sequence[FloatArray], *, clip: bool = True) -> list[FloatArray]:
        """Values of each term, from encoded columns; NaN where a column's value is NaN."""
        known: dict[Any, Any] = {}
        left = iter(values)
        for column in self.columns:
            if isinstance(column, Numbers):
                own = next(left)
                known[column.name] = np.clip(own, column.low, column.high) if clip else own
                continue
            levels = {(column.name, k): next(left) for k in range(1, len(column.categories))}
            known |= levels | {(column.name, 0): 1.0 - sum(levels.values())}
        parts = {name: _value(own, known, operator.call) for name, own in self.factors.items()}
        return [_product([parts[name] for name in e], operator.call) for e in self.terms]

    @np.errstate(all="ignore")
    def labels(self, values: FloatArray) -> FloatArray:
        """Values of the formula's left side, from the values of its column."""
        return np.asarray(_value(self.label, {self.aim.name: values}, operator.call))


def read_formula(formula: Any, bounds: Any) -> Design:
    """Read a formula over columns with declared bounds; no table is needed."""
    if not (isinstance(formula, str) and isinstance(bounds, Mapping)):
        raise _refused("type str, and bounds type dict", f"{short(formula)} and {short(bounds)}")
    try:
        from formulaic.parser import DefaultFormulaParser
    except ImportError:
        raise ImportError("formulas need formulaic: pip install 'privreg[formulas]'") from None
    try:
        parsed = DefaultFormulaParser().get_terms(formula)
        left, right = ([list(term.factors) for term in side] for side in (parsed.lhs, parsed.rhs))
    except Exception:
        # What formulaic says has several lines and colours.
        raise _refused("formulaic's form, as in 'y ~ a + C(b) + a:b'", short(formula)) from None
    kept = [[each for each in term if each.eval_method.name != "LITERAL"] for term in right]
    if any(0 < len(own) < len(term) for own, term in zip(kept, right, strict=True)):
        raise _refused("terms without leading numbers (write I(2 * a))", short(formula))
    intercept, found, aim = [] in kept, _Reader(bounds), _Reader(bounds)
    terms = list(found.terms(filter(None, kept), intercept=intercept))
    ranges, names = found.ranges(terms), list(map(":".join, terms))
    if not names or len(set(names)) < len(names):
        raise _refused("at least one feature, and features with different names", short(formula))
    name = aim.factor(left[0][0]) if len(left) == len(left[0]) == 1 else ""
    wrong = name in ("", *aim.levels) or not aim.ranges([(name,)]) or len(aim.used) > 1
    if wrong or aim.used.keys() & found.used:
        raise _refused("one label on the left, from a column that is not a feature", short(formula))
    columns, (label,) = tuple(found.used.values()), aim.used.values()
    (pair,), own = aim.ranges([(name,)]), aim.factors[name]
    return Design(names, columns, terms, found.factors, ranges, label, own, pair, intercept)


class _Reader(dict[Any, Range]):
    """Factors of a formula, with ranges of its columns; a column is looked up at its first use."""

    def __init__(self, bounds: Mapping[str, Any]) -> None:
        self.bounds, self.used, self.factors = bounds, dict[str, Any](), dict[str, Any]()
        # Per categorical factor: indicators of all levels, reference first, and of all others.
        self.levels: dict[str, tuple[list[str], list[str]]] = {}

    def __missing__(self, key: Any) -> Range:
        if isinstance(key, tuple):
            return 0.0, 1.0
        column = self.column(key)
        if not isinstance(column, Numbers):
            raise _refused("numeric columns, or C(name) for categories", f"categories: {key!r}")
        return column.low, column.high

    def column(self, name: str) -> Any:
        """Declaration of a column; the column then counts as used."""
        if name not in self.bounds:
            found = f"{name!r}{nearest(name, self.bounds)}"
            raise ValueError(f"bounds must name every column of the formula, got none for {found}")
        return self.used.setdefault(name, declared_column(name, self.bounds[name]))

    def factor(self, parsed: Any) -> str:
        """Add a factor (an expression, or the indicators of all levels) and return its name."""
        text, reference = str(parsed.expr), None
        lookup = parsed.eval_method.name == "LOOKUP"
        node = ast.Name(text) if lookup else ast.parse(text, mode="eval").body
        match node:
            case ast.Name(column) | ast.Call(ast.Name("C"), [ast.Name(column)], []):
                pass
            case ast.Call(
                ast.Name("C"), [ast.Name(column), ast.Call(called, [ast.Constant(own)], [])], []
            ) if ast.unparse(called).lower().endswith("treatment"):
                reference = str(own)
            case ast.Call(ast.Name("C")):
                raise _refused("C(column) or C(column, Treatment(reference))", short(text))
            case _:
                column = ""
        read = self.column(column) if column else None
        if read is None or (isinstance(node, ast.Name) and isinstance(read, Numbers)):
            self.factors[text] = node
            return text
        texts = list(read.categories) if isinstance(read, Categories) else []
        if reference not in (None, *texts) or not texts:
            raise ValueError(
                f"levels of {column!r} must be declared in the bounds, as {{'categories': [...]}}, "
                f"got {short(text)}{nearest(reference, texts)}"
            )
        order = sorted(texts, key=lambda each: each != (reference or texts[0]))
        whole, marked = ([f"{text}[{mark}{each}]" for each in order] for mark in ("", "T."))
        self.levels[text] = whole, marked[1:]
        for name, other, each in zip(whole, marked, order, strict=True):
            self.factors[name] = self.factors[other] = column, texts.index(each)
        return text

    def terms(self, listed: Iterable[Any], *, intercept: bool) -> Iterator[tuple[str, ...]]:
        """Terms in patsy's order and coding, without levels that earlier terms determine."""
        groups: dict[frozenset[str], list[list[str]]] = {frozenset(): []}
        for term in listed:
            names = list(map(self.factor, term))
            numbers = frozenset(each for each in names if each not in self.levels)
            groups.setdefault(numbers, []).append(names)
        for numbers, members in groups.items():
            used = {frozenset[str]()} if intercept and not numbers else set()
            for names in sorted(members, key=len):
                for coding in _codings([each for each in names if each in self.levels], used):
                    choices = [
                        [name] if name in numbers else self.levels[name][not coding[name]]
                        for name in names
                        if name in numbers or name in coding
                    ]
                    yield from (each[::-1] for each in product(*choices[::-1]))

    def ranges(self, terms: Sequence[tuple[str, ...]]) -> list[Range]:
        """Bounds of terms; factors outside these terms are dropped."""
        self.factors = {name: self.factors[name] for name in dict.fromkeys(sum(terms, ()))}
        known = {name: _value(own, self, _ends) for name, own in self.factors.items()}
        return [_bounds(":".join(e), _product([known[n] for n in e], _ends)) for e in terms]


def _codings(names: Sequence[str], used: set[frozenset[str]]) -> list[dict[str, bool]]:
    """Codings of a term's factors (True: all levels) that extend the span of the `used` products.

    A subset of the factors stands for products of indicators without reference levels. If the
    subset also occurs with one more factor, that factor gets all its levels (patsy's algorithm).
    """
    subsets = [frozenset(c) for size in range(len(names) + 1) for c in combinations(names, size)]
    left = [dict.fromkeys(each, False) for each in subsets if each not in used]
    used.update(subsets)
    while True:
        for small, large in product(left, left):
            more = [name for name in large if name not in small]
            if len(more) == 1 and small.items() <= large.items() and not large[more[0]]:
                left.remove(small)
                large[more[0]] = True
                break
        else:
            return left


def _bounds(name: str, found: Range) -> Range:
    low, high = found
    if not (low >= -MOST and high <= MOST and high - low >= LEAST):
        text = "undefined at some values" if math.isnan(low) else f"from {low:g} to {high:g}"
        expected = f"terms that vary and stay within {MOST:g} for values in their columns' bounds"
        raise _refused(expected, f"{short(name)} {text}")
    return found


def _product(values: Iterable[Any], act: Act) -> Any:
    return reduce(partial(act, operator.mul), values)


def _ends(call: Act, *ranges: Range) -> Range:
    """Range of a function that is monotone in each argument; rounding is monotone, too."""
    ends = [math.nan]
    if call is not operator.truediv or not ranges[1][0] <= 0 <= ranges[1][1]:
        ends = [call(*each) for each in product(*ranges)]
    if call is abs and ranges[0][0] < 0 < ranges[0][1]:
        ends.append(0.0)
    return (min(ends), max(ends)) if all(map(math.isfinite, ends)) else (math.nan, math.nan)


def _value(node: Any, known: Mapping[Any, Any], act: Act) -> Any:
    """Value of a factor; `act` applies a function to the values of its arguments."""

    def value(part: ast.expr) -> Any:
        return _value(part, known, act)

    match node:
        case tuple():
            return known[node]
        case ast.Constant(int() | float() as number):
            return act(lambda: float(number))
        case ast.Name(name) | ast.Call(ast.Name("Q"), [ast.Constant(str() as name)], []):
            return known[name]
        case ast.BinOp(base, ast.Pow(), ast.Constant(int() as power)) if 1 <= power <= MOST_POWER:
            return _power(value(base), power, act)
        case ast.BinOp(base, ast.Mult(), other) if ast.dump(base) == ast.dump(other):
            return _power(value(base), 2, act)
        case ast.BinOp(base, sign, other) if type(sign) in OPERATORS:
            return act(OPERATORS[type(sign)], value(base), value(other))
        case ast.UnaryOp(sign, inner) if type(sign) in OPERATORS:
            return act(OPERATORS[type(sign)], value(inner))
        case ast.Call(called, [inner], []) if (name := _called(called)) in ("I", *FUNCTIONS):
            own = value(inner)
            return own if name == "I" else act(FUNCTIONS[name], own)
        case ast.Call(called, _, _):
            name = _called(called)
            way = ", which learns from the table: write public numbers, such as I((a - 50) / 10)"
            why = way if name in LEARNING else nearest(name, FUNCTIONS)
            listed = f"numbers, + - * / **, {', '.join(FUNCTIONS)}, I, Q and C"
            raise _refused(f"terms of a single record, built from {listed}", f"{name!r}{why}")
    raise _refused(f"only + - * / and powers from 1 to {MOST_POWER}", short(ast.unparse(node)))


def _called(function: ast.expr) -> str:
    return ast.unparse(function).removeprefix("np.").removeprefix("numpy.")


def _power(base: Any, power: int, act: Act) -> Any:
    """Power by repeated products; its result does not depend on the place in an array."""
    size = base if power % 2 else act(abs, base)
    return act(lambda own: math.prod([own] * power), size)


def _apply(call: Callable[[float], float], own: Any) -> Any:
    """Apply a function to each number alone: NumPy's result may depend on the place in an array."""
    if isinstance(own, np.ndarray):
        return np.fromiter((_apply(call, each) for each in own.tolist()), float, len(own))
    try:
        return call(own)
    except (ValueError, OverflowError):
        return math.nan


CALLS = (math.log, math.log2, math.log10, math.log1p, math.exp, math.expm1, math.sqrt)
FUNCTIONS: dict[str, Act] = {"abs": abs, **{e.__name__: partial(_apply, e) for e in CALLS}}


@np.errstate(all="ignore")
def read_hypotheses(hypotheses: Any, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Read R (q, k) and c of R β = c: from text ("a = 0, b - 2 * c = 1"), or from R, with c = 0."""
    k = len(names)
    if not isinstance(hypotheses, str):
        rows = require_array("hypotheses", hypotheses, shape=(None, k))
        return rows, np.zeros(len(rows))
    # Names may hold commas and signs of equality.
    pattern = "|".join(re.escape(each) for each in sorted(names, key=len, reverse=True))
    text = re.sub(pattern, lambda found: f" _{names.index(found[0])} ", hypotheses)
    points = np.vstack([np.zeros(k), np.eye(k), np.arange(2.0, k + 2)])
    known, values = {f"_{j}": points[:, j] for j in range(k)}, []
    try:
        for part in text.split(","):
            left, _, right = part.partition("=")
            node = ast.parse(f"({left}) - ({right or 0})", mode="eval").body
            values.append(_value(node, known, operator.call) * np.ones(k + 2))
        constant = np.array(values)[:, 0]
        rows = np.array(values)[:, 1:-1] - constant[:, None]
        # The values at 0 and at the unit vectors determine a linear function everywhere.
        last = np.isclose(np.array(values)[:, -1], constant + rows @ points[-1])
        if not np.all(last & np.any(rows, axis=1)):
            raise ValueError
    except (SyntaxError, ValueError, KeyError, ArithmeticError):
        raise ValueError(
            "hypotheses must be linear in names of coefficients, such as 'a = 0, b - 2 * c = 1', "
            f"got {short(hypotheses)}; the names are {', '.join(map(short, names[:8]))}"
        ) from None
    return rows, -constant


def _refused(expected: str, found: str) -> ValueError:
    return ValueError(f"formula must have {expected}, got {found}")
