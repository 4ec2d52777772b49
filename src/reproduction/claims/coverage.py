"""Coverage: each numbered result, figure, table and quoted number of a paper, and what tests it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import yaml
from pydantic import Field, model_validator

from reproduction.claims.entries import Identifier, Statement, Text
from reproduction.claims.ledger import Ledger
from reproduction.claims.places import FORMS, places
from reproduction.engine.parameters import ConfigError, Strict, choose, validate

RESULTS = (
    "theorem", "lemma", "proposition", "corollary", "claim", "fact", "definition", "condition",
    "assumption", "remark", "conjecture", "algorithm", "figure", "table",
)  # fmt: skip

Answer = Literal["judged as stated", "narrower", "untested", "not judged"]


class Item(Strict):
    """One thing that a paper says, with the entries that test it or the reason why none does."""

    item: Text = Field(description="Theorem 4; Figure 2, panel 3; the abstract's rate.")
    says: Text
    entries: tuple[Identifier, ...] = ()
    narrower: Text | None = Field(
        None, description="How what the entries judge is narrower than what is said."
    )
    reason: Text | None = Field(None, description="Why nothing judges it.")

    @model_validator(mode="after")
    def _is_answered(self) -> Self:
        if not self.entries and self.reason is None:
            raise ValueError("one of entries and reason must be given")
        if self.narrower is not None and not self.entries:
            raise ValueError("entries must be given where they judge something narrower")
        return self


class Coverage(Strict):
    """A paper's list."""

    items: Annotated[tuple[Item, ...], Field(min_length=1)]
    untested: frozenset[Identifier] = Field(
        frozenset(), description="Entries of the ledger whose data cannot be had."
    )

    def answer(self, item: Item) -> Answer:
        """How the ledger answers an item; a reason beside entries says what they leave out."""
        if not item.entries:
            return "not judged"
        if self.untested.issuperset(item.entries):
            return "untested"
        return "judged as stated" if item.narrower is item.reason is None else "narrower"

    def count(self, answer: Answer) -> int:
        """Number of the items that are answered so."""
        return sum(self.answer(item) == answer for item in self.items)


def load_coverage(path: str | Path, ledger: Ledger) -> Coverage:
    """Read a paper's list and hold it and the ledger together.

    Raises
    ------
    ConfigError
        One line: an entry that the ledger does not have, an item that is there twice, or a
        statement of the ledger that no item names.
    """
    path = Path(path)
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    where = f"{ledger.paper}.coverage"
    found = validate(Coverage, {"items": raw} if isinstance(raw, list) else raw, where)
    seen: set[str] = set()
    for item in found.items:
        if item.item in seen:
            raise ConfigError(f"{where}.{item.item} must be there once, got it twice")
        seen.add(item.item)
        for name in item.entries:
            choose(name, ledger.entries, f"{where}.{item.item}.entries")
    named = {name for item in found.items for name in item.entries}
    for name, entry in ledger.entries.items():
        if isinstance(entry, Statement) and name not in named:
            raise ConfigError(f"{where} must name every statement, got none that names {name!r}")
    untested = frozenset(
        name for name, entry in ledger.entries.items() if entry.expect == "untested"
    )
    return found.model_copy(update={"untested": untested})


def unlisted(coverage: Coverage, text: str) -> list[str]:
    """Numbered results, figures and tables that a paper's text states and its list lacks."""
    listed = {place for item in coverage.items for place in places(item.item)}
    return [f"{kind} {number}" for kind, number in numbered(text) if (kind, number) not in listed]


def numbered(text: str) -> Iterator[tuple[str, str]]:
    """Kind and number of each result, figure and table that a text states, in its order.

    A line that opens with the name and number states it: "Theorem 4.", "Figure 3: Risk".
    """
    seen: set[tuple[str, str]] = set()
    forms = "|".join(f"(?P<{kind}>(?=[A-Z])(?i:{FORMS[kind]}))" for kind in RESULTS)
    stated = re.compile(
        rf"(?m)^[#*\s]*(?:{forms})\s*(?P<number>(?:[A-Z]\.)?\d+(?:\.\d+)*)(?!\.?\d)\s*(?=[.:(]|$)"
    )
    for found in stated.finditer(text):
        kind = next(kind for kind in RESULTS if found[kind])
        place = (kind, found["number"])
        if place not in seen:
            seen.add(place)
            yield place


def render(coverage: Coverage, ledger: Ledger, *, title: str) -> str:
    """Write a paper's list as Markdown."""
    size = len(coverage.items)
    counts = {answer: coverage.count(answer) for answer in get_args(Answer)}
    share = f"{100 * counts['judged as stated'] / size:.0f} %"
    counted = ", ".join(f"{number} {answer}" for answer, number in counts.items())
    lines = [
        f"# Coverage of {ledger.paper}",
        "",
        f"{title}. What is judged, from `config/coverage/{ledger.paper}.yaml`.",
        f"{size} items: {counted}; {share} judged as stated.",
        "",
        "| item | says | tested by, or why not |",
        "|---|---|---|",
    ]
    for item in coverage.items:
        tested = ", ".join(f"`{name}` ({ledger.entries[name].expect})" for name in item.entries)
        narrower = f"narrower: {item.narrower}" if item.narrower else ""
        answer = "; ".join(text for text in (tested, narrower, item.reason) if text)
        lines.append(f"| {_cell(item.item)} | {_cell(item.says)} | {_cell(answer)} |")
    return "\n".join(lines) + "\n"


def draft(ledger: Ledger, text: str) -> list[dict[str, Any]]:
    """A list to start from: what the text numbers, with the statements at that place."""
    by_place: dict[tuple[str, str], list[str]] = {}
    for entry in ledger.entries.values():
        if isinstance(entry, Statement):
            for place in places(entry.where):
                by_place.setdefault(place, []).append(entry.id)
    items = [_item(place, by_place.pop(place, [])) for place in numbered(text)]
    named = {name for item in items for name in item.get("entries", [])}
    for place, names in by_place.items():
        left = [name for name in names if name not in named]
        if left:
            items.append(_item(place, left))
            named.update(left)
    left = [
        name
        for name, entry in ledger.entries.items()
        if isinstance(entry, Statement) and name not in named
    ]
    if left:
        items.append({"item": "Elsewhere", "says": "To be said.", "entries": left})
    return items


def _item(place: tuple[str, str], names: list[str]) -> dict[str, Any]:
    kind, number = place
    shown = f"({number})" if kind == "equation" else number
    item: dict[str, Any] = {"item": f"{kind.capitalize()} {shown}", "says": "To be said."}
    return item | ({"entries": names} if names else {"reason": "Not tested yet."})


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
