"""A record of a table is encoded by itself: whatever stands beside it, and however it is read."""

from __future__ import annotations

import csv
import gzip
import math
import re
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privreg.estimators import tables
from privreg.estimators.columns import Frame, Numbers, table_columns
from privreg.estimators.tables import TableSamples, open_table

TEXTS = ("town", "a,b", 'say "x"', "", "é", "no", "1.0", "12")
# What a cell of a CSV line may be written as, sound or not.
CELLS = [
    *("1", "-2.5", "+3", " 4 ", "5e0", "1e999", "-1e-999", "inf", "-Infinity", "7.", ".5"),
    "0" * 120,
    *("", "nan", "NA", "two", "1_0", "0x1", "1,5", "1 2", "١", "1e", "--1", "9" * 300 + "x"),
    *("town", "Town", "no", "1.0", "12", "é", "é".encode("latin-1"), b"\xed\xa0\x80", b"\xf0\x9f"),
    *('"town"', '"a,b"', '"say ""x"""', '"open', 'a"b', '"a"b', 'a"b,"c', '"', '""', '"1"', "\r"),
    *('"a"b"', "À", "\u0800", "\ud7ff", "\U00010000", "\U0010ffff", b"\xf4\x90\x80\x80"),
    *(b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\x80", b"\xed\xbf\xbf"),
    *("\ufeff1", "\x00", "1\x00", "x" * 700, b"\xff", b"\xe0", "\t2\t"),
]
HEADER = b"y,x,c,unused\n"
CSV_BOUNDS = {"x": (-3, 4), "c": {"categories": list(TEXTS)}}
QUOTES = [b"", b"\r", b",,,", b'"","","",""', b'1,2,town,"a"b"', b'1,2,town,a"b,"c']
WORDS, A_OR_B = ["1", "+2", "x", "", "nan", " 3"], {"categories": ["a", "b", ""]}
LETTERS, ONE_OR_TWO = ["a", "b", "B", "", "c" * 400], {"categories": [1, 2, 300]}
# An Arrow type, some values of it, and what is declared.
KINDS = [
    (pa.int8(), [-1, 0, 3, 7, 100], (-1, 8)),
    (pa.uint64(), [0, 5, 2**53 + 1, 2**64 - 1], (0, 1e12)),
    (pa.int64(), [0, 5, 2**53 + 1, -(2**63)], (-9, 9)),
    (pa.float16(), [np.float16(1.5), np.float16("nan"), np.float16("inf")], (0, 2)),
    (pa.float32(), [0.1, -4.0, math.nan, math.inf, 1e38], (-2, 2)),
    (pa.float64(), [0.1, -4.0, math.nan, -math.inf, 1e308], (-2, 2)),
    (pa.decimal128(38, 2), [Decimal("1.25"), Decimal("-9"), Decimal("9e30")], (-2, 2)),
    (pa.dictionary(pa.int8(), pa.float64()), [1.0, 9.0], (0, 3)),
    *((kind, WORDS, (0, 3)) for kind in (pa.string(), pa.dictionary(pa.int8(), pa.string()))),
    *((kind, LETTERS, A_OR_B) for kind in (pa.string(), pa.large_string())),
    (pa.dictionary(pa.int32(), pa.string()), LETTERS, A_OR_B),
    *((kind, [1, 2, 3, 100], ONE_OR_TWO) for kind in (pa.int8(), pa.uint64())),
    (pa.dictionary(pa.int32(), pa.int64()), [1, 2, 3, 100], ONE_OR_TWO),
    (pa.bool_(), [False, True], {"categories": [False, True]}),
]


@pytest.fixture(autouse=True)
def _short_lines(monkeypatch):
    # So that long lines and several blocks are quick to write.
    monkeypatch.setattr(tables, "LONGEST", 600)


def samples(path, bounds, label_bounds=(-3.0, 5.0), **options):
    table = open_table(path, **options)
    columns = table_columns(bounds, "y", tuple(table.schema.names))
    features = np.array([pair for column in columns for pair in column.bounds])
    return TableSamples(table, columns, "y", Frame(features, np.array(label_bounds), True))


def encoded(path, bounds, **options):
    """Mapped rows and labels of all records, one below the other."""
    chunks = samples(path, bounds, **options).chunks()
    found = [np.column_stack([each.features, each.labels]) for each in chunks]
    return np.concatenate(found) if found else np.zeros((0, 0))


def resize(monkeypatch, *, block=2**22, batch=16_384):
    monkeypatch.setattr(tables, "BLOCK", block)
    monkeypatch.setattr(tables, "BATCH", batch)


# CSV


def a_line(rng):
    """A record as it stands in a file, most cells of it sound."""
    sound = rng.uniform() < 0.3
    cells = ["1", "2.5", "town", "unused"]
    for place in range(4):
        if rng.uniform() < (0.1 if sound else 0.5):
            cells[place] = CELLS[rng.integers(len(CELLS))]
    if rng.uniform() < 0.1:
        cells = cells[: rng.integers(5)] + cells[: rng.integers(2)]
    raw = [each if isinstance(each, bytes) else each.encode() for each in cells]
    return b",".join(raw) + (b"\r" if rng.uniform() < 0.2 else b"")


def expected(line):
    """Features and label of a line by Python's own parsers; None where it is incomplete."""
    body = line.removesuffix(b"\r")
    if b"\r" in body or len(line) > tables.LONGEST:
        return None
    try:
        (cells,) = csv.reader([body.decode()], strict=True)
    except (UnicodeDecodeError, csv.Error, ValueError):
        return None
    if len(cells) != 4 or cells[2] not in TEXTS:
        return None
    numbers = []
    for cell, (low, high) in zip(cells[:2], [(-3, 5), (-3, 4)], strict=True):
        text = cell.strip(" \t")
        if not re.fullmatch(r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+|inf|Infinity)", text, re.ASCII):
            return None
        numbers.append((np.clip(float(text), low, high) - (low + high) / 2) / ((high - low) / 2))
    place = TEXTS.index(cells[2])
    return [1, numbers[1], *(2.0 * (place == k) - 1 for k in range(1, len(TEXTS))), numbers[0]]


def test_a_line_is_read_as_python_reads_it_alone(tmp_path, rng, monkeypatch):
    lines = [a_line(rng) for _ in range(600)] + QUOTES
    wanted = [expected(line) for line in lines]
    incomplete = np.array([each is None for each in wanted])
    assert 0.3 < np.mean(incomplete) < 0.9
    path = tmp_path / "table.csv"
    for block, batch in [(2**22, 16_384), (997, 11), (613, 1000)]:
        resize(monkeypatch, block=block, batch=batch)
        for begin, end in ((HEADER, b"\n"), (b"\xef\xbb\xbf" + HEADER, b"")):
            path.write_bytes(begin + b"\n".join(lines) + end)
            found = encoded(path, CSV_BOUNDS)
            assert open_table(path).row_count == len(found) == len(lines)
            np.testing.assert_array_equal(np.all(found == 0, axis=1), incomplete)
            sound = np.array([each for each in wanted if each is not None])
            np.testing.assert_allclose(found[~incomplete], sound, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_separator_stands_for_the_comma(tmp_path, rng, separator):
    lines = [line for line in (a_line(rng) for _ in range(400)) if separator.encode() not in line]
    plain, other = tmp_path / "plain.csv", tmp_path / "other.csv"
    plain.write_bytes(HEADER + b"\n".join(lines))
    other.write_bytes(plain.read_bytes().replace(b",", separator.encode()))
    bounds = {**CSV_BOUNDS, "c": {"categories": [each.replace(",", separator) for each in TEXTS]}}
    found = encoded(other, bounds, separator=separator)
    np.testing.assert_array_equal(found, encoded(plain, CSV_BOUNDS))
    with pytest.raises(ValueError, match=re.escape(f"got one with {separator!r} and no ','")):
        open_table(other)


def test_gzip_and_marked_utf16_are_decoded_line_by_line(tmp_path, rng, monkeypatch):
    """Half a pair of UTF-16 is unreadable, and takes its own line alone."""
    lines = [a_line(rng).decode(errors="replace").replace("\ufffd", "\ud800") for _ in range(400)]
    text = HEADER.decode() + "\n".join(lines)
    raw, wide = (text.encode(kind, "surrogatepass") for kind in ("utf-8", "utf-16"))
    written = {
        "plain.csv": raw,
        "a.csv.gz": gzip.compress(raw[:700]) + gzip.compress(raw[700:]),
        "b.csv": wide,
        "c.csv": gzip.compress(b"\xfe\xff" + text.encode("utf-16-be", "surrogatepass")),
        "odd.csv": wide + b"1",
    }
    for block in (2**22, 613):
        resize(monkeypatch, block=block)
        found = []
        for name, data in written.items():
            (tmp_path / name).write_bytes(data)
            found.append(encoded(tmp_path / name, CSV_BOUNDS))
            np.testing.assert_array_equal(found[-1][:-1], found[0][:-1])
        assert not found[-1][-1].any()
    (tmp_path / "cut.csv.gz").write_bytes(written["a.csv.gz"][:-9])
    with pytest.raises(ValueError, match="must be an undamaged gzip file"):
        open_table(tmp_path / "cut.csv.gz")


def test_blocks_do_not_enter(tmp_path, monkeypatch):
    """What is open at the end of a line, or of a block, says nothing about the next."""
    long = b"1,2,town," + b"x" * (tables.LONGEST - 9)
    lines = [b"1,2,town,\xe0", "1,2,town,À".encode(), long, long + b"x", long + b"x" * 80]
    path = tmp_path / "table.csv"
    path.write_bytes(HEADER + b"\n".join(lines) + b"\n")
    for block in (*range(1, 590, 61), *range(596, 632), 900, 2**22):
        resize(monkeypatch, block=block)
        absent = np.all(encoded(path, CSV_BOUNDS) == 0, axis=1)
        assert absent.tolist() == [True, False, False, True, True]


# Parquet


def table_of(kind, cells, others):
    columns = [pa.array(cells, kind), pa.array(others, pa.float64()), pa.array(cells, kind)]
    return pa.table(columns, names=["x", "y", "unused"])


def drawn(rng, values, count):
    return [
        values[rng.integers(len(values))] if rng.uniform() < 0.9 else None for _ in range(count)
    ]


@pytest.mark.parametrize(("kind", "values", "declared"), KINDS)
def test_a_row_is_read_as_alone(tmp_path, rng, monkeypatch, kind, values, declared):
    """One row a file against row groups, files and batches of every size."""
    cells = [*values, None, *drawn(rng, values, 24)]
    labels = drawn(rng, [0.5, -9.0, math.nan], len(cells))
    bounds, path = {"x": declared}, tmp_path / "table.parquet"
    whole = table_of(kind, cells, labels)
    alone = []
    for row in range(len(cells)):
        parquet.write_table(whole.slice(row, 1).combine_chunks(), path)
        alone.append(encoded(path, bounds))
    alone = np.concatenate(alone)
    absent = np.all(alone == 0, axis=1)
    assert absent[[cell is None for cell in cells]].all()
    assert not absent.all()
    for group, batch in [(1000, 16_384), (7, 16_384), (1000, 3), (20, 11)]:
        resize(monkeypatch, batch=batch)
        parquet.write_table(whole, path, row_group_size=group)
        np.testing.assert_array_equal(encoded(path, bounds), alone)
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, (begin, end) in enumerate(pairwise([0, 1, 12, 13, len(cells)])):
        parquet.write_table(whole.slice(begin, end - begin), folder / f"{number}.parquet")
    np.testing.assert_array_equal(encoded(folder, bounds), alone)


def test_files_and_threads_do_not_enter(tmp_path, rng):
    lines = [a_line(rng) for _ in range(300)]
    path, folder = tmp_path / "table.csv", tmp_path / "folder"
    path.write_bytes(HEADER + b"\n".join(lines) + b"\n")
    folder.mkdir()
    for number, begin in enumerate(range(0, 300, 77)):
        text = HEADER + b"\n".join(lines[begin : begin + 77]) + b"\n"
        (folder / f"{number}.csv").write_bytes(text)
    (folder / "_SUCCESS").touch()
    found = encoded(path, CSV_BOUNDS)
    np.testing.assert_array_equal(found, encoded(folder, CSV_BOUNDS))
    one, several = samples(path, CSV_BOUNDS), samples(folder, CSV_BOUNDS)
    held, counts = one.hold(most=10_000)
    np.testing.assert_array_equal(held.features, found[:, :-1])
    parsed, again = one.hold(most=0)
    rows = np.concatenate([each.features for each in parsed.chunks()])
    np.testing.assert_array_equal(rows, held.features)
    for each in (again, *(several.counts(threads=threads) for threads in (1, 3))):
        np.testing.assert_array_equal(each, counts)


def test_a_table_of_ones_own_keeps_its_declared_types():
    """What a batch would do to the cells of others is refused."""

    class Turning:
        schema = pa.schema([("x", pa.int64()), ("y", pa.float64())])
        row_count = 2

        def parts(self, names):
            batch = pa.record_batch([pa.array([1.0, None]), pa.array([0.0, 0.0])], names=names)
            return [lambda: iter([batch])]

    columns = (Numbers("x", 0, 1),)
    frame = Frame(np.array([[0.0, 1.0]]), np.array([0.0, 1.0]), True)
    with pytest.raises(ValueError, match="'x' must be of type int64 in all batches, got double"):
        next(TableSamples(Turning(), columns, "y", frame).chunks())
