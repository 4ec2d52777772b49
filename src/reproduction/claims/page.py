"""The page of the ledger: one self-contained HTML file that needs no network."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from reproduction.claims import cost
from reproduction.claims.formulas import typeset
from reproduction.claims.gate import is_unexpected, summary
from reproduction.claims.picture import picture
from reproduction.claims.records import (
    CROSS_CHECK_VERDICTS,
    KINDS,
    SEVERITIES,
    STATEMENT_VERDICTS,
    Book,
    Record,
    TopicRecord,
    counts,
)
from reproduction.claims.wording import number, series, with_error


@dataclass(frozen=True)
class Front:
    """What the page of a ledger says of itself, and where the page of the other one lies."""

    title: str
    heading: str
    lead: str
    target: str
    other: str
    other_target: str
    address: str
    figures: str


FRONTS = {
    "papers": Front(
        title="The ledger",
        heading="The ledger",
        lead="What the papers state, what would refute it, and what this build finds. Only "
        "statements of a paper count for or against it; cross-checks guard this build. Each entry "
        "opens to its evidence and to the command that rebuilds it.",
        target="claims",
        other="What the library promises itself",
        other_target="studies",
        address="studies/index.html",
        figures="figures",
    ),
    "studies": Front(
        title="The studies: what the library promises and what this build finds",
        heading="The studies",
        lead="What the library promises itself: audits of its guarantees, predictions, plans, "
        "intervals and comparisons, each with what would refute it and what this build finds. Each "
        "entry opens to its evidence and to the command that rebuilds it.",
        target="studies",
        other="What the papers state",
        other_target="claims",
        address="../index.html",
        figures="../figures",
    ),
}
TEMPLATES = Path(__file__).parent / "templates"
SIGNS = {
    "reproduced": "✓", "contradicted": "✕", "depends on our choice": "⇄", "inconclusive": "?",
    "untested": "–", "passed": "✓", "failed": "✕",
}  # fmt: skip
MEANINGS = {
    "reproduced": "the evidence bears it out",
    "contradicted": "the evidence refutes it",
    "depends on our choice": "the paper leaves something open with which the verdict turns",
    "inconclusive": "too noisy to say",
    "untested": "no evidence of the paper's own kind",
}
# What stands first on a page that decides nothing, or not all.
NOTICES = {
    "Made small": "Every job ran at a reduced scale, to show that it runs. No verdict here says "
    "anything about a paper.",
    "Your own scale": "Entries on experiments with parameters of your own are marked; they decide "
    "nothing about a paper.",
}
SEVERITY_MEANINGS = {
    "conclusion": "what is concluded is not so",
    "hypothesis": "a hypothesis must be added or replaced",
    "constant": "a number changes, no rate does",
    "typo": "no argument changes",
}


def render(
    book: Book,
    *,
    papers: Mapping[str, Mapping[str, str]],
    drawings: Mapping[str, Mapping[str, Any]],
    images: Mapping[tuple[str, str], bytes],
    benchmarks: Path | None = None,
    made_by: str = "",
) -> str:
    """Write the ledger as a page.

    Parameters
    ----------
    book : Book
        The papers' entries with their verdicts, or those of the studies.
    papers : mapping
        Citation key to `title`, `authors` and `url`; a paper without them is shown by its key.
    drawings : mapping
        Citation key to the figures and tables by name: `kind`, `caption`, `alt`, `beside` (None
        where not given), `artifacts`, and `parameters` by experiment.
    images : mapping
        Citation key and figure to a PNG.
    benchmarks : Path, optional
        Folder with the measured cost of each job.
    made_by : str
        Version and commit of the code.

    Returns
    -------
    str
        HTML.
    """
    environment = templates()
    environment.globals["cost"] = lambda paper, artifacts: _cost(benchmarks, paper, artifacts)
    by_key = {record.key: record for record in book.records}
    return environment.get_template("page.html").render(
        book=book,
        front=front(book),
        by_key=by_key,
        notice=_notice(book),
        notices=NOTICES,
        made_by=made_by,
        has_stand_ins=any(record.stand_in for record in book.records),
        summary=summary(book),
        style=Markup(source("page.css")),
        script=Markup(source("page.js")),
        papers=papers,
        chapters=[_chapter(book, paper, drawings.get(paper, {})) for paper in book.papers],
        drawings=drawings,
        images=_embedded(images),
        tallies={
            paper: (
                counts(record for record in book.statements if record.paper == paper),
                counts(record for record in book.cross_checks if record.paper == paper),
                {
                    severity: sum(
                        finding.paper == paper and finding.severity == severity
                        for finding in book.findings
                    )
                    for severity in SEVERITIES
                },
            )
            for paper in book.papers
        },
        meanings=MEANINGS,
        severity_meanings=SEVERITY_MEANINGS,
        statement_verdicts=STATEMENT_VERDICTS,
        cross_check_verdicts=CROSS_CHECK_VERDICTS,
        kinds=KINDS,
        severities=SEVERITIES,
    )


def templates() -> jinja2.Environment:
    """The templates of the pages, with what all of them use."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number, series=series, slug=slug, typeset=typeset, web_address=_web_address
    )
    environment.globals.update(
        with_error=with_error,
        is_unexpected=is_unexpected,
        picture=lambda check: Markup(picture(check)),
        signs=SIGNS,
    )
    return environment


def front(book: Book) -> Front:
    """What the page of a ledger says of itself."""
    return FRONTS["studies" if tuple(book.papers) == ("studies",) else "papers"]


def _notice(book: Book) -> str:
    scales = {record.scale for record in book.records}
    return "Made small" if "quick" in scales else "Your own scale" if "own" in scales else ""


def slug(text: str) -> str:
    """A name for a class or an address."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def scaled(image: bytes, *, width: int) -> bytes:
    """A PNG that is at most this wide, with a palette."""
    from PIL import Image

    picture = Image.open(io.BytesIO(image)).convert("RGB")
    if picture.width > width:
        height = round(picture.height * width / picture.width)
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    # Cells of equal numbers of pixels would mix the colours of lines, which cover few.
    drawn = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    drawn.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _chapter(book: Book, paper: str, drawings: Mapping[str, Any]) -> dict[str, Any]:
    """A paper's topics, each with its entries beside the figure that they look at."""
    drawn: set[str] = set()
    topics = []
    for topic in book.topics:
        if topic.paper == paper:
            topics.append({"topic": topic, "groups": _groups(book, topic, drawn)})
    return {
        "paper": paper,
        "topics": topics,
        "rest": [name for name in drawings if name not in drawn],
    }


def _groups(book: Book, topic: TopicRecord, drawn: set[str]) -> list[dict[str, Any]]:
    inside = [
        record
        for record in book.records
        if record.paper == topic.paper and record.topic == topic.name
    ]
    by_figure: dict[str | None, list[Record]] = {}
    for record in inside:
        by_figure.setdefault(record.figure, []).append(record)
    groups = []
    for figure, records in by_figure.items():
        groups.append(
            {
                "figure": figure,
                "first": figure is not None and figure not in drawn,
                "statements": [record for record in records if record.entry == "statement"],
                "cross_checks": [record for record in records if record.entry == "cross_check"],
            }
        )
        drawn.update({figure} if figure else ())
    return groups


def _cost(benchmarks: Path | None, paper: str, artifacts: Sequence[str]) -> str:
    return cost.words(None if benchmarks is None else cost.seconds(benchmarks, paper, artifacts))


def _embedded(images: Mapping[tuple[str, str], bytes]) -> dict[tuple[str, str], dict[str, Any]]:
    # The page comes last and alone, and encoding is half of its work.
    with ThreadPoolExecutor(2) as threads:
        made = threads.map(lambda image: embedded(image, width=1100), images.values())
        return dict(zip(images, made, strict=True))


def embedded(image: bytes, *, width: int) -> dict[str, Any]:
    """An image as an address that holds it, with its size."""
    small = scaled(image, width=width)
    across, down = (int.from_bytes(small[start : start + 4], "big") for start in (16, 20))
    return {
        "address": "data:image/png;base64," + base64.b64encode(small).decode(),
        "width": across,
        "height": down,
    }


def source(name: str) -> str:
    """Text of a style sheet or script."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _web_address(text: str) -> str:
    # An address with another scheme, javascript: say, must not become a link.
    return text if text.startswith(("https://", "http://")) else ""
