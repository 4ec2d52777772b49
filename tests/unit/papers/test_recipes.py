"""Each recipe of the configuration, tiny, through all its stages; figures and tables on that."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.text import Text

from reproduction.engine import artifacts as store
from reproduction.engine import plotting, stages
from reproduction.engine.recipe import structure
from reproduction.engine.registry import STAGE_OF, drawings
from reproduction.engine.site import variables_page

CONFIG = Path(__file__).parents[3] / "config"
REAL = re.compile("MNIST|CIFAR|[Cc]alifornia|mnist")
GLOBAL_ATTRIBUTES = {
    "Conventions",
    "title",
    "references",
    "source",
    "config",
    "code_digest",
    store.DIGEST,
}


def artifacts(built, paper, name):
    recipe = built.plan.recipe(paper, name)
    return [f"{kind}/{name}" for kind, stage in STAGE_OF.items() if recipe.has(stage)]


def test_every_stage_writes_a_complete_dataset(built, experiment):
    """As declared: dimensions and attributes of variables, labels, errors and what is released."""
    # `store.write` refuses what lacks a name, a unit or the reason of a NaN.
    paper, name = experiment
    recipe = built.plan.recipe(paper, name)
    found = artifacts(built, paper, name)
    assert found
    for artifact in found:
        dataset = built.dataset(paper, artifact)
        assert dataset.attrs.keys() >= GLOBAL_ATTRIBUTES
        assert dataset.attrs["references"].count(".") > 1
        assert dataset.data_vars
        for each, values in dataset.variables.items():
            assert values.size or values.dtype.kind not in "if", each
            error = values.attrs.get("ancillary_variables")
            if error:
                assert dataset[error].dims == values.dims, each
                assert np.all(dataset[error].values >= 0), each
        for each in dataset.dims:
            assert each in dataset.coords or each not in dataset.indexes
        if artifact.startswith("simulation/") and "data" in recipe.reads("simulate"):
            assert dataset.attrs["stand_in"] == 1
            assert dataset.attrs["stand_in_reason"]
            for each, values in dataset.data_vars.items():
                assert values.attrs.get("comment") in store.RELEASES.values(), each
        stage = recipe.maker(artifact.partition("/")[0])
        declared = structure(stage)
        if declared is None:
            continue
        for stated, held in (
            (declared.variables, dataset.data_vars),
            (declared.coordinates, dataset.coords),
        ):
            assert stated.keys() == held.keys(), artifact
            for each, (dims, _, attributes) in stated.items():
                dims = (dims,) if isinstance(dims, str) else dims
                assert tuple(dims) == held[each].dims, f"{artifact}: {each}"
                assert attributes == held[each].attrs, f"{artifact}: {each}"


def test_shards_hold_what_one_job_draws(built, experiment):
    paper, name = experiment
    trials = built.plan.experiments[paper, name].trials or 0
    if not built.plan.recipe(paper, name).has("simulate") or trials < 2:
        return
    summary = built.folder / built.plan.artifact(paper, f"simulation/{name}")
    built.dataset(paper, f"simulation/{name}")
    whole = store.read(summary.parent / name / "0.nc")
    parts = [built.simulated(paper, name, index, 2) for index in (0, 1)]
    options = {"data_vars": "minimal", "coords": "minimal", "compat": "equals", "join": "exact"}
    joined = xr.concat(parts, dim="trial", **options)
    xr.testing.assert_equal(joined, whole)


def test_every_drawing_is_whole(built, drawing, tmp_path):
    paper, kind, name = drawing
    drawn_from = built.plan.config.blocks[paper].drawings(kind)[name].artifacts
    found = {key: built.dataset(paper, artifact) for key, artifact in drawn_from.items()}
    draw = drawings(paper, kind)[name]
    if kind == "tables":
        frame = draw(**found)
        assert len(frame.columns) > 1
        assert len(frame)
        return
    with plotting.style(), plt.rc_context({"figure.dpi": 60}):
        figure = draw(**found)
        plotting.mark(figure, scale="quick", stand_ins=stages._stand_ins(found))
        # Where things lie is not looked at here, and takes as long as drawing them.
        figure.set_layout_engine("none")
        plotting.save(figure, tmp_path / "figure.png")
        plt.close(figure)
    assert (tmp_path / "figure.png").stat().st_size > 5000
    # All tables here are stand-ins, and no title says otherwise.
    for words in (text.get_text() for text in figure.findobj(Text)):
        assert "stand-in for" in words or not REAL.search(words), words
    assert figure.axes
    for number, panel in enumerate(figure.axes):
        assert not panel.axison or panel.has_data(), f"panel {number} is empty"
        for line in panel.lines:
            drawn = np.isfinite(np.asarray(line.get_ydata(), dtype=float))
            assert drawn.any() or not drawn.size, f"panel {number}: {line.get_label()}"


def test_the_page_of_variables_names_each_with_its_error(built):
    dataset = built.dataset("bombari2025", "theory/trajectories")
    section = variables_page(CONFIG).partition("`theory/bombari2025/trajectories.nc`")[2]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (?:`(\w+)`)? \|$", section.partition("\n### ")[0], re.M)
    errors = {v.attrs.get("ancillary_variables") for v in dataset.variables.values()} - {None}
    assert {row for row, _ in rows} == set(dataset.variables) - errors
    assert {error for _, error in rows if error} == errors
