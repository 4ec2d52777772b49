"""The tables and the figure of docs/comparison.md from a summary of `judge`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from judge import OURS, PEERS, PRIVATE, PRIVATE_PEERS, ROBUST, WITH_INTERVALS

from reproduction.engine import plotting
from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY

# Means from which on two digits and an exponent are enough.
LARGE = 1e5
FIRST = ["table or law (n × p)", "ε"]
# Colour, marker, size; ratios beyond the farthest are drawn at the edge.
STYLES = {
    "diffprivlib": (RED, "D", 3.6),
    "bins": (SKY, "P", 3.6),
    "OpenDP": (GREEN, "^", 3.6),
    "AdaSSP": (ORANGE, "s", 3.6),
    "AdaSSP, boosted": (ORANGE, "x", 3.6),
    "standardised": (PURPLE, "v", 3.6),
    ROBUST: (BLACK, "o", 3.6),
    OURS: (BLUE, "o", 5.0),
}
FARTHEST = 1e5


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Markdown of a table."""
    head = list(head)
    lines = (f"| {' | '.join(row)} |" for row in [head, *rows])
    return f"{next(lines)}\n|{'---|' * len(head)}\n" + "\n".join(lines)


def cells(found: dict, *kinds: bool) -> Iterator[tuple[str, str, str, dict]]:
    """Table; its name and size in its first cell; ε; entries. Kinds: sampled, split or drawn."""
    for kind in kinds:
        for name, block in found["tables"].items():
            if block["sampled"] is kind:
                size = f"{name} ({block['training_rows']:,} × {block['features']})"
                for epsilon, entries in block["budgets"].items():
                    yield name, size, epsilon, entries
                    size = ""


def wins(found: dict) -> str:
    """Who has the least mean held-out error of the private, by kind of table."""
    rows = []
    for label, kind in (("judged tables and laws", True), ("split or drawn tables", False)):
        least = Counter(
            min(PRIVATE, key=lambda name: entries[name]["error"][0])
            for *_, entries in cells(found, kind)
        )
        rows.append([label, str(least.total()), *(str(least[name]) for name in PRIVATE)])
    return table(["kind", "cells", *PRIVATE], rows)


def exceptions(found: dict) -> str:
    """Where a private peer's mean error is not above that of the default, worst first."""
    losses, total = [], 0
    for name, _, epsilon, entries in cells(found, True, False):
        total += 1
        errors = {who: entries[who]["error"][0] for who in PRIVATE}
        best, *others = sorted(PRIVATE_PEERS, key=errors.__getitem__)
        if errors[best] <= errors[OURS]:
            shown = [plus_minus(entries[who]["error"]) for who in (OURS, ROBUST, best)]
            also = "; ".join(who for who in others if errors[who] <= errors[OURS]) or "none"
            gap = plus_minus(entries[best]["less_ours"])
            row = [name, epsilon, *shown[:2], best, shown[2], gap, also]
            losses.append((errors[OURS] / errors[best], row))
    losses.sort(key=lambda loss: -loss[0])
    head = ["table", "ε", OURS, ROBUST, "best peer", "its error", "less ours", "also below ours"]
    return (
        f"The default is below every private peer in {total - len(losses)} of {total} cells, a "
        "cell being a table at a budget; not in these:\n\n"
    ) + table(head, (row for _, row in losses))


def ratios(found: dict) -> str:
    """Squared error about the population's coefficients over that of least squares."""
    rows = []
    for _, size, epsilon, entries in cells(found, True):
        pairs = [entries[name]["ratio"] for name in PRIVATE]
        least = min(ratio for ratio, _ in pairs)
        bold = ["**" if ratio == least else "" for ratio, _ in pairs]
        shown = (f"{mark}{plus_minus(pair)}{mark}" for mark, pair in zip(bold, pairs, strict=True))
        rows.append([size, epsilon, *shown])
    return table([*FIRST, *PRIVATE], rows)


def errors(found: dict, *, sampled: bool) -> str:
    """Held-out errors on the judged tables and laws, or on those that are split or drawn anew."""
    rows = (
        [size, epsilon, *(plus_minus(entries[name]["error"]) for name in PEERS)]
        for _, size, epsilon, entries in cells(found, sampled)
    )
    return table([*FIRST, *PEERS], rows)


def intervals(found: dict) -> str:
    """Coverage of slopes and length of those who have intervals."""

    def coverage(entry: dict) -> str:
        return plus_minus(entry["coverage"]) if "coverage" in entry else "unknown"

    def length(entry: dict) -> str:
        ratio = np.inf if entry["length_ratio"] is None else entry["length_ratio"]
        return f"{ratio:.3g}, {entry['infinite']:.2g}".replace("inf", "∞")

    head = [f"{name}: covers" for name in WITH_INTERVALS]
    head += [f"{name}: length, infinite" for name in WITH_INTERVALS[:-1]]
    rows = (
        [size, epsilon]
        + [coverage(entries[name]) for name in WITH_INTERVALS]
        + [length(entries[name]) for name in WITH_INTERVALS[:-1]]
        for _, size, epsilon, entries in cells(found, True, False)
    )
    return table(FIRST + head, rows)


def times(found: dict) -> str:
    """Median milliseconds a fit at the middle budget."""
    rows = []
    for name, block in found["tables"].items():
        entries = list(block["budgets"].values())[len(block["budgets"]) // 2]
        rows.append([name, *(f"{1000 * entries[who]['seconds']:.2g}" for who in PEERS)])
    return table(["table", *PEERS], rows)


def versions(found: dict) -> str:
    """Packages that ran."""
    return "\n".join(
        f"- {name}: " + ", ".join(map(" ".join, packages.items()))
        for name, packages in found["versions"].items()
    )


def plus_minus(pair: list[float]) -> str:
    """Mean ± standard error with the digits that the error leaves."""
    mean, spread = pair
    if mean >= LARGE:
        return f"{mean:.1e} ± {spread:.0e}"
    digits = 1 if spread <= 0 else max(0, min(4, 1 - int(np.floor(np.log10(spread)))))
    return f"{mean:,.{digits}f} ± {spread:,.{digits}f}"


def parts(found: dict) -> dict[str, str]:
    """Marked parts of the page."""
    return {
        "wins": wins(found),
        "exceptions": exceptions(found),
        "ratios": ratios(found),
        "sampled": errors(found, sampled=True),
        "errors": errors(found, sampled=False),
        "intervals": intervals(found),
        "times": times(found),
        "versions": versions(found),
    }


def page(text: str, found: dict) -> str:
    """A page whose marked parts are replaced by what `found` says."""
    for name, part in parts(found).items():
        before, rest = text.split(f"<!-- {name} -->\n")
        _, after = rest.split(f"<!-- end of {name} -->\n")
        text = f"{before}<!-- {name} -->\n{part}\n<!-- end of {name} -->\n{after}"
    return text


def draw(found: dict, output: Path) -> None:
    """Squared error over least squares', a panel for each ε."""
    blocks = {name: block for name, block in found["tables"].items() if block["sampled"]}
    places = np.arange(len(blocks))[::-1]
    with plotting.style():
        figure, axes = plotting.panels(1, 3, height=4.6, sharey=True)
        budgets = zip(*(block["budgets"].items() for block in blocks.values()), strict=True)
        for panel, budget in zip(axes, budgets, strict=True):
            for name, (colour, marker, size) in STYLES.items():
                far = [min(entries[name]["ratio"][0], FARTHEST) for _, entries in budget]
                face = "white" if name == ROBUST else colour
                panel.plot(far, places, marker, color=colour, mfc=face, ms=size, label=name)
            panel.axvline(1.0, color=BLACK, lw=0.7, ls="--")
            panel.set(xscale="log", title=f"ε = {budget[0][0]}", yticks=places)
            panel.set_xlabel("squared error over least squares'")
            panel.grid(axis="y", lw=0.3)
        axes[0].set_yticklabels(blocks)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        figure.savefig(output, metadata={"Software": None})
