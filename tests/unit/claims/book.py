"""A small book of two papers, with every verdict, for tests of what shows it."""

from __future__ import annotations

import io
import math
from typing import Any

import xarray as xr
from PIL import Image

from reproduction.engine.ledger import Ledger, parse_topic
from reproduction.engine.verdicts import Book, join, judge

PAPERS = {
    "bombari2025": {
        "title": "Rates & regression",
        "authors": "Bombari et al.",
        "year": 2025,
        "about": "Rates of descent.",
        "url": "https://arxiv.org/abs/2505.16329",
    }
}
DRAWINGS = {
    "bombari2025": {
        "fig1": {
            "kind": "figure",
            "caption": "Risk along the pass.",
            "alt": "Two curves that fall.",
            "beside": "Same axes; the paper's curve ends at t = 1.",
            "artifacts": ["theory/numbers"],
            "parameters": {"numbers": {"label_noise_std": 0.3, "design": {"size": 2}}},
        },
        "fig2": {
            "kind": "figure", "caption": "Not looked at.", "alt": None, "beside": None,
            "artifacts": [], "parameters": {},
        },
    }
}  # fmt: skip
VALUES = [1.0, 2.0, -1.0, math.nan, 0.1]


def image() -> bytes:
    """A small PNG."""
    stream = io.BytesIO()
    Image.linear_gradient("L").save(stream, "PNG")
    return stream.getvalue()


def probe(value: float | list[float], **changes: Any) -> dict[str, Any]:
    """A check that takes what is above 0, of evidence that is `value`."""
    above = {"kind": "above", "low": 0.0}
    return {
        "evidence": {"artifact": "theory/numbers", "variable": "value", "select": {"of": value}},
        "check": {"kind": "all", "of": above} if isinstance(value, list) else above,
        "resolves": 5.0,
    } | changes


def statement(name: str, value: Any = 1.0, **changes: Any) -> dict[str, Any]:
    """A statement about one value."""
    return {
        "id": name, "kind": "theorem", "where": "Theorem 1", "statement": f"It holds: {name}.",
        "checks": [probe(value)],
    } | changes  # fmt: skip


def topics(**changes: Any) -> dict[str, Any]:
    """The first paper's topic."""
    other = {"evidence": {"select": {"of": 2.0}}, "resolves": 5.0}
    runs = [{"label": str(value), "checks": [probe(value)]} for value in (1.0, -1.0)]
    return {
        "topic": "Theorem 1 and Figure 1",
        "about": "What they share.",
        "shared": {"figure": "fig1"},
        "statements": [
            statement("holds", ours=["the norm"]),
            statement("printed-wrong", -1.0, finding="slip", expect="contradicted", kind="prose"),
            statement("same-slip", -1.0, finding="slip", expect="contradicted"),
            statement("misprint", -1.0, finding="missing-factor", expect="holds as corrected",
                      corrected={"holds_with": "a factor of -2", **other}),
            statement("gap", -1.0, finding="missing-step", expect="proof gap",
                      corrected={"holds_with": "another step", "slip": "proof", **other}),
            statement("on-it", [1.0, 2.0], statement="It falls as lambda_min d^(-1/2).",
                      requires=["printed-wrong"]),
            statement("surprise", -1.0),
            statement("noisy", 0.1, expect="inconclusive", note="Few trials.", kind="figure"),
            statement("choice", checks=[], expect="depends on our choice",
                      depends_on_choice={"choice": "the window", "runs": runs}),
        ],
        "cross_checks": [{"id": "route", "compares": "Two routes.", "checks": [probe(2.0)]}],
        "findings": [
            {
                "id": "slip", "severity": "constant", "changes": "number",
                "places": ["Equation (1)"], "printed": "Two.", "holds": "One.",
                "how_we_know": "Derived.", "downstream": "Nothing.", "shown_by": ["route"],
                "foremost": {"rank": 1, "quote": "It is two.", "figure": "fig1"},
            },
            *(
                {
                    "id": name, "severity": "typo", "changes": "nothing", "places": ["Lemma 2"],
                    "printed": "A.", "holds": "B.", "how_we_know": "C.", "downstream": "None.",
                }
                for name in ("missing-factor", "missing-step")
            ),
        ],
    } | changes  # fmt: skip


def book(scale: Any = "paper", attributes: dict[str, Any] | None = None, **changes: Any) -> Book:
    """Two papers' entries with their verdicts; changes are to the first one's topic."""
    ledgers = [
        Ledger("bombari2025", (parse_topic(topics(**changes), "theorem-1", "x"),)),
        Ledger("lin2025", (parse_topic({"topic": "T", "statements": [statement("other")]}, "t",
                                       "y"),)),
    ]  # fmt: skip
    dataset = xr.Dataset(
        {
            "value": ("of", VALUES, {"ancillary_variables": "value_standard_error"}),
            "value_standard_error": ("of", [0.1, 0.2, 0.1, 0.1, 0.3]),
        },
        {"of": [1.0, 2.0, -1.0, 9.0, 0.1]},
        {"trials": 10} | (attributes or {}),
    )
    digests = {"theory/numbers": "ab" * 32}
    datasets = {"theory/numbers": dataset}
    return join(
        ledgers,
        [
            record
            for ledger in ledgers
            for record in judge(ledger, datasets, digests=digests, scale=scale)
        ],
    )
