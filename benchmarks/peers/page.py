"""The tables and the figure of docs/comparison.md from a summary of `judge`."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from judge import OURS, PRIVATE, PRIVATE_PEERS, ROBUST, WITH_INTERVALS

from reproduction.engine import plotting
from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY

# Colour, marker, size; ratios beyond the farthest are drawn at the edge.
STYLES = {
    "diffprivlib": (RED, "D", 3.6),
    "bins": (SKY, "P", 3.6),
    "OpenDP": (GREEN, "^", 3.6),
    "AdaSSP": (ORANGE, "s", 3.6),
    "AdaSSP, boosted": (ORANGE, "x", 3.6),
    "standardised": (PURPLE, "v", 3.6),
    "plain descent": (RED, "x", 3.6),
    ROBUST: (BLACK, "o", 3.6),
    OURS: (BLUE, "o", 5.0),
}
FARTHEST = 1e5


def plus_minus(pair: list[float]) -> str:
    """Mean ± standard error with the digits that the error leaves."""
    mean, spread = pair
    if mean >= 1e5:
        return f"{mean:.1e} ± {spread:.0e}"
    if spread == 0:
        return f"{mean:.4g}"
    digits = max(0, min(4, 1 - int(np.floor(np.log10(spread)))))
    return f"{mean:,.{digits}f} ± {spread:,.{digits}f}"


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table."""
    first, *lines = (f"| {' | '.join(map(str, row))} |" for row in (head, *rows))
    return "\n".join([first, "|" + "---|" * len([*head]), *lines])


def by_peer(cells: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    """Values of cells, a row for each table and budget and a column for each peer."""
    keys = [cells["size"].rename("table or law (n × p)"), cells["ε"], cells["peer"]]
    return values.set_axis(keys).unstack("peer", sort=False)


def shown(wide: pd.DataFrame) -> str:
    """Markdown of `by_peer`, which names a table once."""
    frame = wide.reset_index()
    frame.iloc[:, 0] = frame.iloc[:, 0].mask(frame.iloc[:, 0].duplicated(), "")
    return markdown(frame, frame.to_numpy())


def wins(cells: pd.DataFrame) -> str:
    """Who has the least mean held-out error of the private, by kind of table."""
    rows = []
    for label, kind in (("judged tables and laws", True), ("split or drawn tables", False)):
        some = cells[cells["sampled"] == kind]
        best = by_peer(some, some["error"].str[0])[[*PRIVATE]].idxmin(axis=1)
        rows.append([label, len(best), *(sum(best == peer) for peer in PRIVATE)])
    return markdown(["tables", "cells", *PRIVATE], rows)


def exceptions(cells: pd.DataFrame) -> str:
    """Cells where a private peer's mean error is below the default's, worst first."""
    losses = []
    budgets = cells.groupby(["table", "ε"], sort=False)
    for (name, epsilon), cell in budgets:
        entries = cell.set_index("peer")
        means, texts = entries["error"].str[0], entries["error"].map(plus_minus)
        below = means[[*PRIVATE_PEERS]].sort_values()
        best, *others = [*below[below <= means[OURS]].index] or [""]
        if best and sum(entries["less ours"][best]) < 0:
            row = [name, epsilon, texts[OURS], texts[ROBUST], best, texts[best]]
            losses.append((means[OURS] / means[best], [*row, "; ".join(others) or "none"]))
    losses.sort(reverse=True)
    head = ["table", "ε", OURS, ROBUST, "best peer", "error of best peer", "other better peers"]
    return (
        f"In {len(losses)} of {len(budgets)} cells the best private peer beats the default "
        "by more than one standard error of the difference:\n\n"
    ) + markdown(head, (row for _, row in losses))


def with_least(cells: pd.DataFrame, column: str) -> str:
    """Markdown of means and standard errors, the least of the private in bold."""
    values = by_peer(cells, cells[column].str[0])
    texts = by_peer(cells, cells[column].map(plus_minus))
    least = values.eq(values[[*PRIVATE]].min(axis=1), axis=0)
    return shown(texts.mask(least, "**" + texts + "**"))


def intervals(cells: pd.DataFrame) -> str:
    """Coverage of slopes, mean and least table, and range of lengths, by budget."""
    rows = []
    for (judged, epsilon), budget in cells.groupby(["sampled", "ε"], sort=False):
        row, lengths = ["judged" if judged else "split or drawn", epsilon], []
        for peer in WITH_INTERVALS:
            some = budget[budget["peer"] == peer]
            covers, length = some["coverage"].dropna().str[0], some["length"]
            row.append(f"{covers.mean():.3f} ({covers.min():.3f})")
            ends = f"{length.min():.3g} to {length.max():.3g}".replace("inf", "∞")
            lengths.append(f"{ends}, {some['infinite'].mean():.2f}")
        rows.append([*row, *lengths[:-1]])
    head = [f"{peer}: coverage (least)" for peer in WITH_INTERVALS]
    head += [f"{peer}: length, infinite" for peer in WITH_INTERVALS[:-1]]
    return markdown(["tables", "ε", *head], rows)


def parts(found: dict) -> dict[str, str]:
    """Marked parts of the page."""
    cells = pd.DataFrame(found["cells"])
    return {
        "wins": wins(cells),
        "exceptions": exceptions(cells),
        "ratios": with_least(cells[cells["sampled"] & cells["peer"].isin(PRIVATE)], "ratio"),
        "errors": with_least(cells[~cells["sampled"]], "error"),
        "intervals": intervals(cells),
        "versions": "\n".join(
            f"- {name}: " + ", ".join(map(" ".join, packages.items()))
            for name, packages in found["versions"].items()
        ),
    }


def page(text: str, found: dict) -> str:
    """A page whose marked parts are replaced by what `found` says."""
    for name, part in parts(found).items():
        marked = f"<!-- {name} -->\n{{}}<!-- end of {name} -->"
        text = re.sub(marked.format(".*?"), marked.format(f"{part}\n"), text, flags=re.S)
    return text


def draw(found: dict, output: Path) -> None:
    """Squared error over least squares', a panel for each ε."""
    cells = pd.DataFrame(found["cells"]).query("sampled")
    names = cells["table"].unique()
    places = np.arange(len(names))[::-1]
    ratios = by_peer(cells, cells["ratio"].str[0].clip(upper=FARTHEST))
    with plotting.style():
        budgets = [*ratios.groupby("ε", sort=False)]
        figure, axes = plotting.panels(1, len(budgets), height=4.6, sharey=True)
        for panel, (epsilon, budget) in zip(axes, budgets, strict=True):
            for name in filter(STYLES.get, budget):
                colour, marker, size = STYLES[name]
                face = "white" if name == ROBUST else colour
                panel.plot(
                    budget[name], places, marker, color=colour, mfc=face, ms=size, label=name
                )
            panel.axvline(1.0, color=BLACK, lw=0.7, ls="--")
            panel.set(xscale="log", title=f"ε = {epsilon}", yticks=places)
            panel.grid(axis="y", lw=0.3)
        axes[0].set_yticklabels(names)
        axes[len(axes) // 2].set_xlabel("squared error relative to least squares")
        named = axes[0].get_legend_handles_labels()
        figure.legend(*named, loc="outside lower center", ncols=5)
        figure.savefig(output, metadata={"Software": None})
