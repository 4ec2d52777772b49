"""Columns of a table: declared bounds and units, the reading of cells, and checks of arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from privreg.checks import (
    LEAST,
    MOST,
    MOST_COLUMNS,
    places,
    require_real,
    require_unmasked,
    short,
    sort,
)

FloatArray = NDArray[np.float64]


class Frame:
    r"""Units in which every feature and label lies in [-1, 1].

    .. math::
        x' = (\mathrm{clip}(x, a, b) - c)/h, \qquad
        c = (a + b)/2,\ h = (b - a)/2 \text{ with an intercept, else } c = 0,\ h = \max(|a|, |b|)

    `features` (p, 2) and `label` (2,) are the declared bounds (a, b). With an intercept, a column
    of ones comes first. Values that rounding puts outside [-1, 1] are clipped.
    """

    def __init__(self, features: FloatArray, label: FloatArray, intercept: bool) -> None:
        self.features, self.label, self.intercept = features, label, intercept
        # Number of columns of the mapped rows, and the largest length of a row.
        self.dimension = len(features) + intercept
        self.feature_norm = float(np.sqrt(self.dimension))
        self._centre, self._half = _scale(features, intercept)
        self._label_centre, self._label_half = _scale(label, intercept)

    def rows(self, features: NDArray[Any]) -> NDArray[Any]:
        """Map features (n, p), which must have no missing values, to rows."""
        return self.rows_of([*features.T], np.zeros(len(features), dtype=np.bool_))

    def rows_of(self, columns: Sequence[NDArray[Any]], absent: NDArray[np.bool_]) -> NDArray[Any]:
        """Map p columns to rows; absent records become rows of zeros."""
        some = bool(np.any(absent))
        mapped = np.empty((len(absent), self.dimension), order="F")
        if self.intercept:
            mapped[:, 0] = ~absent
        low, high = self.features.T
        for k, values in enumerate(columns):
            inside = mapped[:, k + self.intercept]
            np.clip(values, low[k], high[k], out=inside)
            inside -= self._centre[k]
            inside *= 1 / self._half[k]
            np.clip(inside, -1, 1, out=inside)
            if some:
                inside[absent] = 0
            _require_present("columns", inside)
        return mapped

    def labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Map labels (n,), which must have no missing values."""
        clipped = np.clip(labels, *self.label)
        _require_present("labels", clipped)
        return np.clip((clipped - self._label_centre) / self._label_half, -1, 1)

    def features_of(self, rows: FloatArray) -> FloatArray:
        """Map rows (n, p), without the column of ones, back to features (n, p)."""
        return np.asarray(self._centre + self._half * rows)

    def labels_of(self, values: FloatArray) -> FloatArray:
        """Map values of any shape back to labels."""
        return np.asarray(self._label_centre + self._label_half * values)

    def functionals(self) -> tuple[FloatArray, FloatArray]:
        """Matrix J and offset o; Jθ + o is θ in the data's units: slopes, then the intercept."""
        half, label_half = self._half, self._label_half
        slopes = np.diag(label_half / half)
        if not self.intercept:
            return slopes, np.zeros(len(slopes))
        matrix = np.zeros((self.dimension, self.dimension))
        matrix[:-1, 1:] = slopes
        matrix[-1] = np.concatenate([[label_half], -label_half * self._centre / half])
        return matrix, np.append(np.zeros(len(slopes)), self._label_centre)


def declared(
    name: str, bounds: Any, columns: int, names: Sequence[str] | None = None
) -> FloatArray:
    """Bounds (columns, 2) from one pair for all columns, a pair each, two arrays or a mapping."""
    if isinstance(bounds, Mapping) and bounds and (names is not None or not _is_coded(bounds)):
        if names is None:
            several = f" or {columns} pairs for unnamed columns" * (columns > 1)
            raise ValueError(f"{name} must be (low, high){several}, got {short(bounds)}")
        require_every_column(name, bounds, names)
        return np.array([_pair(f"{name}[{each!r}]", bounds[each], 1)[0] for each in names])
    return _pair(name, bounds, columns)


def require_every_column(name: str, bounds: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Require bounds for each column; a model may use only some columns of a schema."""
    if missing := [column for column in columns if column not in bounds]:
        others = (str(each) for each in bounds if each not in columns)
        near = "".join(get_close_matches(str(missing[0]), others, n=1))
        found = f"none for {missing[0]!r}" + f" but bounds for {near!r}" * bool(near)
        raise ValueError(f"{name} must name every column, got {found}")


def require_column(name: str, value: Any, available: Sequence[str]) -> str:
    """Require a column's name; errors list no names, as a file's first line may be a record."""
    count = list(available).count(value) if isinstance(value, str) else 0
    if count != 1:
        has = f"({len(available)} columns){' that occurs once' if count else ''}"
        odd = any(each[:1] == "#" or NUMBER.fullmatch(each) for each in available)
        cause = ": is its first line a header? A cell is a number or begins with '#'" if odd else ""
        raise ValueError(f"{name} must be a column of the table {has}, got {short(value)}{cause}")
    return str(value)


def _pair(name: str, bounds: Any, columns: int) -> FloatArray:
    bounds = _transposed(name, bounds, columns)
    listed = isinstance(bounds, Sequence) and not isinstance(bounds, (str, bytes))
    if not (listed or (isinstance(bounds, np.ndarray) and bounds.ndim)) or len(bounds) != 2:
        why = "codes for missing values need fit_table; for arrays, omit rows with such codes"
        why = why if _is_coded(bounds) else "bounds are never taken from the data"
        raise ValueError(f"{name} must be declared as (low, high), got {short(bounds)}: {why}")
    if isinstance(bounds, np.ndarray) and bounds.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be numbers, got {bounds.dtype}")
    ends = [require_real(name, end, least=-MOST, most=MOST) for end in bounds]
    for end in ends:
        if end.shape not in ((), (columns,)):
            why = f"one low and one high for all columns, or {columns} lows and highs"
            raise ValueError(f"{name} must give {why}, got shape {end.shape}")
    pairs = np.stack([np.broadcast_to(end, (columns,)) for end in ends], axis=1)
    narrow = pairs[:, 1] - pairs[:, 0] < LEAST
    if np.any(narrow):
        where = ", ".join(map(str, np.flatnonzero(narrow)[:MOST_COLUMNS]))
        one = len(pairs) == 1 or not (ends[0].ndim or ends[1].ndim)
        found = "({:g}, {:g})".format(*pairs[0]) if one else f"other pairs in columns {where}"
        found += ": write the low end first" * bool(np.any(pairs[:, 0] > pairs[:, 1]))
        raise ValueError(f"{name} must have low below high by at least {LEAST:g}, got {found}")
    return pairs


def _transposed(name: str, bounds: Any, columns: int) -> Any:
    """Turn a list of pairs into lows and highs; refuse bounds that can be read in two ways."""
    ends = bounds if isinstance(bounds, (list, tuple, np.ndarray)) else ()
    pairs = sum(isinstance(each, tuple) and len(each) == 2 for each in ends)
    nested = any(isinstance(each, (list, tuple)) or getattr(each, "ndim", 0) for each in ends)
    if not nested or (isinstance(bounds, tuple) and not pairs):
        return bounds
    if isinstance(bounds, list) and pairs == len(bounds) == columns:
        return tuple(zip(*bounds, strict=True))
    several = f"a list of {columns} pairs [(low, high), ...], or a tuple of lists"
    expected = "(low, high)" if columns == 1 else f"{several} ([low, ...], [high, ...])"
    raise ValueError(f"{name} must be {expected}, got {short(bounds)}")


def _require_present(name: str, values: NDArray[Any]) -> None:
    # The minimum is NaN if any value is NaN.
    if np.isnan(np.min(values, initial=0.0)):
        raise ValueError(f"{name} must hold no missing values, got NaN")


def _scale(bounds: FloatArray, intercept: bool) -> tuple[FloatArray, FloatArray]:
    low, high = bounds[..., 0], bounds[..., 1]
    if intercept:
        return (low + high) / 2, (high - low) / 2
    return np.zeros_like(low), np.maximum(np.abs(low), np.abs(high))


# Texts that every version of Arrow reads alike, far from the ends of double precision.
SHORT_NUMBER = r"^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?$"
MOST_BYTES = 100
NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE
)
INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
MISSING = -1


class Cells(NamedTuple):
    """Encoded cells of a column: a missing number is NaN, and a missing category is all zeros."""

    features: list[NDArray[Any]]
    missing: NDArray[np.bool_]


class Numbers:
    """A column of numbers with its bounds.

    Texts such as `-1.5`, `2e3` and `inf` are numbers, even with surrounding blanks. Null, NaN, any
    other text and the `codes` count as missing. `names` and `bounds` describe the features made
    from the column. `clips` is true if cells can lie outside the bounds.
    """

    clips = True

    def __init__(self, name: str, low: float, high: float, codes: ArrayLike = ()) -> None:
        self.name, self.low, self.high = name, low, high
        self.codes = require_real(f"missing of {name!r}", codes)
        self.names, self.bounds = [name], [(low, high)]
        coded = {"bounds": [low, high], "missing": self.codes.tolist()}
        self.declaration: Any = coded if self.codes.size else [low, high]

    def require_type(self, kind: Any) -> None:
        """Refuse an Arrow type that cannot hold numbers."""
        from pyarrow import types

        value = value_type(kind)
        number = types.is_integer(value) or types.is_floating(value) or types.is_decimal(value)
        if not number and not is_text(value):
            found = f"{value}: {self._advice(value)}"
            raise ValueError(f"column {self.name!r} must hold numbers, got {found}")

    def encode(self, cells: Any) -> Cells:
        """Encode an Arrow array of cells as one feature."""
        values = _looked_up(cells, _numbers, np.nan)
        if self.codes.size:
            # A column of single precision holds the rounded code.
            kind = value_type(cells.type).to_pandas_dtype()
            rounded = kind if issubclass(kind, np.floating) else np.float64
            values = np.where(np.isin(values, self.codes.astype(rounded)), np.nan, values)
        return Cells([values], np.isnan(values))

    def clipped(self, cells: Cells) -> int:
        """Number of cells outside the bounds; missing cells do not count."""
        (values,) = cells.features
        return int(np.count_nonzero(values < self.low) + np.count_nonzero(values > self.high))

    @staticmethod
    def _advice(kind: Any) -> str:
        from pyarrow import types

        if types.is_temporal(kind):
            return "write it as a number, such as days or seconds since a date of your choice"
        if types.is_boolean(kind):
            return "declare {'categories': [False, True]} for a feature, or write 0 and 1"
        return "write the column as numbers"


class Categories:
    """A column of declared categories; each category but the first gives an indicator feature.

    Texts are compared byte by byte, integers as their decimal digits and truth values as `false`
    and `true`. Null and undeclared values are missing.
    """

    clips = False

    def __init__(self, name: str, categories: tuple[str, ...]) -> None:
        if len(set(categories)) < max(2, len(categories)):
            own = short(categories)
            raise ValueError(f"categories of {name!r} must be 2 or more different texts, got {own}")
        self.name, self.categories = name, categories
        self.names = [f"{name}={each}" for each in categories[1:]]
        self.bounds = [(0.0, 1.0)] * len(self.names)
        self.declaration = {"categories": list(categories)}

    def require_type(self, kind: Any) -> None:
        """Refuse an Arrow type that cannot hold every category."""
        from pyarrow import types

        value = value_type(kind)
        if types.is_boolean(value):
            sound = set(self.categories) == {"false", "true"}
            advice = "declare {'categories': [False, True]}"
        elif types.is_integer(value):
            sound = all(INTEGER.fullmatch(each) for each in self.categories)
            advice = "declare integers such as {'categories': [0, 1]}"
        else:
            number = types.is_floating(value) or types.is_decimal(value)
            sound, advice = is_text(value), "declare (low, high), or write" if number else "write"
            advice += " the column as text or as integers"
        if not sound:
            expected = f"column {self.name!r} must hold the declared categories"
            raise ValueError(f"{expected}, got {value}: {advice}")

    def encode(self, cells: Any) -> Cells:
        """Encode an Arrow array of cells as indicator features, each an array of zeros and ones."""
        codes = _looked_up(cells, self._codes, MISSING)
        features = [(codes == k).astype(np.float64) for k in range(1, len(self.categories))]
        return Cells(features, codes == MISSING)

    def clipped(self, cells: Cells) -> int:
        """Always 0, since a cell of an undeclared category is missing."""
        return 0

    def _codes(self, cells: Any) -> NDArray[Any]:
        import pyarrow as pa
        from pyarrow import compute

        texts = cells if is_text(cells.type) else compute.cast(cells, pa.string())
        found = compute.index_in(texts, value_set=pa.array(self.categories, type=texts.type))
        return found.fill_null(MISSING).to_numpy(zero_copy_only=False)


def table_columns(
    feature_bounds: Any, label: str, available: Sequence[str], weight: str | None = None
) -> tuple[Numbers | Categories, ...]:
    """Columns that a mapping of bounds declares, checked against the columns of a table."""
    if not isinstance(feature_bounds, Mapping) or not feature_bounds:
        expected = "a mapping from columns to (low, high) or to categories"
        raise ValueError(f"feature_bounds must be {expected}, got {short(feature_bounds)}")
    wanted = [("label", label), *(("feature_bounds: a name", name) for name in feature_bounds)]
    for what, name in wanted + [("weight", weight)] * (weight is not None):
        require_column(what, name, available)
    if label in feature_bounds:
        raise ValueError(f"label must not be one of the features, got {label!r}")
    if weight in (label, *feature_bounds):
        raise ValueError(f"weight must be neither a feature nor the label, got {weight!r}")
    columns = tuple(declared_column(name, each) for name, each in feature_bounds.items())
    names = [name for column in columns for name in column.names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"features must have different names, got {twice!r} twice")
    return columns


def value_type(kind: Any) -> Any:
    """Value type of an Arrow type or dictionary type; all text types count as one type."""
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if is_text(value) else value


def is_text(kind: Any) -> bool:
    # Quicker to look up, at each batch, than a name from the package.
    import pyarrow as pa

    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _looked_up(cells: Any, look: Callable[[Any], NDArray[Any]], missing: float) -> NDArray[Any]:
    """Results of `look` for an array; for a dictionary array, each entry is looked up once."""
    import pyarrow as pa

    coded = pa.types.is_dictionary(cells.type)
    each = cells.dictionary if coded else cells
    # Arrow has no function that looks into views.
    found = look(each.cast(pa.large_string()) if pa.types.is_string_view(each.type) else each)
    if not coded:
        return found
    places = cells.indices.cast(pa.int64()).fill_null(len(found))
    return np.append(found, found.dtype.type(missing))[places.to_numpy()]


def _numbers(cells: Any) -> NDArray[Any]:
    """Convert cells to doubles; a cell without a number becomes NaN."""
    import pyarrow as pa

    if cells.type == pa.float64():
        return _filled(cells)
    if is_text(cells.type):
        return _read_numbers(cells)
    # A checked cast fails for all cells where an integer has more digits than a double.
    return _filled(cells.cast(pa.float64(), safe=False))


def _read_numbers(texts: Any) -> NDArray[np.float64]:
    """Convert each text to the nearest double; Arrow reads plain short numbers in bulk."""
    import pyarrow as pa
    from pyarrow import compute

    short = compute.less_equal(compute.binary_length(texts), MOST_BYTES)
    plain = compute.and_(short, compute.match_substring_regex(texts, SHORT_NUMBER)).fill_null(False)
    kept = compute.if_else(plain, texts, pa.scalar(None, texts.type))
    values = _filled(compute.cast(kept, pa.float64()))
    others = compute.and_not(compute.is_valid(texts), plain)
    if not compute.any(others, min_count=0).as_py():
        return values
    values = values.copy()
    values[others.to_numpy(zero_copy_only=False)] = [
        _number(text.as_py()) for text in texts.filter(others)
    ]
    return values


def _filled(values: Any) -> NDArray[Any]:
    # Filling copies, even where nothing is null.
    return (values.fill_null(np.nan) if values.null_count else values).to_numpy()


def _number(text: str) -> float:
    text = text.strip(" \t")
    return float(text) if NUMBER.fullmatch(text) else np.nan


def number_column(what: str, name: str, declaration: Any) -> Numbers:
    """Column of numbers, declared by (low, high) or {"bounds": ..., "missing": codes}."""
    coded = declaration if _is_coded(declaration) else {"bounds": declaration, "missing": ()}
    low, high = declared(what, coded["bounds"], columns=1)[0].tolist()
    return Numbers(name, low, high, coded["missing"])


def _is_coded(declaration: Any) -> bool:
    return isinstance(declaration, Mapping) and set(declaration) == {"bounds", "missing"}


def is_categories(declaration: Any) -> bool:
    """True if a declaration lists categories."""
    return isinstance(declaration, Mapping) and set(declaration) == {"categories"}


def declared_column(name: str, declaration: Any) -> Numbers | Categories:
    listed = declaration["categories"] if is_categories(declaration) else None
    if isinstance(listed, (list, tuple)):
        return Categories(name, tuple(_category(name, each) for each in listed))
    plain = declaration["bounds"] if _is_coded(declaration) else declaration
    plain = plain.tolist() if isinstance(plain, np.ndarray) else plain
    pair = isinstance(plain, (list, tuple)) and len(plain) == 2
    if not pair or any(isinstance(end, bool) or not isinstance(end, Real) for end in plain):
        kinds = f": {type(plain[0]).__name__} and {type(plain[1]).__name__}" if pair else ""
        categories = "{'categories': [...]} with texts, integers or truth values"
        expected = f"feature_bounds[{name!r}] must be two numbers (low, high), or {categories}"
        raise ValueError(f"{expected}, got {short(declaration)}{kinds}")
    return number_column(f"feature_bounds[{name!r}]", name, declaration)


def _category(name: str, value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (str, int, np.integer)):
        return str(value)
    expected = "texts, integers or truth values"
    raise ValueError(f"categories of {name!r} must be {expected}, got a {type(value).__name__}")


T = TypeVar("T")
# Methods that read the frames of Polars and Spark, of Ibis, and of DuckDB.
LAZY = ("collect", "execute", "fetchdf")
# Names of types of numbers in NumPy, pandas, Arrow and Polars; NumPy would make numbers of dates.
NUMERIC = re.compile(r"(sparse\[)?(u?int\d|float|double|halffloat|decimal|null|bool)")


def unquoted(call: Callable[[], T], beside: Mapping[str, Any] | None = None, **data: Any) -> T:
    """Call scikit-learn; if it refuses the data, raise an error that quotes no cell.

    The data and the values in `beside` must have the same row index.
    """
    require_aligned(**data, **(beside or {}))
    found: Any = None
    error: Exception | None = None
    try:
        found = call()
    except (TypeError, ValueError, OverflowError) as refusal:
        error = refusal
    faults = [_faults(name, value, cells=error is not None) for name, value in data.items()]
    text = "; ".join(filter(None, faults))
    if error is None and not text:
        return found
    kind = TypeError if isinstance(error, TypeError) else ValueError
    # Words that scikit-learn's checks of estimators look for.
    argument = ": argument must be a string or a real number" if kind is TypeError else ""
    numbers = ": Complex data not supported" if "complex" in text else ""
    whole = f"finite numbers without NaN{argument}, got {text}{numbers}"
    text = whole if text else f"acceptable to scikit-learn: {error}"
    # Outside the handler, so that the error does not carry the original one, which quotes values.
    raise kind(f"{' and '.join(data)} must be {text}")


def require_aligned(**data: Any) -> None:
    """Refuse masked or lazy data, and arguments with different row indexes."""
    first, rows = "", None
    for name, value in data.items():
        require_unmasked(name, value)
        for method in (each for each in LAZY if hasattr(type(value), each)):
            raise TypeError(f"{name} must be in memory, got {sort(value)}: write {name}.{method}()")
        index: Any = getattr(value, "index", None)
        if not hasattr(index, "equals"):
            continue
        if rows is None:
            first, rows = name, index
        elif len(index) == len(rows) and not rows.equals(index):
            way = f"{name}.loc[{first}.index], or {name}.to_numpy() if rows match by position"
            expected = f"the index of {first} in the same order"
            raise ValueError(f"{name} must have {expected}, got another: write {way}")


def _faults(name: str, value: Any, *, cells: bool) -> str:
    """Name non-numeric types and, if `cells` is true, the places of values that are not finite."""
    if value is None or issparse(value):
        return ""
    framed = hasattr(value, "columns")
    kinds: Any = getattr(value, "dtypes", getattr(getattr(value, "schema", None), "types", None))
    if kinds is None:
        kinds = getattr(value, "dtype", getattr(value, "type", np.dtype(object)))
    texts = [getattr(each, "name", str(each)).lower() for each in (kinds if framed else [kinds])]
    wrong = {k: {text} for k, text in enumerate(texts) if not NUMERIC.match(text)}
    table = np.zeros(0)
    if cells or "object" in texts:
        try:
            table = np.asarray(value, dtype=object)
        except (TypeError, ValueError):
            return sort(value)
        columns = table.T if framed else [table.ravel()]
        for k in [k for k, text in enumerate(texts) if text == "object"]:
            wrong[k] = {kind.__name__ for kind in set(map(type, columns[k])) if not _is_real(kind)}
    found = []
    if any(wrong.values()):
        words = sorted({re.sub(r"\W.*|\d+", "", text) for own in wrong.values() for text in own})
        where = _columns(value, [k for k, own in wrong.items() if own])
        where += ": declare {'categories': [...]} in feature_bounds" * (framed and name == "X")
        found.append(f"{' and '.join(words)} in {name}{where}")
    if cells and name == "X" and table.ndim < 2:
        found.append(f"{table.ndim}-dimensional data: Reshape your data to rows and columns")
    elif cells and table.size:
        table = np.atleast_1d(table)
        try:
            bad: Any = ~np.isfinite(table.astype(np.float64))
        except (TypeError, ValueError, OverflowError):
            bad = ~np.frompyfunc(_is_number, 1, 1)(table).astype(bool)
        if framed and np.any(bad):
            where = _columns(value, np.flatnonzero(bad.any(axis=0)))
            found.append(f"{places(bad.any(axis=1))} of {name}{where}")
        elif np.any(bad):
            found.append(f"{places(bad)} of {name}")
    return "; ".join(found)


def _columns(value: Any, at: Sequence[int] | NDArray[np.intp]) -> str:
    # The columns of an Arrow table are its cells.
    arrow = hasattr(value, "column_names") and not hasattr(value, "dtypes")
    named = value.column_names if arrow else getattr(value, "columns", None)
    if named is None:
        return ""
    listed = ", ".join(short(named[place]) for place in at[:MOST_COLUMNS])
    return f", columns {listed}{', ...' if len(at) > MOST_COLUMNS else ''}"


def _is_real(kind: type) -> bool:
    numbers = (Real, Decimal, np.floating, np.integer, np.bool_)
    return issubclass(kind, numbers) and not issubclass(kind, np.timedelta64)


def _is_number(cell: Any) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except (TypeError, ValueError, OverflowError):
        return False
