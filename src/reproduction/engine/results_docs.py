"""The ledgers, with the verdicts that they expect, as Markdown for the site and the README."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from typing import Any

from reproduction.engine.code import SOURCE
from reproduction.engine.ledger import Item, Ledger, Statement
from reproduction.engine.page import (
    CHANGE_MEANINGS,
    MEANINGS,
    ORDER,
    by_place,
    gravest_first,
    templates,
)
from reproduction.engine.registry import citation
from reproduction.engine.verdicts import KINDS, tally

# A figure on a page: its paper and name, its caption, and what is seen.
# Verdicts with a column of their own.
SHOWN = [*MEANINGS][:4]
FIGURE = re.compile(r"^\*\*(\w+/\w+)\.\*\* (.*(?:\n.+)*)\n\n\*What is seen\.\* (.*)$", re.MULTILINE)


def overview(ledgers: Sequence[Ledger]) -> str:
    """The site's first page of results."""
    found = {f"[{each.paper}](results/{each.paper}.md)": _statements(each) for each in ledgers}
    counted = [tally((one.expect, one.slip) for one in each).total() for each in found.values()]
    return _written(
        "results.md", ledgers=ledgers, counts=_counts_by("paper", found), counted=sum(counted)
    )


def drawn_pages(ledgers: Sequence[Ledger], drawings: Mapping[str, Any]) -> dict[str, str]:
    """The findings that matter most to a user of the papers, and captions of all figures."""
    heads = [(each, f) for each in ledgers for f in each.findings.values() if f.foremost]
    heads.sort(key=lambda pair: pair[1].foremost.rank)  # type: ignore[union-attr]
    given = {"foremost": heads, "drawings": drawings}
    return {name: _written(name, **given) for name in ("wrong.md", "gallery.md")}


def paper_page(ledger: Ledger, drawings: Mapping[str, Mapping[str, Any]]) -> str:
    """Results of a paper: counts, statements that do not hold as printed, findings, figures."""
    found = _statements(ledger)
    by_kind = {kind: [each for each in found if each.kind == kind] for kind in KINDS}
    counts = _counts_by("kind", by_kind | {"all": found})
    verdicts = _verdicts(found)
    return _written("paper.md", ledger=ledger, counts=counts, verdicts=verdicts, drawings=drawings)


def coverage_page(ledger: Ledger, items: Sequence[Item]) -> str:
    """Entries of a paper by place and by topic, then statements that none judges as stated."""
    index: dict[str, dict[str, list[Any]]] = {word: {} for word in ORDER}
    named: list[tuple[str, Any]] = [(each.where, each) for each in _statements(ledger)]
    named += [("; ".join(each.places), each) for each in ledger.findings.values()]
    for place, found in by_place(named).items():
        if (word := place.partition(" ")[0]) in index:
            index[word][place] = found
    return _written("coverage.md", ledger=ledger, index=index, items=items)


def counts_list(ledgers: Sequence[Ledger]) -> str:
    """Each paper with its statements by verdict, as Markdown for the README."""
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    site, lines = project["project"]["urls"]["Documentation"], []
    for paper, found in ((each.paper, _statements(each)) for each in ledgers):
        *shown, other = _verdicts(found)
        counts = ", ".join(f"{name} {own}" for name, own in zip(SHOWN, shown, strict=True))
        about = citation(paper)
        title = f"[{about.title}]({about.url})" if about.url else about.title
        if found:
            told = f"**[{paper}]({site}results/{paper}.html)**: {counts}, other {other}"
            lines.append(f"- {told}. {title}. {about.authors} ({about.year})")
    return "\n".join(lines)


def with_pictures(text: str, drawn: Container[str], folder: str) -> str:
    """Page with pictures from a folder in place of their descriptions."""
    picture = rf"![\3]({folder}/\1.png)\n\n**\1.** \2"
    return FIGURE.sub(lambda found: found.expand(picture) if found[1] in drawn else found[0], text)


def _written(template: str, **given: Any) -> str:
    environment = templates(autoescape=False)
    environment.filters |= {"plain": _plain, "statements": _statements, "citation": citation}
    environment.filters["slips"] = lambda ledger: gravest_first(ledger.findings.values())
    environment.globals |= {"meanings": MEANINGS, "changes": CHANGE_MEANINGS}
    return f"{environment.get_template(template).render(given).rstrip()}\n"


def _statements(ledger: Ledger) -> list[Statement]:
    return [entry for entry in ledger.entries.values() if isinstance(entry, Statement)]


def _counts_by(what: str, found: Mapping[str, Sequence[Statement]]) -> str:
    rows = [f"| {what} | {' | '.join(SHOWN)} | other |", f"|---|{'---:|' * 5}"]
    for name, statements in ((name, each) for name, each in found.items() if each):
        rows.append(f"| {name} | {' | '.join(map(str, _verdicts(statements)))} |")
    return "\n".join(rows)


def _verdicts(statements: Sequence[Statement]) -> list[int]:
    """Numbers of statements with each verdict in `SHOWN`, and with others."""
    verdicts = tally((each.expect, each.slip) for each in statements)
    return [*(verdicts.pop(verdict, 0) for verdict in SHOWN), verdicts.total()]


def _plain(text: str) -> str:
    """Text in which nothing is markup: powers, products and names with underscores stay."""
    return re.sub(r"([\\*_>\[\]|`])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")
