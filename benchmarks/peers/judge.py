"""The peers' fits judged on held-out rows: one summary of everything that was fitted."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from protocol import squared_error

OURS, ROBUST, PLAIN = "ours", "ours, robust", "not private"
PRIVATE_PEERS = ("AdaSSP", "AdaSSP, boosted", "standardised", "plain descent")
PRIVATE_PEERS += ("OpenDP", "diffprivlib", "bins")
PRIVATE = (OURS, ROBUST, *PRIVATE_PEERS)
PEERS = (*PRIVATE, PLAIN)
WITH_INTERVALS = (OURS, ROBUST, "bins", PLAIN)


def summary(folder: Path) -> dict:
    """Versions, and an entry for each table, budget and peer of what was fitted below `folder`."""
    versions, fits, cells = {}, {}, []
    for path in sorted((folder / "fits").glob("*.json")):
        result = json.loads(path.read_text())
        versions[path.stem] = result["versions"]
        fits |= result["peers"]
    for path in sorted((folder / "held_out").glob("*.npz")):
        held_out, table = dict(np.load(path)), np.load(folder / "tables" / path.name)
        name, n, p = str(table["name"]), table["train"].shape[1], table["rows"].shape[1]
        for rho, epsilon in zip(table["rhos"], table["epsilons"], strict=True):
            head = {"table": name, "size": f"{name} ({n:,} × {p})", "sampled": "gram" in held_out}
            head |= {"ε": f"{epsilon:.3g}", "ρ": rho}
            made = {peer: fits[peer][path.stem][f"{rho:g}"] for peer in PEERS}
            cells += [head | entry for entry in judged(made, held_out)]
    return {"versions": versions, "cells": cells}


def judged(fits: dict[str, dict], held_out: dict[str, np.ndarray]) -> Iterator[dict]:
    """Errors, times, and lengths and coverage where there are intervals, of each peer."""
    errors = {peer: held_out_errors(fit["coefficients"], held_out) for peer, fit in fits.items()}
    for peer, fit in fits.items():
        entry = {
            "peer": peer,
            "error": mean_with_error(errors[peer]),
            # The same rows in each seed: the difference is what tells two methods apart.
            "less ours": mean_with_error(errors[peer] - errors[OURS]),
            "seconds": np.median(fit["seconds"]),
            "setting": fit["setting"],
        }
        if "gram" in held_out:
            both = (distances(each["coefficients"], held_out) for each in (fit, fits[PLAIN]))
            entry["ratio"] = ratio_with_error(*both)
        if fit["half_widths"]:
            # A slope that the rows do not determine is left out.
            widths, others = (np.array(each["half_widths"]) for each in (fit, fits[PLAIN]))
            known = np.isfinite(others)
            entry["length"] = np.median(widths[known] / others[known])
            entry["infinite"] = np.mean(np.isinf(widths[known]))
            if "slopes" in held_out:
                off = np.abs(np.array(fit["coefficients"])[:, :-1] - held_out["slopes"])
                entry["coverage"] = mean_with_error(np.mean(off <= widths, axis=1))
        yield entry


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
    return [np.median(values) / np.median(others), ratios.std(ddof=1)]


def mean_with_error(values: np.ndarray) -> list[float]:
    """Mean and its standard error."""
    return [values.mean(), values.std(ddof=1) / np.sqrt(values.size)]
