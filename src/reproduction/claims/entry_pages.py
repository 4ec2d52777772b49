"""A page for each entry and finding: one small file that can be sent alone.

Its address is `<paper>/<entry>.html` below the folder of all such pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from reproduction.claims.page import MEANINGS, SEVERITY_MEANINGS, embedded, front, source, templates
from reproduction.claims.records import Book, FindingRecord, Record
from reproduction.claims.verdicts import CheckResult
from reproduction.claims.wording import number, series, with_error

WIDTH = 640


def render(
    book: Book,
    *,
    papers: Mapping[str, Mapping[str, str]],
    drawings: Mapping[str, Mapping[str, Any]],
    images: Mapping[tuple[str, str], bytes],
    made_by: str = "",
) -> Iterator[tuple[str, str]]:
    """Write a page for each entry and finding of a ledger; arguments as of `page.render`.

    Yields
    ------
    str
        Address below the folder of the pages, `bombari2025/ode-tracks-dpgd.html`.
    str
        HTML.
    """
    environment = templates()
    environment.filters["sentences"] = sentences
    template = environment.get_template("entry.html")
    about_book = front(book)
    records = {record.key: record for record in book.records}
    small = {key: embedded(image, width=WIDTH) for key, image in images.items()}
    entries: tuple[Record | FindingRecord, ...] = (*book.records, *book.findings)
    for entry in entries:
        shown = _shown(entry, records)
        figures = dict.fromkeys(record.figure for record in shown if record.figure)
        text = template.render(
            entry=entry,
            finding=isinstance(entry, FindingRecord),
            records=shown,
            by_key=records,
            about=papers.get(entry.paper, {}),
            figures=[
                (name, drawings.get(entry.paper, {}).get(name), small.get((entry.paper, name)))
                for name in figures
            ],
            front=about_book,
            style=Markup(source("page.css") + source("entry.css")),
            meanings=MEANINGS,
            severity_meanings=SEVERITY_MEANINGS,
            command=_command(shown),
            made_by=made_by,
        )
        yield f"{entry.paper}/{entry.id}.html", text


def sentences(seen: CheckResult) -> list[str]:
    """What a check saw, what it asks and by how much it holds, as sentences."""
    if seen.observed is None:
        return [f"It asks for {seen.expected}; nothing was observed: {seen.reason}."]
    what = f"{seen.meaning} ({seen.variable})" if seen.meaning else seen.variable
    at = f", at {seen.select}" if seen.select else ""
    over = f" over {seen.trials} trials" if seen.trials is not None else ""
    found = [
        f"Observed{over}: {with_error(seen.observed, seen.standard_error)}, for {what}{at}.",
        f"Asked: {seen.expected}.",
    ]
    if seen.outcome == "passed" and seen.margin is not None:
        error = seen.margin_standard_error
        noise = f", {number(abs(seen.margin) / error, 2)} standard errors" if error else ""
        found.append(f"It holds with {number(seen.margin, 3)} to spare{noise}.")
    elif seen.reason:
        found.append(f"{seen.outcome.capitalize()}: {seen.reason}.")
    if seen.trials_needed is not None:
        found.append(f"{seen.trials_needed} trials would decide.")
    if seen.rejected:
        found.append(f"The check refuses {'; '.join(map(series, seen.rejected))}.")
    return found


def _shown(entry: Record | FindingRecord, records: Mapping[str, Record]) -> list[Record]:
    if isinstance(entry, Record):
        return [entry]
    return [records[f"{entry.paper}-{name}"] for name in entry.shown_by]


def _command(shown: Sequence[Record]) -> str:
    """The command that rebuilds the evidence of all of these."""
    if not shown:
        return ""
    first, *others = (record.command for record in shown)
    return " ".join([first, *(other.removeprefix("snakemake ") for other in others)])
