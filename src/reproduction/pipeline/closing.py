"""What a finished run says: its gate with the verdicts by kind, the page, how long it took."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reproduction.pipeline.layout import PAPERS, STUDIES, Layout, book_of

FORMS = {"day": 86400, "h": 3600, "min": 60, "s": 1}


NAMES = {PAPERS: "the papers", STUDIES: "the studies"}


def books_of(targets: Iterable[str]) -> list[str]:
    """Which pages and gates the targets of a run concern; those of the papers if none is named.

    Examples
    --------
    >>> books_of(["studies"]), books_of(["results/figures/studies/audits.pdf", "all"])
    (['studies/'], ['', 'studies/'])
    """
    named = {STUDIES if "studies" in Path(each).parts else PAPERS for each in targets}
    return [book for book in NAMES if book in (named or {PAPERS})]


def closing_lines(
    layout: Layout, *, seconds: float, stand_ins: dict[str, list[str]], books: Iterable[str] = NAMES
) -> list[str]:
    """The last lines of a run; a gate is left out where no ledger was written.

    Parameters
    ----------
    layout : Layout
        Where the run's files lie.
    books : iterable of str
        The pages and gates that the run concerns.
    seconds : float
        How long the run took, at least 0.
    stand_ins : dict
        Figures that a table would be drawn with, by table; those whose table is a stand-in are
        named.
    """
    from reproduction.engine.verdicts import from_json, summary

    books, lines = list(books), []
    for book in books:
        ledger = Path(layout.ledger("json", book))
        if ledger.is_file():
            lines.append(f"Gate of {NAMES[book]}: {summary(from_json(ledger.read_bytes()))}")
    drawn = sorted(
        figure
        for dataset, figures in stand_ins.items()
        if _is_stand_in(Path(layout.data(dataset)))
        for figure in figures
        if book_of(figure.partition("/")[0]) in books
    )
    if drawn:
        lines.append(f"Stand-ins, not the real tables: {', '.join(drawn)}")
    pages = [layout.page(book) for book in books]
    lines += [f"Page to open: {page}" for page in pages if Path(page).is_file()]
    lines.append(f"Took {duration(seconds)}")
    return lines


def _is_stand_in(path: Path) -> bool:
    if not path.is_file():
        return False
    from netCDF4 import Dataset

    with Dataset(path) as file:
        return bool(file.getncattr("stand_in"))


def duration(seconds: float) -> str:
    """A time in its two largest units.

    Examples
    --------
    >>> duration(0.2), duration(75), duration(7000)
    ('less than a second', '1 min 15 s', '1 h 56 min')
    """
    left, parts = round(seconds), []
    for unit, size in FORMS.items():
        share, left = divmod(left, size)
        if share:
            parts.append(f"{share} {unit}")
    return " ".join(parts[:2]) or "less than a second"
