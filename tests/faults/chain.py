"""A checkout that holds a chain of every stage, which a run makes in seconds, and runs of it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
OVERLAY = Path(__file__).parent / "overlay"
PAPERS = "src/reproduction/papers"
# Rows of the real table's form, which the checkout is told to expect.
TABLE = "\n".join(
    f"-120.{row},35.{row},{row % 50},{1000 + row},200,{500 + row},{150 + row % 7},{3 + row % 5},"
    f"{100000 + 10 * row}"
    for row in range(400)
)
DEAD_MIRROR = ["http://127.0.0.1:9/"]
PLAIN = [sys.executable, "-m", "snakemake"]
# What tells when and how long, and what a reader of results does not open.
TIMES = {"logs", "benchmarks"}
PAGE = "index.html"
# What may be taken away, from the last artifacts to all: a level goes with those before it.
LEVELS = (
    ["gate.txt", "index.html"],
    ["claims.csv", "claims.json", "findings.csv", "tables/chain2026/table1.csv"],
    ["verdicts/chain2026.json"],
    ["intervals/chain2026/slope.nc", "figures/chain2026/fig1.pdf", "figures/chain2026/fig1.png"],
    ["simulation/chain2026/slope.nc", "theory/chain2026/slope.nc"],
    ["simulation/chain2026/slope/0.nc", "simulation/chain2026/slope/1.nc"],
    ["data/california_housing.nc", "data/california_housing.json"],
)


def take_away(folder: Path, levels: int) -> None:
    """Remove artifacts of the last levels."""
    for level in LEVELS[:levels]:
        for path in level:
            (folder / "results" / path).unlink(missing_ok=True)


def chain_checkout(folder: Path) -> Path:
    """A copy of the checkout with the chain as its only paper, and mirrors that do not answer."""
    ignored = shutil.ignore_patterns(".*", "results", "*.egg-info", "build")
    for name in ("environment.yml", "README.md"):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name in ("src", "workflow", "profiles"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for paper in (folder / PAPERS).iterdir():
        if paper.is_dir():
            shutil.rmtree(paper)
    shutil.copytree(OVERLAY, folder, ignore=ignored, dirs_exist_ok=True)
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    config["papers"] = ["chain2026"]
    for source in config["data"].values():
        source["mirrors"] = DEAD_MIRROR
    (folder / "config/config.yaml").write_text(yaml.safe_dump(config))
    # The chain's own parameters are the paper's.
    subprocess.run(
        [sys.executable, "-m", "reproduction", "scales", "--output", "workflow/scale.lock"],
        cwd=folder,
        env=environment(folder, PYTHONPATH="src"),
        check=True,
    )
    source = folder / "src/privreg/data/california_housing.py"
    digest = hashlib.sha256(TABLE.encode()).hexdigest()
    source.write_text(re.sub(r'( sha256=")[0-9a-f]{64}', rf"\g<1>{digest}", source.read_text()))
    return folder


def built_checkout(folder: Path) -> Path:
    """A checkout of the chain whose artifacts one undisturbed run has made."""
    chain_checkout(folder)
    first = run(folder)
    if first.status:
        raise RuntimeError(first.output)
    return folder


def real_files(folder: Path) -> Path:
    """A folder for PRIVREG_DATA with the files that the checkout takes for the real ones."""
    path = folder / "california_housing" / "cal_housing.data"
    path.parent.mkdir(parents=True)
    path.write_text(TABLE)
    return folder


def environment(folder: Path, **changed: str | None) -> dict[str, str]:
    """The environment of a user who has no local tables; None takes a variable away."""
    variables: dict[str, str | None] = {
        **os.environ,
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "PYTHONDONTWRITEBYTECODE": None,
        "PYTHONPATH": None,
        "PRIVREG_DATA": None,
        "NO_PROXY": "127.0.0.1",
        **changed,
    }
    return {name: value for name, value in variables.items() if value is not None}


# What Snakemake writes down as it launches jobs.
LAUNCHED = "Execute"


@dataclass
class Ran:
    """A run that ended."""

    status: int
    output: str
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = [line for line in self.output.splitlines() if line.strip()]


def run(folder: Path, *arguments: str, before: Sequence[str] = (), **changed: str | None) -> Ran:
    """The plain command, to its end."""
    ran = subprocess.run(
        [*before, *PLAIN, "--cores", "2", *arguments],
        cwd=folder,
        env=environment(folder, **changed),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=900,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout)


@dataclass
class Started:
    """A run in a process group of its own, which can be hit."""

    process: subprocess.Popen[bytes]
    log: Path
    folder: Path
    logs_before: frozenset[Path]

    def hit(self, number: signal.Signals, *, group: bool = True) -> None:
        """Send a signal; nothing happens if the run has ended."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def wait_for_launches(self, count: int = 1, limit: float = 600) -> bool:
        """Whether jobs were launched so often before the run ended, by Snakemake's own log."""
        ends = time.monotonic() + limit
        while time.monotonic() < ends:
            new = logs(self.folder) - self.logs_before
            if sum(path.read_text(errors="replace").count(LAUNCHED) for path in new) >= count:
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.01)
        raise TimeoutError(f"not {count} launches in {limit} s")

    def end(self, limit: float = 600) -> Ran:
        """The run's end."""
        status = self.process.wait(limit)
        return Ran(status, self.log.read_text(errors="replace"))


def start(folder: Path, log: Path, *arguments: str, **changed: str | None) -> Started:
    """The plain command in a process group of its own."""
    before = logs(folder)
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*PLAIN, "--cores", "2", *arguments],
            cwd=folder,
            env=environment(folder, **changed),
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Started(process, log, folder, before)


def logs(folder: Path) -> frozenset[Path]:
    """Snakemake's own files of a folder's runs."""
    return frozenset((folder / ".snakemake/log").glob("*.log"))


def artifacts(folder: Path) -> dict[str, str]:
    """SHA-256 of every artifact; the page is left out, since it tells times."""
    root = folder / "results"
    found = {}
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and inside.parts[0] not in TIMES and PAGE not in path.name:
            found[inside.as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
