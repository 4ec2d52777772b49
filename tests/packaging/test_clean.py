"""`make clean` deletes what a run made and nothing that is tracked."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MADE = ("results/quick/theory/paper/a.nc", "results/quick/README.md", ".snakemake/log/a.log")


def test_clean_deletes_no_tracked_file(tmp_path):
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    tracked = [name for name in listed.split("\0") if name]
    assert "results/README.md" in tracked
    for name in (*tracked, *MADE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    for _ in range(2):
        subprocess.run(["make", "--silent", "clean"], cwd=tmp_path, check=True)
        assert all((tmp_path / name).is_file() for name in tracked)
        assert [path.name for path in (tmp_path / "results").iterdir()] == ["README.md"]
        assert not (tmp_path / ".snakemake").exists()
