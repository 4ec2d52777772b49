"""Results in another checkout, in another place, under another name."""

from __future__ import annotations

import shutil
import subprocess

import chain
import pytest

pytestmark = pytest.mark.long
NOTHING = "Nothing to be done"


def archive(folder):
    """What `make archive` says, in an environment that is set up."""
    shutil.copy(chain.ROOT / "Makefile", folder)
    return subprocess.run(
        ["make", "archive", "--assume-old", "setup"],
        cwd=folder,
        env=chain.environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_archive_is_trusted_in_another_checkout(built, expected, tmp_path):
    made = archive(built)
    assert made.returncode == 0, made.stdout + made.stderr
    away = chain.chain_checkout(tmp_path / "away from home")
    subprocess.run(["tar", "-xzf", built / "privreg-results.tar.gz"], cwd=away, check=True)
    ran = chain.run(away, "--dry-run")
    assert NOTHING in ran.output, ran.output
    ran = chain.run(away)
    assert NOTHING in ran.output, ran.output
    assert chain.artifacts(away) == expected


def test_an_archive_of_half_a_build_is_refused(built):
    (built / "results/gate.txt").unlink()
    made = archive(built)
    assert made.returncode
    assert "Build first: make" in made.stdout
