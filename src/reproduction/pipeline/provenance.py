"""What an artifact was made of: written into it, and compared with what its reader expects.

An identity is a digest of the experiment, the stage, its parameters, its code, its draws and the
identities of what it read. The plan knows it before any job runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from reproduction.engine import artifacts as store
from reproduction.pipeline.closure import digest

if TYPE_CHECKING:
    import xarray as xr

# A short identity by argument name; what is not named is not compared.
Expectations = Mapping[str, str]
NOTHING: Expectations = MappingProxyType({})
STAGES = "reproduction.pipeline.stages"
# Characters of an identity on a command line.
SHORT = 16
# Between the identity of an artifact and the table that it was made with.
MADE_WITH = "@"


class ForeignError(store.FileFault):
    """An artifact is whole, but not the one that its reader expects."""


def identity(
    experiment: str,
    stage: str,
    *,
    config_digest: str,
    code_digest: str,
    reads: Mapping[str, str],
    draws: Mapping[str, int] | None = None,
) -> str:
    """Digest of all that decides an artifact's content, except the rows of a table.

    Parameters
    ----------
    experiment : str
        `paper/experiment`, or `data/<table>`.
    stage : str
        The stage that makes it.
    config_digest, code_digest : str
        Of the parameters and of the source files that the stage runs.
    reads : mapping
        Identity of each artifact that is read, by argument name.
    draws : mapping, optional
        Seed and number of trials of a simulation.
    """
    about = [experiment, stage, config_digest, code_digest, dict(reads), dict(draws or {})]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def config_digest(parameters: str) -> str:
    """SHA-256 of an experiment's parameters as JSON with sorted keys."""
    return hashlib.sha256(parameters.encode()).hexdigest()


def code_digest(stage: str, module: str) -> str:
    """SHA-256 of the source files that a stage of a recipe runs."""
    return digest(f"{STAGES}:{stage}", f"{module}:{stage}")


def data_code_digest() -> str:
    """SHA-256 of the source files that prepare a table."""
    return digest(f"{STAGES}:data", "privreg.data")


def table_identity(name: str) -> str:
    """Identity of a prepared table, whichever rows it holds."""
    return identity(
        f"data/{name}", "data", config_digest="", code_digest=data_code_digest(), reads={}
    )


def read_all(paths: Mapping[str, Path], expected: Expectations) -> dict[str, xr.Dataset]:
    """Artifacts by argument name, each verified and compared with what is expected of it."""
    return {name: read(path, expected.get(name)) for name, path in paths.items()}


def read(path: Path, expected: str | None) -> xr.Dataset:
    """An artifact, verified, and refused if it is not the one that is expected.

    Parameters
    ----------
    path : Path
    expected : str or None
        From `pipeline.expected`; None expects nothing.

    Raises
    ------
    DamagedError, ForeignError
        One line.
    """
    dataset = store.read(path)
    if expected is None:
        return dataset
    wanted, _, table = expected.partition(MADE_WITH)
    made_of = dataset.attrs
    if not str(made_of.get("identity", "")).startswith(wanted):
        raise ForeignError(
            f"{path}: holds {made_of.get('experiment', 'nothing known')} as made by "
            f"{made_of.get('stage', 'no stage')} of other parameters, code or draws than this "
            "run's; remove it and type the same command again"
        )
    if table and made_of.get("data_digest") != store.recorded(table):
        raise ForeignError(
            f"{path}: made with other rows than those of {table}; "
            "remove it and type the same command again"
        )
    return dataset
