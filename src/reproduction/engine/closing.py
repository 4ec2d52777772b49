"""Last lines of a run: verdicts by paper or claim, stand-ins, the page to open, minutes."""

from __future__ import annotations

import json
import time
from pathlib import Path

from reproduction.engine.verdicts import tally


def closing(root: str, started: float) -> list[str]:
    """Last lines of the run that began at the time `started`."""
    lines: list[str] = []
    for page in (Path(root, "index.html"), Path(root, "studies/index.html")):
        if not page.is_file() or page.stat().st_mtime < started:
            continue
        records = json.loads((page.parent / "claims.json").read_bytes())["records"]
        small = any(each["scale"] == "quick" for each in records)
        for paper in dict.fromkeys(each["paper"] for each in records):
            own = [each for each in records if each["paper"] == paper]
            found = tally((each["verdict"], each["finding"] or each["id"]) for each in own)
            told = ", ".join(f"{count} {verdict}" for verdict, count in found.most_common())
            if small:
                drawn = len([*Path(root, "figures", paper).glob("*.png")])
                told = f"{drawn} figures, {len(own)} entries"
            lines.append(f"{paper:18} {told}")
        if small:
            lines.append("All of it was built at a reduced scale, at which verdicts decide nothing")
        lines.append(f"Page to open: {page}")
    for path in sorted(Path(root, "claims").glob("*/*.json")):
        if path.stat().st_mtime >= started:
            lines.append(f"{json.loads(path.read_bytes())['verdict']:18} {path}")
    if lines:
        origins = sorted(Path(root, "data").glob("*.json"))
        if stand_ins := [e.stem for e in origins if json.loads(e.read_bytes())["stand_in"]]:
            lines.append(f"Stand-ins, not the real tables: {', '.join(stand_ins)}")
        lines.append(f"Took {(time.time() - started) / 60:.1f} minutes")
    return lines
