"""Tables in files: the same fit as from memory, whatever the format, the parts and the threads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms import huber_sums
from privreg.algorithms.records import Records
from privreg.command_line.main import main
from privreg.estimators import linear_regression
from privreg.estimators.bounds import Frame
from privreg.estimators.columns import Numbers, table_columns
from privreg.estimators.csv_table import CSVTable
from privreg.estimators.tables import TableSamples, open_table

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
        Budget.zcdp(1.0),
        feature_bounds=BOUNDS,
        label_bounds=LABEL_BOUNDS,
        random_state=1,
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
    np.testing.assert_allclose(from_file.coef_, from_memory.coef_, rtol=1e-6)


def test_streaming_gives_the_fit_of_the_held_rows(csv_file, model, monkeypatch):
    held_fit = model.fit_table(csv_file, label="price").coef_
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
    with ThreadPoolExecutor(1) as executor:
        streamed = model.fit_table(csv_file, label="price", executor=executor).coef_
    np.testing.assert_allclose(streamed, held_fit, rtol=1e-6)
    parsed, parse = [], CSVTable._parse
    monkeypatch.setattr(CSVTable, "_parse", lambda *given: parsed.append(1) or parse(*given))
    np.testing.assert_array_equal(model.fit_table(csv_file, label="price").coef_, streamed)
    assert len(parsed) == 1


def test_parquet_in_parts_and_threads(columns, tmp_path, csv_file, model, monkeypatch):
    path = tmp_path / "homes.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=400)
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
    fits = [
        model.fit_table(path, label="price", threads=threads).coef_.copy() for threads in (1, 2, 3)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0], other)
    np.testing.assert_allclose(fits[0], model.fit_table(csv_file, label="price").coef_, rtol=1e-5)


@pytest.mark.parametrize(("target", "passes"), [("least_squares", 16), ("robust", 16)])
def test_a_file_is_read_so_many_times(columns, tmp_path, model, monkeypatch, target, passes):
    """One for the quality, two for centre and lengths, three for the Gram matrix.

    Then one a warm-up step, and one for the scale after them; of least squares one for the tail,
    one a wide step, and one at the end. The robust fit ends with a curvature, three steps, of which
    the first has been summed with the scale, a second moment and traces.
    """
    path = tmp_path / "homes.parquet"
    parquet.write_table(pa.table(columns), path)
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
    seen, read = [], TableSamples._each
    monkeypatch.setattr(TableSamples, "_each", lambda *given: seen.append(1) or read(*given))
    model.set_params(target=target).fit_table(path, label="price", threads=1)
    assert len(seen) == passes


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
@pytest.mark.parametrize("bounds", [(1e15 - 0.125, 1e15), (1e6, 1e6 + 1e-9), (-0.1, 0.7)])
def test_no_rounding_leaves_the_clip(intercept, bounds):
    frame, cells = Frame(np.array([bounds]), np.array(bounds), intercept), np.linspace(*bounds, 50)
    mapped = frame.rows_of([cells], np.zeros(50, dtype=bool))
    np.testing.assert_array_equal(frame.rows(cells[:, None]), mapped)
    assert np.abs(np.column_stack([mapped, frame.labels(cells)])).max() == 1


class Parts:
    """A table whose parts are single rows."""

    schema = pa.schema([("size", pa.float32()), ("price", pa.float32())])
    row_count = 50

    def parts(self, names):
        def read(row):
            cells = pa.array([float(row)], pa.float32())
            yield pa.record_batch([cells for _ in names], names=list(names))

        return [lambda row=row: read(row) for row in range(50)]


def test_parts_are_summed_whatever_the_threads():
    frame = Frame(np.array([[0.0, 30.0]]), np.array([0.0, 100.0]), True)
    samples = TableSamples(Parts(), (Numbers("size", 0, 30),), "price", frame)
    sums = [
        huber_sums.gram_sum(Records(samples, 9.0, 1.0, threads=threads), np.eye(2), cap=9.0)
        for threads in (1, 4)
    ]
    np.testing.assert_array_equal(*sums)
    assert {chunk.features.dtype for chunk in samples.chunks()} == {np.dtype(np.float64)}
    rows = samples.hold(most=100)[0].features
    np.testing.assert_allclose(sums[0], rows.T @ rows, rtol=1e-6)
    # Row 40 lies outside its bounds, and counts as the bound.
    assert rows[40].tolist() == [1, 1]
    assert rows.dtype == np.float64


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"siz": (0, 1)}, r"a name must be a column of the table \(5 columns\), got 'siz'$"),
        ({"price": (0, 1)}, "label must be none of the features"),
        ({"place": {"categories": ["town"]}}, "categories of 'place' must be two or more"),
        ({"place": {"categories": ["town", "town"]}}, "categories of 'place' must be two or more"),
        ({"size": (1, 0)}, "must have low less than high"),
        ((0, 1), "feature_bounds must be a mapping"),
    ],
)
def test_declarations_are_refused_by_name(csv_file, bounds, message):
    with pytest.raises(ValueError, match=message):
        table_columns(bounds, "price", tuple(open_table(csv_file).schema.names))


def test_broken_files_are_refused(tmp_path, model):
    path = tmp_path / "homes.csv"
    for text, message in (
        ("", "table must have a header line"),
        (
            "price,size,place,size,year\n",
            "a name must be a column of the table .5 columns. that it has once, got 'size'",
        ),
        ("price,size,place,year\n", "table must have rows, got none"),
        ("price,size\n1,2\n", "a name must be a column of the table .2 columns., got 'place'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            model.fit_table(path, label="price")
    with pytest.raises(ValueError, match="table must be a file or a folder"):
        open_table(tmp_path / "none.csv")
    other = tmp_path / "homes.txt"
    other.touch()
    with pytest.raises(
        ValueError, match=r"must be one of '.csv', '.csv.gz', '.parquet', got '.txt'"
    ):
        open_table(other)


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_the_command(csv_file, tmp_path, capsys, ending):
    bounds = {"price": list(LABEL_BOUNDS), **BOUNDS, "size": [0, 250], "year": [1900, 2030]}
    file = tmp_path / f"bounds.{ending}"
    file.write_text(yaml.safe_dump(bounds) if ending == "yaml" else json.dumps(bounds))
    output, report = tmp_path / "fit.json", tmp_path / "fit.html"
    words = ["fit", str(csv_file), "--label", "price", "--bounds", str(file), "--epsilon", "2"]
    assert main([*words, "--output", str(output), "--report", str(report)]) == 0
    assert "place=coast" in capsys.readouterr().out
    found = json.loads(output.read_text())
    assert [each["name"] for each in found["coefficients"]][-1] == "(intercept)"
    assert found["privacy"]["epsilon"] == pytest.approx(2, rel=1e-6)
    assert sum(each["rho"] for each in found["privacy"]["spent"]) == pytest.approx(
        found["privacy"]["rho"]
    )
    assert report.read_text().startswith("<!DOCTYPE html>")
    assert main([*words[:3], "cost", *words[4:]]) == 1
    assert "--label must be one of" in capsys.readouterr().err
