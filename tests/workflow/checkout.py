"""Copies of the checkout, whole or made small, and Snakemake run in them."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
QUICK = ("--configfile", "config/quick.yaml")
# Experiments and figures that pass through every rule.
SMALL = {
    "bombari2025": {
        "experiments": ["clipping_factors", "housing_heat_maps"],
        "figures": ["fig6", "fig9"],
    },
    "brown2024": {"experiments": ["coverage"], "figures": ["fig5", "fig6"]},
    "studies": {"experiments": ["audits"], "figures": ["audits"]},
}
WARM = Path(__file__).with_name("warm.py")
RUNS_NO_JOB = {"--dry-run", "--lint", "--list-rules", "--rulegraph"}
DEAD_MIRROR = ["http://127.0.0.1:9"]


def snakemake(
    folder: Path, *arguments: str, check: bool = True, limit: float = 280, **environment: str
) -> str:
    """Run Snakemake in a checkout for so many seconds at most and return what it printed."""
    variables = {
        **os.environ,
        # Byte-code lies in the copy: jobs that find none import three times as long.
        "PYTHONDONTWRITEBYTECODE": "",
        # No local tables, and none that an earlier run downloaded.
        "PRIVREG_DATA": "",
        "XDG_CACHE_HOME": str(folder / ".cache"),
        **environment,
    }
    variables.pop("PYTHONPATH", None)
    arguments = ("--cores", "2", *arguments)
    if RUNS_NO_JOB & {*arguments}:
        status, output = _forked(folder, arguments, variables, limit)
    else:
        ran = subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        status, output = ran.returncode, ran.stdout + ran.stderr
    assert (status == 0) == check, output
    return output


@functools.cache
def _warm() -> subprocess.Popen[str]:
    """A process that ends with this one, which closes its input."""
    variables = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    variables.pop("PYTHONPATH", None)
    return subprocess.Popen(
        [sys.executable, WARM],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _forked(
    folder: Path, arguments: Sequence[str], variables: dict[str, str], limit: float
) -> tuple[int, str]:
    """Status and output of a command that runs no job, without Snakemake's imports."""
    with tempfile.TemporaryDirectory() as place:
        said = {name: f"{place}/{name}" for name in ("output", "errors")}
        request = {
            "folder": str(folder),
            "arguments": arguments,
            "environment": variables,
            "limit": int(limit),
        }
        server = _warm()
        print(json.dumps(request | said), file=server.stdin, flush=True)
        status = int(server.stdout.readline())
        return status, "".join(Path(path).read_text() for path in said.values())


def whole_checkout(folder: Path) -> Path:
    """A copy of everything that is not generated."""
    ignored = shutil.ignore_patterns(".*", "results", "tests", "*.egg-info", "build")
    shutil.copytree(ROOT, folder, ignore=ignored, dirs_exist_ok=True)
    return folder


def small_checkout(folder: Path, parts: dict[str, dict[str, list[str]]] = SMALL) -> Path:
    """A copy whose configuration and ledgers are these parts alone, and that has no network."""
    whole_checkout(folder)
    shared = folder / "config/config.yaml"
    config = yaml.safe_load(shared.read_text())
    for source in config["data"].values():
        source["mirrors"] = DEAD_MIRROR
    del config["papers"]
    listed = "".join(f"  - {paper}\n" for paper in parts if paper != "studies")
    shared.write_text(f"{yaml.safe_dump(config)}papers:\n{listed}")
    for paper, kept in parts.items():
        name = paper if paper == "studies" else f"papers/{paper}"
        file = folder / f"config/{name}.yaml"
        block = yaml.safe_load(file.read_text())[paper]
        for kind in ("experiments", "figures"):
            block[kind] = {name: block[kind][name] for name in kept[kind]}
        block.pop("tables", None)
        file.write_text(yaml.safe_dump({paper: block}, sort_keys=False))
        for topic in (folder / "config/claims" / paper).glob("*.yaml"):
            _keep_entries(topic, kept)
    return folder


def _keep_entries(topic: Path, kept: dict[str, list[str]]) -> None:
    """Only the entries of a topic whose evidence and figure are kept; no file if there is none."""
    block = yaml.safe_load(topic.read_text())
    shared = yaml.safe_dump(block.get("shared", {}))

    def stands(entry: object) -> bool:
        text = f"{yaml.safe_dump(entry)}\n{shared}"
        artifacts = re.findall(r"artifact: '?[a-z]+/(\w+)", text)
        figures = re.findall(r"^\s*figure: (\w+)", text, re.MULTILINE)
        return bool(artifacts) and (
            {*artifacts} <= {*kept["experiments"]} and {*figures} <= {*kept["figures"]}
        )

    declared = [name for name in block.pop("identities", []) if name in kept["experiments"]]
    for kind, entries in block.items():
        if isinstance(entries, list):
            block[kind] = [entry for entry in entries if stands(entry)]
            for entry in block[kind]:
                # What it rests on may have been left out.
                entry.pop("requires", None)
    block.get("shared", {}).pop("requires", None)
    block |= {"identities": declared} if declared else {}
    if any(isinstance(entries, list) and entries for entries in block.values()):
        topic.write_text(yaml.safe_dump(block, sort_keys=False))
    else:
        topic.unlink()
