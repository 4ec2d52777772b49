"""The peers' fits judged on held-out rows: one summary of everything that was fitted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from protocol import squared_error

OURS, ROBUST, PLAIN = "ours", "ours, robust", "not private"
PRIVATE_PEERS = ("AdaSSP", "AdaSSP, boosted", "standardised", "OpenDP", "diffprivlib", "bins")
PRIVATE = (OURS, ROBUST, *PRIVATE_PEERS)
PEERS = (*PRIVATE, PLAIN)
WITH_INTERVALS = (OURS, ROBUST, "bins", PLAIN)


def summary(folder: Path) -> dict:
    """Means and standard errors over seeds of everything that was fitted below `folder`."""
    versions, fits, tables = {}, {}, {}
    for path in sorted((folder / "fits").glob("*.json")):
        result = json.loads(path.read_text())
        versions[path.stem] = result["versions"]
        fits |= result["peers"]
    for path in sorted((folder / "held_out").glob("*.npz")):
        held_out, table = dict(np.load(path)), dict(np.load(folder / "tables" / path.name))
        tables[str(table["name"])] = {
            "sampled": "gram" in held_out,
            "training_rows": table["train"].shape[1],
            "features": table["rows"].shape[1],
            "seeds": len(table["train"]),
            "budgets": {
                f"{epsilon:.3g}": {"rho": rounded(rho)}
                | judged({who: fits[who][path.stem][f"{rho:g}"] for who in PEERS}, held_out)
                for rho, epsilon in zip(table["rhos"], table["epsilons"], strict=True)
            },
        }
    return {"measured_by": "make peers", "versions": versions, "tables": tables}


def judged(fits: dict[str, dict], held_out: dict[str, np.ndarray]) -> dict[str, dict]:
    """Errors, times, and lengths and coverage where there are intervals, of each peer."""
    errors = {name: held_out_errors(fit["coefficients"], held_out) for name, fit in fits.items()}
    found: dict[str, dict] = {}
    for name, fit in fits.items():
        found[name] = {
            "error": mean_with_error(errors[name]),
            # The same rows in each seed: the difference is what tells two methods apart.
            "less_ours": mean_with_error(errors[name] - errors[OURS]),
            "seconds": rounded(np.median(fit["seconds"])),
            "setting": fit["setting"],
        }
        if "gram" in held_out:
            both = (distances(each["coefficients"], held_out) for each in (fit, fits[PLAIN]))
            found[name]["ratio"] = ratio_with_error(*both)
        if fit["half_widths"]:
            found[name] |= intervals(fit, fits[PLAIN], held_out.get("slopes"))
    return found


def held_out_errors(coefficients: list, held_out: dict[str, np.ndarray]) -> np.ndarray:
    """Squared error over the labels' variance, a seed each; predictions clipped to the bounds."""
    found = []
    for theta, chosen in zip(np.array(coefficients), held_out["held"], strict=True):
        labels = held_out["labels"][chosen]
        found.append(squared_error(theta, held_out["rows"][chosen], labels) / labels.var())
    return np.array(found)


def distances(coefficients: list, held_out: dict[str, np.ndarray]) -> np.ndarray:
    """(θ - β)ᵀG(θ - β) about the population's least-squares coefficients, a seed each."""
    off = np.array(coefficients) - held_out["coefficients"]
    return np.einsum("si,ij,sj->s", off, held_out["gram"], off)


def ratio_with_error(values: np.ndarray, others: np.ndarray) -> list[float]:
    """Ratio of medians over the same seeds, and its standard error by resampling seeds."""
    rng = np.random.Generator(np.random.SFC64(0))
    drawn = rng.integers(values.size, size=(400, values.size))
    ratios = np.median(values[drawn], axis=1) / np.median(others[drawn], axis=1)
    return [rounded(np.median(values) / np.median(others)), rounded(ratios.std(ddof=1))]


def intervals(fit: dict, plain: dict, slopes: np.ndarray | None) -> dict:
    """Length over least squares', share that is infinite, and coverage where slopes are known."""
    # A slope that the rows do not determine is left out.
    widths, others = (np.array(each["half_widths"]) for each in (fit, plain))
    known = np.isfinite(others)
    length = rounded(np.median(widths[known] / others[known]))
    entry: dict = {
        "length_ratio": length if np.isfinite(length) else None,
        "infinite": rounded(np.mean(np.isinf(widths[known]))),
    }
    if slopes is not None:
        covered = np.abs(np.array(fit["coefficients"])[:, :-1] - slopes) <= widths
        entry["coverage"] = mean_with_error(covered.mean(axis=1))
    return entry


def mean_with_error(values: np.ndarray) -> list[float]:
    """Mean and its standard error."""
    return [rounded(values.mean()), rounded(values.std(ddof=1) / np.sqrt(values.size))]


def rounded(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")
