"""The workflow's stages: read artifacts, call the recipe's function, add provenance, write.

Each function is a command of `python -m privreg` and takes the command's options by their names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from privreg.experiment import datasets
from privreg.pipeline.closure import digest
from privreg.pipeline.registry import Recipe
from privreg.version import __version__

if TYPE_CHECKING:
    import xarray as xr

Paths = Mapping[str, Path]
Scale = Literal["paper", "quick"]
GLUE = __name__


def data(name: str, *, mirrors: Sequence[str], directory: Path | None, output: Path) -> None:
    """Fetch, check and store one real table, or its stand-in."""
    from privreg.data import load
    from privreg.experiment.tables import to_dataset

    dataset = to_dataset(load(name, directory=directory, mirrors=mirrors))
    code = digest(f"{GLUE}:data", "privreg.data")
    datasets.write(datasets.describe(dataset, {"code_digest": code}), output)


def theory(
    path: str, *, recipe: str | None, parameters: Mapping[str, Any], artifacts: Paths, output: Path
) -> None:
    """Evaluate an experiment's theory."""
    run, typed = _recipe(path, recipe, parameters)
    dataset = run.module.theory(typed, **_read(artifacts))
    _write(dataset, run, "theory", parameters, artifacts, output)


def simulate(
    path: str,
    *,
    recipe: str | None,
    parameters: Mapping[str, Any],
    seed: int,
    trials: int,
    shard: tuple[int, int],
    artifacts: Paths,
    output: Path,
) -> None:
    """Simulate one shard of an experiment's trials."""
    from privreg.experiment.trials import shard_of

    run, typed = _recipe(path, recipe, parameters)
    index, count = shard
    part = shard_of(seed, path, trials, index=index, count=count)
    dataset = run.module.simulate(typed, part, **_read(artifacts))
    dataset = dataset.assign_coords(
        trial=datasets.variable("trial", part.numbers, "trial number")
    ).assign_attrs(seed=seed)
    _write(dataset, run, "simulate", parameters, artifacts, output)


def summarise(
    path: str,
    *,
    recipe: str | None,
    parameters: Mapping[str, Any],
    shards: Sequence[Path],
    artifacts: Paths,
    output: Path,
) -> None:
    """Join an experiment's shards and summarise them over the trials."""
    import numpy as np
    import xarray as xr

    run, typed = _recipe(path, recipe, parameters)
    parts = sorted((datasets.read(path) for path in shards), key=lambda part: int(part.trial[0]))
    joined = xr.concat(
        parts,
        dim="trial",
        data_vars="minimal",
        coords="minimal",
        compat="equals",
        join="exact",
        combine_attrs="drop_conflicts",
    )
    found = joined.trial.values.tolist()
    if not np.array_equal(found, np.arange(len(found))):
        raise ValueError(f"shards must hold each trial once, got trials {found}")
    joined.attrs["trials"] = joined.sizes["trial"]
    if run.has("summarise"):
        attributes = joined.attrs
        joined = run.module.summarise(typed, joined, **_read(artifacts))
        joined.attrs = attributes | joined.attrs
    _write(joined, run, "summarise", parameters, artifacts, output)


def intervals(
    path: str, *, recipe: str | None, parameters: Mapping[str, Any], artifacts: Paths, output: Path
) -> None:
    """Compute an experiment's confidence intervals, their coverage and length."""
    run, typed = _recipe(path, recipe, parameters)
    dataset = run.module.intervals(typed, **_read(artifacts))
    _write(dataset, run, "intervals", parameters, artifacts, output)


def figure(path: str, *, artifacts: Paths, scale: Scale, output: Sequence[Path]) -> None:
    """Draw one figure and save it in each of the formats asked for."""
    import importlib

    from privreg.experiment import plotting

    paper, _, name = path.partition("/")
    module = importlib.import_module(f"privreg.papers.{paper}.figures")
    found = _read(artifacts)
    with plotting.style():
        drawing = getattr(module, name)(**found)
        plotting.mark(drawing, scale=scale, stand_ins=_stand_ins(found))
        for file in output:
            plotting.save(drawing, file)


def table(path: str, *, artifacts: Paths, output: Path) -> None:
    """Write one table as CSV."""
    import importlib

    paper, _, name = path.partition("/")
    module = importlib.import_module(f"privreg.papers.{paper}.tables")
    frame = getattr(module, name)(**_read(artifacts))
    with datasets.atomic(output) as partial:
        frame.to_csv(partial, index=False)


def schema(*, output: Path) -> None:
    """Write the JSON schema of the configuration."""
    from privreg.pipeline.schema import schema as generated

    _write_text(generated(), output)


def _recipe(path: str, recipe: str | None, parameters: Mapping[str, Any]) -> tuple[Recipe, Any]:
    paper, _, experiment = path.partition("/")
    run = Recipe(paper, recipe or experiment)
    return run, run.parameters(parameters, experiment)


def _read(paths: Paths) -> dict[str, xr.Dataset]:
    return {name: datasets.read(path) for name, path in paths.items()}


def _write(
    dataset: xr.Dataset,
    recipe: Recipe,
    stage: str,
    parameters: Mapping[str, Any],
    artifacts: Paths,
    output: Path,
) -> None:
    settings = json.dumps(parameters, sort_keys=True)
    attributes: dict[str, str | int] = {
        "title": (recipe.module.__doc__ or recipe.name).partition("\n")[0].rstrip("."),
        "references": recipe.references,
        "source": f"privreg {__version__}",
        "config": settings,
        "config_digest": hashlib.sha256(settings.encode()).hexdigest(),
        "code_digest": digest(f"{GLUE}:{stage}", f"{recipe.module_name}:{stage}"),
    }
    for name, path in artifacts.items():
        attributes[f"{name}_digest"] = datasets.file_digest(path)
    if "data" in artifacts:
        table = datasets.read(artifacts["data"])
        inherited = ("stand_in", "stand_in_reason", "checksums")
        attributes |= {key: table.attrs[key] for key in inherited}
    datasets.write(datasets.describe(dataset, attributes), output)


def _stand_ins(found: Mapping[str, xr.Dataset]) -> list[str]:
    reasons = (
        dataset.attrs["stand_in_reason"]
        for dataset in found.values()
        if dataset.attrs.get("stand_in", 0)
    )
    return list(dict.fromkeys(reasons))


def _write_text(text: str, path: Path) -> None:
    with datasets.atomic(path) as partial:
        partial.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
