"""What a run asks of SLURM by name, compared with what SLURM has before anything is sent."""

from __future__ import annotations

import getpass
import re
import subprocess
from collections.abc import Mapping
from typing import Any

from reproduction.engine.parameters import choose

# What lists the valid values of a default resource.
LISTED_BY = {
    "slurm_partition": ("sinfo", "--noheader", "--format=%R"),
    "slurm_account": (
        "sacctmgr", "--noheader", "--parsable2", "show", "associations",
        "user={user}", "format=account",
    ),
}  # fmt: skip
NAMES = re.compile(r"[\w.-]+(,[\w.-]+)*")
SECONDS = 10


def require_known(resources: Mapping[str, Any]) -> None:
    """Refuse a partition or an account that this SLURM does not have.

    What SLURM does not list, such as accounts where it keeps none, is left for it to refuse.

    Parameters
    ----------
    resources : mapping
        The default resources of a profile as they are written, by name. Those that are
        expressions are left for a job to evaluate.

    Raises
    ------
    ConfigError
        One line: the resource, what was expected, and the nearest valid name.
    """
    for name, command in LISTED_BY.items():
        stated = str(resources.get(name) or "")
        known = _listed(*command) if NAMES.fullmatch(stated) else set()
        for value in stated.split(",") if known else ():
            choose(value, sorted(known), name)


def _listed(*command: str) -> set[str]:
    """Names that a command of SLURM's prints, one a line; none if it is missing or fails."""
    try:
        ran = subprocess.run(
            [part.format(user=getpass.getuser()) for part in command],
            capture_output=True, text=True, check=True, timeout=SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return set()
    return {line.strip() for line in ran.stdout.splitlines() if line.strip()}
