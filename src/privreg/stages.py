"""The workflow's stages: read artifacts, call the recipe's function, add provenance, write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from privreg import __version__, store
from privreg.papers.registry import Recipe
from privreg.sources import digest

if TYPE_CHECKING:
    import xarray as xr

Paths = Mapping[str, Path]
Scale = Literal["paper", "quick"]


def data(name: str, *, mirrors: Sequence[str], directory: Path | None, output: Path) -> None:
    """Fetch, check and store one real table, or its stand-in."""
    from privreg.data import load
    from privreg.data.artifact import to_dataset

    dataset = to_dataset(load(name, directory=directory, mirrors=mirrors))
    code = digest("privreg.stages:data", "privreg.data")
    store.write(store.describe(dataset, {"code_digest": code}), output)


def theory(recipe: Recipe, values: dict[str, Any], *, reads: Paths, output: Path) -> None:
    """Evaluate a recipe's theory."""
    dataset = recipe.module.theory(_parameters(recipe, values), **_read(reads))
    _write(dataset, recipe, "theory", values, reads, output)


def simulate(
    recipe: Recipe,
    values: dict[str, Any],
    *,
    experiment: str,
    seed: int,
    trials: int,
    shard: tuple[int, int],
    reads: Paths,
    output: Path,
) -> None:
    """Simulate one shard of a recipe's trials."""
    from privreg import randomness

    index, count = shard
    part = randomness.shard(seed, experiment, trials, index=index, count=count)
    dataset = recipe.module.simulate(_parameters(recipe, values), part, **_read(reads))
    dataset = dataset.assign_coords(
        trial=store.variable("trial", part.numbers, "trial number")
    ).assign_attrs(seed=seed)
    _write(dataset, recipe, "simulate", values, reads, output)


def gather(
    recipe: Recipe, values: dict[str, Any], *, shards: Sequence[Path], reads: Paths, output: Path
) -> None:
    """Join the shards of a simulation and summarise them over the trials."""
    import numpy as np
    import xarray as xr

    parts = sorted((store.read(path) for path in shards), key=lambda part: int(part.trial[0]))
    joined = xr.concat(
        parts,
        dim="trial",
        data_vars="minimal",
        coords="minimal",
        compat="equals",
        join="exact",
        combine_attrs="drop_conflicts",
    )
    if not np.array_equal(joined.trial, np.arange(joined.sizes["trial"])):
        raise ValueError(f"shards hold trials {joined.trial.values.tolist()}: expected each once")
    joined.attrs["trials"] = joined.sizes["trial"]
    if recipe.has("summarise"):
        attributes = joined.attrs
        joined = recipe.module.summarise(_parameters(recipe, values), joined, **_read(reads))
        joined.attrs = attributes | joined.attrs
    _write(joined, recipe, "summarise", values, reads, output)


def intervals(recipe: Recipe, values: dict[str, Any], *, reads: Paths, output: Path) -> None:
    """Compute a recipe's confidence intervals, their coverage and length."""
    dataset = recipe.module.intervals(_parameters(recipe, values), **_read(reads))
    _write(dataset, recipe, "intervals", values, reads, output)


def figure(
    paper: str, name: str, *, artifacts: Paths, scale: Scale, outputs: Sequence[Path]
) -> None:
    """Draw one figure and save it in each of the formats asked for."""
    import importlib

    from privreg import plotting

    module = importlib.import_module(f"privreg.papers.{paper}.figures")
    datasets = _read(artifacts)
    with plotting.style():
        drawing = getattr(module, name)(**datasets)
        plotting.mark(drawing, scale=scale, stand_ins=_stand_ins(datasets))
        for output in outputs:
            plotting.save(drawing, output)


def table(paper: str, name: str, *, artifacts: Paths, output: Path) -> None:
    """Write one table as CSV."""
    import importlib

    module = importlib.import_module(f"privreg.papers.{paper}.tables")
    frame = getattr(module, name)(**_read(artifacts))
    with store.atomic(output) as partial:
        frame.to_csv(partial, index=False)


def claims(
    paper: str,
    values: Sequence[dict[str, Any]],
    *,
    evidence: Path,
    scale: Scale,
    outputs: Sequence[Path],
) -> None:
    """Judge entries of a ledger by the artifact that is the evidence of them all."""
    from privreg.claims import entries, verdicts

    dataset, digest_of_evidence = store.read(evidence), store.file_digest(evidence)
    for value, output in zip(values, outputs, strict=True):
        entry = entries.Entry.model_validate(value)
        verdict = verdicts.judge(
            entry,
            dataset,
            paper=paper,
            digest=digest_of_evidence,
            command=f"snakemake results/claims/{paper}/{entry.id}.json",
            scale=scale,
        )
        _write_text(verdict.model_dump_json(indent=2), output)


def ledger(claims: Sequence[Path], *, csv: Path, json_file: Path, html: Path) -> None:
    """Join the verdicts into a table, as CSV, JSON and a page."""
    from privreg.claims import page, verdicts
    from privreg.papers.registry import citation

    found = [verdicts.Verdict.model_validate_json(path.read_text()) for path in claims]
    about = {
        paper: {"title": about.title, "authors": about.authors, "url": about.url}
        for paper in dict.fromkeys(verdict.paper for verdict in found)
        for about in [citation(paper)]
    }
    _write_text(verdicts.to_csv(found), csv)
    _write_text(verdicts.to_json(found), json_file)
    _write_text(page.render(found, about), html)


def gate(claims: Path, *, output: Path) -> list[str]:
    """Compare verdicts with what is expected; write the summary only if all agree."""
    from privreg.claims import gate as comparison
    from privreg.claims import verdicts

    found = verdicts.from_json(claims.read_text())
    failures = comparison.gate(found)
    if not failures:
        _write_text(comparison.summary(found), output)
    return failures


def _parameters(recipe: Recipe, values: dict[str, Any]) -> Any:
    return recipe.parameters(values, f"{recipe.paper}.{recipe.name}.parameters")


def _read(paths: Paths) -> dict[str, xr.Dataset]:
    return {name: store.read(path) for name, path in paths.items()}


def _write(
    dataset: xr.Dataset,
    recipe: Recipe,
    stage: str,
    values: dict[str, Any],
    reads: Paths,
    output: Path,
) -> None:
    stage_function = "gather" if stage == "summarise" else stage
    settings = json.dumps(values, sort_keys=True)
    attributes: dict[str, str | int] = {
        "title": (recipe.module.__doc__ or recipe.name).partition("\n")[0].rstrip("."),
        "references": recipe.references,
        "source": f"privreg {__version__}",
        "config": settings,
        "config_digest": hashlib.sha256(settings.encode()).hexdigest(),
        "code_digest": digest(f"privreg.stages:{stage_function}", f"{recipe.module_name}:{stage}"),
    }
    for name, path in reads.items():
        attributes[f"{name}_digest"] = store.file_digest(path)
    if "data" in reads:
        table = store.read(reads["data"])
        inherited = ("stand_in", "stand_in_reason", "checksums")
        attributes |= {key: table.attrs[key] for key in inherited}
    store.write(store.describe(dataset, attributes), output)


def _stand_ins(datasets: Mapping[str, xr.Dataset]) -> list[str]:
    reasons = (
        dataset.attrs["stand_in_reason"]
        for dataset in datasets.values()
        if dataset.attrs.get("stand_in", 0)
    )
    return list(dict.fromkeys(reasons))


def _write_text(text: str, path: Path) -> None:
    with store.atomic(path) as partial:
        partial.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
