"""The peers' tables: training rows for those who fit, held-out rows for the one who judges."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from privreg import data
from privreg.privacy.zcdp import to_approximate
from reproduction.studies.compared_tables import (
    ComparedTable,
    Synthetic,
    diabetes,
    real_table,
)

RHOS = (0.005, 0.015, 0.05, 0.125, 0.5)
DELTA = 1e-6
ROWS = 10_000


def compared_tables() -> list[ComparedTable]:
    """Three that are drawn, and three that are real; a stand-in is refused."""
    folder = os.environ.get("PRIVREG_DATA")
    real = [
        real_table(data.load(name, directory=folder, allow_stand_in=False))
        for name in ("california_housing", "mnist")
    ]
    return [
        *(Synthetic(name, ROWS, ROWS) for name in ("normal", "correlated", "flats")),
        *real,
        diabetes(),
    ]


def write_table(table: ComparedTable, folder: Path, *, seeds: int) -> None:
    """Write `tables/<name>.npz` and `held_out/<name>.npz`, mapped by the declared bounds.

    Rows of all seeds lie in one array, where `train` and `held` find each seed's; held-out labels
    are not clipped.
    """
    frame = table.declared.frame
    centre, half = table.declared.label_bounds.mean(), np.ptp(table.declared.label_bounds) / 2
    drawn = [table.draw(np.random.Generator(np.random.SFC64(seed))) for seed in range(seeds)]
    if all(np.array_equal(each.features, drawn[0].features) for each in drawn[1:]):
        # Official test rows: every seed has the same split.
        kept, owner = drawn[:1], np.zeros(seeds, dtype=np.intp)
    else:
        kept, owner = drawn, np.arange(seeds)
    train, held = (
        owner[:, None] * len(labels) + np.arange(len(labels))
        for labels in (drawn[0].labels, drawn[0].held_out_labels)
    )
    for name in ("tables", "held_out"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    np.savez(
        folder / "tables" / f"{table.name}.npz",
        rows=np.concatenate([frame.rows(each.features)[:, 1:] for each in kept]),
        labels=np.concatenate([frame.labels(each.labels) for each in kept]),
        train=train,
        rhos=np.array(RHOS),
        epsilons=np.array([to_approximate(rho, delta=DELTA) for rho in RHOS]),
        categories=table.declared.categories,
    )
    truth = np.zeros(0)
    if table.coefficients is not None:
        slopes = np.ptp(table.declared.feature_bounds, axis=1) / 2 / half
        truth = table.coefficients[:-1] * slopes
    np.savez(
        folder / "held_out" / f"{table.name}.npz",
        rows=np.concatenate([frame.rows(each.held_out_features)[:, 1:] for each in kept]),
        labels=np.concatenate([(each.held_out_labels - centre) / half for each in kept]),
        held=held,
        slopes=truth,
    )
