"""Results in another checkout, in another place, under another name."""

from __future__ import annotations

import shutil
import subprocess

import chain
import pytest

pytestmark = pytest.mark.long
NOTHING = "Nothing to be done"


def test_an_archive_is_trusted_in_another_checkout(undisturbed, expected, tmp_path):
    home, away = tmp_path / "home", tmp_path / "away from home"
    shutil.copytree(undisturbed, home)
    shutil.copy(chain.ROOT / "Makefile", home)
    command = ["make", "archive", "--assume-old", "setup"]
    made = subprocess.run(
        command, cwd=home, env=chain.environment(home), capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    chain.chain_checkout(away)
    subprocess.run(["tar", "-xzf", home / "privreg-results.tar.gz"], cwd=away, check=True)
    ran = chain.run(away, "--dry-run")
    assert NOTHING in ran.output, ran.output
    ran = chain.run(away)
    assert NOTHING in ran.output
    assert chain.artifacts(away) == expected


def test_an_archive_of_half_a_build_is_refused(built):
    shutil.copy(chain.ROOT / "Makefile", built)
    (built / "results/gate.txt").unlink()
    command = ["make", "archive", "--assume-old", "setup"]
    made = subprocess.run(
        command,
        cwd=built,
        env=chain.environment(built),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode
    assert "Build first: make" in made.stdout
