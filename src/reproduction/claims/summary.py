"""The ledger for who only browses the repository: counts, findings and figures in words.

It is written from the ledgers alone, with the verdicts that they expect: the gate fails a run that
finds others. The site puts the pictures of a build in the place of the words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any

from reproduction.claims.entries import Statement
from reproduction.claims.ledger import Ledger
from reproduction.claims.records import CROSS_CHECK_VERDICTS, KINDS, SEVERITIES, STATEMENT_VERDICTS

COUNTS = ("<!-- counts: begin -->", "<!-- counts: end -->")
# A figure on a page: its paper and name, its caption, and what is seen.
FIGURE = re.compile(r"^\*\*(\w+/\w+)\.\*\* (.*(?:\n.+)*)\n\n\*What is seen\.\* (.*)$", re.MULTILINE)


def render(
    ledgers: Sequence[Ledger],
    *,
    titles: Mapping[str, str],
    drawings: Mapping[str, Mapping[str, Any]],
) -> str:
    """Write the results as Markdown.

    Parameters
    ----------
    ledgers : sequence of Ledger
    titles : mapping
        Title of each paper, by citation key.
    drawings : mapping
        Citation key to the figures and tables by name, with `kind`, `caption`, `alt` and `beside`.
    """
    lines = [
        "# Results",
        "",
        "Written by `snakemake docs` from the ledgers in `config/claims/`. The verdicts are those",
        "that `snakemake results/gate.txt` demands of a run: it fails where it finds others.",
        "`snakemake claims` makes the page with the evidence, `results/index.html`;",
        "[the ledger](ledger.md) explains what counts. The studies are of what the library",
        "promises itself: `snakemake studies` makes their gate and page in `results/studies`.",
        "",
        "## Statements of the papers",
        "",
        *counts_table(ledgers),
        "",
        "By kind, reproduced of all:",
        "",
        *_kinds_table(ledgers),
        "",
        "## Findings",
        "",
        "One entry a slip of a paper, however many statements show it.",
        "",
    ]
    for ledger in ledgers:
        lines += _findings(ledger, titles.get(ledger.paper, ledger.paper))
    lines += [
        "## Figures",
        "",
        "`snakemake all studies` draws them, `results/figures/<paper>/<figure>.png`; a site built",
        "afterwards shows them here. A sentence below a figure of a paper says how ours compares",
        "with what the paper's caption and text say of its own.",
        "",
    ]
    for ledger in ledgers:
        figures = {
            name: about
            for name, about in drawings.get(ledger.paper, {}).items()
            if about["kind"] == "figure"
        }
        if figures:
            lines += [f"### {titles.get(ledger.paper, ledger.paper)}", ""]
        for name, about in figures.items():
            lines += [f"**{ledger.paper}/{name}.** {_plain(about['caption'])}", ""]
            if about["alt"]:
                lines += [f"*What is seen.* {_plain(about['alt'])}", ""]
            if about["beside"]:
                lines += [f"*Beside the paper's figure.* {_plain(about['beside'])}", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def counts_table(ledgers: Sequence[Ledger]) -> list[str]:
    """Lines of a Markdown table: statements by verdict, cross-checks and findings of each paper."""
    rows = [["paper", *STATEMENT_VERDICTS, "findings", "cross-checks passed"]]
    for ledger in ledgers:
        statements, cross_checks = _expected(ledger)
        rows.append(
            [
                ledger.paper,
                *(str(statements[name]) for name in STATEMENT_VERDICTS),
                str(len(ledger.findings)),
                f"{cross_checks['passed']} of {sum(cross_checks.values())}",
            ]
        )
    return _table(rows)


def with_counts(text: str, ledgers: Sequence[Ledger]) -> str:
    """A text, README say, with the table of counts between its two markers.

    Raises
    ------
    ValueError
        The markers are not there.
    """
    begin, end = COUNTS
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"text must hold {begin} and {end} once each")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    table = "\n".join(counts_table(ledgers))
    return f"{before}{begin}\n{table}\n{end}{after}"


def with_pictures(text: str, drawn: Container[str], folder: str) -> str:
    """A page with pictures in place of the words that say what is seen, where they are drawn.

    Parameters
    ----------
    text : str
        Markdown with figures as `render` writes them.
    drawn : container of str
        `<paper>/<figure>` of each picture that there is.
    folder : str
        Where the pictures lie, as seen from the page.
    """

    def picture(found: re.Match[str]) -> str:
        name, caption, seen = found.groups()
        return (
            f"![{seen}]({folder}/{name}.png)\n\n**{name}.** {caption}"
            if name in drawn
            else found[0]
        )

    return FIGURE.sub(picture, text)


def _expected(ledger: Ledger) -> tuple[Counter[str], Counter[str]]:
    statements: Counter[str] = Counter(dict.fromkeys(STATEMENT_VERDICTS, 0))
    cross_checks: Counter[str] = Counter(dict.fromkeys(CROSS_CHECK_VERDICTS, 0))
    for entry in ledger.entries.values():
        (statements if isinstance(entry, Statement) else cross_checks)[entry.expect] += 1
    return statements, cross_checks


def _kinds_table(ledgers: Sequence[Ledger]) -> list[str]:
    rows = [["paper", *KINDS]]
    for ledger in ledgers:
        if not _expected(ledger)[0].total():
            continue
        listed = [entry for entry in ledger.entries.values() if isinstance(entry, Statement)]
        cells = []
        for kind in KINDS:
            of_kind = [entry for entry in listed if entry.kind == kind]
            sound = sum(entry.expect == "reproduced" for entry in of_kind)
            cells.append(f"{sound} of {len(of_kind)}" if of_kind else "–")
        rows.append([ledger.paper, *cells])
    return _table(rows)


def _findings(ledger: Ledger, title: str) -> list[str]:
    if not ledger.findings:
        return []
    lines = [f"### {title}", ""]
    found = sorted(ledger.findings.values(), key=lambda item: SEVERITIES.index(item.severity))
    for finding in found:
        lines += [
            f"- **{_plain('; '.join(finding.places))}** ({finding.severity}).",
            f"    - Says: {_plain(finding.printed)}",
            f"    - Holds: {_plain(finding.holds)}",
            f"    - How we know: {_plain(finding.how_we_know)}",
            f"    - What it changes: {_plain(finding.downstream)}",
        ]
    return [*lines, ""]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = rows
    return [
        "| " + " | ".join(head) + " |",
        "|" + "|".join(["---", *(["---:"] * (len(head) - 1))]) + "|",
        *("| " + " | ".join(row) + " |" for row in body),
    ]


def _plain(text: str) -> str:
    """Text in which nothing is markup: powers, products and names with underscores stay."""
    flat = " ".join(text.split())
    for mark in "\\*_<>[]|`":
        flat = flat.replace(mark, f"\\{mark}")
    return flat
