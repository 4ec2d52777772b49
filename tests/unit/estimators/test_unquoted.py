"""Errors name columns and row counts, never a value of the data."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, cross_val_score

from privreg import Budget, PrivateLinearRegression, Problem, Release, audit_mechanism, plan_run
from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.records import require_groups
from privreg.algorithms.samples import ArraySamples
from privreg.command_line.main import main
from privreg.estimators.bounds import Frame

pandas = pytest.importorskip("pandas")
WORD, NUMBER = "secret-7f3a", 98765.4321
N = 30
DRAWS = np.random.Generator(np.random.SFC64(2))
X = DRAWS.uniform(-1, 1, (N, 2))
Y = X[:, 0].copy()
PROBLEM = Problem(N, np.ones(2), signal=1.0, label_noise_std=1.0)


def quotes(text: str) -> bool:
    """Whether a text holds a value that was planted, or a digit of it in another writing."""
    return any(part in text for part in (WORD, "98765", "9.8765", "7f3a"))


def whole_text(error: BaseException) -> str:
    """All that a traceback shows, notes and causes included, and what the error carries."""
    carried, chain = [], error
    while chain is not None:
        carried.append(str(chain))
        chain = chain.__cause__ or chain.__context__
    lines = [line for line in traceback.format_exception(error) if not line.startswith("  File")]
    return "\n".join(carried + lines)


def planted(value: Any, dtype: Any = object) -> np.ndarray:
    cells = X.astype(dtype)
    cells[3, 1] = value
    return cells


FEATURES = {
    "list": planted(WORD).tolist(),
    "objects": planted(WORD),
    "text": planted(WORD).astype(str),
    "bytes": planted(WORD.encode()),
    "dictionaries": planted({WORD: NUMBER}),
    "lists inside": planted([NUMBER, 1.0]),
    "complex": planted(NUMBER + 1j, np.complex128),
    "one dimension": np.full(N, NUMBER),
    "three dimensions": np.full((N, 1, 2), NUMBER),
    "a number": NUMBER,
    "a word": np.array(WORD),
    "unequal": [[NUMBER, 1.0], [NUMBER]] * 15,
    "masked": np.ma.masked_equal(planted(NUMBER, np.float64), NUMBER),
    "sparse": sparse.csr_array(planted(NUMBER, np.float64)),
    "dates": planted(np.datetime64("2020-01-01")),
    "a huge integer": planted(int("98765" + "0" * 400)),
    "not finite": [[NUMBER, np.inf]] * N,
    "frame of text": pandas.DataFrame(planted(WORD), columns=["a", "b"]),
    "text extension": pandas.DataFrame(
        {"a": X[:, 0], "b": pandas.array([WORD] * N, dtype="string")}
    ),
    "missing extension": pandas.DataFrame(
        {"a": X[:, 0], "b": pandas.array([98765] * (N - 1) + [None], dtype="Int64")}
    ),
    "categories": pandas.DataFrame({"a": X[:, 0], "b": pandas.Categorical([WORD] * N)}),
    "wide": np.full((N, 3), NUMBER),
}
LABELS = {
    "list": planted(WORD)[:, 1].tolist(),
    "objects": planted(WORD)[:, 1],
    "text": planted(WORD)[:, 1].astype(str),
    "complex": planted(NUMBER + 1j, np.complex128)[:, 1],
    "two columns": np.full((N, 2), NUMBER),
    "not finite": [NUMBER, np.inf] * (N // 2),
    "series": pandas.Series(pandas.array([WORD] * N, dtype="string")),
    "masked": np.ma.masked_equal(planted(NUMBER, np.float64)[:, 1], NUMBER),
    "short": np.full(3, NUMBER),
}


def model(**settings) -> PrivateLinearRegression:
    return PrivateLinearRegression(
        Budget.zcdp(50.0), feature_bounds=(-1, 1), label_bounds=(-2, 2), **settings
    )


@pytest.fixture(scope="module")
def fitted() -> PrivateLinearRegression:
    return model().fit(X, Y)


def refusal(call, *arguments, **named) -> str:
    with pytest.raises((ValueError, TypeError)) as refused:
        call(*arguments, **named)
    text = whole_text(refused.value)
    assert not quotes(text), text
    return str(refused.value)


@pytest.mark.parametrize("kind", FEATURES)
def test_features_are_never_quoted(kind, fitted):
    texts = []
    for call in (
        lambda given: model().fit(given, Y),
        fitted.predict,
        lambda given: fitted.score(given, Y),
        lambda given: ArraySamples(given, Y),
        lambda given: Frame([(-1, 1)] * 2, (-1, 1), True).rows(given),
    ):
        try:
            call(FEATURES[kind])
        except (ValueError, TypeError) as error:
            texts.append((str(error), whole_text(error)))
    assert not any(quotes(whole) for _, whole in texts)
    assert all(" must " in text for text, _ in texts)
    if kind not in ("wide", "dates"):
        assert "X" in refusal(model().fit, FEATURES[kind], Y)


@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_never_quoted(kind, fitted):
    refusal(model().fit, X, LABELS[kind])
    refusal(fitted.score, X, LABELS[kind])
    refusal(ArraySamples, X, LABELS[kind])
    if kind not in ("short", "not finite"):
        refusal(Frame([(-1, 1)] * 2, (-1, 1), True).labels, LABELS[kind])
    if kind not in ("two columns", "short"):
        refusal(fitted.score, X, Y, sample_weight=LABELS[kind])


@pytest.mark.parametrize(
    "names",
    [
        [WORD] * 3,
        np.full((N, 2), WORD),
        np.array([WORD] * (N - 1) + [np.nan], dtype=object),
        np.array([WORD, 1] * (N // 2), dtype=object),
        pandas.Series([WORD] * (N - 1) + [None], dtype="string"),
        [[WORD], [WORD, WORD]] * (N // 2),
        np.ma.masked_equal([98765] * N, 98765),
        [{WORD: 1}] * N,
        [(WORD, 1)] * N,
    ],
    ids=str,
)
def test_groups_are_never_quoted(names):
    refusal(model().fit, X, Y, groups=names)
    refusal(require_groups, names, N)


def test_where_the_cells_are_is_said():
    text = refusal(model().fit, FEATURES["frame of text"], Y)
    assert "others in 1 of 30 rows of X, columns 'b'" in text
    assert "others in 1 of 30 rows, columns 1 of X" in refusal(model().fit, FEATURES["list"], Y)
    missing = X.copy()
    missing[:4, 0] = np.nan
    text = refusal(model().fit, missing, Y)
    assert "Input X contains NaN (others in 4 of 30 rows, columns 0 of X)" in text
    assert "others in 1 of 30 rows of y" in refusal(model().fit, X, LABELS["list"])
    text = refusal(ArraySamples, missing, Y)
    assert text == "features must be finite, got others in 4 of 30 rows, columns 0"


NO_NUMBERS = {
    "datetime": np.full(N, "2020-01-01", "M8[D]"),
    "timedelta": np.full(N, 1, "m8[D]"),
    "Complex": X[:, 0] + 1j,
    "str": np.full(N, "1"),
    "category": pandas.Categorical(["1", "2"] * (N // 2)),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_not_made_one(kind, fitted):
    column = pandas.Series(NO_NUMBERS[kind])
    frames = [pandas.DataFrame({"a": X[:, 0], "b": column})]
    if kind != "Complex":
        frames.append(pytest.importorskip("pyarrow").Table.from_pandas(frames[0]))
    for frame in frames:
        named = kind if frame is frames[0] else "columns 'b'"
        assert named in refusal(model().fit, frame, Y)
        assert named in refusal(fitted.predict, frame)
    for values in (NO_NUMBERS[kind], column, column.tolist()):
        refusal(model().fit, X, values)
        refusal(fitted.score, X, values)
        refusal(model(weight_bound=1.0).fit, X, Y, sample_weight=values)


def test_truth_values_are_zeros_and_ones():
    flags = X[:, 0] > 0
    frame = pandas.DataFrame({"a": flags, "b": X[:, 1]})
    found = model(random_state=1).fit(frame, Y).coef_
    np.testing.assert_array_equal(found, model(random_state=1).fit(frame.astype(float), Y).coef_)


def test_names_of_columns_are_the_cause():
    for names, cause in ((["a", "a"], "'a' 2 times"), (["a", 1], "['int', 'str']")):
        assert cause in refusal(model().fit, pandas.DataFrame(X, columns=names), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "PrivateLinearRegression" in model()._repr_html_()
    assert "np.matrix is not supported" in refusal(model().fit, np.matrix(X), Y)
    summary = model().fit(pandas.DataFrame(X, columns=["a\x1b[1m", "b"]), Y).summary()
    assert all(
        "a\\x1b[1m" in text and "\x1b" not in text for text in (str(summary), summary._repr_html_())
    )


def test_an_argument_in_the_wrong_place_is_not_quoted():
    """Data that was passed as a setting."""
    refusal(lambda: PrivateLinearRegression(FEATURES["wide"]).fit(X, Y))
    refusal(model(settings=FEATURES["list"]).fit, X, Y)
    refusal(model(random_state=FEATURES["list"]).fit, X, Y)
    refusal(model(release=FEATURES["list"]).fit, X, Y)
    refusal(huber_descent, FEATURES["list"], **dict.fromkeys(DESCENT, FEATURES["list"]))

    frame = pandas.DataFrame(FEATURES["wide"])
    for data in (frame, frame[0], frame.to_numpy(), frame.to_dict("list"), frame.values.tolist()):
        refusal(plan_run, data, Budget.zcdp(1.0))
        refusal(plan_run, PROBLEM, Budget.zcdp(1.0), methods=data)
        refusal(Budget.zcdp, 1.0, neighbours=data)
        refusal(Release, 1.0, Budget.zcdp(1.0), data)
        refusal(PROBLEM.over, -1.0 * np.asarray(list(data), dtype=float), [1.0])
        refusal(audit_mechanism, data, X, Y, runs=10_000, rng=DRAWS)


DESCENT = ("feature_norm", "label_bound", "budget", "settings", "rng")


def test_the_command_quotes_no_cell(tmp_path, capsys):
    table, bounds = tmp_path / "table.csv", tmp_path / "bounds.json"
    rows = "\n".join(f"{a},{b}" for a, b in X)
    bounds.write_text('{"a": [-1, 1], "y": [-1, 1]}')
    for cell in (WORD, "98765;4321", "nan"):
        table.write_text(f"a,y\n{rows}\n{cell},1\n")
        assert main(["fit", str(table), "--label=y", f"--bounds={bounds}", "--rho=1"]) == 0
        said = capsys.readouterr()
        assert "counts as absent" in said.out
        assert not quotes(said.out + said.err)


def test_groups_and_weights_go_by_name():
    """A third argument by position is another estimator's weights, which are no persons."""
    found = model()
    with pytest.raises(TypeError, match="positional argument"):
        found.fit(X, Y, np.ones(N))
    with pytest.raises(ValueError, match="weight_bound must be declared with weights"):
        found.fit(X, Y, sample_weight=np.ones(N))
    persons = np.arange(N) // 2
    assert found.fit(X, Y, groups=persons).privacy_.unit == "person"
    with pytest.raises(TypeError, match="positional argument"):
        found.score(X, Y, persons)
    plain = found.score(X, Y)
    assert plain == pytest.approx(found.score(X, Y, sample_weight=np.full(N, 2.0)))
    # Persons reach each fold's fit by scikit-learn's own `params`.
    features = np.tile(X, (60, 1))
    persons = np.arange(len(features)) // 2
    units = []
    scores = cross_val_score(
        model(),
        features,
        features[:, 0],
        groups=persons,
        cv=GroupKFold(2),
        params={"groups": persons},
        scoring=lambda each, *_: units.append(each.privacy_.unit) or 0.0,
    )
    assert len(scores) == 2
    assert units == ["person", "person"]
