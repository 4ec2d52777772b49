"""Statements that read a part of their evidence, and which of their words name that part."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from reproduction.claims import checks
from reproduction.claims.entries import Probe, Statement, Topic
from reproduction.claims.evidence import Label
from reproduction.claims.known import Known, Labels
from reproduction.claims.ledger import Ledger
from reproduction.claims.observation import positions

NUMBER = r"\d+(?:\.\d+)?(?:e[-+]?\d+)?"
# A range of a numeric coordinate, and how far a label's number may stand from its name.
RANGE = re.compile(r"\b(?:from|up to|between)\b")
NEAR = 30
NOTHING = Known(variables={})
NUMBERS = re.compile(rf"({NUMBER})\^\(?(-?{NUMBER})\)?|({NUMBER})/({NUMBER})|(-?{NUMBER})")


@dataclass(frozen=True)
class Subset:
    """A part of a variable that a statement reads, of all checks together.

    Attributes
    ----------
    entry, variable, dimension : str
        Id; ARTIFACT.VARIABLE; the dimension of which labels are left out.
    read, left : tuple of str
        Labels that are read, and those that are not.
    reason : str or None
        The words of the entry that name what is read; None where none do.
    """

    entry: str
    variable: str
    dimension: str
    read: tuple[str, ...]
    left: tuple[str, ...]
    reason: str | None


def subsets(ledger: Ledger, known: Mapping[str, Known]) -> list[Subset]:
    """The parts of artifacts that a ledger's statements read, in order.

    A label is named by its words, by its number, or by a range of numbers; a list that reaches the
    end of its coordinate, by the number from which it goes.

    Parameters
    ----------
    ledger : Ledger
    known : mapping
        What is known of each artifact; of one that is left out nothing is said.
    """
    return [
        found
        for topic in ledger.topics
        for statement in topic.statements
        for found in _of(topic, statement, known)
    ]


def _of(topic: Topic, statement: Statement, known: Mapping[str, Known]) -> Iterator[Subset]:
    words = _words(topic, statement)
    read: dict[tuple[str, str, str], set[int]] = {}
    for probe in (probe for run in statement.runs for probe in run.checks):
        evidence = probe.evidence
        about = known.get(evidence.artifact, NOTHING)
        for dimension in about.variables.get(evidence.variable, ()):
            at = evidence.artifact, evidence.variable, dimension
            read.setdefault(at, set()).update(_positions(probe, about, dimension))
    for (artifact, variable, dimension), kept in read.items():
        about = known[artifact]
        left = set(range(about.sizes.get(dimension, 0))) - kept
        if left:
            along = [
                each.labels
                for each in about.coordinates.values()
                if each.dimension == dimension and each.labels is not None
            ]
            shown = [tuple(str(along[0][place]) for place in sorted(part)) for part in (kept, left)]
            reason = _reason(words, along, kept, left)
            name = f"{artifact}.{variable}"
            yield Subset(statement.id, name, dimension, shown[0], shown[1], reason)


def _positions(probe: Probe, about: Known, dimension: str) -> set[int]:
    """Where a check reads along a dimension."""
    selected: dict[str, Label | tuple[Label, ...]] = dict(probe.evidence.select)
    if isinstance(probe.check, checks.Ordered):
        selected[probe.check.dimension] = probe.check.labels
    kept = set(range(about.sizes.get(dimension, 0)))
    for name, wanted in selected.items():
        coordinate = about.coordinates.get(name)
        if coordinate and coordinate.dimension == dimension and coordinate.labels is not None:
            kept &= set(positions(np.asarray(coordinate.labels), wanted, name))
    return kept


def _words(topic: Topic, statement: Statement) -> tuple[str, ...]:
    """What an entry says, each text by itself, those that say why first."""
    labels = [
        text
        for run in statement.runs
        for text in (run.label, *(probe.label for probe in run.checks))
        if text
    ]
    name = statement.id.replace("-", " ")
    said = (*statement.ours, statement.statement, statement.where, *labels, statement.note, name)
    return tuple(text for text in (*said, topic.about, topic.topic) if text)


def _reason(
    words: tuple[str, ...], along: list[Labels], kept: set[int], left: set[int]
) -> str | None:
    """The text that names all that is read and least of the rest, or texts that do so together.

    One that names all that is left out as well tells nothing.
    """
    named = {text: set().union(*(_named(text, labels) for labels in along)) for text in words}
    telling = {text: found for text, found in named.items() if found and not left <= found}
    whole = [text for text, found in telling.items() if kept <= found]
    if whole:
        return min(whole, key=lambda text: len(telling[text] & left))
    parts = [text for text, found in telling.items() if found & kept and not found & left]
    together = set().union(*(telling[text] for text in parts))
    return "; ".join(parts) if kept <= together else None


def _named(text: str, labels: Labels) -> set[int]:
    """Places of the labels that a text names."""
    if any(isinstance(label, str) for label in labels):
        named = {place for place, label in enumerate(labels) if _says(text, str(label))}
        # "private linear" does not name "linear".
        whole = {place: _plain(str(labels[place])) for place in named}
        return {
            place
            for place, words in whole.items()
            if _numbers(words) or sum(words in each for each in whole.values()) == 1
        }
    numbers = _numbers(text)
    named = {place for place, value in enumerate(labels) if _among(float(value), numbers)}
    if named and RANGE.search(text):
        named |= set(range(min(named), max(named) + 1))
        if len(named) == 1:
            named |= set(range(min(named), len(labels)))
    return named


def _says(text: str, label: str) -> bool:
    """Whether a text names a label: its words, or its name and soon its number."""
    name, equals, value = label.partition("=")
    wanted = _numbers(value if equals else label)
    if not wanted:
        return bool(re.search(rf"\b{re.escape(_plain(label))}", _plain(text)))
    if not equals:
        return all(_among(each, _numbers(text)) for each in wanted)
    after = (text[at.end() : at.end() + NEAR] for at in re.finditer(rf"\b{name}\b", text))
    return any(all(_among(each, _numbers(found)) for each in wanted) for found in after)


def _plain(text: str) -> str:
    # A sign in brackets tells exp(+iwt) from exp(-iwt); elsewhere a dash joins words.
    signed = text.lower().replace("(+", " plus ").replace("(-", " minus ")
    return re.sub(r"[^a-z0-9.]+", " ", signed).strip()


def _among(value: float, numbers: list[float]) -> bool:
    return any(math.isclose(value, each, rel_tol=1e-9, abs_tol=1e-12) for each in numbers)


def _numbers(text: str) -> list[float]:
    """Numbers in a text: 0.5, 1/2, 1e-8, 10^4; grouping commas are left out."""
    found = []
    for base, power, top, bottom, plain in NUMBERS.findall(re.sub(r"(?<=\d),(?=\d{3})", "", text)):
        if base:
            found.append(float(base) ** float(power))
        elif top:
            found.append(float(top) / float(bottom) if float(bottom) else math.inf)
        else:
            found.append(float(plain))
    return found
