"""The peers' fits judged on held-out rows: one summary, a page's tables and a figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

OURS, LEAST_SQUARES = "PrivateLinearRegression", "least squares"
PEERS = (OURS, "AdaSSP", "OpenDP, ridge", "OpenDP, solved", "diffprivlib", LEAST_SQUARES)


def summary(folder: Path) -> dict:
    """Means and standard errors over seeds of everything that was fitted below `folder`."""
    versions, fits = {}, {}
    for path in sorted((folder / "fits").glob("*.json")):
        result = json.loads(path.read_text())
        versions[path.stem] = result["versions"]
        fits |= result["peers"]
    tables = {}
    for path in sorted((folder / "held_out").glob("*.npz")):
        with np.load(path) as held_out, np.load(folder / "tables" / path.name) as table:
            tables[path.stem] = {
                "training_rows": int(table["train"].shape[1]),
                "features": int(table["rows"].shape[1]),
                "held_out_rows": int(held_out["held"].shape[1]),
                "seeds": len(table["train"]),
                "epsilons": {
                    f"{rho:g}": round(float(epsilon), 4)
                    for rho, epsilon in zip(table["rhos"], table["epsilons"], strict=True)
                },
                "budgets": {
                    f"{rho:g}": judged(
                        {name: fits[name][path.stem][f"{rho:g}"] for name in PEERS}, dict(held_out)
                    )
                    for rho in table["rhos"]
                },
            }
    return {"measured_by": "make peers", "versions": versions, "tables": tables}


def judged(fits: dict[str, dict], held_out: dict[str, np.ndarray]) -> dict[str, dict]:
    """Errors, times, and lengths and coverage where there are intervals, of each peer."""
    errors = {name: held_out_errors(fit["coefficients"], held_out) for name, fit in fits.items()}
    found = {}
    for name, fit in fits.items():
        error = errors[name]
        entry = {
            "error": mean_with_error(error),
            "median_error": rounded(np.median(error)),
            "seconds": rounded(np.median(fit["seconds"])),
        }
        if name not in (OURS, LEAST_SQUARES):
            # The same rows in each seed: the difference is what tells two methods apart.
            entry["excess_over_ours"] = mean_with_error(error - errors[OURS])
        if fit.get("half_widths"):
            entry |= intervals(fit, fits[LEAST_SQUARES], held_out["slopes"])
        found[name] = entry
    return found


def held_out_errors(coefficients: list, held_out: dict[str, np.ndarray]) -> np.ndarray:
    """Squared error over the labels' variance, a seed each; predictions clipped to the bounds."""
    found = []
    for theta, chosen in zip(np.array(coefficients), held_out["held"], strict=True):
        rows, labels = held_out["rows"][chosen], held_out["labels"][chosen]
        predicted = np.clip(rows @ theta[:-1] + theta[-1], -1, 1)
        found.append(np.mean((predicted - labels) ** 2) / labels.var())
    return np.array(found)


def intervals(fit: dict, plain: dict, slopes: np.ndarray) -> dict:
    """Length over least squares', share that is infinite, and coverage where slopes are known."""
    # An infinite interval is written as -1; a slope that the rows do not determine is left out.
    widths, others = (np.array(each["half_widths"]) for each in (fit, plain))
    widths[widths < 0] = np.inf
    known = others > 0
    entry: dict = {
        "length_ratio": rounded(np.median(widths[known] / others[known])),
        "infinite": rounded(np.mean(~np.isfinite(widths[known]))),
    }
    if not np.isfinite(entry["length_ratio"]):
        entry["length_ratio"] = None
    if slopes.size:
        off = np.abs(np.array(fit["coefficients"])[:, :-1] - slopes)
        entry["coverage"] = mean_with_error((off <= widths).mean(axis=1))
    return entry


def mean_with_error(values: np.ndarray) -> list[float]:
    """Mean and its standard error."""
    return [rounded(values.mean()), rounded(values.std(ddof=1) / np.sqrt(values.size))]


def rounded(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")


def exceptions(found: dict) -> list[str]:
    """Where a private peer's mean or median error is not above ours, worst first."""
    losses, cells = [], 0
    for table, block in found["tables"].items():
        for rho, entries in block["budgets"].items():
            ours = entries[OURS]
            cells += 1
            for name, entry in entries.items():
                if name in (OURS, LEAST_SQUARES):
                    continue
                ratio = ours["error"][0] / entry["error"][0]
                median = ours["median_error"] / entry["median_error"]
                if max(ratio, median) >= 1:
                    gap = entry["excess_over_ours"]
                    losses.append((ratio, table, rho, name, ours, entry, gap))
    losses.sort(key=lambda loss: -loss[0])
    if not losses:
        return ["None: its error is below every private peer's at every budget on every table."]
    best = cells - len({loss[1:3] for loss in losses})
    lines = [
        f"Ours is below every private peer in {best} of {cells} cells, a cell being a table at a "
        "budget; not in these:",
        "",
        "| table | ρ | peer | ours | peer's | peer's less ours |",
        "|" + "---|" * 6,
    ]
    lines += [
        f"| {table} | {rho} | {name} | "
        + " | ".join(plus_minus(each) for each in (ours["error"], entry["error"], gap))
        + " |"
        for _, table, rho, name, ours, entry, gap in losses
    ]
    return lines


def error_table(found: dict) -> list[str]:
    """Errors of all on all tables."""
    lines = [
        "| table (rows × features) | ρ | ε | " + " | ".join(PEERS) + " |",
        "|---|---|---|" + "---|" * len(PEERS),
    ]
    for table, block in found["tables"].items():
        size = f"{table} ({block['training_rows']:,} × {block['features']})"
        for rho, entries in block["budgets"].items():
            cells = " | ".join(plus_minus(entries[name]["error"]) for name in PEERS)
            lines.append(f"| {size} | {rho} | {block['epsilons'][rho]:.2f} | {cells} |")
            size = ""
    return lines


def interval_table(found: dict) -> list[str]:
    """Lengths and coverage of ours, and the coverage of least squares."""
    lines = [
        "| table | ρ | length over least squares' | infinite | coverage | that of least squares |",
        "|" + "---|" * 6,
    ]
    for table, block in found["tables"].items():
        for rho, entries in block["budgets"].items():
            ours = entries[OURS]
            length = "∞" if ours["length_ratio"] is None else f"{ours['length_ratio']:.3g}"
            covered = " | ".join(
                plus_minus(entries[name]["coverage"]) if "coverage" in entries[name] else "unknown"
                for name in (OURS, LEAST_SQUARES)
            )
            lines.append(f"| {table} | {rho} | {length} | {ours['infinite']:.2g} | {covered} |")
    return lines


def time_table(found: dict) -> list[str]:
    """Median milliseconds a fit."""
    lines = ["| table | " + " | ".join(PEERS) + " |", "|" + "---|" * (len(PEERS) + 1)]
    for table, block in found["tables"].items():
        entries = list(block["budgets"].values())[len(block["budgets"]) // 2]
        cells = " | ".join(f"{1000 * entries[name]['seconds']:.2g}" for name in PEERS)
        lines.append(f"| {table} | {cells} |")
    return lines


def version_list(found: dict) -> list[str]:
    """What was run."""
    return [
        f"- {name}: " + ", ".join(f"{package} {number}" for package, number in versions.items())
        for name, versions in found["versions"].items()
    ]


def plus_minus(pair: list[float]) -> str:
    """Mean ± standard error with the digits that the error leaves."""
    mean, spread = pair
    digits = 1 if spread <= 0 else max(0, min(4, 1 - int(np.floor(np.log10(spread)))))
    return f"{mean:.{digits}f} ± {spread:.{digits}f}"


PARTS = {
    "exceptions": exceptions,
    "errors": error_table,
    "intervals": interval_table,
    "times": time_table,
    "versions": version_list,
}


def all_tables(found: dict) -> str:
    """The page's tables by themselves, with headings."""
    parts = (
        "\n".join([f"# {name.capitalize()}", "", *part(found)]) for name, part in PARTS.items()
    )
    return "\n\n".join(parts) + "\n"


def page(text: str, found: dict) -> str:
    """A page whose marked parts are replaced by what `found` says."""
    for name, part in PARTS.items():
        first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, rest = text.split(first)
        _, after = rest.split(last)
        text = before + first + "\n".join(part(found)) + "\n" + last + after
    return text
