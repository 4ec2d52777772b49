"""Tables at their edges: what is absent, what is refused, and how much memory a cell may cost."""

from __future__ import annotations

import os
import re
import tracemalloc
from datetime import date, datetime
from unittest.mock import Mock

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import parquet

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms import records
from privreg.algorithms.records import Records
from privreg.estimators import linear_regression, tables
from privreg.estimators.columns import Frame, declared, table_columns
from privreg.estimators.tables import FolderTable, Table, TableSamples, open_table
from privreg.noise.exact import UNITS


def samples(path, bounds):
    table = open_table(path)
    columns = table_columns(bounds, "y", tuple(table.schema.names))
    features = np.array([pair for column in columns for pair in column.bounds])
    return TableSamples(table, columns, "y", Frame(features, np.array([0.0, 1.0]), True))


def rows(path, bounds):
    return np.concatenate([each.features for each in samples(path, bounds).chunks()])


def written(path, **columns):
    parquet.write_table(
        pa.table({"y": pa.array([0.5] * len(columns["x"]), pa.float64()), **columns}), path
    )
    return path


def test_one_null_moves_the_gram_matrix_no_further_than_declared(tmp_path):
    """An integer column with a null in it is one of floats to NumPy, in its whole batch."""
    categories, cap = ["0", "1", "2"], 2.0
    cells = [int(each) for each in np.arange(20_000) % 3]
    sums = [
        records.gram_sum(
            Records(samples(path, {"x": {"categories": categories}}), cap, 1.0), np.eye(3), cap=cap
        )
        for path in (
            written(tmp_path / "whole.parquet", x=pa.array(cells)),
            written(tmp_path / "null.parquet", x=pa.array([None, *cells[1:]])),
        )
    ]
    assert 0 < np.sum((sums[0] - sums[1]) ** 2) <= 2 * UNITS**4


def test_a_long_cell_is_read_up_to_the_longest_line(tmp_path):
    path = tmp_path / "table.csv"
    for length, absent in ((131_073, False), (2**20 - 10, False), (2**20, True)):
        path.write_text(f"y,x,unused\n0.5,1,{'x' * length}\n0.5,1,\n")
        assert rows(path, {"x": (0, 1)}).any(axis=1).tolist() == [not absent, True]


NUMBERS, PLAIN = (0, 1), "write the column as numbers"
TEXTS, ASTEXT = {"categories": ["1.0", "2.0"]}, "write the column as text"


@pytest.mark.parametrize(
    ("declared", "cells", "message"),
    [
        (NUMBERS, [datetime(2020, 1, 1)] * 2, "numbers, got timestamp.*days or seconds"),
        (NUMBERS, [date(2020, 1, 1)] * 2, "numbers, got date32.*days or seconds"),
        (NUMBERS, [True, False], r"got bool: declare {'categories': \[False, True\]} for a"),
        (NUMBERS, [b"1", b"2"], f"numbers, got binary: {PLAIN}"),
        (NUMBERS, [[1.0], [2.0]], f"numbers, got list.*: {PLAIN}"),
        (NUMBERS, [{"a": 1}, {"a": 2}], f"numbers, got struct.*: {PLAIN}"),
        (TEXTS, [1.0, None], r"got double: declare \(low, high\), or write the column as text"),
        (TEXTS, [date(2020, 1, 1)] * 2, f"categories, got date32.*: {ASTEXT} or as integers"),
        (TEXTS, [b"a", b"b"], f"got binary: {ASTEXT}"),
        (TEXTS, [True, False], r"got bool: declare {'categories': \[False, True\]}"),
        (TEXTS, [1, 2], r"got int64: declare integers such as {'categories': \[0, 1\]}"),
    ],
)
def test_a_type_that_does_not_hold_what_is_declared_is_refused(tmp_path, declared, cells, message):
    path = written(tmp_path / "table.parquet", x=pa.array(cells))
    with pytest.raises(ValueError, match=f"column 'x' must hold .*{message}"):
        samples(path, {"x": declared})


def test_data_in_the_place_of_another_argument_is_not_quoted():
    frame = pandas.DataFrame({"y": [0.123, 0.5], "x": [-0.123, 0.1]})
    model = PrivateLinearRegression(Budget.zcdp(1.0))
    for cells in (frame, frame["y"], frame.to_numpy(), frame.to_numpy().tolist(), pa.table(frame)):
        for call in (
            lambda given: model.fit_table(given, label="y"),
            lambda given: table_columns(given, "y", ("x", "y")),
            lambda given: table_columns({"x": {"categories": given}}, "y", ("x", "y")),
            lambda given: declared("bounds", given, columns=3),
        ):
            with pytest.raises(ValueError, match="must") as caught:
                call(cells)
            assert "123" not in str(caught.value)


def test_files_of_a_folder_share_the_types_of_the_used_columns(tmp_path):
    first, second = pa.array([1.0]), pa.array([1], pa.int64())
    written(tmp_path / "a.parquet", x=first, other=first)
    written(tmp_path / "b.parquet", x=first, other=second)
    assert len(rows(tmp_path, {"x": (0, 1)})) == 2
    message = "column 'other' must be of type double as in 'a.parquet', got int64 in 'b.parquet'"
    with pytest.raises(ValueError, match=message):
        samples(tmp_path, {"other": (0, 1)})
    written(tmp_path / "b.parquet", x=first)
    with pytest.raises(ValueError, match=r"column 'other' must be in 'b.parquet' exactly once"):
        samples(tmp_path, {"other": (0, 1)})
    (tmp_path / "d.csv").write_text("y,x\n0,1\n")
    for folder in (tmp_path, tmp_path.parent, tmp_path / "d.csv" / "none", tmp_path / "none.csv"):
        with pytest.raises(ValueError, match="table must be a f"):
            open_table(folder)
    (tmp_path / "a.txt").touch()
    with pytest.raises(ValueError, match=r"one of '.csv', '.csv.gz', '.parquet', got '.txt'"):
        open_table(tmp_path / "a.txt")


def test_a_broken_file_is_refused_without_its_cells(tmp_path):
    path = written(tmp_path / "table.parquet", x=pa.array(["secret"] * 3000))
    data = bytearray(path.read_bytes())
    data[4:400] = b"secret" * 66
    path.write_bytes(bytes(data))
    model = PrivateLinearRegression(
        Budget.zcdp(1.0), feature_bounds={"x": {"categories": ["a", "b"]}}, label_bounds=(0, 1)
    )
    with pytest.raises(ValueError, match=r"sound Parquet file, got 'table.parquet'") as caught:
        model.fit_table(path, label="y")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
    names = "a name must be a column of the table .2 columns."
    for text, message in (
        ("y,x,c,x", "a name must be a column of the table .4 columns. that occurs once, got 'x'"),
        ("y,x\n", "table must have rows, got none"),
        ("y,z\n1,2\n", f"{names}, got 'x'$"),
        ("#y,7\n1,2\n", "the table .2 columns., got 'y': is its first line a header"),
        ("y,7.31\n1,2\n", f"{names}, got 'x': is its first line a header"),
    ):
        (tmp_path / "table.csv").write_text(text)
        with pytest.raises(ValueError, match=message):
            model.fit_table(tmp_path / "table.csv", label="y")
    for text, cause in (
        (b"\xff,x\n", "an unreadable first line"),
        (b'"y,x\n', "an unreadable first line"),
        (b"", "an empty file"),
        (b"\ny,x\n0,1\n", "a blank first line"),
        (b"y" * 2**20 + b",x\n", "a first line longer"),
        (b"y,x\r0,1\r", "lines that end in .r alone"),
        ("y,x\n0,1\n".encode("utf-16-le"), "NUL characters: save it as UTF-8"),
        ("y,x\n0,1\n".encode("utf-32"), "NUL characters"),
        (b"sep=,\ny,x\n0,1\n", "a line `sep=`: delete it"),
        (b"sep=;\ny;x\n0;1\n", "a line `sep=`: delete it"),
        (b'"y", "x"\n0, 1\n', "blanks before quotes"),
    ):
        (tmp_path / "table.csv").write_bytes(text)
        with pytest.raises(ValueError, match=f"a header line in UTF-8, got {cause}"):
            open_table(tmp_path / "table.csv")


def test_what_would_count_records_twice_is_refused(tmp_path):
    first, link = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("y,x\n0,1\n")
    for linked in (link.symlink_to, link.hardlink_to):
        linked(first)
        with pytest.raises(ValueError, match=r"each file once, got 'b.csv' twice or linked"):
            open_table(tmp_path)
        link.unlink()
    for other in ("A.CSV", "a.csv.gz"):
        (tmp_path / other).write_bytes(first.read_bytes())
        with pytest.raises(ValueError, match="each file once, got two files named 'a'"):
            open_table(tmp_path)
        (tmp_path / other).unlink()
    table = open_table(first)
    with pytest.raises(ValueError, match="table must have each file once, got 'q'"):
        FolderTable(["p", "q"], [table, open_table(tmp_path)])
    path = written(tmp_path / "t.parquet", x=pa.array([1.0, 2.0]))
    metadata, data = parquet.read_metadata(path), path.read_bytes()
    metadata.append_row_groups(metadata)
    metadata.write_metadata_file(tmp_path / "footer")
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:end] + (tmp_path / "footer").read_bytes()[4:])
    assert open_table(path).row_count == 4
    with pytest.raises(ValueError, match=r"each row group once, got 't.parquet'"):
        samples(path, {"x": (0, 1)})


def test_what_a_folder_holds_besides_is_named_or_known_to_hold_no_records(tmp_path):
    (tmp_path / "a.csv").write_text("y,x\n0,1\n")
    for marker in ("_SUCCESS", "_metadata", "README.md", ".DS_Store", ".a.csv.crc", "._a.csv"):
        (tmp_path / marker).touch()
    assert open_table(tmp_path).row_count == 1
    for other in ("b.txt", "b", "_b.csv", ".b.csv", "b.csv.bz2", "b.parquet.tmp"):
        (path := tmp_path / other).touch()
        with pytest.raises(ValueError, match=f": move or rename '{other}'"):
            open_table(tmp_path)
        path.unlink()
    # Of other versions of the records.
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(ValueError, match="move or rename '_delta_log'"):
        open_table(tmp_path)


@pytest.mark.parametrize("most", [0, 10**6])
def test_a_table_that_changes_is_refused_without_its_number_of_rows(tmp_path, most, monkeypatch):
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", most)
    budget = Budget.zcdp(1.0, neighbours="add-remove")
    model = PrivateLinearRegression(budget, feature_bounds={"x": (0, 1)}, label_bounds=(0, 1))
    (tmp_path / "t.csv").write_text("y,x\n" + "0.5,0.5\n" * 4321)
    for path in (written(tmp_path / "t.parquet", x=pa.array([0.5] * 4321)), tmp_path / "t.csv"):
        table = open_table(path)
        twice = Mock(spec=Table, schema=table.schema, row_count=table.row_count)
        twice.parts = lambda names, table=table: table.parts(names) * 2
        for given, said in (
            (twice, "have row_count rows in total"),
            (table, "not change while it is read"),
        ):
            with pytest.raises(ValueError, match=f"table must .*{said}") as refused:
                model.fit_table(given, label="y")
            assert not re.search(r"4.?321|8.?642", str(refused.value))
            os.utime(path, (0, 0))


def test_a_damaged_page_and_a_small_file_of_much_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST_BYTES", 2**19)
    path, texts = tmp_path / "table.parquet", ["x" * 1000] * 1000
    options = {"use_dictionary": False}
    table = pa.table({"y": pa.array([0.5] * 1000), "x": texts, "z": np.arange(1000.0)})
    for encoding, message in (
        ("PLAIN", r"at most 0 MiB, .* got 0 MiB in 'table.parquet'"),
        ("DELTA_BYTE_ARRAY", "column 'x' must not be encoded as DELTA_BYTE_ARRAY"),
    ):
        parquet.write_table(
            table, path, compression="zstd", column_encoding={"x": encoding}, **options
        )
        with pytest.raises(ValueError, match=message):
            samples(path, {"x": {"categories": ["a", "b"]}})
        assert len(rows(path, {"z": (0, 1)})) == 1000
    parquet.write_table(table, path, compression="none", write_page_checksum=True, **options)
    data = path.read_bytes()
    path.write_bytes(data.replace(np.float64(500.0).tobytes(), np.float64(501.0).tobytes()))
    with pytest.raises(ValueError, match="must be a sound Parquet file"):
        rows(path, {"z": (0, 1)})


def peak(path, bounds):
    """Most bytes that Python, NumPy and Arrow held while the table was read."""
    found = samples(path, bounds)
    # What is compiled and imported at first is not the table's.
    next(found.chunks())
    pool, before = pa.proxy_memory_pool(pa.system_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        for _ in found.chunks():
            pass
        return tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


def test_long_categories_and_lines_cost_no_more_than_themselves(tmp_path, monkeypatch):
    """Texts of one width would be 20,000 characters each, 1.6 GB in all."""
    path, peaks = tmp_path / "table.csv", []
    for length in (4, 20_000):
        path.write_text("y,x\n" + "0.5,town\n" * 20_000 + f"0.5,{'x' * length}\n")
        peaks.append(peak(path, {"x": {"categories": ["town", "coast"]}}))
    assert peaks[1] - peaks[0] < 10 * 20_000
    monkeypatch.setattr(tables, "BLOCK", 2**14)
    monkeypatch.setattr(tables, "LONGEST", 2**12)
    path.write_text("y,x\n0.5,1\n0.5," + "1" * 2**22 + "\n0.5,1\n")
    assert rows(path, {"x": (0, 1)}).any(axis=1).tolist() == [True, False, True]
    assert peak(path, {"x": (0, 1)}) < 20 * (2**14 + 2**12)


def test_a_cell_that_is_there_often_is_held_once(tmp_path):
    """Five thousand times a hundred kilobytes, in a file of one."""
    path = tmp_path / "table.parquet"
    cells = pa.DictionaryArray.from_arrays(np.zeros(5000, dtype=np.int32), ["x" * 100_000])
    table = pa.table({"y": np.full(5000, 0.5), "x": cells})
    parquet.write_table(table, path, store_schema=False)
    assert pa.types.is_string(open_table(path).schema.field("x").type)
    assert peak(path, {"x": {"categories": ["town", "coast"]}}) < 5_000_000


@pytest.mark.filterwarnings("ignore:.*than predicting the mean", "ignore:there are at most as many")
@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_no_rows_is_a_neighbour_of_one_with_one(tmp_path, rows):
    (tmp_path / "table.csv").write_text("y,x\n" + "0.5,1\n" * rows)
    written(tmp_path / "table.parquet", x=pa.array([1.0] * rows, pa.float64()))
    model = PrivateLinearRegression(
        Budget.zcdp(1.0, neighbours="add-remove"), feature_bounds={"x": (0, 1)}, label_bounds=(0, 1)
    )
    for kind in ("csv", "parquet"):
        assert model.fit_table(tmp_path / f"table.{kind}", label="y").coef_.shape == (1,)
