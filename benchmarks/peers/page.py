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
    return markdown(["kind", "cells", *PRIVATE], rows)


def exceptions(cells: pd.DataFrame) -> str:
    """Where a private peer's mean error is not above that of the default, worst first."""
    losses = []
    budgets = cells.groupby(["table", "ε"], sort=False)
    for (name, epsilon), cell in budgets:
        entries = cell.set_index("peer")
        means, texts = entries["error"].str[0], entries["error"].map(plus_minus)
        below = means[[*PRIVATE_PEERS]].sort_values()
        below = below[below <= means[OURS]]
        if len(below):
            best, *others = below.index
            gap = plus_minus(entries["less ours"][best])
            row = [name, epsilon, texts[OURS], texts[ROBUST], best, texts[best], gap]
            losses.append((means[OURS] / means[best], [*row, "; ".join(others) or "none"]))
    losses.sort(reverse=True)
    head = ["table", "ε", OURS, ROBUST, "best peer", "its error", "less ours", "also below ours"]
    return (
        f"The default is below every private peer in {len(budgets) - len(losses)} of "
        f"{len(budgets)} cells, a cell being a table at a budget; not in these:\n\n"
    ) + markdown(head, (row for _, row in losses))


def ratios(cells: pd.DataFrame) -> str:
    """Squared error about the population's coefficients over that of least squares."""
    private = cells[cells["sampled"] & cells["peer"].isin(PRIVATE)]
    values = by_peer(private, private["ratio"].str[0])
    texts = by_peer(private, private["ratio"].map(plus_minus))
    least = values.eq(values.min(axis=1), axis=0)
    return shown(texts.mask(least, "**" + texts + "**"))


def intervals(cells: pd.DataFrame) -> str:
    """Coverage of slopes and length of those who have intervals."""
    some = cells[cells["peer"].isin(WITH_INTERVALS)]
    covers = some["coverage"].map(plus_minus, na_action="ignore").fillna("unknown")
    lengths = some["length"].map("{:.3g}, ".format) + some["infinite"].map("{:.2g}".format)
    lengths = by_peer(some, lengths.str.replace("inf", "∞")).drop(columns=WITH_INTERVALS[-1])
    covers = by_peer(some, covers).add_suffix(": covers")
    return shown(covers.join(lengths.add_suffix(": length, infinite")))


def times(cells: pd.DataFrame) -> str:
    """Median milliseconds a fit at the middle budget of either kind."""
    middle = cells[cells["ε"].isin(["1", "1.71"])]
    return shown(by_peer(middle, (1000 * middle["seconds"]).map("{:.2g}".format)))


def parts(found: dict) -> dict[str, str]:
    """Marked parts of the page."""
    cells = pd.DataFrame(found["cells"])
    errors = by_peer(cells, cells["error"].map(plus_minus))
    judged = by_peer(cells, cells["sampled"])[OURS]
    return {
        "wins": wins(cells),
        "exceptions": exceptions(cells),
        "ratios": ratios(cells),
        "sampled": shown(errors[judged]),
        "errors": shown(errors[~judged]),
        "intervals": intervals(cells),
        "times": times(cells),
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
        figure, axes = plotting.panels(1, ratios.index.unique("ε").size, height=4.6, sharey=True)
        for panel, (epsilon, budget) in zip(axes, ratios.groupby("ε", sort=False), strict=True):
            for name, (colour, marker, size) in STYLES.items():
                face = "white" if name == ROBUST else colour
                panel.plot(
                    budget[name], places, marker, color=colour, mfc=face, ms=size, label=name
                )
            panel.axvline(1.0, color=BLACK, lw=0.7, ls="--")
            panel.set(xscale="log", title=f"ε = {epsilon}", yticks=places)
            panel.set_xlabel("squared error over least squares'")
            panel.grid(axis="y", lw=0.3)
        axes[0].set_yticklabels(names)
        named = axes[0].get_legend_handles_labels()
        figure.legend(*named, loc="outside lower center", ncols=5)
        figure.savefig(output, metadata={"Software": None})
