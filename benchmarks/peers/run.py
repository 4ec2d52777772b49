"""Private linear regressions of other libraries beside ours: `make peers`.

Environments of their own below build/peers, since versions conflict; the same tables, bounds and
budgets for all; each fits in a process of its own that holds no held-out row of a split table.
Writes build/peers/measured.json and comparison.png, and the marked parts of docs/comparison.md; or,
into another folder that is named, the same with the parts as tables.md.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import judge
import page
from tables import write_tables

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / "build/peers"


def main() -> None:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else WORK
    output.mkdir(parents=True, exist_ok=True)
    for name in ("populations", "tables", "held_out", "fits"):
        (WORK / name).mkdir(parents=True, exist_ok=True)
    populations = HERE.parent / "least_squares/populations.py"
    subprocess.run([environment("tables"), populations, WORK / "populations"], check=True)
    write_tables(WORK)
    for name in ("diffprivlib", "opendp", "privreg"):
        python, variables = sys.executable, dict(os.environ)
        if name != "privreg":
            # Theirs is theirs: nothing of this checkout is on their path.
            python, variables["PYTHONPATH"] = environment(name), ""
        command = [python, HERE / f"fit_{name}.py", WORK / "tables", WORK / f"fits/{name}.json"]
        subprocess.run(command, check=True, env=variables)
    found = judge.summary(WORK)
    (output / "measured.json").write_text(json.dumps(found, indent=1) + "\n")
    page.draw(found, output / "comparison.png")
    if output == WORK:
        shown = ROOT / "docs/comparison.md"
        shown.write_text(page.page(shown.read_text(), found))
    else:
        parts = (f"# {name.capitalize()}\n\n{part}\n" for name, part in page.parts(found).items())
        (output / "tables.md").write_text("\n".join(parts))


def environment(name: str) -> Path:
    """Python of the environment that a lock file describes, made if it is not there."""
    place, lock = WORK / "environments" / name, HERE / f"{name}.txt"
    python, made = place / "bin/python", place / "made.txt"
    if not made.is_file() or made.read_text() != lock.read_text():
        venv.create(place, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--no-deps", "--requirement", lock], check=True)
        made.write_text(lock.read_text())
    return python


if __name__ == "__main__":
    main()
