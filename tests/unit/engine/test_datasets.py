"""Artifacts: complete attributes, whole files or none, the same bytes each time."""

import numpy as np
import pytest
import xarray as xr

from reproduction.engine import artifacts as store
from reproduction.engine.summaries import mean_and_error
from reproduction.engine.trials import Trials, shard_of


def dataset():
    samples = np.random.default_rng(0).normal(size=(40, 50))
    return xr.Dataset(
        mean_and_error("loss", samples, ("clip_norm",), "the loss"),
        coords={
            "clip_norm": store.variable("clip_norm", np.geomspace(0.1, 1, 40), "clipping norm")
        },
    ).assign(label=store.variable("clip_norm", [f"setting {i}" for i in range(40)], "name"))


def test_round_trip_and_identical_bytes(tmp_path):
    for name in ("first.nc", "second.nc"):
        store.write(store.describe(dataset(), {"seed": 3}), tmp_path / name)
    found = store.read(tmp_path / "first.nc")
    xr.testing.assert_identical(found, store.describe(dataset(), {"seed": 3}))
    assert store.file_digest(tmp_path / "first.nc") == store.file_digest(tmp_path / "second.nc")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".first.nc.sha256",
        ".second.nc.sha256",
        "first.nc",
        "second.nc",
    ]


@pytest.mark.parametrize("attribute", ["long_name", "units"])
def test_a_variable_without_its_attributes_is_refused(tmp_path, attribute):
    values = dataset()
    del values.loss.attrs[attribute]
    with pytest.raises(ValueError, match=f"'loss': attribute '{attribute}'"):
        store.write(values, tmp_path / "x.nc")
    assert not list(tmp_path.iterdir())


def test_a_dangling_standard_error_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no ancillary variable 'loss_standard_error'"):
        store.write(dataset().drop_vars("loss_standard_error"), tmp_path / "x.nc")


@pytest.mark.parametrize(("taken", "new"), [("clip", "rename_vars"), ("rank", "rename_dims")])
def test_a_name_that_shadows_one_of_xarrays_is_refused(tmp_path, taken, new):
    old = {"rename_vars": "loss", "rename_dims": "clip_norm"}[new]
    values = dataset().drop_vars("loss_standard_error", errors="ignore")
    del values.loss.attrs["ancillary_variables"]
    with pytest.raises(ValueError, match=f"'{taken}' must not be an attribute"):
        store.write(getattr(values, new)({old: taken}), tmp_path / "x.nc")


def test_a_nan_needs_its_reason(tmp_path):
    values = dataset()
    values.loss[3] = np.nan
    with pytest.raises(ValueError, match="'loss': a NaN needs"):
        store.write(values, tmp_path / "x.nc")
    found = store.variable("clip_norm", values.loss.values, "loss", missing="no run at it")
    store.write(values.assign(loss=found), tmp_path / "x.nc")
    assert store.read(tmp_path / "x.nc").loss.attrs["reason_missing"] == "no run at it"


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "text"
    path.write_text("before")

    def fail():
        with store.atomic(path) as partial:
            partial.write_text("half")
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_trials_do_not_depend_on_shards():
    whole = [trial.rng.standard_normal() for trial in Trials(1, "paper/experiment", 0, 7)]
    parts = [
        trial.rng.standard_normal()
        for index in range(3)
        for trial in shard_of(1, "paper/experiment", 7, index=index, count=3)
    ]
    assert whole == parts
    assert len(set(whole)) == 7
    other = next(iter(Trials(1, "paper/other", 0, 1))).rng.standard_normal()
    assert other not in whole
