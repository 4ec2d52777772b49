"""Identities and inequalities of a paper: statement, place, formula and check in one function.

    @identity(
        where="Section 3, text after Theorem 3.1",
        statement="The constant c_* must be less than 1/24 for the bound of Theorem 3.1 to vanish.",
        check=close(1 / 24, absolute=1e-9),
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
from dataclasses import dataclass
from typing import Any

from reproduction.experiment.cells import Block, Quantity, per

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Stated(Quantity):
    """A quantity that decides the entry of the ledger with these fields."""

    entry: Raw

    def declared(self, name: str, artifact: str) -> Raw:
        """The entry as a ledger's file would hold it."""
        evidence: dict[str, Any] = {"artifact": artifact, "variable": name}
        probe: dict[str, Any] = {"evidence": evidence, "check": self.entry["check"]}
        if self.entry["select"]:
            evidence["select"] = self.entry["select"]
        if self.entry["wrong"]:
            probe["wrong"] = [_wrong(*each) for each in self.entry["wrong"].items()]
        words = {key: self.entry[key] for key in self.entry.keys() - {"check", "select", "wrong"}}
        kind = {"kind": "proof step"} if "statement" in words else {}
        return {"id": name.replace("_", "-"), **kind, "checks": [probe], **words}


def stated(
    meaning: str,
    dims: str = "",
    *,
    check: Raw,
    wrong: Mapping[str, Raw | str] | None = None,
    select: Raw | None = None,
    units: str = "1",
    **entry: Any,
) -> Stated:
    """A quantity that decides an entry.

    Parameters
    ----------
    meaning, dims, units
        As in `Quantity`.
    check : mapping
        From `close`, `between`, `below`, `above` or `every`.
    wrong : mapping
        Small wrong versions of the statement, which the evidence must refuse: what each says, to
        the check that differs, to the evidence, or to the name of the quantity.
    select : mapping, optional
        Labels of the quantity's axes; all values without it.
    **entry
        The entry's other fields: `where`, one of `statement` and `compares`, and what else a
        ledger's file may give; `id` follows from the quantity's name, `kind` is "proof step".
    """
    if ("statement" in entry) == ("compares" in entry):
        raise ValueError(f"one of statement and compares must be given: {meaning}")
    about = {"check": check, "wrong": wrong or {}, "select": select or {}, **entry}
    return Stated(meaning, dims, units=units, entry=about)


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
                kind = "statements" if "statement" in quantity.entry else "cross_checks"
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
