"""A small book of two papers, with every verdict, for tests of what shows it."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import xarray as xr
import yaml
from PIL import Image

from reproduction.claims.ledger import Ledger, parse_topic
from reproduction.claims.records import Book, join
from reproduction.claims.verdicts import CheckResult, Judgement, RunResult, case, judge
from reproduction.pipeline.ledgers import read_ledger

PAPERS = {
    "bombari2025": {
        "title": "Rates & regression",
        "authors": "Bombari et al.",
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
            "parameters": {"numbers": {"label_noise_std": 0.3}},
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
        "rejects": [-5.0],
    } | changes


def statement(name: str, value: Any = 1.0, **changes: Any) -> dict[str, Any]:
    """A statement about one value."""
    return {
        "id": name, "kind": "theorem", "where": "Theorem 1", "statement": f"It holds: {name}.",
        "checks": [probe(value)],
    } | changes  # fmt: skip


def topics(**changes: Any) -> dict[str, Any]:
    """The first paper's topic."""
    runs = [{"label": str(value), "checks": [probe(value)]} for value in (1.0, -1.0)]
    return {
        "topic": "Theorem 1 and Figure 1",
        "about": "What they share.",
        "shared": {"figure": "fig1"},
        "statements": [
            statement("holds", ours=["the norm"]),
            statement("printed-wrong", -1.0, finding="slip", expect="contradicted", kind="prose"),
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
                "id": "slip", "severity": "constant", "places": ["Equation (1)"],
                "printed": "Two.", "holds": "One.", "how_we_know": "Derived.",
                "downstream": "Nothing.", "shown_by": ["route"],
            }
        ],
    } | changes  # fmt: skip


def book(**changes: Any) -> Book:
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
        {"trials": 10},
    )
    judgements = [
        judge(case(entry), {"theory/numbers": dataset}, paper=ledger.paper,
              digests={"theory/numbers": "ab" * 32})
        for ledger in ledgers
        for entry in ledger.entries.values()
    ]  # fmt: skip
    return join(ledgers, judgements)


ROOT = Path(__file__).parents[3]
WHOLE = sorted(path.name for path in (ROOT / "config/claims").iterdir())


def whole_book() -> Book:
    """All papers' ledgers as they are; of every check four made-up values, as many as most have."""
    ledgers = [read_ledger(ROOT / "config/claims" / paper, paper) for paper in WHOLE]
    judged = [
        Judgement(
            paper=ledger.paper,
            id=entry.id,
            outcome="passed",
            reason="",
            runs=tuple(
                RunResult(label=run.label, outcome="passed", checks=tuple(map(seen, run.checks)))
                for run in entry.runs
            ),
            stand_in=False,
            scale="paper",
        )
        for ledger in ledgers
        for entry in ledger.entries.values()
    ]
    return join(ledgers, judged)


def seen(check: Any) -> CheckResult:
    """What a check might say of four values with their errors."""
    evidence = check.evidence
    return CheckResult(
        label=check.label, outcome="passed", reason="", observed=(0.9, 1.0, 1.1, 1.2),
        standard_error=(0.1, 0.1, 0.1, 0.1), labels=("first", "second", "third", "fourth"),
        expected="all at least 0.5", low=(0.5,) * 4, high=(math.inf,) * 4, rejected=(0.3, 0.4),
        margin=0.4, margin_standard_error=0.1, z=1.5, at="first", trials=40,
        artifact=evidence.artifact, variable=evidence.variable, select="dimension=1000",
        digests={evidence.artifact: "ab" * 32},
    )  # fmt: skip


def whole_drawings() -> dict[str, Any]:
    """Figures of all papers with their captions and parameters, from the configuration."""
    found: dict[str, Any] = {}
    for paper in WHOLE:
        name = paper if paper == "studies" else f"papers/{paper}"
        path = ROOT / f"config/{name}.yaml"
        block = yaml.safe_load(path.read_text(encoding="utf-8"))[paper]
        found[paper] = {
            name: {
                "kind": "figure",
                "caption": drawing["caption"],
                "alt": drawing.get("alt"),
                "beside": drawing.get("beside"),
                "artifacts": list(drawing["artifacts"].values()),
                "parameters": {
                    experiment: block["experiments"][experiment]["parameters"]
                    for experiment in {path.split("/")[1] for path in drawing["artifacts"].values()}
                },
            }
            for name, drawing in block["figures"].items()
        }
    return found
