"""Full disks, folders that cannot be written, strange names and environments."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

import chain
import kills
import pytest

pytestmark = pytest.mark.long


@pytest.fixture
def small_disk(undisturbed, tmp_path):
    """A built checkout on a disk of its own, with 25 MB to spare."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = sum(path.stat().st_blocks * 512 for path in undisturbed.rglob("*")) // 1_000_000 + 25
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        shutil.copytree(undisturbed, folder, dirs_exist_ok=True)
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder):
    """Leave no byte free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as stream:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    stream.write(bytes(size))
            except OSError:
                continue
    return filler


def take_away(folder, levels=6):
    for level in kills.LEVELS[:levels]:
        for path in level:
            (folder / "results" / path).unlink()


def test_a_disk_that_is_full_at_the_start_is_said(small_disk, expected):
    take_away(small_disk, 2)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(15_000_000))
    ran = chain.run(small_disk)
    assert ran.status == 1
    assert ran.lines[-1].startswith("error: results: ")
    assert "MB free" in ran.lines[-1]
    filler.unlink()
    ran = chain.run(small_disk)
    assert ran.status == 0, ran.output
    assert chain.artifacts(small_disk) == expected


def test_a_disk_that_fills_up_costs_no_byte(small_disk, expected):
    take_away(small_disk)
    started = chain.start(small_disk, small_disk.parent / "log")
    assert started.wait_for_launches()
    filler = fill(small_disk)
    ended = started.end()
    assert ended.status != 0
    assert "No space left" in ended.output or "disk full" in ended.output, ended.output
    filler.unlink()
    ran = chain.run(small_disk)
    assert ran.status == 0, ended.output + ran.output
    assert chain.artifacts(small_disk) == expected


@pytest.mark.parametrize("what", ["results", ".snakemake"])
def test_a_folder_that_cannot_be_written_is_said(built, expected, what):
    """For root as well, without the right to write where it may not."""
    take_away(built, 1)
    folders = [path for path in (built / what).rglob("*") if path.is_dir()] + [built / what]
    for path in folders:
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    without = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root, and no setpriv that takes its rights away")
    ran = subprocess.run(
        [*(without if os.getuid() == 0 else []), *chain.PLAIN, "--cores", "2"],
        cwd=built,
        env=chain.environment(built),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode
    assert "Permission denied" in ran.stdout
    assert "Job stats" not in ran.stdout
    if what == "results":
        last = ran.stdout.splitlines()[-1]
        assert last.startswith("error: ")
        assert "results" in last
    for path in folders:
        path.chmod(stat.S_IRWXU)
    ended = chain.run(built)
    assert ended.status == 0, ended.output
    assert chain.artifacts(built) == expected


@pytest.mark.parametrize(
    "name",
    [
        "two words 'quoted' \"twice\"",
        "ünï 日本 $HOME; touch here & `now`",
        "[brackets] #hash %s ~ ?x=1",
    ],
)
def test_a_folder_of_any_name_will_do(undisturbed, expected, tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(undisturbed, folder)
    take_away(folder)
    ran = chain.run(folder)
    assert ran.status == 0, ran.output
    assert chain.artifacts(folder) == expected
    assert not list(tmp_path.rglob("here"))


@pytest.mark.parametrize("name", ["{wild}card", "new\nline", "back\\slash"])
def test_a_folder_whose_name_will_not_do_is_no_loss(undisturbed, expected, tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(undisturbed, folder)
    take_away(folder, 1)
    ran = chain.run(folder)
    found = chain.artifacts(folder)
    assert {path: expected[path] for path in found} == found
    if ran.status == 0:
        assert found == expected
    else:
        assert ran.lines[-1].startswith("error: "), ran.output


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"LC_ALL": "C", "LANG": "C", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7"}, id="C"
        ),
        pytest.param(
            {
                "LC_ALL": "tr_TR.UTF-8",
                "HOME": None,
                "PYTHONOPTIMIZE": "2",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            id="Turkish",
        ),
        pytest.param(
            {
                "LC_ALL": "POSIX",
                "PYTHONUTF8": "0",
                "PYTHONHASHSEED": "0",
                "OPENBLAS_NUM_THREADS": "2",
                "OPENBLAS_CORETYPE": "Prescott",
                "UMASK": "077",
            },
            id="POSIX",
        ),
        pytest.param(
            {
                "MPLBACKEND": "module://matplotlib_inline.backend_inline",
                "SOURCE_DATE_EPOCH": "yes",
            },
            id="notebook",
        ),
    ],
)
def test_bytes_do_not_depend_on_the_environment(built, expected, changes):
    take_away(built)
    before = os.umask(int(changes.get("UMASK", "022"), 8))
    try:
        ran = chain.run(built, **changes)
    finally:
        os.umask(before)
    assert ran.status == 0, ran.output
    assert chain.artifacts(built) == expected
