"""At whose scale an experiment runs: the paper's, the quick one, or your own.

An experiment is at the paper's scale if its recipe, trials and parameters are those that
`workflow/scale.lock` has a digest of. It is a lock: derived from `config/` when a run starts, it
would follow an edit there, and a parameter made small would pass for the paper's. The seed and the
number of shards are no part of it: they change draws and jobs, not what is computed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from reproduction.engine.parameters import ConfigError, Strict, validate
from reproduction.pipeline.config import Config, Experiment, read_configuration
from reproduction.pipeline.registry import Recipe, known_keys

LOCK = Path("workflow/scale.lock")


class Reference(Strict):
    """What a paper's configuration is, as it was committed."""

    experiments: dict[str, str] = Field(description="Digest of each experiment.")
    drawings: dict[str, dict[str, str]] = Field(
        description="Of each figure and table the kind and recipe of the artifact of an argument."
    )


def digest(paper: str, name: str, experiment: Experiment) -> str:
    """Short SHA-256 of an experiment's recipe, trials and parameters, defaults included."""
    recipe = Recipe(paper, experiment.recipe or name)
    about = {
        "recipe": recipe.name,
        "trials": experiment.trials,
        "parameters": recipe.parameters(experiment.parameters, name).model_dump(mode="json"),
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def read_reference(path: Path = LOCK) -> dict[str, Reference]:
    """The committed configuration of each paper."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} must hold the digests that `make scale` writes, got {error}"
        ) from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} must hold the digests that `make scale` writes, got {found!r}")
    return {paper: validate(Reference, about, f"{path}: {paper}") for paper, about in found.items()}


def own(config: Config, reference: Mapping[str, Reference]) -> frozenset[tuple[str, str]]:
    """Papers and names of the experiments that are not at the paper's scale."""
    return frozenset(
        (paper, name)
        for paper, block in config.blocks.items()
        for name, experiment in block.experiments.items()
        if paper not in reference
        or reference[paper].experiments.get(name) != digest(paper, name, experiment)
    )


def made_as(config: Config, paper: str, artifact: str) -> str:
    """An artifact with its recipe in place of the experiment's name."""
    kind, _, name = artifact.partition("/")
    if kind == "data":
        return artifact
    experiment = config.blocks[paper].experiments.get(name)
    return f"{kind}/{(experiment.recipe if experiment else None) or name}"


def scales(*, output: Path) -> None:
    """Write the digests of the configuration that lies in `config/`."""
    from reproduction.engine import artifacts as store
    from reproduction.pipeline.config import load

    config = load(read_configuration(), known_keys())
    found: dict[str, Any] = {}
    for paper, block in config.blocks.items():
        experiments = {
            name: digest(paper, name, experiment) for name, experiment in block.experiments.items()
        }
        drawings = {
            name: {
                argument: made_as(config, paper, artifact)
                for argument, artifact in drawing.artifacts.items()
            }
            for name, drawing in {**block.figures, **block.tables}.items()
        }
        found[paper] = {"experiments": experiments, "drawings": drawings}
    store.write_text(json.dumps(found, indent=1, sort_keys=True), output, checksum=False)
