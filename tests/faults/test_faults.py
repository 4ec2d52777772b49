"""Damage, full disks and kills: the same command makes the same bytes, and never a wrong number."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import time

import netCDF4
import numpy as np
import psutil
import pytest
from tests.workflow.checkout import small_checkout, snakemake, start
from tests.workflow.twice import artifacts

pytestmark = pytest.mark.long
RESULTS = "results/quick"
MADE = ["simulation", "theory", "intervals", "figures", "verdicts"]
LAST = ["claims.json", "gate.txt", "index.html"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return small_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def undisturbed(source, tmp_path_factory):
    """A folder with the results of a whole run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    snakemake(folder, "all", source=source)
    return folder


@pytest.fixture
def built(undisturbed, tmp_path):
    return shutil.copytree(undisturbed, tmp_path / "copy")


@pytest.fixture
def made_again(source, undisturbed):
    """Whether the plain command ends with the bytes of the undisturbed run."""

    def run(folder):
        snakemake(folder, "all", source=source)
        return artifacts(folder / RESULTS) == artifacts(undisturbed / RESULTS)

    return run


def remove(folder, names):
    for name in names:
        path = folder / RESULTS / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def flip(content):
    """A bit of a value: in the middle of JSON, of NetCDF where a variable lies as it is."""
    place = len(content) // 2
    if not content.startswith(b"{"):
        with netCDF4.Dataset("damaged", memory=content) as file:
            numbers = [each[...] for each in file.variables.values() if each.dtype is not str]
        found = [content.find(np.asarray(each).tobytes()) for each in numbers if each.size]
        place = next((each for each in found if each > 0), place)
    changed = bytearray(content)
    changed[place] ^= 4
    return bytes(changed)


HOUSING = ["figures/bombari2025", "verdicts/bombari2025.json", *LAST]
# Artifacts, with what is made of them again.
DAMAGED = {
    "data/california_housing.nc": ["simulation/bombari2025", *HOUSING],
    "simulation/bombari2025/housing_heat_maps.nc": HOUSING,
    "theory/brown2024/coverage.nc": ["verdicts/brown2024.json", *LAST],
    "verdicts/brown2024.json": LAST,
    "claims.json": LAST[1:],
}


@pytest.mark.parametrize("damage", [flip, lambda content: content[: len(content) // 2]])
@pytest.mark.parametrize("artifact", DAMAGED)
def test_what_is_damaged_is_named_and_made_again(source, built, made_again, artifact, damage):
    """The time of the file stays what it was, as when a disk fails."""
    path = built / RESULTS / artifact
    before = path.stat()
    path.write_bytes(damage(path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    remove(built, DAMAGED[artifact])
    said = snakemake(built, "all", source=source, check=False)
    named = re.search(r"error: (\S+) is damaged \(.*\); remove it and type the same command", said)
    assert named[1] == f"{RESULTS}/{artifact}"
    (built / named[1]).unlink()
    assert made_again(built)


def test_a_full_disk_costs_no_byte(source, built, made_again):
    remove(built, [*MADE, *LAST])
    largest = (20_000, resource.RLIM_INFINITY)
    said = snakemake(
        *(built, "all", "--keep-going"),
        source=source,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, largest),
    )
    assert re.search("error: .*(File too large|is the disk full)", said)
    assert made_again(built)


@pytest.mark.parametrize("victim", ["a job", "Snakemake"])
def test_kills_cost_no_byte(source, built, made_again, victim):
    """SIGKILL at seeded moments; after one of Snakemake its lock is taken away, as it says."""
    draw, killed = random.Random(1), 0
    remove(built, [*MADE, *LAST])
    while killed < 2:
        run = start(built, "all", source=source)
        if victim == "a job":
            killed += kill_a_job(run, draw.uniform(0, 1))
        else:
            time.sleep(draw.uniform(1, 6))
            run.kill()
            killed += 1
        said = run.communicate()[0]
        assert run.returncode or victim == "a job", said
        if run.returncode == 0:
            break
        snakemake(built, "--unlock", source=source)
    assert killed
    assert made_again(built)


def kill_a_job(run, after):
    """Whether one ran."""
    while run.poll() is None:
        for job in run.children(recursive=True):
            try:
                if ".snakemake/scripts" in " ".join(job.cmdline()) and "bash" not in job.name():
                    time.sleep(after)
                    job.kill()
                    return True
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.05)
    return False
