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


def committed(folder):
    """The checkout as a repository, without what .gitignore names."""
    shutil.copy(chain.ROOT / ".gitignore", folder)
    author = ("-c", "user.name=A. Author", "-c", "user.email=author@example.org")
    for words in (("init", "--quiet"), ("add", "."), (*author, "commit", "--quiet", "-m", "All")):
        subprocess.run(["git", *words], cwd=folder, check=True)


def test_a_clone_and_an_archive_need_nothing_to_be_done(built, expected, tmp_path):
    committed(built)
    gate = built / "results/gate.txt"
    kept = gate.read_bytes()
    gate.unlink()
    assert "Build first: make" in archive(built).stdout
    gate.write_bytes(kept)
    made = archive(built)
    assert made.returncode == 0, made.stdout + made.stderr
    away = tmp_path / "away from home"
    subprocess.run(["git", "clone", "--quiet", built, away], check=True)
    assert not (away / "results/gate.txt").exists()
    shutil.move(built / "privreg-results.tar.gz", away)
    # Nothing of where it was made is left to look at.
    shutil.rmtree(built)
    subprocess.run(["tar", "-xzf", "privreg-results.tar.gz"], cwd=away, check=True)
    for arguments in (["--dry-run"], []):
        ran = chain.run(away, *arguments)
        assert NOTHING in ran.output, ran.output
    assert chain.artifacts(away) == expected
