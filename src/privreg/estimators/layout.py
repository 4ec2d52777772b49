"""Parts of a report as text and as HTML: a title, a table, sentences."""

from __future__ import annotations

import html
from collections.abc import Sequence

from privreg.ranges import short

# Title, head of a table, its rows, and sentences.
Part = tuple[str, tuple[str, ...] | None, list[tuple[str, ...]], list[str]]
TABLE = "border-collapse:collapse;margin:.5em 0;font-variant-numeric:tabular-nums"
NUMBER = "text-align:right;padding-left:1.5em;white-space:nowrap"
# A browser that is told no encoding takes one in which accents of column names are others.
OPENING = (
    '<!DOCTYPE html>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    "<title>Private linear regression</title>\n"
    '<section class="privreg-report" style="font-family:system-ui,sans-serif;line-height:1.4;'
    'max-width:60em;margin:1em auto;padding:0 1em">'
)


def require_names(names: Sequence[str], *, size: int) -> Sequence[str]:
    """A text for each coefficient."""
    listed = isinstance(names, (list, tuple)) and len(names) == size
    if not listed or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be {size} texts, got {short(names)}")
    return names


def printable(text: str) -> str:
    """A text in which control characters, as a column's name may hold them, are written out."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def escape(text: str) -> str:
    return html.escape(printable(text))


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, the first column to the left and all others to the right."""
    table = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(head))]
    return [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in table
    ]


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls by itself where the page is narrower."""
    cells = "".join(f'<th scope="col" style="{NUMBER}">{escape(cell)}</th>' for cell in head)
    found = [
        f'<div style="overflow-x:auto"><table style="{TABLE}"><thead><tr>{cells}</tr></thead>'
        "<tbody>"
    ]
    for row in rows:
        inside = "".join(f'<td style="{NUMBER}">{escape(cell)}</td>' for cell in row[1:])
        name = f'<th scope="row" style="text-align:left">{escape(row[0])}</th>'
        found.append(f"<tr>{name}{inside}</tr>")
    return "\n".join([*found, "</tbody></table></div>"])


def as_text(parts: Sequence[Part]) -> str:
    """The parts one below the other."""
    lines: list[str] = []
    for title, head, rows, sentences in parts:
        lines.extend([title, "-" * len(title)])
        if head is not None:
            lines.extend(text_table(head, rows))
        lines.extend([f"- {printable(sentence)}" for sentence in sentences])
        lines.append("")
    return "\n".join(lines)


def as_html(parts: Sequence[Part], pictures: dict[str, str]) -> str:
    """A page of its own; a picture stands between the table of its part and the sentences."""
    found = [OPENING]
    for title, head, rows, sentences in parts:
        found.append(f"<h3>{escape(title)}</h3>")
        if head is not None:
            found.append(html_table(head, rows))
        found.append(pictures.get(title, ""))
        if sentences:
            listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
            found.append(f"<ul>{listed}</ul>")
    found.append("</section>")
    return "\n".join(filter(None, found))
