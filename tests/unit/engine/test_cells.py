"""Stages that are written for one cell: loops, stacking, labels and errors."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from reproduction.engine.quantities import LogAxis
from reproduction.engine.recipe import (
    Axis,
    Estimate,
    Mean,
    Quantity,
    kept,
    means,
    per,
    stage,
    trials_last,
)
from reproduction.engine.trials import Trials

AXES = {
    "power": Axis("power", "powers"),
    "size": Axis("size", "sizes"),
    "share": Axis("size over the largest", lambda parameters: [0.5, 1.0], along="size"),
    "time": Axis("time", [0.0, 0.5, 1.0], units="s"),
    "unused": Axis("never asked for", "nothing"),
}
PARAMETERS = SimpleNamespace(powers=[1, 2], sizes=[3, 6])


@per("power", "size", value="what is drawn", curve=Quantity("its curve", "time"))
def draw(parameters, trial, power, size):
    value = trial.rng.standard_normal() + 10 * power + size
    return {"value": value, "curve": [value, 2 * value, 3 * value]}


def test_cells_of_a_trial_draw_one_after_another():
    found = stage(AXES, draw)(PARAMETERS, Trials(1, "a/b", 0, 3))
    assert found.value.dims == ("trial", "power", "size")
    for trial in Trials(1, "a/b", 0, 3):
        expected = np.add(trial.rng.standard_normal((2, 2)), [[13, 16], [23, 26]])
        np.testing.assert_array_equal(found.value[trial.number], expected)
    assert found.curve.dims == ("trial", "power", "size", "time")
    np.testing.assert_array_equal(found.curve, found.value.values[..., None] * [1, 2, 3])


def test_all_trials_of_a_cell_at_once():
    @per("size", value="what is drawn")
    def together(trials, size):
        return [trial.rng.standard_normal() + size for trial in trials]

    found = stage(AXES, together)(PARAMETERS, Trials(1, "a/b", 2, 4))
    assert found.value.dims == ("size", "trial")
    draws = [trial.rng.standard_normal() for trial in Trials(1, "a/b", 2, 4)]
    np.testing.assert_array_equal(found.value, np.add.outer([3, 6], draws))


def test_what_all_trials_share_is_the_same_in_every_shard():
    @per(table=Quantity("what all trials share", "row"))
    def table(shared_rng):
        return shared_rng.standard_normal(3)

    @per("size", product="product")
    def run(trials, shared_rng, size):
        row = shared_rng.standard_normal(3)
        return [size * row[0] * trial.rng.standard_normal() for trial in trials]

    sample = stage(AXES, table, run)
    assert list(inspect.signature(sample).parameters) == ["parameters", "trials"]
    whole, part = (sample(PARAMETERS, Trials(1, "a/b", start, 4)) for start in (0, 2))
    assert whole.table.dims == ("row",)
    np.testing.assert_array_equal(whole.table, part.table)
    np.testing.assert_array_equal(whole.product[:, 2:], part.product)
    # No trial has this stream, and each function starts it anew.
    own = [trial.rng.standard_normal() for trial in Trials(1, "a/b", 0, 4)]
    np.testing.assert_allclose(whole.product, np.outer([3, 6], own) * whole.table.values[0])
    assert not np.isin(whole.table, own).any()


def test_attributes_are_of_the_parameters_and_own_axes_are_shown():
    shown = stage(
        AXES,
        per("size", double="double")(lambda size: 2 * size),
        attributes=lambda parameters: {"largest": max(parameters.sizes)},
        release=Axis("release times", [7.0]),
    )(PARAMETERS)
    assert shown.attrs == {"largest": 6}
    assert shown.release.dims == ("release",)
    assert "power" not in shown.coords


def test_an_axis_that_is_not_taken_is_one_of_what_is_returned():
    @per("power", "size", square="square", error=Estimate("slope"))
    def whole(parameters, size):
        return {"square": np.multiply(parameters.powers, size), "error": ([1, 2], [size, size])}

    found = stage(AXES, whole)(PARAMETERS)
    assert found.square.dims == ("size", "power")
    np.testing.assert_array_equal(found.square, [[3, 6], [6, 12]])
    np.testing.assert_array_equal(found.error, [[1, 2], [1, 2]])
    np.testing.assert_array_equal(found.error_standard_error, [[3, 3], [6, 6]])
    assert found.error.attrs["ancillary_variables"] == "error_standard_error"


def test_labels_are_those_of_the_axes_that_are_used():
    found = stage(AXES, draw, time=Axis("another time", lambda parameters: parameters.sizes * 2))
    with pytest.raises(ValueError, match="conflicting sizes"):
        found(PARAMETERS, Trials(1, "a/b", 0, 1))
    found = stage(AXES, draw)(PARAMETERS, Trials(1, "a/b", 0, 1))
    assert set(found.coords) == {"power", "size", "share", "time"}
    assert found.share.dims == ("size",)
    assert found.time.attrs == {"long_name": "time", "units": "s"}
    spaced = Axis("spaced", "sizes").labels(
        {"parameters": SimpleNamespace(sizes=LogAxis(low=1.0, high=4.0, count=3))}
    )
    np.testing.assert_allclose(spaced, [1, 2, 4])


def test_the_signature_names_what_is_read():
    @per("size", gap="gap")
    def gap(theory, data, size):
        return size

    assert list(inspect.signature(stage(AXES, gap)).parameters) == ["parameters", "data", "theory"]
    assert list(inspect.signature(stage(AXES, draw)).parameters) == ["parameters", "trials"]


def test_means_over_trials_have_their_standard_errors():
    simulation = stage(AXES, draw)(PARAMETERS, Trials(1, "a/b", 0, 5)).assign_coords(
        trial=("trial", np.arange(5))
    )
    found = stage(AXES, means(draw, spread=["value"]))(PARAMETERS, simulation)
    values, curves = trials_last(simulation.value), trials_last(simulation.curve)
    np.testing.assert_array_equal(found.value, values.mean(axis=-1))
    np.testing.assert_array_equal(found.value_spread, values.std(axis=-1, ddof=1))
    error = curves.std(axis=-1, ddof=1) / np.sqrt(5)
    np.testing.assert_array_equal(found.curve_standard_error, error)
    assert found.curve.dims == ("power", "size", "time")
    assert found.trial.size == 5


def test_what_is_returned_is_what_was_declared():
    @per("size", one="one", other="other")
    def wrong(size):
        return {"one": 1, "third": 2}

    with pytest.raises(ValueError, match="other, third"):
        stage(AXES, wrong)(PARAMETERS)


def test_a_function_may_read_what_those_before_it_gave():
    @per("size", "power", value="value")
    def value(size, power):
        return size**power

    @per("power", total="sum over sizes")
    def total(earlier, **cell):
        return earlier.value.sel(cell).sum()

    found = stage(AXES, value, total)
    assert list(inspect.signature(found).parameters) == ["parameters"]
    np.testing.assert_array_equal(found(PARAMETERS).total, [3 + 6, 9 + 36])


def test_what_blocks_share_is_made_once_and_kept_in_the_summary():
    made = []

    def base(parameters, trials):
        made.append(len(trials))
        return max(parameters.sizes)

    @per("size", "power", largest="largest value")
    def largest(base, parameters, size):
        return np.multiply(base + size, parameters.powers)

    @per("size", value="what is drawn")
    def value(base, trial, size):
        return trial.rng.standard_normal() + base

    run = stage(AXES, largest, value, shared={"base": base})
    assert list(inspect.signature(run).parameters) == ["parameters", "trials"]
    found = run(PARAMETERS, Trials(1, "a/b", 0, 3))
    assert made == [3]
    assert found.largest.dims == ("size", "power")
    np.testing.assert_array_equal(found.largest, [[9, 18], [12, 24]])
    assert found.value.dims == ("trial", "size")
    simulation = found.assign_coords(trial=("trial", np.arange(3)))
    summary = stage(AXES, means(value), kept(largest))(PARAMETERS, simulation)
    assert summary.largest.identical(found.largest)


def test_a_mean_that_is_missing_says_why_and_has_an_infinite_error():
    @per("size", part=Mean("the part", missing="not every size has one"))
    def part(size):
        return [size, np.nan if size == 6 else size + 2]

    found = stage(AXES, part)(PARAMETERS)
    np.testing.assert_array_equal(found.part, [4, np.nan])
    np.testing.assert_array_equal(found.part_standard_error, [1, np.inf])
    assert found.part.attrs["reason_missing"] == "not every size has one"


def test_labelled_arrays_are_put_in_the_declared_order():
    simulation = stage(AXES, draw)(PARAMETERS, Trials(1, "a/b", 0, 3)).assign_coords(
        trial=("trial", np.arange(3))
    )

    @per("power", "size", value=Mean("the value"), curve=Quantity("curve of the first", "time"))
    def both(simulation):
        first = simulation.curve.isel(trial=0)
        return {"value": simulation.value.T, "curve": first.transpose("time", "size", "power")}

    @per("size", "power", total=Quantity("its sum over trials", "time"))
    def total(simulation, power):
        return simulation.curve.sel(power=power).sum("trial").T

    found = stage(AXES, both, total)(PARAMETERS, simulation)
    expected = stage(AXES, means(draw))(PARAMETERS, simulation)
    np.testing.assert_array_equal(found.value, expected.value)
    np.testing.assert_array_equal(found.curve, simulation.curve[0])
    assert found.total.dims == ("power", "size", "time")
    np.testing.assert_allclose(found.total, 3 * expected.curve)

    @per("power", value=Mean("the value"))
    def wrong(simulation):
        return simulation.value

    with pytest.raises(ValueError, match="size"):
        stage(AXES, wrong)(PARAMETERS, simulation)
