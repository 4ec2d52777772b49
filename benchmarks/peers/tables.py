"""The peers' tables: training rows for those who fit, held-out rows for the one who judges.

A file of `tables/` has rows (N, p) and labels (N,), mapped into [-1, 1] by the declared bounds, of
which `train` (seeds, n) are the reported draws; `tuning` and `tuning_held` are others, which tell a
peer its settings. A file of `held_out/` has what judges.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from privreg import Budget, data
from privreg.estimators.columns import Frame
from privreg.privacy.budget import to_approximate
from reproduction.studies.compared_tables import (
    ComparedTable,
    Synthetic,
    diabetes,
    real_table,
)

RHOS = (0.005, 0.015, 0.05, 0.125, 0.5)
EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-6
ROWS = 10_000
TUNING = range(1000, 1003)
# Rows of a population that judge, at most.
JUDGES = 20_000


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


def generators(seeds: range) -> Iterator[np.random.Generator]:
    return (np.random.Generator(np.random.SFC64(seed)) for seed in seeds)


def write_table(table: ComparedTable, folder: Path, *, seeds: int) -> None:
    """One that is split or drawn anew by each seed; held-out labels are not clipped."""
    frame = table.declared.frame
    centre, half = table.declared.label_bounds.mean(), np.ptp(table.declared.label_bounds) / 2
    drawn = [table.draw(rng) for rng in generators(range(seeds))]
    if all(np.array_equal(each.features, drawn[0].features) for each in drawn[1:]):
        # Official test rows: every seed has the same split.
        kept, owner = drawn[:1], np.zeros(seeds, dtype=np.intp)
    else:
        kept, owner = drawn, np.arange(seeds)
    n = len(drawn[0].labels)
    train, held = (
        owner[:, None] * len(labels) + np.arange(len(labels))
        for labels in (drawn[0].labels, drawn[0].held_out_labels)
    )
    # Settings are chosen within the training rows of other draws, four in five against the fifth.
    others = [table.draw(rng) for rng in generators(TUNING)]
    tuning = (len(kept) + np.arange(len(others)))[:, None] * n + np.arange(n)
    truth = np.zeros(0)
    if table.coefficients is not None:
        slopes = np.ptp(table.declared.feature_bounds, axis=1) / 2 / half
        truth = table.coefficients[:-1] * slopes
    _save(
        folder,
        table.name,
        {
            "rows": np.concatenate([frame.rows(each.features)[:, 1:] for each in [*kept, *others]]),
            "labels": np.concatenate([frame.labels(each.labels) for each in [*kept, *others]]),
            "train": train,
            "tuning": tuning[:, : 4 * n // 5],
            "tuning_held": tuning[:, 4 * n // 5 :],
            "rhos": np.array(RHOS),
            "epsilons": np.array([to_approximate(rho, delta=DELTA) for rho in RHOS]),
            "categories": table.declared.categories,
        },
        {
            "rows": np.concatenate([frame.rows(each.held_out_features)[:, 1:] for each in kept]),
            "labels": np.concatenate([(each.held_out_labels - centre) / half for each in kept]),
            "held": held,
            "slopes": truth,
            "coefficients": np.zeros(0),
        },
    )


def write_population(path: Path, folder: Path, *, seeds: int) -> None:
    """A judged table or law, from which samples are drawn with replacement."""
    with np.load(path) as stored:
        features, labels = stored["features"], stored["labels"]
        name, n = str(stored["name"]), int(stored["rows"])
    bounds = np.column_stack([features.min(axis=0), features.max(axis=0)])
    frame = Frame(bounds, np.array([labels.min(), labels.max()]), True)
    rows, labels = frame.rows(features)[:, 1:], frame.labels(labels)
    size = len(rows)
    design = np.column_stack([rows, np.ones(size)])
    truth = np.linalg.lstsq(design, labels, rcond=None)[0]
    train, tuning = (
        np.array([rng.integers(size, size=n) for rng in generators(which)])
        for which in (range(seeds), TUNING)
    )
    judges = np.arange(min(size, JUDGES))
    if judges.size < size:
        # A table's rows may be sorted.
        judges = np.random.Generator(np.random.SFC64(0)).permutation(size)[: judges.size]
    # An exact trade-off: what (ε, δ) grants a Gaussian mechanism.
    rhos = [Budget.approximate(epsilon, DELTA).gaussian().rho for epsilon in EPSILONS]
    used, where = np.unique(
        np.concatenate([train.ravel(), tuning.ravel(), judges]), return_inverse=True
    )
    draws = where[: train.size + tuning.size].reshape(-1, n)
    places = np.broadcast_to(where[-judges.size :], (len(TUNING), judges.size))
    _save(
        folder,
        f"{path.stem} {name.replace('/', ' of ')}",
        {
            "rows": rows[used],
            "labels": labels[used],
            "train": draws[:seeds],
            "tuning": draws[seeds:],
            "tuning_held": places,
            "rhos": np.array(rhos),
            "epsilons": np.array(EPSILONS),
            "categories": np.zeros(rows.shape[1], dtype=bool),
        },
        {
            "rows": rows[judges],
            "labels": labels[judges],
            "held": np.broadcast_to(np.arange(judges.size), (seeds, judges.size)),
            "slopes": truth[:-1],
            "coefficients": truth,
            "name": np.array(name),
            "gram": design.T @ design / size,
        },
    )


def _save(folder: Path, name: str, table: dict[str, Any], held_out: dict[str, Any]) -> None:
    for place, arrays in (("tables", table), ("held_out", held_out)):
        (folder / place).mkdir(parents=True, exist_ok=True)
        np.savez(folder / place / f"{name}.npz", **arrays)
