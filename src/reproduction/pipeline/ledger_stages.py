"""The ledger's stages: judge entries, join their verdicts, show them, compare them.

Each function is a command of `python -m reproduction`; its arguments are the options.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from reproduction.engine import artifacts as store
from reproduction.pipeline.closure import SOURCE
from reproduction.pipeline.provenance import NOTHING, Expectations, read_all

if TYPE_CHECKING:
    from reproduction.engine.verdicts import Record

Scale = Literal["paper", "quick"]


def judge(
    paper: str,
    *,
    folder: Path,
    scale: Scale,
    artifacts: Mapping[str, Path],
    output: Path,
    expected: Expectations = NOTHING,
) -> None:
    """Judge the entries of a paper; one that cannot be judged is untested.

    Parameters
    ----------
    paper : str
        Citation key, or `studies`.
    folder : Path
        Folder of the paper's ledger.
    scale : {"paper", "quick"}
        Of the run.
    artifacts : mapping
        Files of all that the checks read, by name.
    output : Path
        Takes the verdicts as JSON.
    expected : mapping
        Identity that each artifact must have.
    """
    from reproduction.engine.verdicts import records_to_json

    found = _judged(paper, folder, scale, artifacts, expected)
    store.write_text(records_to_json(found), output)


def claim(
    paper: str,
    *,
    folder: Path,
    entry: str,
    scale: Scale,
    artifacts: Mapping[str, Path],
    output: Path,
    expected: Expectations = NOTHING,
) -> None:
    """Write the verdict on one entry to a file of its own; arguments as of `judge`."""
    (found,) = _judged(paper, folder, scale, artifacts, expected, (entry,))
    store.write_text(found.model_dump_json(indent=2), output)


def ledger(
    verdicts: Sequence[Path],
    *,
    ledgers: Mapping[str, Path],
    csv: Path,
    json: Path,
    findings: Path,
) -> None:
    """Join the ledgers with the verdicts on their entries, as tables and as JSON."""
    from reproduction.engine import verdicts as engine
    from reproduction.pipeline.ledgers import read_ledger

    book = engine.join(
        [read_ledger(folder, paper) for paper, folder in ledgers.items()],
        [
            record
            for path in verdicts
            for record in engine.records_from_json(store.read_bytes(path))
        ],
    )
    store.write_text(engine.to_csv(book), csv)
    store.write_text(engine.findings_to_csv(book.findings), findings)
    store.write_text(engine.to_json(book), json)


def page(
    ledger: Path,
    *,
    drawings: Mapping[str, Mapping[str, Any]],
    images: Sequence[Path],
    benchmarks: Path,
    entries: Path,
    output: Path,
) -> None:
    """Show the ledger beside the figures; an image is `<paper>/<figure>.png`.

    Each entry gets a page of its own below the folder `entries`.
    """
    from reproduction.claims import entry_pages
    from reproduction.claims import page as drawn
    from reproduction.engine.verdicts import from_json

    book = from_json(store.read_bytes(ledger))
    shown: dict[str, Any] = {
        "papers": _bibliography(book.papers),
        "drawings": drawings,
        "images": {(path.parent.name, path.stem): store.read_bytes(path) for path in images},
        "made_by": _version(),
    }
    for address, text in entry_pages.render(book, **shown):
        path = entries / address
        path.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(text, path, checksum=False)
    costs = benchmarks if benchmarks.is_dir() else None
    store.write_text(drawn.render(book, **shown, benchmarks=costs), output)


def gate(ledger: Path, *, output: Path) -> list[str]:
    """Compare verdicts with what is expected; write the summary only if all agree.

    Returns
    -------
    list of str
        One line for each verdict that is not the expected one.
    """
    from reproduction.engine import verdicts

    book = verdicts.from_json(store.read_bytes(ledger))
    failures = verdicts.gate(book.records)
    if not failures:
        store.write_text(verdicts.summary(book), output)
    return failures


def docs(
    *,
    ledgers: Mapping[str, Path],
    drawings: Mapping[str, Mapping[str, Any]],
    readme: Path,
    output: Path,
) -> None:
    """Write a page of results, and bring the table of counts in the README up to date."""
    from reproduction.claims import summary
    from reproduction.pipeline.ledgers import read_ledger

    found = [read_ledger(folder, paper) for paper, folder in ledgers.items()]
    titles = {paper: about["title"] for paper, about in _bibliography(list(ledgers)).items()}
    text = summary.render(found, titles=titles, drawings=drawings)
    store.write_text(text, output, checksum=False)
    store.write_text(
        summary.with_counts(readme.read_text(encoding="utf-8"), found), readme, checksum=False
    )


def _version() -> str:
    """Version and commit of this checkout; the version alone of a copy without its history."""
    from privreg.version import __version__

    # Named, since a copy may lie below the checkout of something else.
    here = ["--git-dir", str(SOURCE.parent / ".git"), "--work-tree", str(SOURCE.parent)]
    command = ["git", *here, "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return __version__
    return f"{__version__}, commit {told}"


def _judged(
    paper: str,
    folder: Path,
    scale: Scale,
    artifacts: Mapping[str, Path],
    expected: Expectations,
    only: Sequence[str] | None = None,
) -> list[Record]:
    from reproduction.engine import verdicts
    from reproduction.pipeline.ledgers import read_ledger

    evidence = read_all(artifacts, expected)
    digests = {name: str(store.recorded(path)) for name, path in artifacts.items()}
    return verdicts.judge(
        read_ledger(folder, paper), evidence, digests=digests, scale=scale, only=only
    )


def _bibliography(papers: Sequence[str]) -> dict[str, dict[str, str]]:
    from reproduction.pipeline.registry import citation

    return {
        paper: {"title": about.title, "authors": about.authors, "url": about.url}
        for paper in papers
        for about in [citation(paper)]
    }
