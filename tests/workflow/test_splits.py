"""Trials split over any number of jobs, on any number of cores, give the same bytes.

Groups and another machine's queue are `tests/cluster/test_slurm.py`.
"""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest

from .checkout import QUICK, small_checkout, snakemake
from .twice import artifacts

pytestmark = [pytest.mark.workflow, pytest.mark.long]
TRIALS = 8
# The experiments that are split, and what is made of them.
PARTS = {
    "bombari2025": {"experiments": ["housing_heat_maps"], "figures": ["fig6"]},
    "brown2024": {"experiments": ["coverage"], "figures": ["fig5", "fig6"]},
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Real recipes at the quick scale, with as many trials as the finest split has jobs."""
    return small_checkout(tmp_path_factory.mktemp("splits"), PARTS)


@pytest.fixture(scope="module")
def whole(checkout):
    """What one job an experiment on one core makes."""
    return run(checkout, shards=1, cores=1)


@pytest.mark.parametrize(("shards", "cores"), [(3, 1), (8, 2)])
def test_any_split_gives_the_same_bytes(checkout, whole, shards, cores):
    split = run(checkout, shards=shards, cores=cores)
    assert split.keys() == whole.keys()
    assert [path for path in whole if split[path] != whole[path]] == []


def run(folder, *, shards, cores):
    """SHA-256 of all that a run from nothing makes, shards and times left out."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    overlay = folder / "split.json"
    overlay.write_text(
        json.dumps(
            {
                paper: {
                    "experiments": {
                        name: {"quick": {"trials": TRIALS, "shards": shards}}
                        for name in part["experiments"]
                    }
                }
                for paper, part in PARTS.items()
            }
        )
    )
    # Figures and verdicts; what only joins these is left out.
    snakemake(folder, *PARTS, *QUICK, overlay.name, "--cores", str(cores), limit=1200)
    results = folder / "results/quick"
    for paper, part in PARTS.items():
        for name in part["experiments"]:
            assert len(list((results / f"simulation/{paper}/{name}").glob("*.nc"))) == shards
    return {
        path: hashlib.sha256((results / path).read_bytes()).hexdigest()
        for path in sorted(artifacts(results))
    }
