"""Places in a paper: what a `where` names, and whether the paper's text has it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reproduction.claims.entries import Statement
from reproduction.claims.ledger import Ledger

# What the ledger writes, and how a paper's text may write it.
FORMS = {
    "section": r"(?:sections?|sec\.|§)",
    "appendix": r"(?:appendix|appendices|app\.)",
    "theorem": r"(?:theorems?|thm\.)",
    "lemma": r"lemmas?",
    "proposition": r"(?:propositions?|prop\.)",
    "corollary": r"corollar(?:y|ies)",
    "claim": r"claims?",
    "fact": r"facts?",
    "definition": r"definitions?",
    "condition": r"conditions?",
    "assumption": r"assumptions?",
    "remark": r"remarks?",
    "conjecture": r"conjectures?",
    "algorithm": r"algorithms?",
    "figure": r"(?:figures?|fig\.)",
    "table": r"tables?",
    "equation": r"(?:equations?|eqs?\.)",
}
ONE = r"\(?(?:[A-Z]\.)?\d+(?:\.\d+)*\)?(?:\([a-z]+\))?|\(?[A-Z](?:\.\d+)*\b\)?"
NAMED = re.compile(
    rf"\b({'|'.join(FORMS.values())})\s+((?:{ONE})(?:\s*(?:,|and|to|-|–)\s*(?:{ONE}))*)",
    re.IGNORECASE,
)


def places(where: str) -> Iterator[tuple[str, str]]:
    """Kind and number of each place that a `where` names; of a range, its ends.

    Examples
    --------
    >>> list(places("Lemma B.1, equations (B.1)-(B.3); Figure 7, panel 2"))
    [('lemma', 'B.1'), ('equation', 'B.1'), ('equation', 'B.3'), ('figure', '7')]
    """
    for found in NAMED.finditer(where):
        word = found[1].lower()
        kind = next(kind for kind, form in FORMS.items() if re.fullmatch(form, word))
        for number in re.findall(ONE, found[2]):
            yield kind, re.sub(r"\([a-z]+\)$", "", number).strip("()")


def unfound(where: str, text: str) -> list[str]:
    """Places that a `where` names and a paper's text does not have; all of it if it names none.

    A theorem, figure or section is found where the text speaks of it by its name or, for sections,
    opens a line with its number; an equation where its number stands in brackets.
    """
    named = list(places(where))
    if not named:
        return [where]
    return [f"{kind} {number}" for kind, number in named if not _has(kind, number, text)]


def problems(ledger: Ledger, text: str) -> list[str]:
    """One line for each place and printed number of a ledger that a paper's text does not have."""
    lines = []
    for entry in ledger.entries.values():
        if isinstance(entry, Statement):
            lines += [f"{entry.id}: no {place}" for place in unfound(entry.where, text)]
            flat = " ".join(text.split())
            lines += [
                f"{entry.id}: {printed!r} is not printed"
                for printed in entry.printed
                if " ".join(printed.split()) not in flat
            ]
    for finding in ledger.findings.values():
        lines += [
            f"{finding.id}: no {place}"
            for named in finding.places
            for place in unfound(named, text)
        ]
    return lines


def _has(kind: str, number: str, text: str) -> bool:
    exact = re.escape(number)
    if kind == "equation":
        return re.search(rf"\(\s*{exact}\s*\)", text) is not None
    after = r"(?![\w]|\.\d)"
    forms = [rf"{FORMS[kind]}\s*~?\s*{exact}{after}"]
    # "Lemmas 2.5 and 2.6", "Theorems 4.3 to 4.5"
    forms.append(rf"{FORMS[kind]}\s+[\w.,()\s–-]{{1,24}}?(?<![\w.]){exact}{after}")
    if kind in ("section", "appendix"):
        # A heading opens a line, or was run into one when the text was extracted.
        forms.append(rf"(?m)^[#*\s]*{exact}\.?(?:\s|(?=[A-Z][a-z]))")
        forms.append(rf"(?-i:(?<![\w.]){exact}(?=[A-Z][a-z]))")
    return any(re.search(form, text, re.IGNORECASE) for form in forms)
