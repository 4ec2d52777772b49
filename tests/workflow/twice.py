"""Build everything twice, cold, in two clones, and compare every artifact byte for byte.

    python tests/workflow/twice.py [--scale quick] [--keep FOLDER] [--built CHECKOUT] [target ...]

The second build has one core instead of two and splits the trials of each experiment over another
number of jobs; both run side by side. Clones hold what is committed, and no compiled kernel. A
checkout that was built before can take the place of the first. Shards are not compared,
since they hold other trials; what joins them is. Nor is the page, which tells what a rebuild took.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import filecmp
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
PAGE = "index.html"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=["paper", "quick"], default="paper")
    parser.add_argument("--keep", type=Path, help="folder to build in and to leave there")
    parser.add_argument("--built", type=Path, help="a checkout in place of the first build")
    parser.add_argument(
        "targets", nargs="*", default=["all", "studies"], help="all and studies if left out"
    )
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = arguments.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        return compare(folder, arguments.scale, arguments.targets, built=arguments.built)


def compare(folder: Path, scale: str, targets: list[str], *, built: Path | None) -> int:
    """0 if both builds agree, else 1 after a list of the files that do not."""
    configs = [f"config/{scale}.yaml"] if scale != "paper" else []
    first, second = built or folder / "first", folder / "second"
    other_shards = folder / "other_shards.json"
    other_shards.write_text(json.dumps(sharded_otherwise(scale)))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        builds = [pool.submit(build, second, targets, 1, [*configs, str(other_shards)])]
        if built is None:
            builds.append(pool.submit(build, first, targets, 2, configs))
        for running in builds:
            running.result()
    left, right = artifacts(first / "results"), artifacts(second / "results")
    different = sorted(left ^ right) + sorted(
        path
        for path in left & right
        if not filecmp.cmp(first / "results" / path, second / "results" / path, shallow=False)
    )
    print(f"{len(left | right)} artifacts, {len(different)} different", *different, sep="\n")
    return int(bool(different) or not left)


def sharded_otherwise(scale: str) -> dict[str, Any]:
    """A configuration that changes how many jobs an experiment of two trials or more has."""
    papers = {}
    for path in [*sorted((ROOT / "config/papers").glob("*.yaml")), ROOT / "config/studies.yaml"]:
        for paper, block in yaml.safe_load(path.read_text()).items():
            changed = {}
            for name, experiment in block["experiments"].items():
                at_scale = experiment | experiment.get(scale, {})
                shards = experiment.get("shards", 1) if scale == "paper" else 1
                shards = experiment.get(scale, {}).get("shards", shards)
                if (at_scale.get("trials") or 1) > 1:
                    other = {"shards": 2 if shards == 1 else 1}
                    changed[name] = other if scale == "paper" else {scale: other}
            papers[paper] = {"experiments": changed}
    return papers


def build(folder: Path, targets: list[str], cores: int, configs: list[str]) -> None:
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    run(folder, targets, cores, configs)


def run(folder: Path, targets: list[str], cores: int, configs: list[str]) -> None:
    """Build in a checkout, with no kernel but its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-m", "snakemake", *targets, "--cores", str(cores)]
    started = time.monotonic()
    subprocess.run(
        [*command, "--quiet", "all", *(["--configfile", *configs] if configs else [])],
        cwd=folder,
        env=environment,
        check=True,
    )
    print(f"{folder.name}: {cores} cores, {time.monotonic() - started:.0f} s", flush=True)


def artifacts(results: Path) -> set[str]:
    """Paths below `results` of all that must not differ: no logs, times or shards."""
    found = set()
    for path in results.rglob("*"):
        inside = path.relative_to(results)
        shard = "simulation" in inside.parts and path.suffix == ".nc" and path.stem.isdigit()
        measured = inside.name == PAGE or {"logs", "benchmarks"} & set(inside.parts)
        # Records that lie hidden beside an artifact say nothing that it does not.
        if path.is_file() and not path.name.startswith(".") and not measured and not shard:
            found.add(inside.as_posix())
    return found


if __name__ == "__main__":
    raise SystemExit(main())
