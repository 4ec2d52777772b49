"""What a finished run says: the verdicts by kind, the page to open, how long it took."""

from __future__ import annotations

from pathlib import Path

from reproduction.pipeline.layout import Layout

FORMS = {"day": 86400, "h": 3600, "min": 60, "s": 1}


def closing_lines(layout: Layout, *, seconds: float, stand_ins: dict[str, list[str]]) -> list[str]:
    """The last lines of a run; the first is left out where no ledger was written.

    Parameters
    ----------
    layout : Layout
        Where the run's files lie.
    seconds : float
        How long the run took, at least 0.
    stand_ins : dict
        Figures that a table would be drawn with, by table; those whose table is a stand-in are
        named.
    """
    from reproduction.claims.gate import summary
    from reproduction.claims.records import from_json

    lines = []
    ledger, page = Path(layout.ledger("json")), Path(layout.page())
    if ledger.is_file():
        lines.append(f"Ledger: {summary(from_json(ledger.read_bytes()))}")
    drawn = sorted(
        figure
        for dataset, figures in stand_ins.items()
        if _is_stand_in(Path(layout.data(dataset)))
        for figure in figures
    )
    if drawn:
        lines.append(f"Stand-ins, not the paper's data: {', '.join(drawn)}")
    if page.is_file():
        lines.append(f"Page to open: {page}")
    lines.append(f"Took {_duration(seconds)}")
    return lines


def _is_stand_in(path: Path) -> bool:
    if not path.is_file():
        return False
    from netCDF4 import Dataset

    with Dataset(path) as file:
        return bool(file.getncattr("stand_in"))


def _duration(seconds: float) -> str:
    left, parts = round(seconds), []
    for unit, size in FORMS.items():
        share, left = divmod(left, size)
        if share:
            parts.append(f"{share} {unit}")
    return " ".join(parts[:2]) or "less than a second"
