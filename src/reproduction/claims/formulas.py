"""Formulas as entries write them, `gamma^2` or `d^(-1/2)`, typeset as HTML.

Powers and indices are raised and lowered, Greek letters drawn, single letters set in italics. What
is written stays with each formula as its attribute `data-as`, which the page's search reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from markupsafe import Markup, escape

LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eps": "ε",
    "zeta": "ζ", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ",
    "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ",
    "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
SIGNS = {"<=": "≤", ">=": "≥", "+-": "±", "-": "−", "x": "×"}
GREEK = "|".join(sorted(LETTERS, key=len, reverse=True))
# A single letter is a variable, unless it is an article, the pronoun, the name of a place in a
# paper, an abbreviation's or what follows an apostrophe.
PLACES = (
    "Appendix ", "Appendices ", "Appendices C and ", "Section ", "Option ", "Lemma ", "Theorem ",
    "Table ", "Figure ", "Panel ", "part (", "parts (",
)  # fmt: skip
VARIABLE = (
    "".join(f"(?<!{re.escape(place)})" for place in PLACES)
    + r"(?<![\sA-Za-z]\d\()(?:[b-z]|[B-HJ-Z](?!-[a-z]))(?![.]\w)|[aAI](?=\^|_[A-Za-z\d*{]\b)"
)
PIECE = re.compile(
    rf"(?P<root>\bsqrt)(?=\()"
    rf"|(?P<scientific>(?<![\w.])\d+(?:\.\d+)?e[+-]?\d+(?![\w.]\w))"
    rf"|(?P<times>(?<=\d )x(?= \d))"
    rf"|(?P<base>(?<![\w'’.])(?:{GREEK}|{VARIABLE})(?:'(?=[\s^_,;.)]))?(?![^\W_]|['’]))"
    rf"|(?P<script>\^)(?=[-\w(*])"
    rf"|(?P<index>(?<=[|)])_)(?=[\w{{(*])"
    rf"|(?P<sign><=|>=|\+-|(?<= )-(?= )|(?<![\w)\]}}-])-(?=\d))"
)
# A power or an index that no bracket surrounds.
BARE = re.compile(
    rf"[-+]?(?:(?:max|min)(?=\()|(?:{GREEK})(?![A-Za-z])|[A-Za-z]+|\d+(?:\.\d+)?|\*)|\*"
)
INDEX = re.compile(r"_(?=(?:[A-Za-z]{1,4}|\d+)(?![A-Za-z\d_])|\*|[{(])")


def typeset(text: str) -> Markup:
    """A text with its formulas as HTML; everything else in it is escaped.

    Parameters
    ----------
    text : str
        In the ledger's way of writing, `sigma_z^2 <= sqrt(p) / n`.

    Returns
    -------
    Markup
        Without its tags the same text, but for letters and signs that are drawn.

    Examples
    --------
    >>> typeset("at rate d^(-1/2)")
    Markup('at rate <span class="f" data-as="d^(-1/2)"><var>d</var><sup>−1/2</sup></span>')
    """
    return Markup("").join(_pieces(text, _noted))


def _noted(written: str, drawn: Markup) -> Markup:
    return Markup('<span class="f" data-as="{}">{}</span>').format(written, drawn)


def _pieces(text: str, wrap: Callable[[str, Markup], Markup]) -> list[Markup]:
    found: list[Markup] = []
    at = 0
    while piece := PIECE.search(text, at):
        drawn, end = _drawn(text, piece)
        found += [escape(text[at : piece.start()]), wrap(text[piece.start() : end], drawn)]
        at = end
    return [*found, escape(text[at:])]


def _drawn(text: str, piece: re.Match[str]) -> tuple[Markup, int]:
    """A formula that begins here, and where it ends."""
    end = piece.end()
    if piece["root"]:
        inner, end = _bracketed(text, end)
        drawn = Markup('√<span class="root">{}</span>').format(_inside(inner))
        return _with_scripts(text, drawn, end)
    if piece["scientific"]:
        digits, _, power = piece[0].partition("e")
        shown = f"{int(power)}".replace("-", "−")
        factor = "" if digits == "1" else f"{digits} × "
        return Markup("{}10<sup>{}</sup>").format(factor, shown), end
    if piece["base"]:
        name, prime = piece[0].rstrip("'"), "′" if piece[0].endswith("'") else ""
        return _with_scripts(text, Markup("<var>{}</var>{}").format(LETTERS.get(name, name), prime),
                             end)  # fmt: skip
    if piece["script"] or piece["index"]:
        return _with_scripts(text, Markup(""), piece.start())
    return escape(SIGNS[piece[0]]), end


def _with_scripts(text: str, drawn: Markup, at: int) -> tuple[Markup, int]:
    """What is drawn with the powers and indices that follow it."""
    while at < len(text):
        if text[at] == "^":
            tag = "sup"
        elif INDEX.match(text, at):
            tag = "sub"
        else:
            break
        inner, end = _script(text, at + 1)
        if not inner:
            break
        drawn += Markup("<{0}>{1}</{0}>").format(Markup(tag), _inside(inner))
        at = end
    return (drawn, at) if drawn else (escape(text[at : at + 1]), at + 1)


def _script(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] in ("(", "{"):
        return _bracketed(text, at)
    bare = BARE.match(text, at)
    if not bare:
        return "", at
    end = bare.end()
    if bare[0] in ("max", "min") and text[end : end + 1] == "(":
        _, end = _bracketed(text, end)
    return text[at:end], end


def _bracketed(text: str, at: int) -> tuple[str, int]:
    """What stands between the bracket here and its partner, and where that ends."""
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] in "({") - (text[end] in ")}")
        if depth == 0:
            return text[at + 1 : end], end + 1
    return "", at


def _inside(text: str) -> Markup:
    """A part of a formula: the same, with a minus sign and without notes of its own."""
    drawn = Markup("").join(_pieces(text, lambda _, inner: inner))
    return Markup(re.sub(r"(?<![\w>])-(?=[\d\w<])|(?<=[\w>)]) ?- ?(?=[\w<(])", _minus, drawn))


def _minus(found: re.Match[str]) -> str:
    return found[0].replace("-", SIGNS["-"])
