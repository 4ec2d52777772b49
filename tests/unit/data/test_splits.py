"""Splits are disjoint and reproducible; statistics come from the normalisation subset alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privreg.data import tables
from privreg.data.sources import SOURCES
from privreg.data.tables import Table


def make_table(rows: int = 300, columns: int = 5, *, test_rows: int = 0, seed: int = 1) -> Table:
    generator = np.random.default_rng(seed)
    scales = 10.0 ** np.arange(columns)
    return Table(
        name="made",
        features=3 * scales + scales * generator.normal(size=(rows, columns)),
        labels=generator.normal(loc=7, scale=4, size=rows),
        feature_names=tuple(f"x{column}" for column in range(columns)),
        official_test=np.arange(rows) >= rows - test_rows,
        source="made",
    )


def changed(table: Table, rows: np.ndarray, **values: float) -> Table:
    """Copy of the table with every feature or label of `rows` replaced."""
    new = {}
    for key, value in values.items():
        array = getattr(table, key).copy()
        array[rows] = value
        new[key] = array
    return dataclasses.replace(table, **new)


def draw(table: Table, seed: int = 0, **sizes: int) -> tables.Split:
    wanted = {"train": 100, "normalisation": 60, "validation": 40} | sizes
    return tables.split(table, **wanted, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("test_rows", [0, 50])
def test_subsets_are_disjoint_and_of_the_sizes_asked_for(test_rows: int) -> None:
    table = make_table(test_rows=test_rows)
    split = draw(table)
    parts = (split.train, split.normalisation, split.validation)
    assert [each.size for each in parts] == [100, 60, 40]
    rows = np.concatenate([split.train, split.normalisation, split.validation])
    assert np.unique(rows).size == 200
    assert rows.min() >= 0
    assert rows.max() < 300


def test_official_test_rows_validate_and_nothing_else_does() -> None:
    table = make_table(test_rows=50)
    split = draw(table, validation=50, train=190)
    assert sorted(split.validation) == list(range(250, 300))
    assert sorted(np.concatenate([split.train, split.normalisation])) == list(range(250))


@pytest.mark.parametrize("test_rows", [0, 50])
def test_a_seed_reproduces_a_split_and_each_call_reshuffles(test_rows: int) -> None:
    table = make_table(test_rows=test_rows)
    first, again, other = draw(table, 3), draw(table, 3), draw(table, 4)
    for key in ("train", "normalisation", "validation"):
        np.testing.assert_array_equal(getattr(first, key), getattr(again, key))
        assert not np.array_equal(getattr(first, key), getattr(other, key))
    generator = np.random.default_rng(3)
    sizes = {"train": 100, "normalisation": 60, "validation": 40}
    one = tables.split(table, **sizes, rng=generator)
    two = tables.split(table, **sizes, rng=generator)
    assert not np.array_equal(one.train, two.train)


@pytest.mark.parametrize("test_rows", [0, 50])
def test_a_smaller_training_set_starts_a_larger_one(test_rows: int) -> None:
    table = make_table(test_rows=test_rows)
    small, large = draw(table, train=30), draw(table, train=150)
    np.testing.assert_array_equal(small.train, large.train[:30])
    np.testing.assert_array_equal(small.normalisation, large.normalisation)
    np.testing.assert_array_equal(small.validation, large.validation)


@pytest.mark.parametrize(
    ("test_rows", "sizes", "match"),
    [
        (0, {"train": 201}, "at most the 300 rows of made, got 301"),
        (50, {"train": 191}, r"train \+ normalisation must.* the 250 rows of made, got 251"),
        (50, {"validation": 51}, "validation must be at most the 50 rows of made, got 51"),
        (0, {"train": 0}, "train must be at least 1 rows, got 0"),
        (0, {"normalisation": 1}, "normalisation must be at least 2 rows, got 1"),
        (0, {"validation": -1}, "validation must.*got -1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    test_rows: int, sizes: dict[str, int], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        draw(make_table(test_rows=test_rows), **sizes)


def test_only_a_stand_in_shrinks_the_sizes() -> None:
    sizes = {"train": 7840, "normalisation": 3000, "validation": 2163}
    real = make_table()
    assert tables.sizes_that_fit(real, **sizes) == sizes
    table = SOURCES["mnist"].stand_in("why")
    fitted = tables.sizes_that_fit(table, **sizes)
    assert 361 - 3 <= sum(fitted.values()) <= 361
    for key, size in fitted.items():
        assert abs(size - sizes[key] * 361 / 13003) < 1
    tables.split(table, **fitted, rng=np.random.default_rng(0))
    small = {"train": 100, "normalisation": 60, "validation": 40}
    assert tables.sizes_that_fit(table, **small) == small


def test_rows_are_transformed_by_mean_and_deviation_of_the_normalisation_rows() -> None:
    table = make_table()
    split = draw(table)
    result = tables.standardise(split, table)
    reference = table.features[split.normalisation]
    mean, std = reference.mean(axis=0), reference.std(axis=0)
    np.testing.assert_allclose(
        result.train_features * std + mean, table.features[split.train], rtol=1e-12
    )
    np.testing.assert_allclose(
        result.validation_features * std + mean, table.features[split.validation], rtol=1e-12
    )
    labels = table.labels[split.normalisation]
    np.testing.assert_allclose(
        result.validation_labels * labels.std() + labels.mean(),
        table.labels[split.validation],
        rtol=1e-12,
    )
    assert result.train_features.dtype == result.train_labels.dtype == np.float64
    assert not result.constant_features.any()


def test_no_other_row_moves_the_statistics() -> None:
    table = make_table()
    split = draw(table)
    before = tables.standardise(split, table)
    train_moved = tables.standardise(split, changed(table, split.train, features=1e9, labels=1e9))
    np.testing.assert_array_equal(train_moved.validation_features, before.validation_features)
    np.testing.assert_array_equal(train_moved.validation_labels, before.validation_labels)
    held_out_moved = tables.standardise(
        split, changed(table, split.validation, features=1e9, labels=1e9)
    )
    np.testing.assert_array_equal(held_out_moved.train_features, before.train_features)
    np.testing.assert_array_equal(held_out_moved.train_labels, before.train_labels)
    # The test has power: a normalisation row does move them.
    moved = tables.standardise(
        split, changed(table, split.normalisation[:1], features=0.0, labels=0.0)
    )
    assert not np.any(moved.train_features == before.train_features)
    assert not np.any(moved.train_labels == before.train_labels)


def pixel_table() -> tuple[Table, tables.Split]:
    """Grey values with one dark, one saturated and one almost dark pixel on rows 0 to 99."""
    generator = np.random.default_rng(2)
    features = generator.integers(0, 256, size=(300, 6)).astype(np.uint8)
    features[:100, 0] = 0
    features[:100, 1] = 255
    features[:100, 2] = 0
    features[0, 2] = 1
    table = Table(
        name="pixels",
        features=features,
        labels=np.where(np.arange(300) % 2 == 0, 1.0, -1.0),
        feature_names=tuple("abcdef"),
        official_test=np.zeros(300, dtype=bool),
        source="made",
        feature_scale=255.0,
    )
    parts = np.split(np.arange(300), [100, 220])
    return table, tables.Split(normalisation=parts[0], train=parts[1], validation=parts[2])


def test_a_constant_pixel_becomes_a_bounded_offset() -> None:
    table, split = pixel_table()
    result = tables.standardise(split, table)
    np.testing.assert_array_equal(
        result.constant_features, [True, True, False, False, False, False]
    )
    lit = table.features[split.train].astype(float)
    np.testing.assert_allclose(result.train_features[:, 0], lit[:, 0] / 255, rtol=1e-14)
    np.testing.assert_allclose(result.train_features[:, 1], lit[:, 1] / 255 - 1, atol=1e-15)
    for values in (result.train_features, result.validation_features):
        assert np.abs(values[:, result.constant_features]).max() <= 1
    # Rows that agree with the normalisation subset are exactly 0 there.
    rows = split.normalisation
    itself = tables.standardise(
        tables.Split(train=rows, normalisation=rows, validation=rows), table
    )
    assert not itself.train_features[:, :2].any()


def test_a_minimum_deviation_bounds_an_almost_constant_pixel() -> None:
    table, split = pixel_table()
    # One image in 100 with grey value 1: the deviation is sqrt(0.01 * 0.99) / 255 = 3.9e-4.
    free = tables.standardise(split, table)
    assert np.abs(free.train_features[:, 2]).max() > 2000
    bounded = tables.standardise(split, table, minimum_std=0.01)
    assert bounded.constant_features[2]
    assert np.abs(bounded.train_features).max() <= 1 / 0.01
    assert np.abs(bounded.train_features[:, 2]).max() <= 1
    np.testing.assert_array_equal(bounded.train_features[:, 3:], free.train_features[:, 3:])


def test_rounding_does_not_hide_a_constant_column() -> None:
    table = make_table()
    features = table.features.copy()
    features[:, 1] = 0.1
    assert features[:60, 1].std() > 0, "the mean of equal values is expected to round"
    result = tables.standardise(draw(table), dataclasses.replace(table, features=features))
    assert result.constant_features[1]
    assert not result.train_features[:, 1].any()


@settings(derandomize=True, database=None, deadline=None)
@given(
    total=st.sampled_from(sorted({source.stand_in_rows for source in SOURCES.values()})),
    sizes=st.tuples(*[st.integers(2, 70_000)] * 3),
)
def test_every_split_shrunk_to_a_stand_in_can_be_drawn(
    total: int, sizes: tuple[int, int, int]
) -> None:
    wanted = dict(zip(tables.LEAST, sizes, strict=True))
    found = tables.shrunk(wanted, total)
    tables.require_rows("made", (total, 0), found)
    assert all(found[key] <= size for key, size in wanted.items())
