"""Errors name columns and row counts, never a value of the data."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
from scipy import sparse

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms.samples import ArraySamples
from privreg.command_line.main import main

WORD, NUMBER = "secret-7f3a", 98765.4321
N = 30
DRAWS = np.random.Generator(np.random.SFC64(2))
X = DRAWS.uniform(-1, 1, (N, 2))
Y = X[:, 0].copy()


def quotes(text: str) -> bool:
    """Whether a text holds a value that was planted, or a digit of it in another writing."""
    return any(part in text for part in (WORD, "98765", "9.8765", "7f3a"))


def whole_text(error: BaseException) -> str:
    """All that a traceback shows, notes and causes included, and what the error carries."""
    lines = [line for line in traceback.format_exception(error) if not line.startswith("  File")]
    hidden = error.__cause__ or error.__context__
    return "\n".join([*lines, whole_text(hidden) if hidden else ""])


def planted(value: Any, dtype: Any = object) -> np.ndarray:
    cells = X.astype(dtype)
    cells[3, 1] = value
    return cells


def framed(cells: Any) -> pandas.DataFrame:
    return pandas.DataFrame({"a": X[:, 0], "b": cells})


FEATURES = {
    "list": planted(WORD).tolist(),
    "text": planted(WORD).astype(str),
    "bytes": planted(WORD.encode()),
    "dictionaries": planted({WORD: NUMBER}),
    "lists inside": planted([NUMBER, 1.0]),
    "complex": planted(NUMBER + 1j, np.complex128),
    "one dimension": np.full(N, NUMBER),
    "unequal": [[NUMBER, 1.0], [NUMBER]] * 15,
    "masked": np.ma.masked_equal(planted(NUMBER, np.float64), NUMBER),
    "sparse": sparse.csr_array(planted(NUMBER, np.float64)),
    "a huge integer": planted(int("98765" + "0" * 400)),
    "not finite": [[NUMBER, np.inf]] * N,
    "frame of text": pandas.DataFrame(planted(WORD), columns=["a", "b"]),
    "text extension": framed(pandas.array([WORD] * N, dtype="string")),
    "missing extension": framed(pandas.array([98765] * (N - 1) + [None], dtype="Int64")),
}
LABELS = {
    "text": planted(WORD)[:, 1].astype(str),
    "two columns": np.full((N, 2), NUMBER),
    "not finite": [NUMBER, np.inf] * (N // 2),
    "short": np.full(3, NUMBER),
}
GROUPS = {
    "two columns": np.full((N, 2), WORD),
    "missing": np.array([WORD] * (N - 1) + [np.nan], dtype=object),
    "mixed": np.array([WORD, 1] * (N // 2), dtype=object),
    "dictionaries": [{WORD: 1}] * N,
}


def model(**settings) -> PrivateLinearRegression:
    return PrivateLinearRegression(
        Budget.zcdp(50.0), feature_bounds=(-1, 1), label_bounds=(-2, 2), **settings
    )


def refusal(call, *arguments, **named) -> str:
    with pytest.raises((ValueError, TypeError), match="must") as refused:
        call(*arguments, **named)
    text = whole_text(refused.value)
    assert not quotes(text), text
    return str(refused.value)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        pytest.param(argument, value, id=f"{argument}: {kind}")
        for argument, kinds in (("X", FEATURES), ("y", LABELS), ("groups", GROUPS))
        for kind, value in kinds.items()
    ],
)
def test_data_are_never_quoted(argument, value):
    assert argument in refusal(model().fit, **{"X": X, "y": Y, argument: value})
    if argument == "X" and not hasattr(value, "columns"):
        refusal(ArraySamples, value, Y)
    if argument == "y":
        refusal(ArraySamples, X, value)


def test_where_the_cells_are_is_said():
    text = refusal(model().fit, FEATURES["frame of text"], Y)
    assert "other values in 1 of 30 rows of X, columns 'b'" in text
    assert "values in 1 of 30 rows, columns 1 of X" in refusal(model().fit, FEATURES["list"], Y)
    missing = X.copy()
    missing[:4, 0] = np.nan
    text = refusal(model().fit, missing, Y)
    assert text.endswith("numbers without NaN, got other values in 4 of 30 rows, columns 0 of X")
    text = refusal(ArraySamples, missing, Y)
    assert text == "features must be finite, got other values in 4 of 30 rows, columns 0"


NO_NUMBERS = {
    "datetime": np.full(N, "2020-01-01", "M8[D]"),
    "Complex": X[:, 0] + 1j,
    "str": np.full(N, "1"),
    "category": pandas.Categorical(["1", "2"] * (N // 2)),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_not_made_one(kind):
    column = pandas.Series(NO_NUMBERS[kind])
    frame = framed(column)
    fitted = model().fit(framed(X[:, 1]), Y)
    for call in (lambda given: model().fit(given, Y), fitted.predict):
        assert kind in refusal(call, frame)
        if kind != "Complex":
            assert "columns 'b'" in refusal(call, pa.Table.from_pandas(frame))
    for values in (NO_NUMBERS[kind], column.tolist()):
        refusal(model().fit, X, values)
        refusal(model(weight_bound=1.0).fit, X, Y, sample_weight=values)


def test_names_of_columns_are_the_cause():
    for names, cause in ((["a", "a"], "'a' 2 times"), (["a", 1], "['int', 'str']")):
        assert cause in refusal(model().fit, pandas.DataFrame(X, columns=names), Y)
    assert "PrivateLinearRegression" in model()._repr_html_()
    with warnings.catch_warnings(action="ignore", category=PendingDeprecationWarning):
        matrix = np.matrix(X)
    assert "np.matrix is not supported" in refusal(model().fit, matrix, Y)
    fit = model().fit(pandas.DataFrame(X, columns=['<script>"&\x1b[1m', "b"]), Y)
    for text in (str(fit.summary()), fit.summary()._repr_html_(), fit.report("html")):
        assert "\\x1b[1m" in text
        assert "\x1b" not in text
        assert ("&lt;script&gt;" in text) is ("<script" not in text) is ("<table" in text)


def test_the_command_quotes_no_cell(tmp_path, capsys):
    table, bounds = tmp_path / "table.csv", tmp_path / "bounds.json"
    rows = "\n".join(f"{a},{b}" for a, b in X)
    bounds.write_text('{"a": [-1, 1], "y": [-1, 1]}')
    for cell in (WORD, "98765;4321", "nan"):
        table.write_text(f"a,y\n{rows}\n{cell},1\n")
        assert main(["fit", str(table), "--label=y", f"--bounds={bounds}", "--rho=1"]) == 0
        said = capsys.readouterr()
        assert "incomplete and ignored" in said.out
        assert not quotes(said.out + said.err)


def test_rows_of_another_index_are_refused():
    """Wherever two have one: by place, each record would get another one's label or person."""
    frame, label = pandas.DataFrame(X, columns=["a", "b"]), pandas.Series(Y)
    fitted, turned = model(weight_bound=1.0), pandas.Series(Y**2).iloc[np.roll(np.arange(N), 1)]
    given = {"y": label, "groups": label.index // 2, "sample_weight": label.abs()}
    assert fitted.fit(frame, **given).privacy_.unit == "person"
    for name in given:
        said = refusal(fitted.fit, frame, **(given | {name: turned}))
        assert f"write {name}.loc[X.index], or" in said
        if name != "groups":
            refused = refusal(fitted.score, frame, **({"y": label} | {name: turned}))
            assert "must have the index of y in the same order" in refused
    assert "write groups.loc[y.index]" in refusal(fitted.fit, X, label, groups=turned)
    # An array has none to differ.
    fitted.fit(frame.set_axis(turned.index), turned, sample_weight=Y**2)


def test_lazy_frames_are_read_by_their_owner():
    lazy, fitted = type("LazyFrame", (), {"columns": ("a", "b"), "collect": pytest.fail})(), model()
    fitted.set_params(weight_bound=1.0).fit(X, Y)
    for name in ("X", "y", "sample_weight", "groups"):
        given = {"X": X, "y": Y, name: lazy}
        for call in (fitted.fit, fitted.score)[: 1 + (name != "groups")]:
            assert refusal(call, **given).endswith(f"got a LazyFrame: write {name}.collect()")
    assert "write X.collect()" in refusal(fitted.predict, lazy)


def test_codes_for_missing_are_for_tables():
    codes, frame = {"bounds": (-1, 1), "missing": [9]}, pandas.DataFrame(X, columns=["a", "b"])
    for change in ({"feature_bounds": {"a": (-1, 1), "b": codes}}, {"label_bounds": codes}):
        assert "need fit_table" in refusal(model().set_params(**change).fit, frame, Y)


def test_groups_and_weights_go_by_name():
    """A third argument by position is another estimator's weights, which are no persons."""
    found = model()
    with pytest.raises(TypeError, match="positional argument"):
        found.fit(X, Y, np.ones(N))
    persons = np.arange(N) // 2
    assert found.fit(X, Y, groups=persons).privacy_.unit == "person"
    with pytest.raises(TypeError, match="positional argument"):
        found.score(X, Y, persons)
    plain = found.score(X, Y)
    assert plain == pytest.approx(found.score(X, Y, sample_weight=np.full(N, 2.0)))
