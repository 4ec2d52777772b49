"""The peers' tables: training rows for those who fit, held-out rows for the one who judges.

A file of `tables/` has rows (N, p) and labels (N,), mapped into [-1, 1] by the declared bounds, of
which `train` (seeds, n) are the reported draws; `tuning` and `tuning_held` are others, which tell a
peer its settings. A file of `held_out/` has what judges.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from privreg import Budget, data
from privreg.estimators.columns import Frame
from privreg.privacy.budget import to_approximate
from reproduction.studies.compared_tables import ComparedTable, Synthetic, diabetes, real_table

RHOS = (0.005, 0.015, 0.05, 0.125, 0.5)
EPSILONS, DELTA = (0.25, 0.5, 1.0, 4.0), 1e-6
# Settings are chosen on draws of their own.
SEEDS, TUNING = 25, (1000, 1001, 1002)
# Rows of a population that judge, at most.
JUDGES = 20_000


def write_tables(folder: Path) -> None:
    """All tables, the populations from their files; a stand-in for a real one is refused."""
    for path in sorted((folder / "populations").glob("*.npz")):
        _write_population(path, folder)
    for name in ("normal", "correlated", "flats"):
        _write_table(Synthetic(name, 10_000, 10_000), folder)
    for name in ("california_housing", "mnist"):
        source = os.environ.get("PRIVREG_DATA")
        _write_table(real_table(data.load(name, directory=source, allow_stand_in=False)), folder)
    _write_table(diabetes(), folder)


def _generators() -> list[np.random.Generator]:
    return [np.random.Generator(np.random.SFC64(seed)) for seed in (*range(SEEDS), *TUNING)]


def _write_table(table: ComparedTable, folder: Path) -> None:
    """One that is split or drawn anew by each seed; held-out labels are not clipped."""
    declared, frame = table.declared, table.declared.frame
    centre, half = declared.label_bounds.mean(), np.ptp(declared.label_bounds) / 2
    drawn = [table.draw(rng) for rng in _generators()]
    n, judges = len(drawn[0].labels), len(drawn[0].held_out_labels)
    places = np.arange(len(drawn) * n).reshape(-1, n)
    held_out = {
        "rows": np.concatenate([frame.rows(x.held_out_features)[:, 1:] for x in drawn[:SEEDS]]),
        "labels": np.concatenate([(x.held_out_labels - centre) / half for x in drawn[:SEEDS]]),
        "held": np.arange(SEEDS * judges).reshape(-1, judges),
    }
    if table.coefficients is not None:
        slopes = np.ptp(declared.feature_bounds, axis=1) / 2 / half
        held_out["slopes"] = table.coefficients[:-1] * slopes
    arrays = {
        "name": table.name,
        "rows": np.concatenate([frame.rows(each.features)[:, 1:] for each in drawn]),
        "labels": np.concatenate([frame.labels(each.labels) for each in drawn]),
        "train": places[:SEEDS],
        # Within the training rows: four in five against the fifth.
        "tuning": places[SEEDS:, : 4 * n // 5],
        "tuning_held": places[SEEDS:, 4 * n // 5 :],
        "rhos": RHOS,
        "epsilons": [to_approximate(rho, delta=DELTA) for rho in RHOS],
        "categories": declared.categories,
    }
    _save(folder, table.name, arrays, held_out)


def _write_population(path: Path, folder: Path) -> None:
    """A judged table or law, from which samples are drawn with replacement."""
    stored = np.load(path)
    features, labels = stored["features"], stored["labels"]
    bounds = np.column_stack([features.min(axis=0), features.max(axis=0)])
    frame = Frame(bounds, np.array([labels.min(), labels.max()]), True)
    rows, labels = frame.rows(features)[:, 1:], frame.labels(labels)
    size = len(rows)
    design = np.column_stack([rows, np.ones(size)])
    truth = np.linalg.lstsq(design, labels, rcond=None)[0]
    draws = np.array([rng.integers(size, size=int(stored["rows"])) for rng in _generators()])
    judges = np.arange(size)
    if size > JUDGES:
        # A table's rows may be sorted.
        judges = np.random.Generator(np.random.SFC64(0)).permutation(size)[:JUDGES]
    arrays = {
        "name": stored["name"],
        "rows": rows,
        "labels": labels,
        "train": draws[:SEEDS],
        "tuning": draws[SEEDS:],
        "tuning_held": [judges] * len(TUNING),
        # An exact trade-off: what (ε, δ) grants a Gaussian mechanism.
        "rhos": [Budget.approximate(epsilon, DELTA).gaussian().rho for epsilon in EPSILONS],
        "epsilons": EPSILONS,
        "categories": np.zeros(rows.shape[1], dtype=bool),
    }
    held_out = {
        "rows": rows[judges],
        "labels": labels[judges],
        "held": [np.arange(judges.size)] * SEEDS,
        "slopes": truth[:-1],
        "coefficients": truth,
        "gram": design.T @ design / size,
    }
    _save(folder, path.stem, arrays, held_out)


def _save(folder: Path, name: str, table: dict[str, Any], held_out: dict[str, Any]) -> None:
    np.savez(folder / "tables" / f"{name}.npz", **table)
    np.savez(folder / "held_out" / f"{name}.npz", **held_out)
