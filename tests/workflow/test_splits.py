"""Trials split over any number of jobs, on any number of cores, give the same bytes.

Groups and another machine's queue are `tests/cluster/test_slurm.py`.
"""

from __future__ import annotations

import shutil

import pytest
import yaml

from .checkout import small_checkout, snakemake
from .twice import artifacts

pytestmark = [pytest.mark.workflow, pytest.mark.long]
TRIALS = 8
# The experiments that are split, and what is made of them.
PARTS = {
    "bombari2025": {"experiments": ["housing_heat_maps"], "figures": ["fig6"]},
    "brown2024": {"experiments": ["coverage"], "figures": ["fig5", "fig6"]},
}
# A shell that differs in what must not matter.
OTHER_SHELL = {
    "LC_ALL": "tr_TR.UTF-8",
    "TZ": "Asia/Kathmandu",
    "PYTHONHASHSEED": "7",
    "OPENBLAS_NUM_THREADS": "2",
    "OPENBLAS_CORETYPE": "Prescott",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return small_checkout(tmp_path_factory.mktemp("splits"), PARTS)


@pytest.fixture(scope="module")
def whole(checkout):
    """What one job an experiment on one core makes."""
    return run(checkout, shards=1, cores=1)


@pytest.mark.parametrize(("shards", "cores", "shell"), [(3, 1, {}), (8, 2, OTHER_SHELL)])
def test_any_split_gives_the_same_bytes(checkout, whole, shards, cores, shell):
    assert run(checkout, shards=shards, cores=cores, environment=shell) == whole


def run(folder, *, shards, cores, **options):
    """SHA-256 of all that a run from nothing makes, shards and times left out."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    split = {"quick": {"trials": TRIALS, "shards": shards}}
    overlay = {
        paper: {"experiments": dict.fromkeys(part["experiments"], split)}
        for paper, part in PARTS.items()
    }
    file = folder / "split.yaml"
    file.write_text(yaml.safe_dump({"scale": "quick", **overlay}))
    # Figures and verdicts; what only joins these is left out.
    cores = ("--cores", str(cores))
    snakemake(folder, *PARTS, "--configfile", file.name, *cores, **options)
    results = folder / "results/quick"
    for paper, part in PARTS.items():
        for name in part["experiments"]:
            assert len(list((results / f"simulation/{paper}/{name}").glob("*.nc"))) == shards
    return artifacts(results)
