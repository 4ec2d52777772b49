"""Stages of the workflow: read a job's inputs, make the artifact, and write it.

A job is Snakemake's own object: `input`, `output`, `params`, `wildcards`, `log`.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privreg.version import __version__
from reproduction.engine import artifacts
from reproduction.engine.code import SOURCE
from reproduction.engine.registry import Recipe, bibliography, citation, drawings
from reproduction.engine.simulation import simulated, summarised

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.engine.ledger import Ledger

Job = Any
Inputs = Mapping[str, "xr.Dataset"]
logger = logging.getLogger("reproduction")


def run(stage: Callable[[Job], Sequence[str] | None], job: Job) -> None:
    """Run a stage; its messages and errors are in the job's log, which Snakemake shows.

    A stage may complete its work and still return failures, one line each.
    """
    # Most objects of a short process are modules, which stay: a search for garbage takes a third.
    gc.set_threshold(100_000)
    log = Path(job.log[0])
    log.parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=log, filemode="w", format="%(message)s", level=logging.INFO)
    logging.captureWarnings(True)
    try:
        failures = stage(job) or ()
    except (artifacts.DamagedError, OSError) as error:
        failures = [str(error)]
    except Exception as error:
        logger.exception("%s", " ".join(str(error).split()))
        sys.exit(1)
    for line in failures:
        logger.error("error: %s", line)
    if failures:
        sys.exit(1)


# Data, experiments


def data(job: Job) -> None:
    """Fetch, check and store one real table, or its stand-in."""
    from privreg.data import load

    table = load(
        job.wildcards.dataset,
        directory=os.environ.get("PRIVREG_DATA") or None,
        mirrors=job.params.mirrors,
        # A table that was prepared from files that are not here now gives way to no stand-in.
        allow_stand_in=job.params.looked_for_in != "PRIVREG_DATA",
    )
    about = {"looked_for_in": job.params.looked_for_in, "stand_in": table.stand_in}
    artifacts.write(artifacts.describe(artifacts.to_dataset(table), {}), job.output.table)
    artifacts.write_text(json.dumps(about), job.output.origin)


def theory(job: Job) -> None:
    """Evaluate an experiment's theory."""
    inputs = _inputs(job)
    _write(job, "theory", _recipe(job).module.theory(job.params.parameters, **inputs), inputs)


def intervals(job: Job) -> None:
    """Compute an experiment's confidence intervals, their coverage and length."""
    inputs = _inputs(job)
    _write(job, "intervals", _recipe(job).module.intervals(job.params.parameters, **inputs), inputs)


def simulate(job: Job) -> None:
    """Simulate one shard of an experiment's trials."""
    inputs, shard = _inputs(job), (int(job.wildcards.shard), int(job.params.shards))
    found = simulated(_recipe(job), job.params.parameters, inputs, job.params.draws, shard)
    _write(job, "simulate", found, inputs)


def summarise(job: Job) -> None:
    """Join an experiment's shards and summarise them over the trials."""
    inputs = _inputs(job)
    shards = [artifacts.read(shard) for shard in job.input.shards]
    found = summarised(_recipe(job), job.params.parameters, inputs, shards)
    _write(job, "summarise", found, inputs)


def simulation(job: Job) -> None:
    """Simulate all trials of an experiment as one shard, and summarise them."""
    inputs, recipe, parameters = _inputs(job), _recipe(job), job.params.parameters
    shard = simulated(recipe, parameters, inputs, job.params.draws)
    _write(job, "simulate", shard, inputs, job.output.shard)
    joined = summarised(recipe, parameters, inputs, [artifacts.read(job.output.shard)])
    _write(job, "summarise", joined, inputs, job.output.summary)


# Figures and tables


def figure(job: Job) -> None:
    """Draw one figure and save it in each of its formats."""
    from reproduction.engine import plotting

    found = _inputs(job)
    draw = drawings(job.wildcards.paper, "figures")[job.wildcards.figure]
    with plotting.style():
        drawing = draw(**found)
        plotting.mark(drawing, scale=job.params.scale, stand_ins=_stand_ins(found))
        for file in job.output:
            plotting.save(drawing, Path(file))
            # The next file keeps the layout of the first: to find it costs as much as to draw.
            drawing.set_layout_engine("none")


def table(job: Job) -> None:
    """Write one table as CSV."""
    frame = drawings(job.wildcards.paper, "tables")[job.wildcards.table](**_inputs(job))
    with artifacts.atomic(job.output[0]) as partial:
        frame.to_csv(partial, index=False)


# The ledger


def judge(job: Job) -> None:
    """Judge the entries of a paper, or the one of a wildcard; always succeeds."""
    from reproduction.engine import verdicts

    claim = dict(job.wildcards.items()).get("claim")
    records = verdicts.judge(
        _ledger(job.wildcards.paper, job.input.ledgers),
        _by_artifact(job.input.artifacts),
        digests={_artifact(path): artifacts.digest_of(path) for path in job.input.artifacts},
        scale=job.params.scale,
        only=None if claim is None else (claim,),
        results=str(Path(job.output[0]).parents[1 if claim is None else 2]),
    )
    found = json.loads(verdicts.records_to_json(records))
    artifacts.write_json({"records": found} if claim is None else found[0], job.output[0])


def ledger(job: Job) -> None:
    """Join the ledgers with the verdicts on their entries, as tables and as JSON."""
    from reproduction.engine import verdicts

    found = [each for path in job.input.verdicts for each in artifacts.read_json(path)["records"]]
    book = verdicts.join(
        [_ledger(paper, job.input.ledgers) for paper in job.params.papers],
        verdicts.records_from_json(json.dumps(found)),
    )
    artifacts.write_text(verdicts.to_csv(book), job.output.csv)
    artifacts.write_text(verdicts.findings_to_csv(book.findings), job.output.findings)
    artifacts.write_json(json.loads(verdicts.to_json(book)), job.output.json)


def page(job: Job) -> None:
    """Show the ledger, the figures, and each entry on a page of its own."""
    from reproduction.engine.page import render

    book = _book(job.input.ledger)
    images = map(Path, job.input.images)
    pages = render(
        book,
        papers=bibliography(book.papers),
        drawings=job.params.drawings,
        images={(path.parent.name, path.stem): path.read_bytes() for path in images},
        coverage=job.params.coverage,
        # Below a module's prefix, too.
        results=Path(job.output.page).parents[bool(job.wildcards.book)],
        made_by=_version(),
    )
    for address, text in pages:
        artifacts.write_text(text, Path(job.output.page).parent / address)


def gate(job: Job) -> list[str]:
    """Compare verdicts with the expected ones; write the summary only if all agree."""
    from reproduction.engine import verdicts

    book = _book(job.input.ledger)
    failures = verdicts.gate(book.records)
    if not failures:
        artifacts.write_text(verdicts.summary(book), job.output[0])
    return failures


def falsifier(job: Job) -> None:
    """Make a deliberate mistake, run the affected stages and judge them; always succeeds."""
    from reproduction.engine.falsify import rebuild, turned, uncaught, wrong_versions
    from reproduction.engine.verdicts import judge

    paper = job.wildcards.paper
    version = wrong_versions(paper)[job.wildcards.version]
    held = _by_artifact(job.input.artifacts)
    rebuilt = rebuild(version, paper, job.params.experiments, held)
    book = _ledger(paper, job.input.ledgers)
    only = book.reading(tuple(rebuilt))
    right, wrong = (
        judge(book, evidence, digests={}, scale="paper", only=only)
        for evidence in (held, held | rebuilt)
    )
    found = {
        "version": version.name,
        "says": version.says,
        "turned": turned(right, wrong),
        "uncaught": uncaught(version, right, wrong),
    }
    artifacts.write_json(found, job.output[0])


def caught(job: Job) -> list[str]:
    """Sum up the falsifiers; fails if one was not caught or changed an unnamed verdict."""
    found = [artifacts.read_json(path) for path in job.input.results]
    failures = [line for result in found for line in result["uncaught"]]
    if not failures:
        lines = [f"{each['version']}: caught by {', '.join(each['turned'])}" for each in found]
        artifacts.write_text("\n".join(lines), job.output[0])
    return failures


# What stages share


def _path(job: Job) -> str:
    return f"{job.wildcards.paper}/{job.wildcards.experiment}"


def _recipe(job: Job) -> Recipe:
    return Recipe(job.wildcards.paper, job.params.recipe)


def _inputs(job: Job) -> dict[str, xr.Dataset]:
    """Artifacts by the names of the stage's arguments."""
    return {name: artifacts.read(path) for name, path in job.input.items() if name != "shards"}


def _write(
    job: Job, stage: str, dataset: xr.Dataset, inputs: Inputs, output: str | None = None
) -> None:
    """Write a stage's Dataset with its provenance."""
    recipe = _recipe(job)
    title = (recipe.module.__doc__ or recipe.name).partition("\n")[0].rstrip(".")
    attributes: dict[str, str | int] = {
        "title": title,
        "references": f"{citation(recipe.paper).reference} {recipe.module.PLACE}.",
        "source": f"privreg {__version__}",
        "experiment": _path(job),
        "stage": stage,
        "config": json.dumps(job.params.settings, sort_keys=True),
        "code_digest": job.params.code,
    }
    attributes |= {f"{name}_digest": each.attrs[artifacts.DIGEST] for name, each in inputs.items()}
    if "data" in inputs:
        inherited = ("stand_in", "stand_in_reason", "checksums")
        attributes |= {key: inputs["data"].attrs[key] for key in inherited}
    artifacts.write(artifacts.describe(dataset, attributes), output or job.output[0])


def _stand_ins(found: Inputs) -> list[str]:
    reasons = (
        dataset.attrs["stand_in_reason"]
        for dataset in found.values()
        if dataset.attrs.get("stand_in", 0)
    )
    return list(dict.fromkeys(reasons))


def _by_artifact(paths: Sequence[str]) -> dict[str, xr.Dataset]:
    """Datasets by `stage/experiment` or `data/dataset`, as their paths say."""
    return {_artifact(path): artifacts.read(path) for path in paths}


def _artifact(path: str) -> str:
    parts = Path(path).parts
    return f"{'data' if parts[-2] == 'data' else parts[-3]}/{Path(path).stem}"


def _ledger(paper: str, files: Sequence[str]) -> Ledger:
    from reproduction.engine.ledger import read_ledger

    (folder,) = {path.parent for path in map(Path, files) if path.parent.name == paper}
    return read_ledger(folder, paper)


def _book(path: str) -> Any:
    from reproduction.engine.verdicts import from_json

    return from_json(json.dumps(artifacts.read_json(path)))


def _version() -> str:
    """Version and commit of this checkout; the version alone if the copy has no history."""
    # Named, since a copy may lie below the checkout of something else.
    here = ["--git-dir", str(SOURCE.parent / ".git"), "--work-tree", str(SOURCE.parent)]
    command = ["git", *here, "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return __version__
    return f"{__version__}, commit {commit}"
