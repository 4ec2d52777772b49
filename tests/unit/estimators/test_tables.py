"""Tables in files: the same fit as from memory, whatever the format, the parts and the threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privreg import Budget, PrivateLinearRegression
from privreg.estimators import linear_regression
from privreg.estimators.columns import Frame
from privreg.estimators.tables import CSVTable, TableSamples

BOUNDS = {
    "size": (0, 250),
    "place": {"categories": ["town", "coast", "hill"]},
    "year": (1900, 2030),
}
LABEL_BOUNDS = (0, 900)
TRUTH = [2.0, 80.0, 0.0, 0.5, -900.0]


@pytest.fixture
def columns(rng):
    n = 3000
    size, year = rng.uniform(20, 200, n), rng.integers(1950, 2020, n)
    place = rng.choice(["town", "coast", "hill"], n)
    price = 2 * size + 80 * (place == "coast") + 0.5 * year - 900 + rng.normal(0, 20, n)
    return {"price": price, "size": size, "place": place, "year": year, "unused": place}


@pytest.fixture
def csv_file(columns, tmp_path):
    path = tmp_path / "homes.csv"
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def model():
    return PrivateLinearRegression(
        Budget.zcdp(1.0), feature_bounds=BOUNDS, label_bounds=LABEL_BOUNDS, random_state=1
    )


def test_a_file_gives_the_fit_of_its_rows(columns, csv_file, model):
    from_file = model.fit_table(csv_file, label="price", quality_share=0)
    assert from_file.feature_names_in_.tolist() == ["size", "place=coast", "place=hill", "year"]
    intervals = from_file.confidence_intervals(0.9999)
    assert intervals.covers(TRUTH).all()
    coast, hill = (columns["place"] == name for name in ("coast", "hill"))
    features = np.column_stack([columns["size"], coast, hill, columns["year"]])
    from_memory = PrivateLinearRegression(
        Budget.zcdp(1.0),
        feature_bounds=([0, 0, 0, 1900], [250, 1, 1, 2030]),
        label_bounds=LABEL_BOUNDS,
        random_state=1,
    ).fit(features, columns["price"], quality_share=0)
    np.testing.assert_array_equal(from_file.coef_, from_memory.coef_)


def test_streaming_gives_the_fit_of_the_held_rows(columns, csv_file, model, tmp_path, monkeypatch):
    """From CSV with an executor and without, and from Parquet by any number of threads."""
    path = tmp_path / "homes.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=400)
    held_fit = model.fit_table(csv_file, label="price").coef_
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
    with ThreadPoolExecutor(1) as executor:
        streamed = model.fit_table(csv_file, label="price", executor=executor).coef_
    np.testing.assert_array_equal(streamed, held_fit)
    parsed, parse = [], CSVTable._parse
    monkeypatch.setattr(CSVTable, "_parse", lambda *given: parsed.append(1) or parse(*given))
    np.testing.assert_array_equal(model.fit_table(csv_file, label="price").coef_, streamed)
    assert len(parsed) == 1
    fits = [model.fit_table(path, label="price", threads=threads).coef_ for threads in (1, 2, 3)]
    np.testing.assert_array_equal(fits, [streamed] * 3)


@pytest.mark.parametrize(("target", "times"), [("least_squares", 20), ("huber", 21)])
def test_a_file_is_read_some_twenty_times(columns, tmp_path, model, monkeypatch, target, times):
    """One for the quality, two for centre and lengths, three for the Gram matrix.

    Then two a warm-up step, for scale and gradient, and one for the scale after them; of least
    squares one for the tail, one a wide step, and one at the end. The robust fit ends with a
    curvature, three steps, a second moment and traces.
    """
    path = tmp_path / "homes.parquet"
    parquet.write_table(pa.table(columns), path)
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
    seen, read = [], TableSamples._each
    monkeypatch.setattr(TableSamples, "_each", lambda *given: seen.append(1) or read(*given))
    model.set_params(target=target).fit_table(path, label="price", threads=1)
    assert len(seen) == times


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kinds", ["dd", "ff", "fd"])
def test_rows_of_columns_are_those_of_a_table(rng, intercept, kinds):
    columns = [rng.standard_normal(200).astype(kind) for kind in kinds]
    columns[0][:2] = np.inf, -np.inf
    frame = Frame(np.array([[-0.7, 1.3], [-1.1, 0.9]]), np.array([0.0, 1.0]), intercept)
    rows = frame.rows(np.column_stack(columns))
    found = frame.rows_of(columns, np.zeros(200, dtype=bool))
    assert found.dtype == rows.dtype == np.float64
    np.testing.assert_array_equal(found, rows)
    absent = np.arange(200) % 3 == 0
    columns[1][::3] = np.nan
    np.testing.assert_array_equal(frame.rows_of(columns, absent), rows * ~absent[:, None])
    with pytest.raises(ValueError, match="must hold no missing values"):
        frame.rows_of(columns, np.arange(200) % 3 == 1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("bounds", [(1e12 - 0.125, 1e12), (1e6, 1e6 + 1e-9), (-0.1, 0.7)])
def test_no_rounding_leaves_the_clip(intercept, bounds):
    frame, cells = Frame(np.array([bounds]), np.array(bounds), intercept), np.linspace(*bounds, 50)
    mapped = frame.rows_of([cells], np.zeros(50, dtype=bool))
    np.testing.assert_array_equal(frame.rows(cells[:, None]), mapped)
    assert np.abs(np.column_stack([mapped, frame.labels(cells)])).max() == 1
