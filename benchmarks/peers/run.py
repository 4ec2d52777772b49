"""Private linear regressions of other libraries beside ours: `make peers`.

Environments of their own below build/peers, since versions conflict; the same tables, bounds and
budgets for all; each fits in a process of its own that holds no held-out row. Writes
build/peers/measured.json and comparison.png, and the marked parts of docs/comparison.md; or the
same into another folder, which is what `snakemake peers` does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import figure
import judge
import page
from tables import compared_tables, write_population, write_table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOREIGN, OWN = ("diffprivlib", "opendp"), "privreg"
SEEDS = 25


def main() -> None:
    """Run everything; fewer seeds than usual are for trying and are not stored."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=SEEDS)
    arguments.add_argument(
        "--fit",
        nargs="*",
        choices=(*FOREIGN, OWN),
        default=(*FOREIGN, OWN),
        help="whom to fit; what the others have fitted is kept",
    )
    arguments.add_argument("--folder", type=Path, default=ROOT / "build/peers")
    arguments.add_argument(
        "--output",
        type=Path,
        help="folder for measured.json, tables.md and comparison.png; the page stays as it is",
    )
    options = arguments.parse_args()
    folder = options.folder
    if options.fit:
        write_tables(folder, options.seeds)
    (folder / "fits").mkdir(exist_ok=True)
    for name in options.fit:
        python = Path(sys.executable) if name == OWN else environment(name, folder)
        fit(name, python, folder)
    found = judge.summary(folder)
    if options.seeds < SEEDS:
        print(page.all_tables(found))
        return
    if options.output is None:
        (folder / "measured.json").write_text(as_text(found))
        figure.draw(found, folder / "comparison.png")
        publish(found)
        return
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "measured.json").write_text(as_text(found))
    (options.output / "tables.md").write_text(page.all_tables(found))
    figure.draw(found, options.output / "comparison.png")


def as_text(found: dict) -> str:
    return json.dumps(found, indent=1) + "\n"


def publish(found: dict) -> None:
    """Bring the page in step with a summary."""
    path = ROOT / "docs/comparison.md"
    path.write_text(page.page(path.read_text(), found))


def write_tables(folder: Path, seeds: int) -> None:
    """Judged populations, from packages in an environment of their own, and the other tables."""
    program, populations = HERE / "write_populations.py", folder / "populations"
    subprocess.run([environment("tables", folder), program, "--output", populations], check=True)
    for path in sorted(populations.glob("*.npz")):
        write_population(path, folder, seeds=seeds)
    for table in compared_tables():
        write_table(table, folder, seeds=seeds)


def environment(name: str, folder: Path) -> Path:
    """Python of the environment that a lock file describes, made if it is not there."""
    place, lock = folder / "environments" / name, HERE / f"{name}.txt"
    python, made = place / "bin/python", place / "made.txt"
    if not made.is_file() or made.read_text() != lock.read_text():
        venv.create(place, clear=True, with_pip=True)
        options = ["--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run(
            [python, "-m", "pip", "install", *options, "--requirement", lock], check=True
        )
        made.write_text(lock.read_text())
    return python


def fit(name: str, python: Path, folder: Path) -> None:
    """Fit all tables in one process."""
    surroundings = dict(os.environ)
    if name in FOREIGN:
        # Theirs is theirs: nothing of this checkout is on their path.
        surroundings.pop("PYTHONPATH", None)
    places = ["--tables", folder / "tables", "--output", folder / "fits" / f"{name}.json"]
    subprocess.run([python, HERE / f"fit_{name}.py", *places], check=True, env=surroundings)


if __name__ == "__main__":
    main()
