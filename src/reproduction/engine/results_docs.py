"""The ledgers as Markdown: the site's page of results and the README's counts.

They are written from the ledgers alone, with the verdicts that they expect: the gate fails a run
that finds others. The site puts the pictures of a build in the place of the words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from reproduction.engine.ledger import Ledger, Statement
from reproduction.engine.verdicts import KINDS, SEVERITIES, STATEMENT_VERDICTS

# A figure on a page: its paper and name, its caption, and what is seen.
FIGURE = re.compile(r"^\*\*(\w+/\w+)\.\*\* (.*(?:\n.+)*)\n\n\*What is seen\.\* (.*)$", re.MULTILINE)


def render(
    ledgers: Sequence[Ledger],
    *,
    titles: Mapping[str, str],
    drawings: Mapping[str, Mapping[str, Any]],
) -> str:
    """The page of results, with titles by citation key and drawings by key and name."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = _plain
    text = environment.get_template("results.md").render(
        ledgers=ledgers,
        titles=titles,
        drawings=drawings,
        counts=counts_table(ledgers),
        kinds=_kinds_table(ledgers),
        severities=SEVERITIES,
    )
    return f"{text.rstrip()}\n"


def counts_table(ledgers: Sequence[Ledger]) -> str:
    """Statements by verdict, cross-checks and findings of each paper, as a Markdown table."""
    rows = [["paper", *STATEMENT_VERDICTS, "findings", "cross-checks passed"]]
    for ledger in ledgers:
        statements: Counter[str] = Counter(entry.expect for entry in _statements(ledger))
        checks = [each for each in ledger.entries.values() if not isinstance(each, Statement)]
        passed = sum(check.expect == "passed" for check in checks)
        counts = [*(statements[name] for name in STATEMENT_VERDICTS), len(ledger.findings)]
        rows.append([ledger.paper, *map(str, counts), f"{passed} of {len(checks)}"])
    return _table(rows)


def with_pictures(text: str, drawn: Container[str], folder: str) -> str:
    """A page with pictures from a folder in place of the words that say what is seen on them."""

    def picture(found: re.Match[str]) -> str:
        name, caption, seen = found.groups()
        if name not in drawn:
            return found[0]
        return f"![{seen}]({folder}/{name}.png)\n\n**{name}.** {caption}"

    return FIGURE.sub(picture, text)


def _statements(ledger: Ledger) -> list[Statement]:
    return [entry for entry in ledger.entries.values() if isinstance(entry, Statement)]


def _kinds_table(ledgers: Sequence[Ledger]) -> str:
    rows = [["paper", *KINDS]]
    for ledger in ledgers:
        if found := _statements(ledger):
            of_kind = {
                kind: [entry.expect == "reproduced" for entry in found if entry.kind == kind]
                for kind in KINDS
            }
            cells = [f"{sum(each)} of {len(each)}" if each else "–" for each in of_kind.values()]
            rows.append([ledger.paper, *cells])
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" + "|---:" * (len(rows[0]) - 1) + "|", *body])


def _plain(text: str) -> str:
    """Text in which nothing is markup: powers, products and names with underscores stay."""
    return re.sub(r"([\\*_<>\[\]|`])", r"\\\1", " ".join(text.split()))
