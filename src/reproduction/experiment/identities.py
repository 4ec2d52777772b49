"""Identities and inequalities of a paper: statement, place, formula and check in one function.

    @identity(
        where="Section 3, text after Theorem 3.1",
        states="The constant c_* must be less than 1/24 for the bound of Theorem 3.1 to vanish.",
        holds=close(1 / 24, absolute=1e-9),
        refuses=[times(1.01), plus(-1e-6)],
    )
    def exponent_threshold() -> float:
        "Largest c_* at which the bound of (2) vanishes, sigma = 1."

    theory = stage({}, exponent_threshold)

A topic of the ledger takes the entries of such a recipe by `identities: RECIPE`. A function with
several quantities declares them by `per`, each of them `stated`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reproduction.experiment.cells import Block, Quantity, per

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Stated(Quantity):
    """A quantity that decides an entry of the ledger.

    Parameters
    ----------
    where : str
        The place in the paper.
    states : str
        The paper's statement, in our words. One of this and `compares` is given.
    compares : str
        For a cross-check of ours: what must agree with what.
    holds : mapping
        The check, from `close`, `between`, `below`, `above` or `every`.
    refuses : sequence
        Observations that the check must refuse: numbers, `times(…)` or `plus(…)`.
    wrong : mapping
        Small wrong versions of the statement, which the evidence must refuse: what each says, to
        the check that differs, to the evidence, or to the name of the quantity.
    select : mapping, optional
        Labels of the quantity's axes; all values without it.
    entry : mapping, optional
        What else the entry has: `id` (from the quantity's name if left out), `kind` ("proof step"
        if left out), `printed`, `ours`, `finding`, `expect`, `requires`, `figure`, `note`.
    """

    where: str = ""
    states: str = ""
    compares: str = ""
    holds: Raw
    refuses: Sequence[Any]
    wrong: Mapping[str, Raw | str] = field(default_factory=dict)
    select: Raw = field(default_factory=dict)
    entry: Raw = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.states) == bool(self.compares):
            raise ValueError(f"one of states and compares must be given: {self.meaning}")

    def declared(self, name: str, artifact: str) -> Raw:
        """The entry as a ledger's file would hold it."""
        evidence: dict[str, Any] = {"artifact": artifact, "variable": name}
        if self.select:
            evidence["select"] = dict(self.select)
        probe = {"evidence": evidence, "check": dict(self.holds), "rejects": list(self.refuses)}
        if self.wrong:
            probe["wrong"] = [_wrong(*each) for each in self.wrong.items()]
        words = {"kind": "proof step", "statement": self.states}
        own = words if self.states else {"compares": self.compares}
        place = {"where": self.where} if self.where else {}
        return {"id": name.replace("_", "-"), **own, **place, "checks": [probe], **self.entry}


def stated(
    meaning: str,
    dims: str = "",
    *,
    holds: Raw,
    refuses: Sequence[Any],
    where: str = "",
    states: str = "",
    compares: str = "",
    wrong: Mapping[str, Raw | str] | None = None,
    select: Raw | None = None,
    units: str = "1",
    **entry: Any,
) -> Stated:
    """A quantity that decides an entry, with what else the entry has as arguments of their own.

    Parameters
    ----------
    meaning, dims, units
        As in `Quantity`.
    holds, refuses, where, states, compares, wrong, select, entry
        As in `Stated`.
    """
    return Stated(
        meaning,
        dims,
        units=units,
        where=where,
        states=states,
        compares=compares,
        holds=holds,
        refuses=refuses,
        wrong=wrong or {},
        select=select or {},
        entry=entry,
    )


def identity(*axes: str, **about: Any) -> Callable[[Callable[..., Any]], Block]:
    """Declare a function of one quantity, which it is named after, and the entry that it decides.

    Parameters
    ----------
    *axes : str
        As in `per`.
    **about
        As in `stated`; the first line of the docstring is the quantity's meaning.
    """

    def declare(function: Callable[..., Any]) -> Block:
        first = (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".")
        # An acronym or a name keeps its capital.
        meaning = first[:1].lower() + first[1:] if first[1:2].islower() else first
        if not meaning:
            raise ValueError(f"{function.__name__} must have a docstring that says what it gives")
        return per(*axes, **{function.__name__: stated(meaning, **about)})(function)

    return declare


def entries(blocks: Sequence[Block], artifact: str) -> dict[str, list[Raw]]:
    """Statements and cross-checks that the quantities of a recipe's blocks decide."""
    found: dict[str, list[Raw]] = {"statements": [], "cross_checks": []}
    for block in blocks:
        for name, quantity in block.quantities.items():
            if isinstance(quantity, Stated):
                kind = "statements" if quantity.states else "cross_checks"
                found[kind].append(quantity.declared(name, artifact))
    return found


def _wrong(says: str, differs: Raw | str) -> Raw:
    if isinstance(differs, str):
        differs = {"variable": differs}
    return {"says": says, "check" if "kind" in differs else "evidence": dict(differs)}


def close(expected: Any, **tolerances: float) -> Raw:
    """Equal up to the largest of `absolute`, `relative` (and `sigmas`)."""
    return {"kind": "close", "expected": expected, **tolerances}


def between(low: Any, high: Any) -> Raw:
    """At least `low` and at most `high`."""
    return {"kind": "between", "low": low, "high": high}


def below(high: Any) -> Raw:
    """At most `high`."""
    return {"kind": "below", "high": high}


def above(low: Any) -> Raw:
    """At least `low`."""
    return {"kind": "above", "low": low}


def every(check: Raw) -> Raw:
    """The check for every element of an array."""
    return {"kind": "all", "of": check}


def times(factor: float) -> Raw:
    """A refused observation: this multiple of what is expected."""
    return {"times": factor}


def plus(distance: float) -> Raw:
    """A refused observation: this much more than what is expected."""
    return {"plus": distance}
