"""Build everything twice, cold, in two clones, and compare every artifact byte for byte.

    python tests/workflow/twice.py [--scale quick] [target ...]

The second build has one core instead of two and splits the trials of each experiment over another
number of jobs; both run side by side. Clones hold what is committed, and no compiled kernel.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent


def main() -> int:
    """0 if both builds agree, else 1 after a list of the files that do not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=["paper", "quick"], default="paper")
    parser.add_argument("targets", nargs="*", default=["all", "studies"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor() as pool:
        first, second, other_shards = (Path(place, name) for name in ("1", "2", "shards.json"))
        other_shards.write_text(json.dumps(sharded_otherwise(given.scale)))
        configs = [f"config/{given.scale}.yaml"] if given.scale != "paper" else []
        runs = ((first, 2, configs), (second, 1, [*configs, str(other_shards)]))
        left, right = pool.map(lambda run: build(given.targets, *run), runs)
    different = sorted(path for path in left | right if left.get(path) != right.get(path))
    print(f"{len(left | right)} artifacts, {len(different)} different", *different, sep="\n")
    return int(bool(different) or not left)


def sharded_otherwise(scale: str) -> dict[str, Any]:
    """A configuration that changes how many jobs an experiment of two trials or more has."""
    papers = {}
    for path in [*sorted((ROOT / "config/papers").glob("*.yaml")), ROOT / "config/studies.yaml"]:
        for paper, block in yaml.safe_load(path.read_text()).items():
            changed = {}
            for name, experiment in block["experiments"].items():
                at_scale = experiment if scale == "paper" else experiment.get(scale, {})
                if (at_scale.get("trials") or experiment.get("trials") or 1) > 1:
                    other = {"shards": 2 if at_scale.get("shards", 1) == 1 else 1}
                    changed[name] = other if scale == "paper" else {scale: other}
            papers[paper] = {"experiments": changed}
    return papers


def build(targets: list[str], folder: Path, cores: int, configs: list[str]) -> dict[str, str]:
    """Artifacts of a clone of what is committed."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    run(folder, targets, cores, configs)
    return artifacts(folder / "results")


def run(folder: Path, targets: list[str], cores: int, configs: list[str]) -> None:
    """Build in a checkout, with no kernel but its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-m", "snakemake", *targets, "--cores", str(cores)]
    subprocess.run(
        [*command, "--quiet", "all", *(["--configfile", *configs] if configs else [])],
        cwd=folder,
        env=environment,
        check=True,
    )


def artifacts(results: Path) -> dict[str, str]:
    """SHA-256 of all below `results` that must not differ: no logs, times or shards, nor the page.

    Shards hold other trials, and the page says what a rebuild took.
    """
    found = {}
    for path in sorted(results.rglob("*")):
        inside = path.relative_to(results)
        shard = "simulation" in inside.parts and path.stem.isdigit()
        measured = inside.name == "index.html" or {"logs", "benchmarks"} & set(inside.parts)
        if path.is_file() and not measured and not shard:
            found[inside.as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


if __name__ == "__main__":
    raise SystemExit(main())
