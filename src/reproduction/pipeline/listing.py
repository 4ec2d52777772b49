"""The structure of every artifact, known before it is made: variables, coordinates, labels.

`workflow/schemas/artifacts.json` is generated from results and read by the plan. A recipe that was
edited since may write other variables, and other parameters give other labels: what an artifact was
listed for stands beside it, and of one that does not agree nothing is known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.claims.known import Coordinate, Known
from reproduction.experiment.parameters import ConfigError
from reproduction.pipeline.closure import SOURCE
from reproduction.pipeline.provenance import config_digest
from reproduction.pipeline.registry import package

if TYPE_CHECKING:
    import xarray as xr

LISTING = Path("workflow/schemas/artifacts.json")
KINDS = ("data", "theory", "simulation", "intervals")
# A longer coordinate is a curve's; its labels are left to the judge.
MOST_LABELS = 128
NUMBERS = "biuf"
Entry = dict[str, Any]


def listing(results: Sequence[Path], *, output: Path) -> None:
    """Write the listing of the artifacts in folders of results, the first that has one counts.

    An artifact that none of them has keeps its entry. One that was listed at the paper's scale, and
    is there at another one with the same variables, keeps the labels of the paper's.
    """
    from reproduction.experiment import datasets
    from reproduction.pipeline.config import load, read_configuration
    from reproduction.pipeline.registry import known_keys

    papers = load(read_configuration(), known_keys()).blocks
    found = dict(read_listing(output)) if output.is_file() else {}
    new: dict[str, Entry] = {}
    for folder in results:
        for path in sorted(path for kind in KINDS for path in (folder / kind).rglob("*.nc")):
            name = path.relative_to(folder).with_suffix("").as_posix()
            depth = 2 if name.startswith("data/") else 3
            if len(Path(name).parts) != depth or name in new:
                continue
            _, paper, experiment = ("", "", "") if depth == 2 else name.split("/")
            block = papers[paper].experiments.get(experiment) if paper in papers else None
            if depth == 3 and block is None:
                continue
            recipe = (block.recipe if block else None) or experiment
            entry = described(datasets.read(path), name, recipe)
            wanted = config_digest(block.parameters_as_json()) if block else ""
            before = found.get(name)
            if before and before["config"] == wanted != entry["config"] and _alike(before, entry):
                entry = before | {"recipe": entry["recipe"]}
            new[name] = entry
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted((found | new).items())]
    datasets.write_text("{\n" + ",\n".join(lines) + "\n}", output, checksum=False)


def read_listing(path: Path = LISTING) -> Mapping[str, Entry]:
    """Entries by artifact, `<kind>/<paper>/<experiment>` or `data/<table>`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} must be the list of artifacts that `make reference` writes, got {error}"
        ) from None
    return found if isinstance(found, dict) else {}


def described(dataset: xr.Dataset, name: str, recipe: str) -> Entry:
    """What the plan may know of an artifact, with what it was made for."""
    labels: dict[str, Any] = {}
    for each, array in dataset.coords.items():
        if array.ndim == 1:
            short = array.size <= MOST_LABELS
            labels[str(each)] = [str(array.dims[0]), array.values.tolist() if short else None]
    numbers, others = {}, []
    for each, array in dataset.data_vars.items():
        if array.dtype.kind in NUMBERS:
            numbers[str(each)] = [str(dimension) for dimension in array.dims]
        else:
            others.append(str(each))
    return {
        "recipe": source_digest(recipe, name),
        "config": str(dataset.attrs.get("config_digest", "")),
        "numbers": numbers,
        "others": others,
        "coordinates": labels,
        "sizes": {str(dimension): size for dimension, size in dataset.sizes.items()},
    }


def _alike(paper: Entry, small: Entry) -> bool:
    """Whether entries have the same variables, and no text label of the small one is new."""
    for name, (dimension, labels) in small["coordinates"].items():
        other = paper["coordinates"].get(name, [None, None])
        texts = {label for label in labels or () if isinstance(label, str)}
        if other[0] != dimension or not texts <= set(other[1] or texts):
            return False
    same = ("numbers", "others")
    return all(paper[key] == small[key] for key in same) and len(paper["coordinates"]) == len(
        small["coordinates"]
    )


def source_digest(recipe: str, name: str) -> str:
    """SHA-256 of the file that decides which variables an artifact has."""
    if name.startswith("data/"):
        path = SOURCE / "reproduction" / "experiment" / "tables.py"
    else:
        folder = package(name.split("/")[1]).replace(".", "/")
        path = SOURCE / folder / "experiments" / f"{recipe}.py"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def known(entry: Entry | None, *, recipe: str, config: str) -> Known | None:
    """What an entry tells of an artifact that this recipe and these parameters make.

    Parameters
    ----------
    entry : dict or None
        From the listing.
    recipe, config : str
        Digests of the recipe's file and of the parameters now.
    """
    if entry is None or entry["recipe"] != recipe:
        return None
    same = entry["config"] == config
    coordinates = {
        name: Coordinate(dimension, None if labels is None or not same else tuple(labels))
        for name, (dimension, labels) in entry["coordinates"].items()
    }
    return Known(
        numbers={name: tuple(dimensions) for name, dimensions in entry["numbers"].items()},
        others=tuple(entry["others"]),
        coordinates=coordinates,
        sizes=entry["sizes"] if same else {},
    )
