"""Where files lie: patterns with wildcards, a folder for each scale, logs beside artifacts."""

import re
from pathlib import Path

import pytest

from reproduction.pipeline.layout import PAPERS, STUDIES, Layout, book_of

ROOT = Path(__file__).parents[3]


def test_what_is_left_out_stays_a_wildcard():
    layout = Layout("paper")
    assert layout.theory() == "results/theory/{paper}/{experiment}.nc"
    assert layout.shard("bombari2025", "design", 3) == "results/simulation/bombari2025/design/3.nc"
    assert layout.shard().format(paper="p", experiment="e", shard=0) == layout.shard("p", "e", 0)


def test_the_quick_scale_has_a_folder_of_its_own():
    assert Layout("quick").gate(PAPERS) == "results/quick/gate.txt"
    assert Layout("paper").gate(PAPERS) == "results/gate.txt"


def test_the_studies_have_a_folder_of_their_own():
    assert Layout("quick").gate(STUDIES) == "results/quick/studies/gate.txt"
    assert [book_of(key) for key in ("lin2025", "studies")] == [PAPERS, STUDIES]


@pytest.mark.parametrize("scale", ["paper", "quick"])
def test_logs_and_benchmarks_mirror_their_artifacts(scale):
    layout = Layout(scale)
    artifact = layout.figure("brown2024", "fig5", suffix="png")
    assert artifact == f"{layout.root}/figures/brown2024/fig5.png"
    assert layout.log(artifact) == f"{layout.root}/logs/figures/brown2024/fig5.log"
    assert layout.benchmark(artifact) == f"{layout.root}/benchmarks/figures/brown2024/fig5.tsv"


@pytest.mark.parametrize("stage", ["theory", "simulation", "intervals"])
def test_an_artifact_lies_where_its_stage_writes_it(stage):
    layout = Layout("paper")
    assert layout.artifact("p", f"{stage}/e") == getattr(layout, stage)("p", "e")
    assert layout.artifact("p", "data/mnist") == layout.data("mnist") == "results/data/mnist.nc"


def test_no_other_file_states_a_path_of_the_results():
    for path in [
        ROOT / "workflow/Snakefile",
        *ROOT.glob("workflow/rules/*"),
        *ROOT.glob("src/**/*.py"),
    ]:
        code = re.sub(
            r"^\s*#.*|\"\"\".*?\"\"\"", "", path.read_text(), flags=re.DOTALL | re.MULTILINE
        )
        stated = re.findall(r"[\"'](?:f?results/)[^\"']*", code)
        assert not stated or path.name == "layout.py", f"{path}: {stated}"
