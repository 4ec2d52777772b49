"""Evidence is found by label, with its standard error, and a wrong label names the right ones."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from pydantic import TypeAdapter

from reproduction.engine import artifacts as store
from reproduction.engine.checks import Check, Evidence, Observation, observe
from reproduction.engine.summaries import mean_and_error

DIMENSIONS = [10, 100, 1000]
CLIPS = [0.1, 0.1 + 0.2, 1.0]
BELOW = {"kind": "below", "high": 1.0}
EVERY = {"kind": "all", "of": BELOW}


@pytest.fixture
def dataset() -> xr.Dataset:
    risk = np.arange(18.0).reshape(2, 3, 3)
    return xr.Dataset(
        {
            "risk": (
                ("panel", "dimension", "clip"),
                risk,
                {"ancillary_variables": "risk_count risk_standard_error"},
            ),
            "risk_standard_error": (("panel", "dimension", "clip"), risk / 10),
            "shared": ("panel", [1.0, 2.0], {"ancillary_variables": "one_standard_error"}),
            "one_standard_error": ((), 0.5),
            "name": ("panel", ["a", "b"]),
        },
        coords={
            "dimension": DIMENSIONS,
            "clip": CLIPS,
            "spectrum": ("panel", ["isotropic", "uniform"]),
            "schedule": ("panel", ["constant", "square-root"]),
        },
        attrs={"trials": 20},
    )


def look(
    dataset: xr.Dataset, select: dict[str, Any], check: dict[str, Any], variable: str = "risk"
) -> Observation:
    evidence = Evidence.model_validate(
        {"artifact": "simulation/trajectories", "variable": variable, "select": select}
    )
    return observe(evidence, TypeAdapter(Check).validate_python(check), dataset)


def test_labels_select_one_number_and_its_error(dataset: xr.Dataset) -> None:
    found = look(dataset, {"spectrum": "uniform", "dimension": 100, "clip": 0.3}, BELOW)
    assert float(found.values) == 13.0
    assert found.standard_error is not None
    assert float(found.standard_error) == 1.3
    assert found.trials == 20
    assert found.labels == ("",)


def test_a_list_keeps_its_own_order_and_names_its_elements(dataset: xr.Dataset) -> None:
    select = {"spectrum": "isotropic", "clip": 0.1, "dimension": [1000, 10]}
    found = look(dataset, select, {"kind": "monotone", "direction": "decreasing"})
    assert found.values.tolist() == [6.0, 0.0]
    assert found.labels == ("dimension=1000", "dimension=10")
    check = {"kind": "ordered", "dimension": "spectrum", "labels": ["uniform", "isotropic"]}
    assert look(dataset, {"dimension": 10, "clip": 1.0}, check).values.tolist() == [11.0, 2.0]


def test_coordinates_that_share_a_dimension_meet(dataset: xr.Dataset) -> None:
    select = {"spectrum": "uniform", "schedule": "square-root", "dimension": 10, "clip": 0.1}
    assert float(look(dataset, select, BELOW).values) == 9.0
    with pytest.raises(ValueError, match="no element has spectrum=uniform, schedule=constant"):
        look(dataset, select | {"schedule": "constant"}, BELOW)


def test_without_a_selection_every_element_is_there(dataset: xr.Dataset) -> None:
    found = look(dataset, {}, EVERY)
    assert found.values.shape == (2, 3, 3)
    assert found.labels[-1] == "spectrum=uniform, schedule=square-root, dimension=1000, clip=1"
    shared = look(dataset, {}, EVERY, "shared")
    assert shared.standard_error is not None
    assert shared.standard_error.tolist() == [0.5, 0.5]


def test_what_the_store_writes_is_found_again(tmp_path: Any) -> None:
    samples = np.array([[1.0, 2.0, 3.0, 6.0]])
    written = xr.Dataset(
        mean_and_error("risk", samples, ["clip_constant"], "risk"),
        coords={"clip_constant": store.variable("clip_constant", [0.1], "clipping constant")},
        attrs={"trials": 4},
    )
    store.write(written, tmp_path / "risk.nc")
    found = look(store.read(tmp_path / "risk.nc"), {"clip_constant": 0.1}, BELOW)
    assert float(found.values) == 3.0
    assert found.standard_error is not None
    np.testing.assert_allclose(found.standard_error, samples.std(ddof=1) / 2)
    assert found.trials == 4


@pytest.mark.parametrize(
    ("select", "variable", "message"),
    [
        ({}, "rsik", "got 'rsik'; did you mean 'risk'"),
        ({"dimenson": 10}, "risk", "got 'dimenson'; did you mean 'dimension'"),
        ({"dimension": 99}, "risk", "dimension = 99: expected one of 10, 100, 1000; .* is 100"),
        ({"spectrum": "isotropc"}, "risk", "'isotropc'.*did you mean 'isotropic'"),
        ({}, "name", "expected numbers"),
    ],
)
def test_a_wrong_name_is_an_error_that_lists_the_valid_ones(
    dataset: xr.Dataset, select: dict[str, Any], variable: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        look(dataset, select, EVERY, variable)
    assert "simulation/trajectories" in str(caught.value)
    assert "\n" not in str(caught.value)
