"""Full disks, folders that cannot be written, strange names and environments."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess

import chain
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


def test_a_disk_that_is_full_or_fills_up_costs_no_byte(small_disk, expected):
    chain.take_away(small_disk, 6)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(15_000_000))
    ran = chain.run(small_disk)
    assert ran.status == 1
    assert ran.lines[-1].startswith("error: results: ")
    assert "MB free" in ran.lines[-1]
    filler.unlink()
    started = chain.start(small_disk, small_disk.parent / "log")
    assert started.wait_for_launches()
    with contextlib.suppress(OSError):
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free + 1))
    ended = started.end()
    assert ended.status != 0
    assert "No space left" in ended.output or "disk full" in ended.output, ended.output
    filler.unlink()
    ran = chain.run(small_disk)
    assert ran.status == 0, ended.output + ran.output
    assert chain.artifacts(small_disk) == expected


def test_a_folder_that_cannot_be_written_is_said(built, expected):
    """For root as well, without the right to write where it may not."""
    chain.take_away(built, 1)
    results = built / "results"
    folders = [path for path in results.rglob("*") if path.is_dir()] + [results]
    for path in folders:
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    without = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root, and no setpriv that takes its rights away")
    ran = chain.run(built, before=without if os.getuid() == 0 else [])
    assert ran.status
    assert "Permission denied" in ran.output
    assert "Job stats" not in ran.output
    assert ran.lines[-1].startswith("error: ")
    assert "results" in ran.lines[-1]
    for path in folders:
        path.chmod(stat.S_IRWXU)
    ended = chain.run(built)
    assert ended.status == 0, ended.output
    assert chain.artifacts(built) == expected


@pytest.mark.parametrize(
    ("name", "will_do"),
    [("ünï 'quoted' $HOME; touch here & `now` [x] #hash %s ~", True), ("{wild}\ncard\\", False)],
)
def test_a_folder_of_any_name_will_do_or_is_no_loss(undisturbed, expected, tmp_path, name, will_do):
    folder = tmp_path / name
    shutil.copytree(undisturbed, folder)
    chain.take_away(folder, 6 if will_do else 1)
    ran = chain.run(folder)
    found = chain.artifacts(folder)
    assert {path: expected[path] for path in found} == found
    if will_do or ran.status == 0:
        assert found == expected, ran.output
    else:
        assert ran.lines[-1].startswith("error: "), ran.output
    assert not list(tmp_path.rglob("here"))


def test_bytes_do_not_depend_on_the_environment(built, expected):
    changes = {
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Asia/Kathmandu",
        "HOME": None,
        "PYTHONUTF8": "0",
        "PYTHONOPTIMIZE": "2",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "7",
        "OPENBLAS_NUM_THREADS": "2",
        "OPENBLAS_CORETYPE": "Prescott",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "SOURCE_DATE_EPOCH": "yes",
    }
    chain.take_away(built, 6)
    ran = chain.run(built, **changes)
    assert ran.status == 0, ran.output
    assert chain.artifacts(built) == expected
