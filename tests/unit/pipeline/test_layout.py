"""Where files lie: patterns with wildcards, a folder for each scale, logs beside artifacts."""

import re
from pathlib import Path

import pytest

from reproduction.pipeline.layout import PAPERS, STUDIES, Layout

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("scale", "root"), [("paper", "results"), ("quick", "results/quick")])
def test_a_scale_has_a_folder_and_in_it_each_kind_has_one(scale, root):
    layout = Layout(scale)
    assert layout.gate(PAPERS) == f"{root}/gate.txt"
    assert layout.gate(STUDIES) == f"{root}/studies/gate.txt"
    # What is left out stays a wildcard.
    assert layout.theory() == f"{root}/theory/{{paper}}/{{experiment}}.nc"
    assert layout.shard("lin2025", "design", 3) == f"{root}/simulation/lin2025/design/3.nc"
    figure = layout.figure("brown2024", "fig5", suffix="png")
    assert figure == f"{root}/figures/brown2024/fig5.png"
    assert layout.log(figure) == f"{root}/logs/figures/brown2024/fig5.log"
    assert layout.benchmark(figure) == f"{root}/benchmarks/figures/brown2024/fig5.tsv"


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
