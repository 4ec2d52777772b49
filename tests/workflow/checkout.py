"""Copies of the checkout, whole or made small, and Snakemake run in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import yaml

from reproduction.engine.plan import Plan

ROOT = Path(__file__).parents[2]
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
# Experiments and figures that pass through every rule but that of tables.
SMALL = {
    "bombari2025": {
        "experiments": ["clipping_factors", "housing_heat_maps"],
        "figures": ["fig6", "fig9"],
    },
    "brown2024": {"experiments": ["coverage"], "figures": ["fig5", "fig6"]},
    "studies": {"experiments": ["audits"], "figures": ["audits"]},
}


def environment(source: Path, **changed: str) -> dict[str, str]:
    """The environment of a user who has no local tables and has downloaded none."""
    variables = {
        **os.environ,
        # Byte-code lies in the copy: jobs that find none import three times as long.
        "PYTHONDONTWRITEBYTECODE": "",
        "PRIVREG_DATA": "",
        "XDG_CACHE_HOME": str(source / ".cache"),
        **changed,
    }
    # Rules find their package by themselves; compiled kernels lie beside it.
    for name in ("PYTHONPATH", "NUMBA_CACHE_DIR"):
        variables.pop(name, None)
    return variables


def start(
    folder: Path, *arguments: str, source: Path | None = None, **options: Any
) -> psutil.Popen:
    """Snakemake in a folder, of the workflow that lies there or, small and quick, in `source`."""
    where = source or folder
    if source:
        quick = str(source / "config/quick.yaml")
        arguments = (*arguments, "--snakefile", str(source / "Snakefile"), "--configfile", quick)
    return psutil.Popen(
        [*SNAKEMAKE, "--cores", "2", *arguments],
        cwd=folder,
        env=environment(where, **options.pop("environment", {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def snakemake(folder: Path, *arguments: str, check: bool = True, **options: Any) -> str:
    """Run it to its end, and return what it printed."""
    ran = start(folder, *arguments, **options)
    output = ran.communicate(timeout=1200)[0]
    assert ran.returncode == (0 if check else 1), output
    return output


def whole_checkout(folder: Path) -> Path:
    """A copy of everything that is not generated."""
    ignored = shutil.ignore_patterns(".*", "results", "tests", "*.egg-info", "build")
    shutil.copytree(ROOT, folder, ignore=ignored, dirs_exist_ok=True)
    return folder


def small_checkout(folder: Path, parts: dict[str, dict[str, list[str]]] = SMALL) -> Path:
    """A copy whose configuration and ledgers are these parts alone, and that has no network."""
    whole_checkout(folder)
    plan = Plan(ROOT / "config")
    shared = folder / "config/config.yaml"
    config = yaml.safe_load(shared.read_text())
    for source in config["data"].values():
        source["mirrors"] = ["http://127.0.0.1:9"]
    del config["papers"]
    # It names entries that are left out here.
    shutil.rmtree(folder / "config/coverage")
    listed = "".join(f"  - {paper}\n" for paper in parts if paper != "studies")
    shared.write_text(f"{yaml.safe_dump(config)}papers:\n{listed}")
    for paper, kept in parts.items():
        name = paper if paper == "studies" else f"papers/{paper}"
        file = folder / f"config/{name}.yaml"
        block = yaml.safe_load(file.read_text())[paper]
        for kind, names in kept.items():
            block[kind] = {name: block[kind][name] for name in names}
        block.pop("tables", None)
        if "housing_heat_maps" in block["experiments"]:
            block["experiments"]["housing_heat_maps"]["quick"]["shards"] = 2
        file.write_text(yaml.safe_dump({paper: block}, sort_keys=False))
        for topic in (folder / "config/claims" / paper).glob("*.yaml"):
            _keep_entries(topic, kept, plan, paper)
    return folder


def _keep_entries(topic: Path, kept: dict[str, list[str]], plan: Plan, paper: str) -> None:
    """Only the entries of a topic whose evidence and figure are kept; no file if there is none."""
    ledger = plan.ledgers[paper]

    def stands(block: dict[str, Any]) -> bool:
        """Whether an entry, or each entry that shows a finding, can be judged."""
        name = block.get("finding", block["id"])
        shown = ledger.shown_by(name) if name in ledger.findings else [name]
        read = {Path(path).stem for entry in shown for path in plan.evidence(paper, entry)}
        figures = {ledger.entries[entry].figure for entry in shown}
        return read <= {*kept["experiments"]} and figures <= {None, *kept["figures"]}

    block = yaml.safe_load(topic.read_text())
    block["identities"] = [
        name for name in block.get("identities", []) if name in kept["experiments"]
    ]
    for kind, listed in block.items():
        if isinstance(listed, list) and kind != "identities":
            block[kind] = [*filter(stands, listed)]
            for each in block[kind]:
                # What it rests on may have been left out.
                each.pop("requires", None)
    block.get("shared", {}).pop("requires", None)
    block = {key: each for key, each in block.items() if each != []}
    if any(isinstance(each, list) for each in block.values()):
        topic.write_text(yaml.safe_dump(block, sort_keys=False))
    else:
        topic.unlink()
