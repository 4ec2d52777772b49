"""The workflow's stages: read artifacts, call the recipe's function, add provenance, write.

Each function is a command of `python -m reproduction`; its arguments are the options.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from privreg.version import __version__
from reproduction.engine import artifacts as store
from reproduction.pipeline import provenance
from reproduction.pipeline.provenance import NOTHING, Expectations
from reproduction.pipeline.registry import Recipe, package, seed_key

if TYPE_CHECKING:
    import xarray as xr

Paths = Mapping[str, Path]
Scale = Literal["paper", "quick"]


def data(
    name: str,
    *,
    mirrors: Sequence[str] | None,
    directory: Path | None,
    real: bool,
    looked_for_in: str,
    origin: Path | None,
    output: Path,
) -> None:
    """Fetch, check and store one real table, or its stand-in; `real` refuses the stand-in."""
    from privreg.data import DataError, files_of, load
    from reproduction.engine.artifacts import to_dataset

    try:
        table = load(name, directory=directory, mirrors=mirrors, allow_stand_in=not real)
    except DataError as error:
        if not real:
            raise
        raise store.FileFault(
            f"{error}; {output} is real and no stand-in takes its place: set PRIVREG_DATA to a "
            f"folder with {', '.join(files_of(name))}, or remove {output} to go on with a stand-in"
        ) from error
    if origin is not None:
        about = {"looked_for_in": looked_for_in, "stand_in": table.stand_in}
        store.write_text(json.dumps(about), origin)
    dataset = to_dataset(table)
    attributes = {
        "code_digest": provenance.data_code_digest(),
        "identity": provenance.table_identity(name),
    }
    store.write(store.describe(dataset, attributes), output)


def theory(
    path: str,
    *,
    recipe: str | None,
    parameters: Mapping[str, Any],
    artifacts: Paths,
    output: Path,
    expected: Expectations = NOTHING,
) -> None:
    """Evaluate an experiment's theory."""
    job = _Job("theory", path, recipe, parameters, artifacts, expected)
    job.write(job.recipe.module.theory(job.parameters, **job.inputs), output)


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
    expected: Expectations = NOTHING,
) -> None:
    """Simulate one shard of an experiment's trials."""
    from reproduction.engine.trials import shard_of

    job = _Job("simulate", path, recipe, parameters, artifacts, expected)
    index, count = shard
    part = shard_of(seed, seed_key(path), trials, index=index, count=count)
    dataset = job.recipe.module.simulate(job.parameters, part, **job.inputs)
    dataset = dataset.assign_coords(
        trial=store.variable("trial", part.numbers, "trial number")
    ).assign_attrs(seed=seed)
    job.write(dataset, output, draws={"seed": seed, "trials": trials})


def summarise(
    path: str,
    *,
    recipe: str | None,
    parameters: Mapping[str, Any],
    shards: Sequence[Path],
    artifacts: Paths,
    output: Path,
    expected: Expectations = NOTHING,
) -> None:
    """Join an experiment's shards and summarise them over the trials."""
    import numpy as np
    import xarray as xr

    job = _Job("summarise", path, recipe, parameters, artifacts, expected)
    parts = [provenance.read(shard, expected.get("shards")) for shard in shards]
    joined = xr.concat(
        sorted(parts, key=lambda part: int(part.trial[0])),
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
    attributes = joined.attrs
    if job.recipe.has("summarise"):
        joined = job.recipe.module.summarise(job.parameters, joined, **job.inputs)
        joined.attrs = attributes | joined.attrs
    job.write(joined, output, shards=str(attributes.get("identity", "")))


def simulation(
    path: str,
    *,
    recipe: str | None,
    parameters: Mapping[str, Any],
    seed: int,
    trials: int,
    artifacts: Paths,
    output: Path,
    summary: Path,
    expected: Expectations = NOTHING,
) -> None:
    """Simulate all trials of an experiment as one shard, `output`, and summarise them."""
    paper, _, experiment = path.partition("/")
    job = Recipe(paper, recipe or experiment)
    common: dict[str, Any] = {"recipe": recipe, "parameters": parameters, "expected": expected}
    read = {
        stage: {kind: artifacts[kind] for kind in job.reads(stage)}
        for stage in ("simulate", "summarise")
    }
    simulate(
        path,
        seed=seed,
        trials=trials,
        shard=(0, 1),
        artifacts=read["simulate"],
        output=output,
        **common,
    )
    summarise(path, shards=[output], artifacts=read["summarise"], output=summary, **common)


def intervals(
    path: str,
    *,
    recipe: str | None,
    parameters: Mapping[str, Any],
    artifacts: Paths,
    output: Path,
    expected: Expectations = NOTHING,
) -> None:
    """Compute an experiment's confidence intervals, their coverage and length."""
    job = _Job("intervals", path, recipe, parameters, artifacts, expected)
    job.write(job.recipe.module.intervals(job.parameters, **job.inputs), output)


def figure(
    path: str,
    *,
    artifacts: Paths,
    scale: Scale,
    output: Sequence[Path],
    expected: Expectations = NOTHING,
) -> None:
    """Draw one figure and save it in each of the formats asked for."""
    import importlib

    from reproduction.engine import plotting

    paper, _, name = path.partition("/")
    module = importlib.import_module(f"{package(paper)}.figures")
    found = provenance.read_all(artifacts, expected)
    with plotting.style():
        drawing = getattr(module, name)(**found)
        plotting.mark(drawing, scale=scale, stand_ins=_stand_ins(found))
        for file in output:
            plotting.save(drawing, file)
            # The next file keeps the layout of the first: to find it costs as much as to draw.
            drawing.set_layout_engine("none")


def table(path: str, *, artifacts: Paths, output: Path, expected: Expectations = NOTHING) -> None:
    """Write one table as CSV."""
    import importlib

    paper, _, name = path.partition("/")
    module = importlib.import_module(f"{package(paper)}.tables")
    frame = getattr(module, name)(**provenance.read_all(artifacts, expected))
    with store.atomic(output) as partial:
        frame.to_csv(partial, index=False)


def schema(*, output: Path) -> None:
    """Write the JSON schema of the configuration."""
    from reproduction.pipeline.schema import schema as generated

    store.write_text(generated(), output, checksum=False)


class _Job:
    """One stage of an experiment: its parameters, what it reads, and how its result is written."""

    def __init__(
        self,
        stage: str,
        path: str,
        recipe: str | None,
        parameters: Mapping[str, Any],
        artifacts: Paths,
        expected: Expectations,
    ) -> None:
        paper, _, experiment = path.partition("/")
        self.stage, self.path = stage, path
        self.recipe = Recipe(paper, recipe or experiment)
        self.parameters = self.recipe.parameters(parameters, experiment)
        self.settings = json.dumps(parameters, sort_keys=True)
        self.artifacts = artifacts
        self.inputs = provenance.read_all(artifacts, expected)

    def write(
        self,
        dataset: xr.Dataset,
        output: Path,
        *,
        draws: Mapping[str, int] | None = None,
        shards: str | None = None,
    ) -> None:
        """Write the stage's Dataset with its provenance; `shards` is the identity of its shards."""
        config_digest = provenance.config_digest(self.settings)
        code_digest = provenance.code_digest(self.stage, self.recipe.module_name)
        reads = {name: str(found.attrs.get("identity", "")) for name, found in self.inputs.items()}
        if shards is not None:
            reads["shards"] = shards
        attributes: dict[str, str | int] = {
            "title": (self.recipe.module.__doc__ or self.recipe.name)
            .partition("\n")[0]
            .rstrip("."),
            "references": self.recipe.references,
            "source": f"privreg {__version__}",
            "experiment": self.path,
            "stage": self.stage,
            "config": self.settings,
            "config_digest": config_digest,
            "code_digest": code_digest,
            "identity": provenance.identity(
                self.path,
                self.stage,
                config_digest=config_digest,
                code_digest=code_digest,
                reads=reads,
                draws=draws,
            ),
        }
        for name, path in self.artifacts.items():
            attributes[f"{name}_digest"] = str(store.recorded(path))
        if "data" in self.inputs:
            inherited = ("stand_in", "stand_in_reason", "checksums")
            attributes |= {key: self.inputs["data"].attrs[key] for key in inherited}
        store.write(store.describe(dataset, attributes), output)


def _stand_ins(found: Mapping[str, xr.Dataset]) -> list[str]:
    reasons = (
        dataset.attrs["stand_in_reason"]
        for dataset in found.values()
        if dataset.attrs.get("stand_in", 0)
    )
    return list(dict.fromkeys(reasons))
