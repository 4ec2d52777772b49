"""A table as a Dataset, and back: how prepared data lie on disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from privreg.data.tables import Table
from reproduction.experiment.datasets import variable

if TYPE_CHECKING:
    import xarray as xr


def to_dataset(table: Table) -> xr.Dataset:
    """Dataset of a table: raw features, labels and the official split, with its provenance."""
    import xarray as xr

    return xr.Dataset(
        {
            "features": variable(("row", "feature"), table.features, "raw feature"),
            "label": variable("row", table.labels, "raw label"),
            "official_test": variable(
                "row", table.official_test.astype("int8"), "1 for a row of the official test split"
            ),
        },
        coords={"feature": variable("feature", list(table.feature_names), "feature name")},
        attrs={
            "title": f"{table.name}: {table.shape[0]} rows, {table.shape[1]} features",
            "name": table.name,
            "source": table.source,
            "checksums": json.dumps(dict(table.checksums), sort_keys=True),
            "feature_scale": table.feature_scale,
            "stand_in": int(table.stand_in),
            "stand_in_reason": f"{table.source}; {table.stand_in_reason}" if table.stand_in else "",
        },
    )


def from_dataset(dataset: xr.Dataset) -> Table:
    """The table that `to_dataset` wrote."""
    return Table(
        name=dataset.attrs["name"],
        features=dataset.features.values,
        labels=dataset.label.values,
        feature_names=tuple(dataset.feature.values.tolist()),
        official_test=dataset.official_test.values.astype(bool),
        source=dataset.attrs["source"],
        checksums=json.loads(dataset.attrs["checksums"]),
        stand_in=bool(dataset.attrs["stand_in"]),
        stand_in_reason=dataset.attrs["stand_in_reason"],
        feature_scale=float(dataset.attrs["feature_scale"]),
    )
