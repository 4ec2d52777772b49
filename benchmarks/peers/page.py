"""The tables of docs/comparison.md from a summary of `judge`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from judge import OURS, PEERS, PRIVATE_PEERS, ROBUST, WITH_INTERVALS

# Means from which on two digits and an exponent are enough.
LARGE = 1e5
HEAD = "| table or law (n × p) | ε | "


def cells(found: dict, *, sampled: bool | None = None) -> Iterator[tuple[str, dict, str, dict]]:
    """Table, its block, ε and its entries: of tables sampled with replacement, others or all."""
    for table, block in found["tables"].items():
        if sampled is None or block["sampled"] is sampled:
            for epsilon, entries in block["budgets"].items():
                yield table, block, epsilon, entries


def wins(found: dict) -> list[str]:
    """Who has the least mean held-out error of the private, by kind of table."""
    lines = ["| | cells | " + " | ".join((OURS, ROBUST, *PRIVATE_PEERS)) + " |"]
    lines.append("|" + "---|" * (len(PRIVATE_PEERS) + 4))
    for label, sampled in (("judged tables and laws", True), ("split or drawn tables", False)):
        least = Counter(
            min(PEERS[:-1], key=lambda name: entries[name]["error"][0])
            for *_, entries in cells(found, sampled=sampled)
        )
        counts = " | ".join(str(least[name]) for name in PEERS[:-1])
        lines.append(f"| {label} | {least.total()} | {counts} |")
    return lines


def exceptions(found: dict) -> list[str]:
    """Where a private peer's mean error is not above that of the default, worst first."""
    losses, total = [], 0
    for table, _, epsilon, entries in cells(found):
        total += 1
        ours = entries[OURS]["error"][0]
        below = sorted(
            (name for name in PRIVATE_PEERS if entries[name]["error"][0] <= ours),
            key=lambda name: entries[name]["error"][0],
        )
        if below:
            losses.append((ours / entries[below[0]]["error"][0], table, epsilon, entries, below))
    losses.sort(key=lambda loss: -loss[0])
    if not losses:
        return ["None: its error is below every private peer's in every cell."]
    lines = [
        f"The default is below every private peer in {total - len(losses)} of {total} cells, a "
        "cell being a table at a budget; not in these:",
        "",
        f"| table | ε | {OURS} | {ROBUST} | best peer | its error | less ours | also below ours |",
        "|" + "---|" * 8,
    ]
    for _, table, epsilon, entries, (best, *others) in losses:
        shown = [plus_minus(entries[name]["error"]) for name in (OURS, ROBUST, best)]
        gap = plus_minus(entries[best]["less_ours"])
        also = "; ".join(others) or "none"
        lines.append(
            f"| {table} | {epsilon} | {shown[0]} | {shown[1]} | {best} | {shown[2]} | {gap} "
            f"| {also} |"
        )
    return lines


def ratio_table(found: dict) -> list[str]:
    """Squared error about the population's coefficients over that of least squares."""
    lines = [HEAD + " | ".join(PEERS[:-1]) + " |", "|" + "---|" * (len(PEERS) + 1)]
    for size, epsilon, entries in _sized(found, sampled=True):
        shown = []
        least = min(entries[name]["ratio"][0] for name in PEERS[:-1])
        for name in PEERS[:-1]:
            text = plus_minus(entries[name]["ratio"])
            shown.append(f"**{text}**" if entries[name]["ratio"][0] == least else text)
        lines.append(f"| {size} | {epsilon} | " + " | ".join(shown) + " |")
    return lines


def sampled_table(found: dict) -> list[str]:
    """Held-out errors on the judged tables and laws."""
    return _error_table(found, sampled=True)


def error_table(found: dict) -> list[str]:
    """Held-out errors on the tables that are split or drawn anew."""
    return _error_table(found, sampled=False)


def _error_table(found: dict, *, sampled: bool) -> list[str]:
    lines = [HEAD + " | ".join(PEERS) + " |", "|" + "---|" * (len(PEERS) + 2)]
    for size, epsilon, entries in _sized(found, sampled=sampled):
        shown = " | ".join(plus_minus(entries[name]["error"]) for name in PEERS)
        lines.append(f"| {size} | {epsilon} | {shown} |")
    return lines


def _sized(found: dict, *, sampled: bool) -> Iterator[tuple[str, str, dict]]:
    """Name and size, in a table's first row only; ε; entries."""
    last = ""
    for table, block, epsilon, entries in cells(found, sampled=sampled):
        size = f"{table} ({block['training_rows']:,} × {block['features']})"
        yield "" if table == last else size, epsilon, entries
        last = table


def interval_table(found: dict) -> list[str]:
    """Coverage of slopes and length of those who have intervals."""
    names = " | ".join(f"{name}: length, infinite" for name in WITH_INTERVALS[:-1])
    covers = " | ".join(f"{name}: covers" for name in WITH_INTERVALS)
    lines = [f"{HEAD}{covers} | {names} |", "|" + "---|" * (2 * len(WITH_INTERVALS) + 1)]
    for sampled in (True, False):
        for size, epsilon, entries in _sized(found, sampled=sampled):
            shown = [
                plus_minus(entries[name]["coverage"]) if "coverage" in entries[name] else "unknown"
                for name in WITH_INTERVALS
            ]
            for name in WITH_INTERVALS[:-1]:
                ratio = entries[name]["length_ratio"]
                length = "∞" if ratio is None else f"{ratio:.3g}"
                shown.append(f"{length}, {entries[name]['infinite']:.2g}")
            lines.append(f"| {size} | {epsilon} | " + " | ".join(shown) + " |")
    return lines


def time_table(found: dict) -> list[str]:
    """Median milliseconds a fit at the middle budget."""
    lines = ["| table | " + " | ".join(PEERS) + " |", "|" + "---|" * (len(PEERS) + 1)]
    for table, block in found["tables"].items():
        entries = list(block["budgets"].values())[len(block["budgets"]) // 2]
        shown = " | ".join(f"{1000 * entries[name]['seconds']:.2g}" for name in PEERS)
        lines.append(f"| {table} | {shown} |")
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
    if mean >= LARGE:
        return f"{mean:.1e} ± {spread:.0e}"
    digits = 1 if spread <= 0 else max(0, min(4, 1 - int(np.floor(np.log10(spread)))))
    return f"{mean:,.{digits}f} ± {spread:,.{digits}f}"


PARTS = {
    "wins": wins,
    "exceptions": exceptions,
    "ratios": ratio_table,
    "sampled": sampled_table,
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
