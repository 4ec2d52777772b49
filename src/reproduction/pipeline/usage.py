"""What a job took, as the last line of its log: measured by the job itself, at its end.

Snakemake's benchmark samples processor time every half minute, and sees no job that is a fork.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEGINS = "took "


@dataclass(frozen=True)
class Usage:
    """Processor seconds and memory of one job, and what they were of.

    Attributes
    ----------
    seconds : float
        User and system time; of a fork, without the imports that it began with.
    memory_mb : float
        Largest resident memory.
    forked : bool
        Whether the process was a fork of the run's server.
    of : mapping
        The experiment's parameters, and the trials of a simulation with the jobs that share them.
    """

    seconds: float
    memory_mb: float
    forked: bool
    of: Mapping[str, Any] = field(default_factory=dict)


def line(options: Mapping[str, Any], *, forked: bool) -> str:
    """What this process took for a stage with these options, which `read` reads."""
    mine, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    of = {name: options[name] for name in ("parameters", "trials") if name in options}
    if "trials" in options:
        of["jobs"] = options.get("shard", (0, 1))[1]
    # Kilobytes, but on macOS bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    found = {
        "seconds": round(sum(usage.ru_utime + usage.ru_stime for usage in (mine, children)), 3),
        "memory_mb": round(mine.ru_maxrss / unit, 1),
        "forked": forked,
        "of": of,
    }
    return BEGINS + json.dumps(found, sort_keys=True)


def read(log: Path) -> Usage | None:
    """What the job of a log took; None of one that did not end well."""
    lines = log.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[-1].startswith(BEGINS):
        return None
    return Usage(**json.loads(lines[-1].removeprefix(BEGINS)))
