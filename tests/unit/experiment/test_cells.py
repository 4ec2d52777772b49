"""Stages that are written for one cell: loops, stacking, labels and errors."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from reproduction.experiment.cells import (
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
from reproduction.experiment.datasets import RELEASES
from reproduction.experiment.quantities import LogAxis
from reproduction.experiment.trials import Trials

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


def test_trials_of_a_cell_may_be_yielded_one_after_another():
    @per("size", value="what is drawn", curve=Quantity("its curve", "time"))
    def one_by_one(trials, size):
        for trial in trials:
            value = trial.rng.standard_normal() + size
            yield {"value": value, "curve": [value, 2 * value, 3 * value]}

    found = stage(AXES, one_by_one)(PARAMETERS, Trials(1, "a/b", 2, 4))
    assert found.value.dims == ("size", "trial")
    assert found.curve.dims == ("size", "trial", "time")
    draws = [trial.rng.standard_normal() for trial in Trials(1, "a/b", 2, 4)]
    np.testing.assert_array_equal(found.value, np.add.outer([3, 6], draws))
    np.testing.assert_array_equal(found.curve, found.value.values[..., None] * [1, 2, 3])


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


def test_mappings_in_lists_have_the_first_axes():
    @per("power", "size", square="square", curve=Quantity("curve", "time"))
    def nested(parameters):
        return [
            [{"square": p * s, "curve": [p, s, 0]} for s in parameters.sizes]
            for p in parameters.powers
        ]

    found = stage(AXES, nested)(PARAMETERS)
    assert found.curve.dims == ("power", "size", "time")
    np.testing.assert_array_equal(found.square, [[3, 6], [6, 12]])
    np.testing.assert_array_equal(found.curve[1, 0], [2, 3, 0])

    @per("size", one="one", other="other")
    def wrong(parameters):
        return [{"one": 1, "third": 2} for _ in parameters.sizes]

    with pytest.raises(ValueError, match="other, third"):
        stage(AXES, wrong)(PARAMETERS)


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


def test_means_agree_with_numpy_and_keep_the_trials():
    simulation = stage(AXES, draw)(PARAMETERS, Trials(1, "a/b", 0, 5)).assign_coords(
        trial=("trial", np.arange(5))
    )
    found = stage(AXES, means(draw, spread=["value"]))(PARAMETERS, simulation)
    values = trials_last(simulation.value)
    np.testing.assert_array_equal(found.value, values.mean(axis=-1))
    np.testing.assert_array_equal(found.value_spread, values.std(axis=-1, ddof=1))
    np.testing.assert_array_equal(
        found.curve_standard_error,
        trials_last(simulation.curve).std(axis=-1, ddof=1) / np.sqrt(5),
    )
    assert found.curve.dims == ("power", "size", "time")
    assert found.value.attrs["long_name"] == "mean over trials of the what is drawn"
    assert found.trial.size == 5


def test_means_have_the_declared_dimensions_in_whichever_order_the_trials_do():
    @per("power", "size", value="what is drawn")
    def rows(parameters, trial, size):
        return np.multiply(parameters.powers, size) + trial.rng.standard_normal()

    simulation = stage(AXES, rows)(PARAMETERS, Trials(1, "a/b", 0, 3)).assign_coords(
        trial=("trial", np.arange(3))
    )
    assert simulation.value.dims == ("trial", "size", "power")
    found = stage(AXES, means(rows))(PARAMETERS, simulation)
    assert found.value.dims == ("power", "size")
    np.testing.assert_allclose(found.value, simulation.value.mean("trial").T)


def test_means_of_cells():
    @per("size", ratio=Mean("the ratio"))
    def ratio(simulation, size):
        return trials_last(simulation.value.sel(size=size, power=1)) / size

    simulation = stage(AXES, draw)(PARAMETERS, Trials(1, "a/b", 0, 4)).assign_coords(
        trial=("trial", np.arange(4))
    )
    found = stage(AXES, ratio)(PARAMETERS, simulation)
    expected = simulation.value.sel(power=1).mean("trial") / [3, 6]
    np.testing.assert_allclose(found.ratio, expected)


def test_what_is_returned_is_what_was_declared():
    @per("size", one="one", other="other")
    def wrong(size):
        return {"one": 1, "third": 2}

    with pytest.raises(ValueError, match="other, third"):
        stage(AXES, wrong)(PARAMETERS)


def test_attributes_may_read_an_artifact():
    @per("size", value="what is drawn")
    def drawn(size):
        return size

    def about(parameters, data, table="a table"):
        return {"rows": data[parameters.row], "table": table}

    found = stage(AXES, drawn, attributes=about)
    assert list(inspect.signature(found).parameters) == ["parameters", "data"]
    parameters = SimpleNamespace(sizes=[3, 6], row=1)
    assert found(parameters, [7, 8]).attrs == {"rows": 8, "table": "a table"}


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


def test_a_stage_says_how_it_releases_what_does_not_say_it_itself():
    @per("size", error=Quantity("error", release="private"), gap=Mean("the gap"))
    def both(size):
        return {"error": size, "gap": [size, 2 * size]}

    found = stage(AXES, both, released="diagnostic")(PARAMETERS)
    expected = {"error": "private", "gap": "diagnostic", "gap_standard_error": "diagnostic"}
    assert {name: found[name].attrs["comment"] for name in found} == {
        name: RELEASES[how] for name, how in expected.items()
    }
    assert "comment" not in stage(AXES, both)(PARAMETERS).gap.attrs


def test_a_summary_may_keep_some_of_what_a_theory_holds():
    @per("size", double="double", square="square")
    def known(size):
        return {"double": 2 * size, "square": size**2}

    theory = stage(AXES, known)(PARAMETERS)
    summary = stage(AXES, kept(known, names=["square"], artifact="theory"))
    assert list(inspect.signature(summary).parameters) == ["parameters", "theory"]
    found = summary(PARAMETERS, theory)
    assert list(found) == ["square"]
    assert found.square.identical(theory.square)


def test_a_mean_that_is_missing_says_why_and_has_an_infinite_error():
    @per("size", part=Mean("the part", missing="not every size has one"))
    def part(size):
        return [size, np.nan if size == 6 else size + 2]

    found = stage(AXES, part)(PARAMETERS)
    np.testing.assert_array_equal(found.part, [4, np.nan])
    np.testing.assert_array_equal(found.part_standard_error, [1, np.inf])
    assert found.part.attrs["reason_missing"] == "not every size has one"


def test_a_stage_may_have_all_that_a_module_has_declared():
    @per("size", double="double")
    def double(size):
        return 2 * size

    @per("power", cube="cube")
    def cube(power):
        return power**3

    names = {"AXES": AXES, "double": double, "stage": stage, "cube": cube}
    found, listed = stage(AXES, blocks_of=names), stage(AXES, double, cube)
    assert found.blocks == listed.blocks
    assert found(PARAMETERS).identical(listed(PARAMETERS))


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
