"""Each recipe of the configuration, tiny, through all its stages; figures and tables on that."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from privreg.data import NAMES
from reproduction.experiment import datasets, plotting
from reproduction.pipeline import listing, reference, stages
from reproduction.pipeline.plan import STAGE_OF
from reproduction.pipeline.registry import package

ROOT = Path(__file__).parents[3]
GLOBAL_ATTRIBUTES = {
    "Conventions",
    "title",
    "references",
    "source",
    "config",
    "config_digest",
    "code_digest",
}


def artifacts(built, paper, name):
    recipe = built.plan.recipe(paper, name)
    return [f"{kind}/{name}" for kind, stage in STAGE_OF.items() if recipe.has(stage)]


def test_every_stage_writes_a_complete_dataset(built, experiment):
    # `datasets.write` refuses what lacks a name, a unit or the reason of a NaN.
    found = artifacts(built, *experiment)
    assert found
    for artifact in found:
        dataset = built.dataset(experiment[0], artifact)
        assert dataset.attrs.keys() >= GLOBAL_ATTRIBUTES
        assert dataset.attrs["references"].count(".") > 1
        assert dataset.data_vars
        for name, values in dataset.variables.items():
            if values.dtype.kind in "if":
                assert values.size, name
        for name in dataset.dims:
            assert name in dataset.coords or name not in dataset.indexes


def test_what_reads_a_real_table_says_what_is_released(built):
    seen = 0
    for paper, block in built.plan.config.blocks.items():
        for name in block.experiments:
            if "data" not in built.plan.recipe(paper, name).reads("simulate"):
                continue
            seen += 1
            dataset = built.dataset(paper, f"simulation/{name}")
            assert dataset.attrs["stand_in"] == 1
            assert dataset.attrs["stand_in_reason"]
            for variable, values in dataset.data_vars.items():
                assert values.attrs.get("comment") in datasets.RELEASES.values(), variable
    assert seen >= 4


def test_standard_errors_are_not_negative_and_have_their_variable_s_shape(built, experiment):
    for artifact in artifacts(built, *experiment):
        dataset = built.dataset(experiment[0], artifact)
        for name, values in dataset.data_vars.items():
            error = values.attrs.get("ancillary_variables")
            if error:
                assert dataset[error].dims == values.dims, name
                assert np.all(dataset[error].values >= 0), name


def test_every_drawing_is_whole(built, drawing, tmp_path):
    paper, kind, name = drawing
    block = built.plan.config.blocks[paper]
    listed = (block.figures if kind == "figure" else block.tables)[name].artifacts
    paths = {argument: built.path(paper, artifact) for argument, artifact in listed.items()}
    if kind == "table":
        stages.table(f"{paper}/{name}", artifacts=paths, output=tmp_path / "table.csv")
        head, *rows = (tmp_path / "table.csv").read_text().splitlines()
        assert head.count(",")
        assert rows
        return
    found = {argument: datasets.read(path) for argument, path in paths.items()}
    with plotting.style(), plt.rc_context({"figure.dpi": 60}):
        figure = getattr(importlib.import_module(f"{package(paper)}.figures"), name)(**found)
        plotting.mark(figure, scale="quick", stand_ins=[])
        plotting.save(figure, tmp_path / "figure.png")
        plt.close(figure)
    assert (tmp_path / "figure.png").stat().st_size > 5000
    assert figure.axes
    for number, panel in enumerate(figure.axes):
        assert not panel.axison or panel.has_data(), f"panel {number} is empty"
        for line in panel.lines:
            drawn = np.isfinite(np.asarray(line.get_ydata(), dtype=float))
            assert drawn.any() or not drawn.size, f"panel {number}: {line.get_label()}"


def test_the_page_of_variables_names_each_with_its_error(built):
    for paper, block in built.plan.config.blocks.items():
        for name in block.experiments:
            for artifact in artifacts(built, paper, name):
                built.path(paper, artifact)
    for table in NAMES:
        built.path("", f"data/{table}")
    folder = built.folder / built.plan.layout.root
    listed = names_by_artifact(reference.variables_page(folder))
    for place, rows in listed.items():
        dataset = datasets.read(folder / place)
        errors = {v.attrs.get("ancillary_variables") for v in dataset.variables.values()} - {None}
        assert {name for name, _ in rows} == set(dataset.variables) - errors
        assert {error for _, error in rows if error} == errors


def test_the_listing_of_artifacts_is_not_behind(built):
    """What the plan knows of an artifact agrees with the artifact, labels aside."""
    entries = listing.read_listing(ROOT / "workflow/schemas/artifacts.json")
    behind = []
    for paper, block in built.plan.config.blocks.items():
        for name in block.experiments:
            recipe = built.plan.recipe(paper, name).name
            for artifact in artifacts(built, paper, name):
                kind = artifact.partition("/")[0]
                place = f"{kind}/{paper}/{name}"
                dataset = datasets.read(built.path(paper, artifact))
                found = listing.described(dataset, place, recipe)
                entry = entries.get(place)
                if entry is None or structure(entry) != structure(found):
                    behind.append(place)
    assert not behind, "run `make reference`"


def structure(entry):
    dimensions = {name: about[0] for name, about in entry["coordinates"].items()}
    return entry["numbers"], sorted(entry["others"]), dimensions


def names_by_artifact(page):
    """Variables and their standard errors in a page, by artifact."""
    found = {}
    for section in page.split("\n### ")[1:]:
        heading, _, table = section.partition("\n")
        rows = re.findall(r"^\| `(\w+)` \|.*\| (?:`(\w+)`)? \|$", table, re.MULTILINE)
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", heading), rows)
    return found
